//! Tools that every session has, by the action of OpenHands' contract and by ours.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use zareba_protocol::{Action, ActionEvent, CallTool, UseTool};
use zareba_session::{Owner, ToolSource, ToolSupply};
use zareba_tools::{Call, Origin, Place as ToolPlace, Returned, Tool, ToolDefinition, ToolError};
use zareba_wire::BoxFuture;

use crate::fixture::{Place, observe, on, owner};

/// A server with one tool, `echo`, which returns results as servers do.
struct Echo {
    definition: ToolDefinition,
}

/// Opens supplies that have something at each of their looks from a number on.
#[derive(Default)]
struct Source {
    opened: AtomicUsize,
    owners: Mutex<Vec<Owner>>,
    first_look: usize,
}

struct Supply {
    looks: AtomicUsize,
    first_look: usize,
}

impl ToolSource for Source {
    fn open(&self, owner: &Owner, _place: Arc<dyn ToolPlace>) -> Arc<dyn ToolSupply> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.owners.lock().unwrap().push(owner.clone());
        Arc::new(Supply {
            looks: AtomicUsize::new(0),
            first_look: self.first_look,
        })
    }
}

impl ToolSupply for Supply {
    fn look(&self) -> BoxFuture<'_, Vec<Arc<dyn Tool>>> {
        if self.looks.fetch_add(1, Ordering::SeqCst) < self.first_look {
            return Box::pin(std::future::ready(Vec::new()));
        }
        let definition = ToolDefinition {
            name: "server_echo".try_into().unwrap(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            accepts: None,
            origin: Origin::Mcp {
                server: "server".to_owned(),
            },
        };
        let tool: Arc<dyn Tool> = Arc::new(Echo { definition });
        Box::pin(std::future::ready(vec![tool]))
    }
}

impl Tool for Echo {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Returned, ToolError>> {
        Box::pin(async move {
            let said = call
                .arguments
                .named
                .get("text")
                .cloned()
                .unwrap_or_default();
            if said == "never" {
                let limit = call.timeout.unwrap_or(Duration::MAX);
                tokio::time::sleep(limit).await;
                let tool = "server_echo".to_owned();
                return Err(ToolError::TimedOut { tool, limit });
            }
            let result = json!({"content": [{"type": "text", "text": said}], "isError": false});
            Ok(Returned::of(&result))
        })
    }
}

fn calling(name: &str, text: &str) -> ActionEvent {
    let arguments = json!({ "text": text });
    let arguments = arguments.as_object().cloned().unwrap();
    Action::CallToolMcp(CallTool::new(name, arguments)).into()
}

fn content(observation: &Value) -> Value {
    serde_json::from_str(observation["content"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn tools_of_servers_are_called_by_either_name_and_connected_once() {
    let place = Place::new();
    let sessions = place.serve().await;
    let source = Arc::new(Source::default());
    sessions.set_tool_source(Arc::clone(&source) as _);
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    assert_eq!(source.opened.load(Ordering::SeqCst), 0);
    for name in ["echo", "server_echo"] {
        let observation = observe(&session, calling(name, "hello")).await;
        assert_eq!(observation["observation"], "mcp", "{observation}");
        assert_eq!(observation["extras"]["name"], name);
        let expected = json!({
            "meta": null,
            "content": [{"type": "text", "text": "hello", "annotations": null, "meta": null}],
            "structuredContent": null,
            "isError": false,
        });
        assert_eq!(content(&observation), expected);
    }
    let ours = UseTool::new("server_echo", Default::default());
    let observation = observe(&session, Action::CallTool(ours)).await;
    assert_eq!(observation["observation"], "tool", "{observation}");
    assert_eq!(session.tools().sourced().await.list().len(), 1);
    assert_eq!(source.opened.load(Ordering::SeqCst), 1);
    assert_eq!(*source.owners.lock().unwrap(), [owner()]);
    session.close().await.unwrap();
}

#[tokio::test]
async fn servers_that_were_away_are_asked_again_at_the_next_use() {
    let place = Place::new();
    let sessions = place.serve().await;
    sessions.set_tool_source(Arc::new(Source {
        first_look: 2,
        ..Source::default()
    }));
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let away = observe(&session, calling("echo", "")).await;
    assert_eq!(away["content"], "No MCP servers configured");
    let ours = || Action::CallTool(UseTool::new("server_echo", Default::default()));
    let away = observe(&session, ours()).await;
    assert_eq!(away["extras"]["error"]["class"], "not_found", "{away}");
    let back = observe(&session, ours()).await;
    assert_eq!(back["success"], true, "{back}");
    session.close().await.unwrap();
}

#[tokio::test]
async fn what_is_not_there_or_takes_too_long_is_told_in_the_words_of_the_contract() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let none = observe(&session, calling("echo", "")).await;
    assert_eq!(none["content"], "No MCP servers configured");
    sessions.set_tool_source(Arc::new(Source::default()));
    let other = observe(&session, calling("nope", "")).await;
    assert_eq!(
        (&other["observation"], &other["content"]),
        (
            &json!("error"),
            &json!("No matching MCP agent found for tool name: nope")
        )
    );
    let late = observe(&session, calling("echo", "never").with_timeout(0.2)).await;
    let expected = json!({
        "isError": true,
        "error": "Tool \"echo\" timed out after 0.2 seconds",
        "content": [],
    });
    assert_eq!(content(&late), expected);
    session.close().await.unwrap();
}
