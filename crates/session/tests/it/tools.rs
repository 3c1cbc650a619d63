//! Tools of a session: added, called on the path of actions, kept over a restart.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use zareba_protocol::{Action, ActionEvent, SecurityRisk, UseTool};
use zareba_session::{
    Deed, DeedContext, Guard, HOSTS_MAX, NewSession, NewTools, Secret, Session, SessionError,
    SessionsOptions, Verdict,
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
    from leaked import SECRET
    return SECRET

def linger():
    open("lingers", "w").close()
    try:
        while True:
            time.sleep(0.05)
    finally:
        open("ended", "w").close()
"#;

/// A module whose function tells a secret by its documentation and by a default.
const LEAKY: &str = "from leaked import SECRET\n\
    def told(token: str = SECRET): return token\ntold.__doc__ = 'Takes ' + SECRET\n";

/// A module that is loaded only when it may be.
const SLOW: &str = "import os, time\nopen('loads', 'a').write('x')\n\
    while not os.path.exists('go'): time.sleep(0.02)\ndef slow(): return 1\n";

/// The interpreter of the system: one of a user may not be found with another HOME.
const PYTHON: &str = "/usr/bin/python3";

async fn with_module(session: &Session) {
    let text = MODULE.replace('\'', "'\\''");
    output(session, &format!("printf %s '{text}' > counting.py")).await;
}

/// Puts the secret into a module: the shell has it, and so can the files that it writes.
async fn leak(session: &Session) {
    let line = "printf \"SECRET = '%s'\\n\" \"$TOKEN\" > leaked.py";
    output(session, line).await;
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
    leak(&session).await;
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
    assert_eq!(told["extras"]["result"], "<secret_hidden>", "{told}");

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
    fn assess<'a>(&'a self, deed: &'a Deed, _context: DeedContext<'a>) -> BoxFuture<'a, Verdict> {
        let is_call = |action: &ActionEvent| matches!(action.action, Action::CallTool(_));
        let verdict = match deed {
            Deed::Action(action) if is_call(action) => Verdict::Deny {
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

fn command(name: &str, line: &str) -> NewTools {
    let spec = json!({"name": name, "description": "Runs.", "shell": line});
    NewTools {
        commands: vec![serde_json::from_value(spec).unwrap()],
        ..NewTools::default()
    }
}

#[tokio::test]
async fn el_9_what_is_said_of_tools_holds_no_secret() {
    const SECRET: &str = "s3cr3t-value";
    const OPERATORS: &str = "0perator-key";
    let place = Place::new();
    let options = SessionsOptions {
        hidden: vec![Secret(OPERATORS.to_owned())],
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let new = NewSession {
        secrets: vec![("TOKEN".to_owned(), Secret(SECRET.to_owned()))],
        ..on("cli")
    };
    let session = sessions.create_ready(new, owner()).await.unwrap();
    with_module(&session).await;
    leak(&session).await;
    output(&session, &format!("cat > leaky.py <<'END'\n{LEAKY}END")).await;
    let broken = "from leaked import SECRET\nraise ValueError(SECRET)\n";
    output(&session, &format!("cat > broken.py <<'END'\n{broken}END")).await;
    let tools = session.tools();
    for secret in [SECRET, OPERATORS] {
        let line = format!("curl -H 'X-Key: {secret}' http://localhost");
        let refused = tools.add(command("fetch", &line)).await.unwrap_err();
        let told = refused.to_string();
        assert!(told.contains("`fetch` must not hold a secret"), "{told}");
        assert!(!told.contains(secret), "{told}");
        let described = NewTools {
            commands: vec![
                serde_json::from_value(
                    json!({"name": "f", "argv": ["true"], "description": secret}),
                )
                .unwrap(),
            ],
            ..NewTools::default()
        };
        tools.add(described).await.unwrap_err();
    }
    let nothing = tools.add(python(&["broken.f"])).await.unwrap_err();
    assert!(nothing.to_string().contains("ValueError"), "{nothing}");
    assert!(!nothing.to_string().contains(SECRET), "{nothing}");
    let added = tools
        .add(python(&["leaky.told", "broken.f"]))
        .await
        .unwrap();
    assert_eq!((added.tools.len(), added.failures.len()), (1, 1));
    let everything = format!("{added:?} {:?}", tools.list());
    assert!(everything.contains("<secret_hidden>"), "{everything}");
    assert!(!everything.contains(SECRET), "{everything}");
    // The operator's are hidden in events like the session's own.
    let printed = output(&session, &format!("echo {OPERATORS}")).await;
    assert_eq!(printed, "<secret_hidden>");
    session.close().await.unwrap();
}

#[tokio::test]
async fn tools_are_added_whole_though_nobody_waits_for_that() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, &format!("cat > slow.py <<'END'\n{SLOW}END")).await;
    let tools = session.tools();
    let new = NewTools {
        commands: command("quick", "true").commands,
        ..python(&["slow.slow"])
    };
    let adding = tokio::spawn({
        let tools = tools.clone();
        async move { tools.add(new).await }
    });
    output(&session, "until test -e loads; do sleep 0.02; done").await;
    adding.abort();
    assert!(adding.await.unwrap_err().is_cancelled());
    assert_eq!(tools.list(), []);
    output(&session, "touch go").await;
    let all_there = async {
        while tools.list().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all_there)
        .await
        .unwrap();
    let one = observe(&session, call("slow", json!({}))).await;
    assert_eq!(one["extras"]["result"], 1, "{one}");
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn many_who_add_at_once_start_no_more_hosts_than_there_may_be() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, &format!("cat > slow.py <<'END'\n{SLOW}END")).await;
    let tools = session.tools();
    for number in 1..HOSTS_MAX {
        tools
            .add(command(&format!("c{number}"), "true"))
            .await
            .unwrap();
    }
    let adding = (0..4).map(|_| {
        let tools = tools.clone();
        tokio::spawn(async move { tools.add(python(&["slow.slow"])).await })
    });
    let adding: Vec<_> = adding.collect();
    output(
        &session,
        "until test -e loads; do sleep 0.02; done; touch go",
    )
    .await;
    let (mut added, mut refused) = (0, 0);
    for one in adding {
        match one.await.unwrap() {
            Ok(_) => added += 1,
            Err(SessionError::TooMany { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((added, refused), (1, 3));
    assert_eq!(output(&session, "cat loads").await, "x");
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_call_is_stopped_when_whoever_asked_goes_away() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    with_module(&session).await;
    let tools = session.tools();
    tools
        .add(python(&["counting.linger", "counting.Counter"]))
        .await
        .unwrap();
    observe(&session, call("up", json!({}))).await;
    let asking = |request| {
        let session = Arc::clone(&session);
        tokio::spawn(async move { session.run(request).await })
    };
    let lingers = "until test -e lingers; do sleep 0.02; done; rm lingers";
    let asked = asking(request(call("linger", json!({}))));
    output(&session, lingers).await;
    asked.abort();
    output(
        &session,
        "until test -e ended; do sleep 0.02; done; rm ended",
    )
    .await;
    // The interpreter goes on with its state.
    let up = observe(&session, call("up", json!({}))).await;
    assert_eq!(up["extras"]["result"], 2, "{up}");

    // With a key somebody may come back for it; its time ends it then.
    let limited = call("linger", json!({})).with_timeout(1.0);
    let asked = asking(keyed("k", limited.clone()));
    output(&session, lingers).await;
    asked.abort();
    let _ = asked.await;
    let again = session.run(keyed("k", limited)).await.unwrap();
    let told = zareba_session::event_json(&again);
    assert_eq!(told["extras"]["error"]["type"], "timed_out", "{told}");
    output(&session, "until test -e ended; do sleep 0.02; done").await;
    assert_all_answered(&session, 9).await;
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}
