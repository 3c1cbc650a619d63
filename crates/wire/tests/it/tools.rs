//! Servers of tools: pushed, connected to, and talked with.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use zareba_wire::Endpoint;

use crate::{
    fake::{Running, keyed, start},
    http::{Ask, Wire, connect, get, post},
};

const KEY: &str = "testkey";

fn with_both_keys(ask: Ask) -> Ask {
    ask.key(KEY)
        .header("Authorization", &format!("Bearer {KEY}"))
}

async fn push(server: &Running, servers: Value) -> (u16, Value) {
    let ask = post("/update_mcp_server").key(KEY).json(&servers);
    let answer = ask.of(&server.endpoint).await;
    (answer.status, answer.json())
}

fn program(name: &str, command: &str) -> Value {
    json!({"name": name, "command": command, "args": ["a"], "env": {"B": "1"}})
}

/// A stream that is open, and what came on it.
struct Stream {
    wire: Box<dyn Wire>,
    received: String,
}

impl Stream {
    async fn open(endpoint: &Endpoint, target: &str) -> Self {
        let mut wire = connect(endpoint).await;
        let ask = with_both_keys(get(target));
        wire.write_all(&ask.bytes()).await.unwrap();
        let received = String::new();
        Self { wire, received }
    }

    /// Reads until a text has come, and returns what follows it in its line.
    async fn until(&mut self, text: &str) -> String {
        loop {
            if let Some((_, rest)) = self.received.split_once(text)
                && let Some((line, _)) = rest.split_once('\n')
            {
                return line.trim_end().to_owned();
            }
            let mut piece = [0; 1024];
            let count = self.wire.read(&mut piece).await.unwrap();
            assert_ne!(count, 0, "the stream ended: {}", self.received);
            self.received
                .push_str(std::str::from_utf8(&piece[..count]).unwrap());
        }
    }
}

#[tokio::test]
async fn a_client_is_told_where_to_post_and_gets_its_answers_on_the_stream() {
    let server = start(keyed(KEY));
    assert_eq!(
        push(&server, json!([program("one", "python3")])).await.0,
        200
    );
    for (target, posts) in [("/mcp/sse", "/mcp/messages/"), ("/sse", "/messages/")] {
        let mut stream = Stream::open(&server.endpoint, target).await;
        let address = stream.until("event: endpoint\ndata: ").await;
        assert!(stream.received.contains("text/event-stream; charset=utf-8"));
        let (path, name) = address.split_once("?session_id=").unwrap();
        assert_eq!((path, name.len()), (posts, 32));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let ask = with_both_keys(post(&address)).json(&message);
        assert_eq!(ask.of(&server.endpoint).await.status, 202);
        let answer = stream.until("event: message\ndata: ").await;
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), message);
        let ask = with_both_keys(post(&address)).body("application/json", b"{");
        assert_eq!(ask.of(&server.endpoint).await.status, 400);
    }
    server.stop().await;
}

#[tokio::test]
async fn there_is_nothing_to_connect_to_before_something_is_pushed() {
    let server = start(keyed(KEY));
    let ask = with_both_keys(get("/mcp/sse"));
    assert_eq!(ask.of(&server.endpoint).await.status, 404);
    let nobody = format!("/mcp/messages/?session_id={}", "0".repeat(32));
    let ask = with_both_keys(post(&nobody)).json(&json!({}));
    assert_eq!(ask.of(&server.endpoint).await.status, 404);
    let ask = with_both_keys(post("/mcp/messages/")).json(&json!({}));
    assert_eq!(ask.of(&server.endpoint).await.status, 400);
    server.stop().await;
}

#[tokio::test]
async fn what_is_pushed_takes_the_place_of_what_was_and_what_fails_is_told() {
    let server = start(keyed(KEY));
    let both = json!([program("one", "broken"), program("two", "python3")]);
    let told = json!({
        "detail": "MCP server updated successfully",
        "router_error_log": "one is broken",
    });
    assert_eq!(push(&server, both).await, (200, told));
    assert_eq!(
        server
            .service
            .tools
            .pushed
            .lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(push(&server, json!([])).await.0, 200);
    assert_eq!(
        *server.service.tools.pushed.lock().unwrap(),
        Some(Vec::new())
    );
    for wrong in [
        program("a b", "python3"),
        program("", "python3"),
        program("one", ""),
        program("one", "python3 x"),
        json!({"name": "one"}),
        json!("one"),
    ] {
        assert_eq!(push(&server, json!([wrong])).await.0, 500, "{wrong}");
    }
    server.stop().await;
}
