//! Tools that every session has beside those that are added to it: those of MCP servers that the
//! operator has named, and the action by which OpenHands' agents call them.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use serde_json::{Value, json};
use zareba_protocol::{CallTool, Observation, ObservationEvent, ObservationKind};
use zareba_tools::{Arguments, Call, Origin, Place, Returned, Tool, ToolError};
use zareba_wire::BoxFuture;

use super::SessionPlace;
use crate::{Owner, conductor::Conductor, event};

/// Where tools come from that every session has.
pub trait ToolSource: Send + Sync {
    /// The supply of one session, which belongs to that owner and whose sandbox is the place. Asked
    /// for once, when the session first needs it.
    fn open(&self, owner: &Owner, place: Arc<dyn Place>) -> Arc<dyn ToolSupply>;
}

/// Where one session's tools come from.
pub trait ToolSupply: Send + Sync {
    /// The tools that are new, or are defined otherwise, since this was asked last; at first all.
    /// What does not work is left out, and tried again some time when this is asked again. It is
    /// asked often, and costs nothing when there is nothing to be done.
    fn look(&self) -> BoxFuture<'_, Vec<Arc<dyn Tool>>>;
}

impl Conductor {
    /// Sees to it that the tools of the source, if there is one, are in the registry, with what
    /// came since somebody asked last.
    pub(crate) async fn source_tools(self: &Arc<Self>) {
        let Some(source) = self.common.tool_source.get() else {
            return;
        };
        let open = || source.open(&self.facts.owner, Arc::new(SessionPlace::of(self, None)));
        let supply = self.tools.supply.get_or_init(open);
        let _only = self.tools.looking.lock().await;
        for tool in supply.look().await {
            if let Err(error) = self.tools.registry.replace(tool) {
                tracing::warn!(session = %self.id, %error, "a tool of a server is left out");
            }
        }
    }

    /// Calls a tool of an MCP server; `None` when the server ends before anything is known.
    pub(crate) async fn call_tool_mcp(
        self: &Arc<Self>,
        number: u64,
        call: &CallTool,
        timeout: Option<Duration>,
    ) -> Option<ObservationEvent> {
        let run = async {
            if let Err(error) = self.awake().await.map(drop) {
                return event::failure_of(&error);
            }
            let mut name = self.mcp_tool(&call.name);
            if name.is_none() {
                self.source_tools().await;
                name = self.mcp_tool(&call.name);
            }
            let Some(name) = name else {
                return Observation::error(self.no_mcp_tool(&call.name)).into();
            };
            let asked = Call {
                arguments: Arguments::named(call.arguments.clone()),
                timeout,
                // Its server knows best what it takes, and says so in its own words.
                is_validated: false,
            };
            let result = self.tools.registry.call(&name, asked).await;
            answer(call, result).into()
        };
        self.until_unwanted(number, run).await
    }

    /// The tool that a name means: that of the registry, or the first server's that has one of
    /// that name itself.
    fn mcp_tool(&self, name: &str) -> Option<String> {
        let tools = self.tools.registry.list();
        let mut of_servers = tools.iter().filter_map(|tool| match &tool.origin {
            Origin::Mcp { server } => Some((tool.name.as_str(), server.as_str())),
            Origin::Rust | Origin::Python { .. } | Origin::Command { .. } => None,
        });
        let exact = of_servers.clone().find(|(full, _)| *full == name);
        let found = exact.or_else(|| {
            of_servers.find(|(full, server)| {
                let own = full.strip_prefix(server);
                own.and_then(|own| own.strip_prefix('_')) == Some(name)
            })
        });
        found.map(|(full, _)| full.to_owned())
    }

    fn no_mcp_tool(&self, name: &str) -> String {
        let tools = self.tools.registry.list();
        let has_servers = tools
            .iter()
            .any(|tool| matches!(tool.origin, Origin::Mcp { .. }));
        match has_servers {
            true => format!("No matching MCP agent found for tool name: {name}"),
            false => "No MCP servers configured".to_owned(),
        }
    }
}

/// The observation of OpenHands' contract: the result as the text that Python would write.
fn answer(call: &CallTool, result: Result<Returned, ToolError>) -> Observation {
    let content = match result {
        Ok(returned) => as_openhands(returned.value()),
        Err(ToolError::TimedOut { limit, .. }) => refusal(format!(
            "Tool \"{}\" timed out after {} seconds",
            call.name,
            limit.as_secs_f64()
        )),
        Err(error) => refusal(error.to_string()),
    };
    Observation {
        content: python_json(&content),
        kind: ObservationKind::Mcp {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    }
}

fn refusal(error: String) -> Value {
    json!({ "isError": true, "error": error, "content": [] })
}

/// A result with the keys that theirs has, also those that say nothing.
fn as_openhands(mut result: Value) -> Value {
    let mut content = result.get_mut("content").map_or(Value::Null, Value::take);
    for block in content.as_array_mut().into_iter().flatten() {
        if let Some(block) = block.as_object_mut() {
            for key in ["annotations", "meta"] {
                block.entry(key).or_insert(Value::Null);
            }
        }
    }
    let take = |key: &str| result.get(key).cloned().unwrap_or_default();
    json!({
        "meta": take("_meta"),
        "content": content,
        "structuredContent": take("structuredContent"),
        "isError": result.get("isError") == Some(&Value::Bool(true)),
    })
}

/// JSON with a space behind each colon and comma, as Python writes it. What came through a parser
/// is no deeper than that allows.
fn python_json(value: &Value) -> String {
    let mut text = String::new();
    write_python(value, &mut text);
    text
}

fn write_python(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write_python(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (name, item)) in members.iter().enumerate() {
                let gap = if index == 0 { "" } else { ", " };
                // Writing to a string cannot fail.
                let _ = write!(text, "{gap}{}: ", Value::from(name.as_str()));
                write_python(item, text);
            }
            text.push('}');
        }
        plain => {
            let _ = write!(text, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CallTool {
        CallTool::new("add", Default::default())
    }

    #[test]
    fn a_result_reads_as_in_the_contract() {
        let result = json!({
            "content": [{"type": "text", "text": "3"}],
            "structuredContent": {"result": 3},
            "isError": false,
        });
        let observation = answer(&call(), Ok(Returned::of(&result)));
        assert_eq!(
            observation.content,
            "{\"meta\": null, \"content\": [{\"type\": \"text\", \"text\": \"3\", \"annotations\": \
             null, \"meta\": null}], \"structuredContent\": {\"result\": 3}, \"isError\": false}"
        );
        assert_eq!(observation.kind_name(), "mcp");
    }

    #[test]
    fn a_timeout_is_an_answer_as_well() {
        let late = ToolError::TimedOut {
            tool: "s_add".to_owned(),
            limit: Duration::from_secs(2),
        };
        assert_eq!(
            answer(&call(), Err(late)).content,
            "{\"isError\": true, \"error\": \"Tool \\\"add\\\" timed out after 2 seconds\", \
             \"content\": []}"
        );
    }
}
