//! The tools of a registry, beside those that every sandbox has.

use rmcp::{
    RoleServer,
    model::{CallToolResult, ContentBlock, JsonObject, Tool},
    service::RequestContext,
};
use serde_json::Value;
use zareba_tools::{Arguments, Call, Origin, Registry, Returned, ToolError};

use super::{
    answer::{Answer, TEXT_CHARS_MAX, middle_cut},
    catalog::BuiltIn,
    watch,
};

/// What the registry has. A name that every sandbox has means the sandbox's own.
pub(super) fn list(registry: &Registry) -> Vec<Tool> {
    let definitions = registry.list().into_iter();
    let free = definitions.filter(|tool| BuiltIn::of_name(tool.name.as_str()).is_none());
    free.filter_map(|tool| serde_json::from_value(tool.mcp()).ok())
        .collect()
}

/// Calls a tool; `None` when there is none of that name. A client that calls it off ends the call.
pub(super) async fn call(
    registry: &Registry,
    name: &str,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> Option<CallToolResult> {
    let tool = registry.get(name)?;
    let call = Call::new(Arguments::named(arguments));
    let mut called = Box::pin(registry.call(name, call));
    let outcome = watch::until_cancelled(&mut called, context).await;
    Some(match outcome {
        Some(Ok(returned)) => match &tool.definition().origin {
            Origin::Mcp { .. } => passed_on(returned),
            Origin::Rust | Origin::Python { .. } | Origin::Command { .. } => told(&returned),
        },
        Some(Err(error)) => failed(&error),
        None => Answer::failed("cancelled", "the call was called off").into_result(),
    })
}

/// A result of another server, with its texts cut to what a model can read.
fn passed_on(returned: Returned) -> CallToolResult {
    let Ok(mut result) = serde_json::from_value::<CallToolResult>(returned.value()) else {
        return told(&returned);
    };
    let mut left = TEXT_CHARS_MAX;
    for block in &mut result.content {
        if let ContentBlock::Text(text) = block {
            text.text = middle_cut(&text.text, left);
            left = left.saturating_sub(text.text.chars().count());
        }
    }
    // Where the texts were cut, the same in another form would not help.
    let structured = result.structured_content.as_ref().map(Value::to_string);
    if structured.is_some_and(|text| text.chars().count() > TEXT_CHARS_MAX) {
        result.structured_content = None;
    }
    result
}

/// What a tool returned, then what it printed.
fn told(returned: &Returned) -> CallToolResult {
    let mut text = match returned.value() {
        Value::String(text) => text,
        value => value.to_string(),
    };
    for (stream, printed) in [("stdout", &returned.stdout), ("stderr", &returned.stderr)] {
        if !printed.is_empty() {
            text.push_str(&format!("\n[{stream}]\n{printed}"));
        }
    }
    Answer::new(text).into_result()
}

fn failed(error: &ToolError) -> CallToolResult {
    let traceback = match error {
        ToolError::Raised(exception) => exception.traceback.as_str(),
        _ => "",
    };
    let text = format!("{error}\n{traceback}");
    Answer::failed(error.class().as_str(), text.trim_end()).into_result()
}
