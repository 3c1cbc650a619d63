//! Our server by streamable HTTP: who may come in, and that those who may are served.

use std::{collections::HashMap, net::SocketAddr};

use reqwest::{Client, RequestBuilder, StatusCode};
use rmcp::{
    ServiceExt as _,
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};
use zareba_mcp::{
    client::{McpServers, Naming, Pins, RemoteKey, ServerSpec},
    server::{HttpOptions, HttpServer, Token},
};

use crate::fixture::{Bench, call, text};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Running {
    url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(bench: &Bench) -> Self {
        Self::start_on(bench, [127, 0, 0, 1])
    }

    fn start_on(bench: &Bench, address: [u8; 4]) -> Self {
        // The program installs it; other tests may have done so in this process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = HttpOptions {
            address: SocketAddr::from((address, 0)),
            token: Token::new(TOKEN).unwrap(),
            origins: vec!["http://localhost:6274".to_owned()],
        };
        let server = HttpServer::bind(options).unwrap();
        let url = server.url();
        let (stop, stopped) = oneshot::channel();
        let tools = bench.server();
        let task = tokio::spawn(async move {
            server.serve(tools, async { drop(stopped.await) }).await;
        });
        Self { url, stop, task }
    }

    fn ask(&self) -> RequestBuilder {
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        Client::new()
            .post(&self.url)
            .header("accept", "application/json, text/event-stream")
            .json(&begin)
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

#[tokio::test]
async fn only_those_with_the_token_come_in_and_no_pages_of_others() {
    let bench = Bench::new().await;
    let running = Running::start(&bench);
    let bearer = format!("Bearer {TOKEN}");
    let status = async |headers: &[(&'static str, &str)]| {
        let headers = headers.iter();
        let request = headers.fold(running.ask(), |ask, (name, value)| {
            ask.header(*name, *value)
        });
        request.send().await.unwrap().status()
    };
    let token = ("authorization", bearer.as_str());
    assert_eq!(status(&[token]).await, StatusCode::OK);
    assert_eq!(status(&[]).await, StatusCode::UNAUTHORIZED);
    assert_eq!(
        status(&[("authorization", "Bearer x")]).await,
        StatusCode::UNAUTHORIZED
    );
    let origin = |origin| [token, ("origin", origin)];
    assert_eq!(
        status(&origin("http://localhost:6274")).await,
        StatusCode::OK
    );
    for foreign in ["http://evil.example", "null", "http://localhost:1"] {
        assert_eq!(
            status(&origin(foreign)).await,
            StatusCode::FORBIDDEN,
            "{foreign}"
        );
    }
    let rebound = [token, ("host", "evil.example")];
    // HS-5: as everywhere else; a foreign origin is refused as the protocol asks.
    assert_eq!(status(&rebound).await, StatusCode::MISDIRECTED_REQUEST);
    running.stop().await;
    bench.close().await;
}

#[tokio::test]
async fn a_client_ends_its_session_with_an_answer_that_it_understands() {
    let bench = Bench::new().await;
    let running = Running::start(&bench);
    let begun = running.ask().bearer_auth(TOKEN).send().await.unwrap();
    let session = begun.headers()["mcp-session-id"].clone();
    let end = async || {
        let end = Client::new().delete(&running.url).bearer_auth(TOKEN);
        let end = end.header("mcp-session-id", &session).send().await.unwrap();
        (end.status(), end.text().await.unwrap())
    };
    assert_eq!(end().await, (StatusCode::NO_CONTENT, String::new()));
    running.stop().await;
    bench.close().await;
}

#[tokio::test]
async fn another_address_of_this_machine_can_be_named_as_it_was_told() {
    let bench = Bench::new().await;
    let running = Running::start_on(&bench, [127, 0, 0, 2]);
    assert!(running.url.starts_with("http://127.0.0.2:"));
    let asked = running.ask().bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(asked.status(), StatusCode::OK);
    running.stop().await;
    bench.close().await;
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = HttpOptions {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            token: Token::new(TOKEN).unwrap(),
            origins: Vec::new(),
        };
        assert!(HttpServer::bind(options).is_err());
    });
}

#[tokio::test]
async fn clients_of_the_sdk_are_served_side_by_side() {
    let bench = Bench::new().await;
    let running = Running::start(&bench);
    let connect = async || {
        let config = StreamableHttpClientTransportConfig::with_uri(running.url.as_str());
        let config = config.auth_header(TOKEN).custom_headers(HashMap::new());
        let transport = StreamableHttpClientTransport::with_client(Client::new(), config);
        ().serve(transport).await.unwrap()
    };
    let (one, two) = (connect().await, connect().await);
    call(&one, "run_command", json!({"command": "X=1"})).await;
    let seen = text(&call(&two, "run_command", json!({"command": "echo $X"})).await);
    assert!(seen.starts_with("1\n"), "{seen}");
    one.cancel().await.unwrap();
    two.cancel().await.unwrap();
    running.stop().await;
    bench.close().await;
}

#[tokio::test]
async fn our_client_takes_tools_of_servers_that_are_reached_by_http() {
    let bench = Bench::new().await;
    let running = Running::start(&bench);
    let spec = ServerSpec::http(&running.url, RemoteKey::new(TOKEN)).unwrap();
    let servers = McpServers::connect(vec![spec], None, Pins::in_memory(), Naming::Prefixed).await;
    assert_eq!(servers.problems(), []);
    let tools = servers.tools();
    let named = |tool: &&std::sync::Arc<dyn zareba_tools::Tool>| {
        tool.definition().name.as_str() == "127_0_0_1_run_command"
    };
    let run = tools.iter().find(named).unwrap();
    let arguments = json!({"command": "echo over http"});
    let arguments = zareba_tools::Arguments::named(arguments.as_object().cloned().unwrap());
    let returned = run.call(zareba_tools::Call::new(arguments)).await.unwrap();
    let value: Value = returned.value();
    assert!(
        value["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("over http\n"),
        "{value}"
    );
    servers.close().await;
    running.stop().await;
    bench.close().await;
}

#[tokio::test]
async fn an_address_that_cannot_be_reached_is_not_told_with_its_secrets() {
    // Nobody listens there any more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://user:swordfish@{address}/mcp?token=opensesame");
    let specs = vec![
        ServerSpec::http(&url, None).unwrap(),
        ServerSpec::events(&url, None).unwrap(),
    ];
    let specs = ServerSpec::with_names_apart(specs);
    let servers = McpServers::connect(specs, None, Pins::in_memory(), Naming::Prefixed).await;
    assert_eq!(servers.problems().len(), 2);
    for problem in servers.problems() {
        let told = problem.to_string();
        assert!(told.contains("error sending request"), "{told}");
        for secret in ["swordfish", "opensesame"] {
            assert!(!told.contains(secret), "{told}");
        }
    }
}
