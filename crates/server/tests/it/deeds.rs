//! One door: each route that reaches a sandbox leaves its record, and none passes a guard.

mod facades;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use zareba_api::operations;
use zareba_protocol::SecurityRisk;
use zareba_session::{Deed, DeedContext, Guard, RequesterScope, Verdict};
use zareba_wire::BoxFuture;

use crate::{
    events::connect,
    fixture::{Site, run},
    http::{Request, Response},
};

/// Operations on a session that reach its sandbox, in an order in which they can be done, with the
/// deed that each of them is.
const REACH: [(&str, &str); 28] = [
    ("open_terminal", "terminal"),
    ("terminal_socket", "attach_terminal"),
    ("start_program", "program"),
    ("create_directory", "make_directory"),
    ("write_file", "write"),
    ("list_files", "list"),
    ("get_file_status", "stat"),
    ("read_file", "read"),
    ("watch_files", "watch"),
    ("list_changes", "changes"),
    ("rename_file", "rename"),
    ("pack_files", "download"),
    ("unpack_files", "upload"),
    ("remove_file", "remove"),
    ("set_variables", "set_variables"),
    ("add_tools", "tool_host"),
    ("list_ports", "list_ports"),
    ("connect_port", "port"),
    ("share_port", "share_port"),
    ("unshare_port", "unshare_port"),
    ("close_terminal", "close_terminal"),
    ("remove_tool", "remove_tool"),
    // Without tools none has a host that begins anew, which would be a deed of its own.
    ("reset_tools", "reset_tools"),
    ("create_session_key", "create_key"),
    ("create_ticket", "create_ticket"),
    ("pause_session", "pause"),
    ("resume_session", "resume"),
    ("delete_session", "close"),
];

/// What goes a session's own way to the sandbox: the guard judges it, and its record is another.
const OWN_WAY: [(&str, &str); 3] = [
    ("stream_output", "read_output"),
    ("stop_action", "stop_action"),
    ("update_session", "update"),
];

/// Those that read what is recorded or kept, and those whose deeds are actions, which are judged and
/// recorded as such.
const STAY_OUTSIDE: [&str; 13] = [
    "list_terminals",
    "get_terminal",
    "get_session",
    "keep_session_alive",
    "inspect_session",
    "list_tools",
    "call_tool",
    "run_action",
    "get_observation",
    "list_events",
    "stream_events",
    "events_socket",
    "get_blob",
];

/// A client with a key, and a session that it may use.
struct Client<'a> {
    site: &'a Site,
    session: String,
    key: String,
    /// A port of this machine, which is as good as one inside where there are no walls.
    port: u16,
}

impl Client<'_> {
    /// Asks for one operation, as far as its answer's head; the status.
    async fn ask(&self, operation: &str) -> (u16, Value) {
        let (session, port) = (&self.session, self.port);
        let files = |rest: &str| format!("/v1/sessions/{session}/files{rest}");
        let request = match operation {
            "terminal_socket" => return self.attach().await,
            "open_terminal" => {
                let path = format!("/v1/sessions/{session}/terminals");
                let body = json!({ "name": "mine", "command": "read line" });
                Request::post(&path, &body)
            }
            "start_program" => {
                let path = format!("/v1/sessions/{session}/programs");
                let request = Request::post(&path, &json!({ "argv": ["touch", "made"] }));
                upgrading(request, "zareba-program")
            }
            "connect_port" => {
                let path = format!("/v1/sessions/{session}/ports/{port}/connection");
                upgrading(Request::get(&path), "zareba-port")
            }
            "list_ports" => Request::get(&format!("/v1/sessions/{session}/ports")),
            "set_variables" => {
                let path = format!("/v1/sessions/{session}/variables");
                Request::post(&path, &json!({ "set": { "A": "1" } }))
            }
            "add_tools" => {
                let path = format!("/v1/sessions/{session}/tools");
                Request::post(&path, &json!({ "entrypoints": ["json.dumps"] }))
            }
            "share_port" => {
                Request::post(&format!("/v1/sessions/{session}/ports/{port}"), &json!({}))
            }
            "unshare_port" => {
                Request::new("DELETE", &format!("/v1/sessions/{session}/ports/{port}"))
            }
            "close_terminal" => {
                Request::new("DELETE", &format!("/v1/sessions/{session}/terminals/mine"))
            }
            "reset_tools" => {
                Request::post(&format!("/v1/sessions/{session}/tools/reset"), &json!({}))
            }
            "remove_tool" => Request::new("DELETE", &format!("/v1/sessions/{session}/tools/dumps")),
            "create_session_key" => {
                Request::post(&format!("/v1/sessions/{session}/keys"), &json!({}))
            }
            "create_ticket" => {
                Request::post(&format!("/v1/sessions/{session}/tickets"), &json!({}))
            }
            "pause_session" | "resume_session" => {
                let word = operation.trim_end_matches("_session");
                Request::post(&format!("/v1/sessions/{session}/{word}"), &json!({}))
            }
            "delete_session" => Request::new("DELETE", &format!("/v1/sessions/{session}")),
            "create_directory" => Request::post(&files("/directories"), &json!({ "path": "d" })),
            "rename_file" => {
                Request::post(&files("/rename"), &json!({ "from": "d/a", "to": "d/b" }))
            }
            "write_file" => bytes("PUT", &files("/content?path=d/a"), b"hello"),
            "unpack_files" => bytes("PUT", &files("/archive?path=d/e&format=tar"), &[0; 1024]),
            "list_changes" => Request::get(&format!("/v1/sessions/{session}/changes")),
            "list_files" => Request::get(&files("?path=d")),
            "get_file_status" => Request::get(&files("/status?path=d/a")),
            "read_file" => Request::get(&files("/content?path=d/a")),
            "watch_files" => Request::get(&files("/watch?path=d")),
            "pack_files" => Request::get(&files("/archive?path=d&format=tar")),
            "remove_file" => Request::new("DELETE", &files("/content?path=d/b")),
            other => panic!("how is `{other}` asked for?"),
        };
        let request = request.key(&self.key);
        if operation == "watch_files" {
            let (answer, _events) = request.open(self.site.address).await;
            return (answer.status, Value::Null);
        }
        told(&self.site.send(request).await)
    }

    async fn attach(&self) -> (u16, Value) {
        let path = format!("/v1/sessions/{}/terminals/mine/socket", self.session);
        match connect(self.site.address, &path, Some(&self.key)).await {
            Ok(_) => (101, Value::Null),
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => {
                let body = answer.body().as_deref().unwrap_or_default();
                let body = serde_json::from_slice(body).unwrap_or_default();
                (answer.status().as_u16(), body)
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn told(answer: &Response) -> (u16, Value) {
    let body = serde_json::from_slice(&answer.body).unwrap_or_default();
    (answer.status, body)
}

fn upgrading(request: Request, name: &str) -> Request {
    request
        .header("Connection", "upgrade, close")
        .header("Upgrade", name)
}

fn bytes(method: &str, path: &str, body: &[u8]) -> Request {
    Request::new(method, path)
        .header("Content-Type", "application/octet-stream")
        .body(body.to_vec())
}

/// A session of the owner of a new key, and a port on which connections are taken.
async fn client(site: &Site) -> (Client<'_>, String, TcpListener) {
    let new = json!({ "owner": "ann", "scope": "session" });
    let created = site.post("/v1/keys", new).await.expect(201);
    let key = created["secret"].as_str().unwrap().to_owned();
    let id = created["key"]["id"].as_str().unwrap().to_owned();
    let make = Request::post("/v1/sessions", &json!({})).key(&key);
    let session = site.send(make).await.expect(201);
    let session = session["id"].as_str().unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = Client {
        site,
        session,
        key,
        port,
    };
    (client, id, listener)
}

/// Ends a session and returns all that was recorded.
async fn ended(site: &Site, session: &str) -> Vec<Value> {
    let path = format!("/v1/sessions/{session}");
    let deleted = site.delete(&path).await;
    assert!((200..300).contains(&deleted.status), "{}", deleted.text());
    let page = site.get(format!("{path}/events?limit=500")).await;
    let events = page.expect(200)["events"].as_array().unwrap().clone();
    events
        .into_iter()
        .map(|event| event["payload"].clone())
        .collect()
}

#[test]
fn every_operation_on_a_session_says_whether_it_reaches_the_sandbox() {
    let on_sessions = operations::all().filter(|it| it.path.contains("{session}"));
    let on_sessions: BTreeSet<&str> = on_sessions.map(|it| it.id).collect();
    let reach = REACH.iter().map(|(operation, _)| *operation);
    let own = OWN_WAY.iter().map(|(operation, _)| *operation);
    let said: BTreeSet<&str> = reach.chain(own).chain(STAY_OUTSIDE).collect();
    let unsaid: Vec<_> = on_sessions.difference(&said).collect();
    assert_eq!(
        unsaid, [&""; 0],
        "does it go through the door? then add it to REACH"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_that_reaches_a_sandbox_leaves_its_record_with_owner_and_key() {
    let site = Site::start().await;
    let (client, key, listener) = client(&site).await;
    let path = format!("/v1/sessions/{}/actions", client.session);
    let action = Request::post(&path, &run("true")).key(&client.key);
    site.send(action).await.expect(200);
    for (operation, _) in REACH {
        if operation == "connect_port" {
            let (answer, taken) = tokio::join!(client.ask(operation), async {
                drop(listener.accept().await.unwrap());
            });
            let () = taken;
            assert_eq!(answer.0, 101, "{answer:?}");
            continue;
        }
        let (status, body) = client.ask(operation).await;
        if ["list_changes", "pause_session"].contains(&operation) {
            // A runtime without walls cannot, and its refusal is recorded as well.
            assert_eq!(status, 422, "{body}");
            continue;
        }
        assert!((101..300).contains(&status), "{operation}: {status} {body}");
    }
    let events = ended(&site, &client.session).await;
    let by = json!({ "owner": "ann", "key": key, "scope": "session", "surface": "api" });
    for (operation, kind) in REACH {
        let begun: Vec<_> = events
            .iter()
            .filter(|it| it["deed"]["kind"] == kind && it["by"] == by)
            .map(|it| it["state"].as_str().unwrap())
            .collect();
        let ended = events
            .iter()
            .filter(|it| it["deed"]["kind"] == kind && it["state"] == "ended");
        match begun[..] {
            ["begun"] => assert_eq!(ended.count(), 1, "{operation}: {events:#?}"),
            ["done"] => assert_eq!(ended.count(), 0, "{operation}"),
            _ => panic!("{operation}: {begun:?} in {events:#?}"),
        }
    }
    let action = events.iter().find(|it| it["action"] == "run").unwrap();
    assert_eq!(action["by"], by);
    site.stop().await;
}

/// Denies every deed of clients that are no administrators.
struct NoDeeds;

impl Guard for NoDeeds {
    fn assess<'a>(&'a self, deed: &'a Deed, context: DeedContext<'a>) -> BoxFuture<'a, Verdict> {
        let is_action = matches!(deed, Deed::Action(_));
        let verdict = match context.requester.scope {
            Some(RequesterScope::Admin) => Verdict::Allow,
            _ if is_action => Verdict::Allow,
            _ => Verdict::Deny {
                risk: SecurityRisk::High,
                reason: "nothing is allowed".to_owned(),
            },
        };
        Box::pin(std::future::ready(verdict))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_route_passes_a_guard_that_denies_and_nothing_is_done() {
    let site = Site::start_guarded(Arc::new(NoDeeds)).await;
    let (client, _, _listener) = client(&site).await;
    let looking = "mkdir -p d; echo kept >d/b; echo kept >d/a; find . | sort; cat d/*";
    let before = site.run(&client.session, looking).await;
    let administrator = Client {
        site: &site,
        session: client.session.clone(),
        key: site.admin.clone(),
        port: client.port,
    };
    for (operation, kind) in REACH {
        if operation == "terminal_socket" {
            assert_eq!(administrator.ask("open_terminal").await.0, 201);
        }
        let (status, body) = client.ask(operation).await;
        assert_eq!(status, 403, "{operation}: {body}");
        if operation != "watch_files" {
            let expected = match kind {
                // Errors of tools have a class of their own.
                "tool_host" => "forbidden",
                _ => "guard_denied",
            };
            assert_eq!(body["error"]["code"], expected, "{operation}: {body}");
        }
    }
    let after = site.run(&client.session, "find . | sort; cat d/*").await;
    assert_eq!(after["content"], before["content"]);
    let events = ended(&site, &client.session).await;
    for (_, kind) in REACH {
        let refused = events
            .iter()
            .filter(|it| it["deed"]["kind"] == kind && it["state"] == "refused");
        assert_eq!(refused.count(), 1, "{kind}: {events:#?}");
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_its_own_way_does_not_pass_a_guard_that_denies() {
    let site = Site::start_guarded(Arc::new(NoDeeds)).await;
    let (client, _, _listener) = client(&site).await;
    let path = format!("/v1/sessions/{}/actions", client.session);
    let submit = Request::post(&format!("{path}?wait=false"), &run("sleep 1000")).key(&client.key);
    let action = site.send(submit).await.expect(202)["action"].clone();
    let ask = |operation: &str| match operation {
        "stream_output" => Request::get(&format!("{path}/{action}/output?wait=0")),
        "stop_action" => Request::post(&format!("{path}/{action}/stop"), &json!({})),
        _ => {
            let path = format!("/v1/sessions/{}", client.session);
            Request::new("PATCH", &path)
                .header("Content-Type", "application/json")
                .body(b"{}".to_vec())
        }
    };
    for (operation, _) in OWN_WAY {
        let refused = site.send(ask(operation).key(&client.key)).await;
        assert_eq!(refused.error(403), "guard_denied", "{operation}");
    }
    for (operation, _) in OWN_WAY {
        let done = site.send(ask(operation).key(&site.admin)).await;
        assert!(
            (200..300).contains(&done.status),
            "{operation}: {}",
            done.text()
        );
    }
    let events = ended(&site, &client.session).await;
    for (_, kind) in OWN_WAY {
        let refused = events
            .iter()
            .filter(|it| it["deed"]["kind"] == kind && it["state"] == "refused");
        assert_eq!(refused.count(), 1, "{kind}: {events:#?}");
    }
    site.stop().await;
}

/// The word of the client is all that tells it, so that it decides nothing but what the log says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_model_context_protocol_is_recorded_as_such() {
    let site = Site::start().await;
    let (client, key, _listener) = client(&site).await;
    for said in ["mcp", "session"] {
        let path = format!("/v1/sessions/{}/files/directories", client.session);
        let make = Request::post(&path, &json!({ "path": said })).header("Zareba-Surface", said);
        let made = site.send(make.key(&client.key)).await;
        assert!((200..300).contains(&made.status), "{}", made.text());
    }
    let events = ended(&site, &client.session).await;
    let begun = events
        .iter()
        .filter(|it| it["deed"]["kind"] == "make_directory");
    let by: Vec<_> = begun
        .map(|it| &it["by"])
        .filter(|by| by.is_object())
        .collect();
    let by_surface = |surface: &str| json!({ "owner": "ann", "key": key, "scope": "session", "surface": surface });
    assert_eq!(by, [&by_surface("mcp"), &by_surface("api")]);
    site.stop().await;
}
