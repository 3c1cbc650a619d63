//! CAMEL's tool server over real tools: a Python interpreter in the sandbox of a session.

use std::{path::Path, sync::Arc, time::Duration};

use http::StatusCode;
use reqwest::{Client, Method, RequestBuilder, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use zareba_facades::camel::{
    Access, Camel, CamelOptions, CamelServer, LoadedTools, Toolbox, ToolsOfSession,
};
use zareba_session::{NewSession, NewTools, Owner, Requester, Session, Sessions};
use zareba_tools::{Entrypoint, PythonHost, PythonOptions, Registry};
use zareba_wire::{Endpoint, serving::ServerLimits};

use crate::provider::{Kind, sessions};

/// Plain functions and a toolkit; nothing of CAMEL has to be installed for these.
const MODULE: &str = r#"
import os, sys, threading, time

def add(a: int, b: int = 1) -> int:
    """Adds two numbers.

    Args:
        a (int): The first.
        b (int): The second.
    """
    return a + b

def echo(value):
    """Returns what it is given."""
    return value

def fails(text: str):
    """Raises."""
    raise ValueError(text)

def prints(word: str):
    """Prints thirty lines."""
    for number in range(30):
        print(word, number)
        time.sleep(0.001)

async def later(value: int) -> int:
    """Is awaited."""
    return value + 1

def not_finite():
    """Returns what JSON has not."""
    return [float('nan'), float('-inf')]

def no_json():
    """Returns a set."""
    return {1}

def exits():
    """Exits."""
    sys.exit(1)

def dies():
    """Dies."""
    os._exit(1)

STARTED = threading.Event()
ENDED = threading.Event()

def lingers():
    """Runs until it is stopped."""
    STARTED.set()
    try:
        while True:
            time.sleep(0.01)
    finally:
        ENDED.set()

def lingered() -> bool:
    """Waits until that has ended."""
    return STARTED.wait(20) and ENDED.wait(20)

class Counter:
    """A toolkit, by what it has."""
    def __init__(self, start=0, **more):
        self.value, self.more = start, more
    def count(self) -> int:
        """Counts."""
        self.value += 1
        return self.value
    def get_tools(self):
        return [self.count]

TOOLS = [add, echo, fails, prints, later, not_finite, no_json, exits, dies, lingers, lingered]
"#;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const COUNTER: &str = r#"sample.Counter{"start": 5, "nested": {"a": {"b": [1]}}}"#;

/// A session whose workspace has the module, and what keeps it.
struct Stage {
    session: Arc<Session>,
    sessions: Sessions,
    _state: TempDir,
}

impl Stage {
    async fn start() -> Self {
        let (sessions, state) = sessions(Kind::Cli).await;
        let owner = Owner("ann".to_owned());
        let made = sessions.create_ready(NewSession::default(), owner).await;
        let session = made.unwrap();
        let workspace = session.info().workspace;
        std::fs::write(Path::new(&workspace).join("sample.py"), MODULE).unwrap();
        Self {
            session,
            sessions,
            _state: state,
        }
    }

    async fn load(&self, entrypoints: &[&str]) -> LoadedTools {
        let entrypoints = entrypoints_of(entrypoints);
        let place = self.session.tools().place();
        let options = PythonOptions::default();
        let (host, loaded) = PythonHost::start(place, entrypoints, options)
            .await
            .unwrap();
        let registry = Registry::new();
        registry.add_all(host.tools()).unwrap();
        LoadedTools { registry, loaded }
    }

    async fn stop(self) {
        self.session.close().await.unwrap();
        self.sessions.shut_down(Duration::from_secs(10)).await;
    }
}

fn entrypoints_of(texts: &[&str]) -> Vec<Entrypoint> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A running tool server.
struct Server {
    url: String,
    http: Client,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Server {
    fn start(tools: impl Toolbox + 'static, options: CamelOptions, access: Access) -> Self {
        let server = CamelServer::bind(([127, 0, 0, 1], 0).into(), access).unwrap();
        let url = server.endpoint().to_string();
        let (shutdown, wanted) = oneshot::channel::<()>();
        let camel = Camel::new(Arc::new(tools), options);
        let serving = tokio::spawn(async move {
            let wanted = async { drop(wanted.await) };
            server.serve(camel, &ServerLimits::default(), wanted).await;
        });
        // Needed to make any client, though nothing here uses TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let redirects = reqwest::redirect::Policy::none();
        Self {
            url,
            http: Client::builder()
                .no_proxy()
                .redirect(redirects)
                .build()
                .unwrap(),
            shutdown: Some(shutdown),
            serving,
        }
    }

    fn open(tools: impl Toolbox + 'static) -> Self {
        Self::start(tools, CamelOptions::default(), Access::Loopback)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        told(self.request(Method::GET, path)).await
    }

    async fn call(&self, name: &str, args: Value) -> (u16, Value) {
        self.ask(name, json!({ "args": args, "kwargs": {} })).await
    }

    async fn ask(&self, name: &str, body: Value) -> (u16, Value) {
        let request = self.request(Method::POST, &format!("/{name}")).json(&body);
        let (status, text) = told(request).await;
        (
            status.as_u16(),
            serde_json::from_str(&text).unwrap_or(Value::from(text)),
        )
    }

    async fn stop(mut self) {
        drop(self.shutdown.take());
        (&mut self.serving).await.unwrap();
    }
}

async fn told(request: RequestBuilder) -> (StatusCode, String) {
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

fn failure(message: &str) -> (u16, Value) {
    let body = json!({ "detail": "Internal Server Error", "error_message": message });
    (500, body)
}

#[tokio::test]
async fn tools_are_called_and_fail_as_the_contract_says() {
    let stage = Stage::start().await;
    let server = Server::open(stage.load(&["sample.TOOLS", COUNTER]).await);
    let output = |text: &str| (200, json!({ "output": text }));
    assert_eq!(server.call("add", json!([1, 2])).await, output("3"));
    let named = json!({ "args": [1], "kwargs": { "b": 5 }, "unknown": null });
    assert_eq!(server.ask("add", named).await, output("6"));
    assert_eq!(
        server.call("add", json!(["a", "b"])).await,
        output("\"ab\"")
    );
    let nested = json!([{ "é": [1, 2.0, null] }]);
    assert_eq!(
        server.call("echo", nested).await,
        output("{\"é\": [1, 2.0, null]}")
    );
    assert_eq!(
        server.call("not_finite", json!([])).await,
        output("[NaN, -Infinity]")
    );
    assert_eq!(server.call("later", json!([41])).await, output("42"));
    assert_eq!(server.call("count", json!([])).await, output("6"));
    assert_eq!(server.call("count", json!([])).await, output("7"));

    assert_eq!(
        server.call("fails", json!(["boom é"])).await,
        failure("boom é")
    );
    let set = "Object of type set is not JSON serializable";
    assert_eq!(server.call("no_json", json!([])).await, failure(set));
    let arity = "add() missing 1 required positional argument: 'a'";
    assert_eq!(server.call("add", json!([])).await, failure(arity));
    let plain = (500, json!("Internal Server Error"));
    assert_eq!(server.call("exits", json!([])).await, plain);
    let (status, died) = server.call("dies", json!([])).await;
    assert_eq!(
        (status, &died["detail"]),
        (500, &json!("Internal Server Error"))
    );
    // The host began anew.
    assert_eq!(server.call("count", json!([])).await, output("6"));
    server.stop().await;
    stage.stop().await;
}

#[tokio::test]
async fn each_call_gets_what_it_printed_itself() {
    let stage = Stage::start().await;
    let server = Server::open(stage.load(&["sample.TOOLS"]).await);
    let words = ["one", "two", "three", "four", "five", "six"];
    let calls = words.map(|word| {
        let body = json!({ "args": [word], "kwargs": {}, "redirect_stdout": true });
        server.ask("prints", body)
    });
    for (word, answer) in words
        .iter()
        .zip(futures_util::future::join_all(calls).await)
    {
        let lines: String = (0..30).map(|number| format!("{word} {number}\n")).collect();
        assert_eq!(answer, (200, json!({ "output": "null", "stdout": lines })));
    }
    server.stop().await;
    stage.stop().await;
}

#[tokio::test]
async fn routes_methods_and_slashes_are_those_of_the_original() {
    let stage = Stage::start().await;
    let server = Server::open(stage.load(&["sample.add", COUNTER]).await);
    let health = json!({ "status": "ok", "toolkits": [COUNTER], "endpoints": ["add", "count"] });
    assert_eq!(
        server.get("/health").await,
        (StatusCode::OK, health.to_string())
    );
    let not_found = (
        StatusCode::NOT_FOUND,
        r#"{"detail":"Not Found"}"#.to_owned(),
    );
    for path in ["/", "/nope", "/nope/", "//health"] {
        assert_eq!(server.get(path).await, not_found, "{path}");
    }
    for (method, path, allowed) in [
        (Method::POST, "/health", "GET"),
        (Method::HEAD, "/health", "GET"),
        (Method::GET, "/add", "POST"),
        (Method::PUT, "/add", "POST"),
        (Method::OPTIONS, "/add", "POST"),
        (Method::POST, "/docs", "GET, HEAD"),
    ] {
        let response = server.request(method.clone(), path).send().await.unwrap();
        let told = (
            response.status().as_u16(),
            response.headers()[header::ALLOW].to_str().unwrap(),
        );
        assert_eq!(told, (405, allowed), "{method} {path}");
    }
    for (path, location) in [("/health/", "/health"), ("/add/?x=1", "/add?x=1")] {
        let response = server.request(Method::POST, path).send().await.unwrap();
        let told = (
            response.status().as_u16(),
            response.headers()[header::LOCATION].to_str().unwrap(),
        );
        assert_eq!(told, (307, location));
    }
    server.stop().await;
    stage.stop().await;
}

#[tokio::test]
async fn the_document_has_the_schema_of_each_tool_and_the_page_loads_nothing() {
    let stage = Stage::start().await;
    let server = Server::open(stage.load(&["sample.add"]).await);
    let (_, text) = server.get("/openapi.json").await;
    let document: Value = serde_json::from_str(&text).unwrap();
    let schema = &document["components"]["schemas"]["add"];
    assert_eq!(schema["properties"]["a"]["type"], "integer", "{schema}");
    assert_eq!(schema["required"], json!(["a"]), "{schema}");
    let post = &document["paths"]["/add"]["post"];
    let kwargs = &post["requestBody"]["content"]["application/json"]["schema"]["anyOf"][0];
    assert_eq!(
        kwargs["properties"]["kwargs"]["$ref"],
        "#/components/schemas/add"
    );
    for path in ["/docs", "/redoc"] {
        let response = server.request(Method::GET, path).send().await.unwrap();
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str();
        assert!(policy.unwrap().starts_with("default-src 'none'"));
        let page = response.text().await.unwrap();
        assert!(
            page.contains("POST /add") && !page.contains("://"),
            "{page}"
        );
    }
    server.stop().await;
    stage.stop().await;
}

#[tokio::test]
async fn entrypoints_that_gave_nothing_are_told_in_the_health() {
    let stage = Stage::start().await;
    let server = Server::open(
        stage
            .load(&["sample.add", "no.such.Thing", "sample.nope"])
            .await,
    );
    let (_, text) = server.get("/health").await;
    let health: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(health["endpoints"], json!(["add"]));
    let failures = health["failures"].as_array().unwrap();
    let told: Vec<_> = failures
        .iter()
        .map(|it| (&it["entrypoint"], &it["type"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!("no.such.Thing"), &json!("ModuleNotFoundError")),
            (&json!("sample.nope"), &json!("AttributeError")),
        ]
    );
    server.stop().await;
    stage.stop().await;
}

#[tokio::test]
async fn whoever_goes_away_ends_the_call() {
    let stage = Stage::start().await;
    let server = Server::open(stage.load(&["sample.TOOLS"]).await);
    let lingers = server.request(Method::POST, "/lingers");
    let lingers = lingers.json(&json!({ "args": [], "kwargs": {} }));
    let lingers = lingers.timeout(Duration::from_millis(500));
    assert!(lingers.send().await.unwrap_err().is_timeout());
    let ended = (200, json!({ "output": "true" }));
    assert_eq!(server.call("lingered", json!([])).await, ended);
    server.stop().await;
    stage.stop().await;
}

#[tokio::test]
async fn strict_servers_refuse_what_does_not_fit() {
    let stage = Stage::start().await;
    let options = CamelOptions {
        is_strict: true,
        timeout: Some(Duration::from_millis(300)),
        ..CamelOptions::default()
    };
    let tools = stage.load(&["sample.TOOLS"]).await;
    let server = Server::start(tools, options, Access::Loopback);
    assert_eq!(
        server.call("add", json!([1, 2])).await,
        (200, json!({ "output": "3" }))
    );
    let (status, refused) = server.call("add", json!(["a", "b"])).await;
    assert_eq!(status, 422, "{refused}");
    assert_eq!(refused["detail"][0]["type"], "value_error", "{refused}");
    let (status, stopped) = server.call("lingers", json!([])).await;
    assert_eq!(status, 500, "{stopped}");
    let message = stopped["error_message"].as_str().unwrap();
    assert!(message.contains("longer than 0.3 s"), "{message}");
    server.stop().await;
    stage.stop().await;
}

/// HS-5, HS-6: no name that points here, no page from elsewhere; HS-2: a token is compared whole.
#[tokio::test]
async fn strangers_and_pages_from_elsewhere_are_refused_hs_5_hs_6() {
    let stage = Stage::start().await;
    let body = json!({ "args": [1, 2], "kwargs": {} });
    let status = async |server: &Server, name, value: &str| {
        let call = server.request(Method::POST, "/add").json(&body);
        told(call.header(name, value)).await.0.as_u16()
    };
    let server = Server::open(stage.load(&["sample.add"]).await);
    for (name, value, expected) in [
        (header::HOST, "evil.example", 421),
        (header::HOST, "localhost:1", 200),
        (header::ORIGIN, "https://evil.example", 403),
        (header::ORIGIN, "null", 403),
        // Another server of this machine.
        (header::ORIGIN, "http://127.0.0.1:3000", 403),
    ] {
        assert_eq!(status(&server, name, value).await, expected, "{value}");
    }
    assert_eq!(status(&server, header::ORIGIN, &server.url).await, 200);
    server.stop().await;

    let access = Access::Token(TOKEN.to_owned());
    assert_eq!(format!("{access:?}"), "Token(..)");
    let tools = stage.load(&["sample.add"]).await;
    let server = Server::start(tools, CamelOptions::default(), access);
    assert_eq!(server.get("/health").await.0, StatusCode::UNAUTHORIZED);
    for (value, expected) in [
        (TOKEN.to_owned(), 401),
        ("Bearer ".to_owned(), 401),
        (format!("Bearer {}", &TOKEN[1..]), 401),
        (format!("Bearer {TOKEN}x"), 401),
        (format!("Basic {TOKEN}"), 401),
        (format!("bearer {TOKEN}"), 200),
    ] {
        let status = status(&server, header::AUTHORIZATION, &value).await;
        assert_eq!(status, expected, "{value}");
    }
    server.stop().await;
    stage.stop().await;
}

/// HS-3: other addresses are asked for in so many words.
#[tokio::test]
async fn without_a_token_only_this_machine_is_served_hs_3() {
    let refused = CamelServer::bind(([0, 0, 0, 0], 0).into(), Access::Loopback);
    assert!(refused.is_err());
    let open = CamelServer::bind(([0, 0, 0, 0], 0).into(), Access::Anyone).unwrap();
    assert!(matches!(open.endpoint(), Endpoint::Tcp(address) if address.port() != 0));
}

#[tokio::test]
async fn calls_of_a_sessions_tools_are_recorded_actions() {
    let stage = Stage::start().await;
    let tools = stage.session.tools();
    let added = tools
        .add(NewTools {
            entrypoints: entrypoints_of(&["sample.TOOLS", COUNTER]),
            ..NewTools::default()
        })
        .await;
    assert_eq!(added.unwrap().toolkits, [COUNTER]);
    let before = stage.session.info().next_event;
    let log = stage.sessions.log().clone();
    let server = Server::open(ToolsOfSession::new(
        Arc::clone(&stage.session),
        log,
        Requester::cli(),
    ));
    let output = |text: &str| (200, json!({ "output": text }));
    assert_eq!(
        server.call("add", json!(["a", "b"])).await,
        output("\"ab\"")
    );
    assert_eq!(server.call("count", json!([])).await, output("6"));
    assert_eq!(
        server.call("not_finite", json!([])).await,
        output("[NaN, -Infinity]")
    );
    assert_eq!(server.call("fails", json!(["boom"])).await, failure("boom"));
    let plain = (500, json!("Internal Server Error"));
    assert_eq!(server.call("exits", json!([])).await, plain);
    let (status, no_json) = server.call("no_json", json!([])).await;
    let message = no_json["error_message"].as_str().unwrap();
    assert!(
        status == 500 && message.contains("set is not JSON"),
        "{no_json}"
    );
    // The log keeps large parts apart.
    let large = "x".repeat(1_000_000);
    let (_, echoed) = server.call("echo", json!([large])).await;
    assert_eq!(echoed["output"].as_str().unwrap().len(), 1_000_002);
    assert_eq!(server.call("nope", json!([])).await.0, 404);
    // Seven calls, each an action and what came of it.
    assert_eq!(stage.session.info().next_event, before + 14);
    server.stop().await;
    stage.stop().await;
}
