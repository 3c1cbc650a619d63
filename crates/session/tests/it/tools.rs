//! Tools of a session: added, called on the path of actions, kept over a restart.

use std::sync::Arc;

use serde_json::{Value, json};
use zareba_protocol::{Action, ActionEvent, SecurityRisk, UseTool};
use zareba_session::{
    Guard, NewSession, NewTools, Secret, Session, SessionError, SessionInfo, SessionsOptions,
    Verdict,
};
use zareba_tools::ToolName;
use zareba_wire::BoxFuture;

use crate::{
    fixture::{
        Place, answers, assert_all_answered, keyed, observe, on, output, owner, request, text,
    },
    recovery::{in_another_life, only},
};

/// A module with a toolkit that counts, and functions that fail, wait and tell a secret.
const MODULE: &str = r#"
import os, time

class Counter:
    def __init__(self, start=0):
        self.count = start
    def up(self) -> int:
        self.count += 1
        with open("calls", "a") as calls:
            calls.write("up\n")
        return self.count
    def get_tools(self):
        return [self.up]

def fail(message: str):
    print("about to fail")
    raise ValueError(message)

def wait():
    open("waits", "w").close()
    time.sleep(60)

def tell():
    return os.environ["TOKEN"]
"#;

/// The interpreter of the system: one of a user may not be found with another HOME.
const PYTHON: &str = "/usr/bin/python3";

async fn with_module(session: &Session) {
    let text = MODULE.replace('\'', "'\\''");
    output(session, &format!("printf %s '{text}' > counting.py")).await;
}

fn python(entrypoints: &[&str]) -> NewTools {
    let entrypoints = entrypoints.iter().map(|text| text.parse().unwrap());
    NewTools {
        entrypoints: entrypoints.collect(),
        python: Some(PYTHON.to_owned()),
        ..NewTools::default()
    }
}

fn call(tool: &str, arguments: Value) -> ActionEvent {
    let arguments = arguments.as_object().cloned().unwrap();
    Action::CallTool(UseTool::new(tool, arguments)).into()
}

#[tokio::test]
async fn a_call_is_an_action_with_one_observation() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    with_module(&session).await;
    let tools = session.tools();
    let added = tools
        .add(python(&[
            r#"counting.Counter{"start": 5}"#,
            "counting.fail",
        ]))
        .await
        .unwrap();
    assert_eq!(added.failures, []);
    assert_eq!(added.toolkits, [r#"counting.Counter{"start": 5}"#]);
    assert_eq!(tools.list().len(), 2);

    let up = observe(&session, call("up", json!({}))).await;
    assert_eq!(
        (&up["observation"], &up["success"]),
        (&json!("tool"), &json!(true))
    );
    assert_eq!(up["extras"]["result"], 6);
    // The same key is the same call, which is not made twice.
    let again = || keyed("k", call("up", json!({})));
    let (first, second) = tokio::join!(session.run(again()), session.run(again()));
    assert_eq!(first.unwrap().sequence, second.unwrap().sequence);
    assert_eq!(output(&session, "cat calls").await, "up\nup");

    let failed = observe(&session, call("fail", json!({"message": "no"}))).await;
    assert_eq!(failed["success"], false);
    let error = &failed["extras"]["error"];
    assert_eq!(
        (&error["type"], &error["message"]),
        (&json!("ValueError"), &json!("no"))
    );
    assert_eq!(failed["extras"]["stdout"], "about to fail\n");
    let wrong = observe(&session, call("fail", json!({"message": 5}))).await;
    assert_eq!(wrong["extras"]["error"]["type"], "invalid_arguments");
    let missing = observe(&session, call("nothing", json!({}))).await;
    assert_eq!(missing["extras"]["error"]["class"], "not_found");

    tools.reset().await.unwrap();
    assert_eq!(
        observe(&session, call("up", json!({}))).await["extras"]["result"],
        6
    );
    assert_all_answered(&session, 8).await;
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_added_is_told_and_names_are_unique() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = NewSession {
        secrets: vec![("TOKEN".to_owned(), Secret("s3cr3t-value".to_owned()))],
        ..on("cli")
    };
    let session = sessions.create_ready(new, owner()).await.unwrap();
    with_module(&session).await;
    let tools = session.tools();
    let nothing = tools.add(python(&["nowhere.f"])).await.unwrap_err();
    assert!(
        nothing.to_string().contains("ModuleNotFoundError"),
        "{nothing}"
    );
    let empty = tools.add(NewTools::default()).await.unwrap_err();
    assert!(matches!(empty, SessionError::Invalid { .. }), "{empty}");
    let secret = NewTools {
        environment: vec![("COPY".to_owned(), "s3cr3t-value".to_owned())],
        ..python(&["counting.tell"])
    };
    let refused = tools.add(secret).await.unwrap_err();
    assert!(
        refused.to_string().contains("`COPY` holds a secret"),
        "{refused}"
    );

    let some = tools
        .add(python(&["counting.tell", "nowhere.f"]))
        .await
        .unwrap();
    assert_eq!((some.tools.len(), some.failures.len()), (1, 1));
    let taken = tools.add(python(&["counting.tell"])).await.unwrap_err();
    assert!(matches!(taken, SessionError::Tool(_)), "{taken}");
    // EL-9: what a tool returns is masked like everything else.
    let told = observe(&session, call("tell", json!({}))).await;
    assert!(!told.to_string().contains("s3cr3t-value"), "{told}");

    let tell = ToolName::try_from("tell").unwrap();
    tools.remove(&tell).await.unwrap();
    assert!(tools.remove(&tell).await.is_err());
    assert_eq!(tools.list(), []);
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

/// Denies every call of a tool.
struct NoTools;

impl Guard for NoTools {
    fn assess<'a>(
        &'a self,
        action: &'a ActionEvent,
        _session: &'a SessionInfo,
    ) -> BoxFuture<'a, Verdict> {
        let verdict = match &action.action {
            Action::CallTool(_) => Verdict::Deny {
                risk: SecurityRisk::High,
                reason: "no tools".to_owned(),
            },
            _ => Verdict::Allow,
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test]
async fn a_guard_judges_calls() {
    let place = Place::new();
    let options = SessionsOptions {
        guard: Arc::new(NoTools),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    with_module(&session).await;
    session
        .tools()
        .add(python(&["counting.Counter"]))
        .await
        .unwrap();
    let denied = observe(&session, call("up", json!({}))).await;
    assert_eq!(denied["extras"]["error_id"], "guard_denied");
    assert_eq!(
        output(&session, "ls calls 2>&1 | wc -l; test -e calls; echo $?").await,
        "1\n1"
    );
    session.close().await.unwrap();
}

#[tokio::test]
async fn closing_ends_a_call_that_is_under_way() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    with_module(&session).await;
    session
        .tools()
        .add(python(&["counting.wait"]))
        .await
        .unwrap();
    let waiting = session
        .submit(request(call("wait", json!({}))))
        .await
        .unwrap();
    output(&session, "until test -e waits; do sleep 0.02; done").await;
    session.close().await.unwrap();
    let answer = session.answer(waiting.sequence).await.unwrap();
    assert!(
        answer.payload["content"]
            .as_str()
            .unwrap()
            .contains("unknown")
    );
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn tools_are_there_after_a_restart_and_a_call_in_flight_is_not_made_again() {
    let place = Place::new();
    let waiting = in_another_life(&place, async |sessions| {
        let session = sessions.create_ready(on("local"), owner()).await.unwrap();
        with_module(&session).await;
        let tools = session.tools();
        tools
            .add(python(&["counting.Counter", "counting.wait"]))
            .await
            .unwrap();
        tools.add(python(&["counting.fail"])).await.unwrap();
        tools
            .remove(&ToolName::try_from("fail").unwrap())
            .await
            .unwrap();
        for count in 1..3 {
            let up = observe(&session, call("up", json!({}))).await;
            assert_eq!(up["extras"]["result"], count);
        }
        let waiting = session
            .submit(request(call("wait", json!({}))))
            .await
            .unwrap();
        output(&session, "until test -e waits; do sleep 0.02; done").await;
        waiting.sequence
    })
    .await;

    let sessions = place.serve().await;
    let session = only(&sessions).await;
    let answer = session.answer(waiting).await.unwrap();
    let told = text(&zareba_session::event_json(&answer));
    assert!(told.contains("outcome of the tool is unknown"), "{told}");
    let names: Vec<_> = session
        .tools()
        .list()
        .into_iter()
        .map(|it| it.name.to_string())
        .collect();
    assert_eq!(names, ["up", "wait"]);
    assert_eq!(session.tools().toolkits(), ["counting.Counter"]);
    // The interpreter is a new one, and begins with its first state.
    assert_eq!(
        observe(&session, call("up", json!({}))).await["extras"]["result"],
        1
    );
    let answers = answers(&session).await;
    assert!(
        answers.iter().all(|(_, answers)| answers.len() == 1),
        "{answers:?}"
    );
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}
