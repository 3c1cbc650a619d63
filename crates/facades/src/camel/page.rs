//! The page at `/docs`: the tools with their arguments, for people. It loads nothing from
//! anywhere.

use serde_json::Value;
use zareba_tools::ToolDefinition;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;\
padding:0 1em}h2{font:bold 1.1em ui-monospace,monospace;border-top:1px solid #ccc;\
padding-top:1em}pre{background:#f4f4f4;color:#111;padding:.7em;overflow:auto}\
p{white-space:pre-wrap}";

/// The page for these tools.
pub(super) fn of(tools: &[ToolDefinition]) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Tools</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Tools</h1>\n\
         <p>Each is called with POST and a JSON body: arguments by position in <code>args</code>, \
         by name in <code>kwargs</code>. The answer has the result as JSON in <code>output</code>. \
         The same for programs: <a href=\"openapi.json\">openapi.json</a>.</p>\n"
    );
    if tools.is_empty() {
        page.push_str("<p>There are none.</p>\n");
    }
    for tool in tools {
        page.push_str(&section(tool));
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn section(tool: &ToolDefinition) -> String {
    let name = escaped(tool.name.as_str());
    let description = escaped(tool.description.trim());
    let schema = serde_json::to_string_pretty(&tool.parameters).unwrap_or_default();
    let schema = escaped(&schema);
    let example = escaped(&example(tool));
    format!(
        "<h2>POST /{name}</h2>\n<p>{description}</p>\n<pre>{example}</pre>\n\
         <details><summary>Arguments</summary><pre>{schema}</pre></details>\n"
    )
}

/// A body with every argument by its name, to begin with.
fn example(tool: &ToolDefinition) -> String {
    let properties = tool.parameters["properties"].as_object();
    let arguments = properties.into_iter().flatten().map(|(name, schema)| {
        let value = match schema["type"].as_str() {
            Some("integer" | "number") => Value::from(0),
            Some("boolean") => Value::from(false),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => Value::Object(serde_json::Map::new()),
            _ => Value::from(""),
        };
        (name.clone(), value)
    });
    let kwargs: serde_json::Map<String, Value> = arguments.collect();
    serde_json::json!({ "args": [], "kwargs": kwargs }).to_string()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zareba_tools::{Origin, ToolName};

    use super::*;

    /// G-1: descriptions come out of a sandbox.
    #[test]
    fn what_a_tool_says_of_itself_is_text_and_nothing_else_g_1() {
        let hostile = "<script>alert(1)</script> & \"'";
        let tool = ToolDefinition {
            name: ToolName::try_from("t").unwrap(),
            description: hostile.to_owned(),
            parameters: json!({ "properties": { hostile: { "type": "integer" } } }),
            accepts: None,
            origin: Origin::Rust,
        };
        let page = of(&[tool]);
        assert!(!page.contains("<script"), "{page}");
        let shown = "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;&#39;";
        assert!(page.contains(shown), "{page}");
    }
}
