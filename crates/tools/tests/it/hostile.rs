//! What comes from a sandbox is hostile (G-1): a worker that is none of ours costs nothing but its
//! own calls.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use zareba_tools::{Loaded, Place, PlaceError, PythonHost, PythonOptions, Registry, ToolError};
use zareba_wire::{
    BoxFuture,
    program::{
        FRAME_BYTES_MAX, ProgramConnection, ProgramEvent, ProgramRequest, ProgramSide, StdinPiece,
    },
};

use crate::fixture::{named, returned};

/// Starts nothing: the test is the program.
struct Stage {
    sides: Mutex<tokio::sync::mpsc::Receiver<ProgramSide>>,
    sender: tokio::sync::mpsc::Sender<ProgramSide>,
}

impl Stage {
    fn new() -> Arc<Self> {
        let (sender, sides) = tokio::sync::mpsc::channel(4);
        let sides = Mutex::new(sides);
        Arc::new(Self { sides, sender })
    }

    /// The next program that is started.
    async fn program(&self) -> ProgramSide {
        self.sides.lock().await.recv().await.unwrap()
    }
}

impl Place for Stage {
    fn start(&self, _: ProgramRequest) -> BoxFuture<'_, Result<ProgramConnection, PlaceError>> {
        Box::pin(async move {
            let (connection, side) = ProgramConnection::pair();
            self.sender.send(side).await.unwrap();
            Ok(connection)
        })
    }
}

async fn write(side: &ProgramSide, bytes: &[u8]) -> bool {
    for piece in bytes.chunks(FRAME_BYTES_MAX) {
        let event = ProgramEvent::Stdout(Bytes::copy_from_slice(piece));
        if side.events.send(event).await.is_err() {
            return false;
        }
    }
    true
}

async fn say(side: &ProgramSide, message: Value) {
    write(side, format!("{message}\n").as_bytes()).await;
}

/// The next line that the program is sent.
async fn hear(side: &mut ProgramSide) -> Value {
    let mut line = Vec::new();
    while let Some(StdinPiece::Bytes(piece)) = side.stdin.recv().await {
        line.extend_from_slice(&piece);
        if line.ends_with(b"\n") {
            break;
        }
    }
    serde_json::from_slice(&line).unwrap()
}

fn tool(name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {}});
    json!({
        "name": name, "description": "", "parameters": parameters, "accepts": null, "entrypoint": "m.f",
    })
}

fn ready(tools: Vec<Value>) -> Value {
    json!({"ready": {"python": "3", "toolkits": [], "tools": tools, "failures": []}})
}

async fn started(stage: &Arc<Stage>, tools: Vec<Value>) -> (Registry, Loaded, ProgramSide) {
    let entrypoints = vec!["m.f".parse().unwrap()];
    let options = PythonOptions {
        grace: Duration::from_millis(200),
        ..PythonOptions::default()
    };
    let start = PythonHost::start(Arc::clone(stage) as Arc<dyn Place>, entrypoints, options);
    let play = async {
        let mut side = stage.program().await;
        hear(&mut side).await;
        say(&side, ready(tools)).await;
        side
    };
    let (started, side) = tokio::join!(start, play);
    let (host, loaded) = started.unwrap();
    let registry = Registry::new();
    registry.add_all(host.tools()).unwrap();
    (registry, loaded, side)
}

#[tokio::test]
async fn g_1_descriptions_that_make_no_sense_are_failures() {
    let stage = Stage::new();
    let mut no_schema = tool("no_schema");
    no_schema["parameters"] = json!([1]);
    let mut outside = tool("outside");
    outside["accepts"] = json!({"$ref": "file:///etc/passwd"});
    let mut long = tool("long");
    long["description"] = json!("x".repeat(100_000));
    let tools = vec![
        tool("a/b"),
        tool(""),
        no_schema,
        outside,
        long,
        tool("fine"),
    ];
    let (registry, loaded, _side) = started(&stage, tools).await;
    assert_eq!(registry.list().len(), 1);
    assert_eq!(loaded.failures.len(), 5, "{:?}", loaded.failures);
}

#[tokio::test]
async fn g_1_lines_that_are_no_messages_end_the_worker() {
    let endless = vec![b'x'; 40 * 1024 * 1024];
    for noise in [
        &b"hello\n"[..],
        b"{\"done\": {}}\n",
        b"\xff\xfe\n",
        &endless,
    ] {
        let stage = Stage::new();
        let (registry, _, side) = started(&stage, vec![tool("f")]).await;
        let call = returned(&registry, "f", json!({}));
        let (call, _) = tokio::join!(call, write(&side, noise));
        let error = call.unwrap_err();
        assert!(matches!(error, ToolError::Gone { .. }), "{error}");
        // Nobody reads what it says any more, which is how a program is ended.
        side.events.closed().await;
        // Another call starts another one.
        let again = returned(&registry, "f", json!({}));
        let play = async {
            let mut side = stage.program().await;
            hear(&mut side).await;
            say(&side, ready(vec![tool("f")])).await;
            let id = hear(&mut side).await["call"]["id"].clone();
            let outcome = json!({"returned": {"json": "1"}});
            say(&side, json!({"done": {"id": id, "outcome": outcome}})).await;
            side
        };
        let (again, _side) = tokio::join!(again, play);
        assert_eq!(again.unwrap().value(), 1);
    }
}

#[tokio::test]
async fn g_1_answers_that_nobody_asked_for_are_ignored() {
    let stage = Stage::new();
    let (registry, _, mut side) = started(&stage, vec![tool("f")]).await;
    let play = async {
        let id = hear(&mut side).await["call"]["id"].as_u64().unwrap();
        let done = |id: u64, json: &str| json!({"done": {"id": id, "outcome": {"returned": {"json": json}}}});
        say(&side, done(id + 1, "\"forged\"")).await;
        say(&side, done(u64::MAX, "\"forged\"")).await;
        say(&side, ready(vec![tool("late")])).await;
        say(&side, done(id, "\"real\"")).await;
        say(&side, done(id, "\"twice\"")).await;
        side
    };
    let (call, _side) = tokio::join!(returned(&registry, "f", json!({})), play);
    assert_eq!(call.unwrap().value(), "real");
    assert_eq!(registry.list().len(), 1);
}

#[tokio::test]
async fn g_1_a_worker_that_takes_no_word_is_ended() {
    let stage = Stage::new();
    let (registry, _, side) = started(&stage, vec![tool("f")]).await;
    let call = zareba_tools::Call {
        timeout: Some(Duration::from_millis(100)),
        ..named(json!({"text": "x".repeat(1024 * 1024)}))
    };
    let error = registry.call("f", call).await.unwrap_err();
    assert!(matches!(error, ToolError::TimedOut { .. }), "{error}");
    let ended = tokio::time::timeout(Duration::from_secs(5), side.events.closed());
    ended.await.unwrap();
}

#[tokio::test]
async fn g_1_a_worker_that_never_gets_ready_is_given_up() {
    let stage = Stage::new();
    let options = PythonOptions {
        load_timeout: Duration::from_millis(100),
        ..PythonOptions::default()
    };
    let start = PythonHost::start(
        Arc::clone(&stage) as Arc<dyn Place>,
        vec!["m.f".parse().unwrap()],
        options,
    );
    let (started, side) = tokio::join!(start, stage.program());
    let error = started.err().unwrap();
    assert!(error.to_string().contains("longer than 0.1 s"), "{error}");
    side.events.closed().await;
}
