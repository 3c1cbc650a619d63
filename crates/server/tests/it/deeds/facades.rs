//! Other projects' APIs go through the same door: each of their routes is listed here with the
//! record that it leaves.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};
use zareba_facades::openhands::{ToolProxies, routes};
use zareba_tools::Place;
use zareba_wire::{
    BoxFuture,
    program::{ProgramLine, ProgramRequest},
    tool_servers::{ToolClient, ToolProgram, ToolServers},
};

use super::{Client, client, ended, upgrading};
use crate::{
    fixture::{Site, run},
    http::Request,
};

/// What a route of OpenHands' APIs is for the log of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// A deed of this kind.
    Deed(&'static str),
    /// An action.
    Action,
    /// It reaches no sandbox, or only a program whose start is recorded.
    Outside,
    /// Sessions do not have it.
    Absent,
}

use Mark::{Absent, Action, Deed, Outside};

/// OpenHands' routes, in an order in which they can be asked for.
const OPENHANDS: [(&str, &str, Mark); 35] = [
    ("POST", "/start", Outside),
    ("GET", "/list", Outside),
    ("GET", "/sessions/{id}", Outside),
    ("GET", "/runtime/{id}", Outside),
    ("GET", "/registry_prefix", Outside),
    ("GET", "/image_exists", Outside),
    ("POST", "/build", Outside),
    ("GET", "/build_status", Outside),
    ("GET", "/sessions/{id}/alive", Outside),
    ("GET", "/sessions/{id}/server_info", Outside),
    ("GET", "/sessions/{id}/vscode/connection_token", Outside),
    ("POST", "/sessions/{id}/execute_action", Action),
    ("POST", "/sessions/{id}/upload_file", Deed("upload")),
    ("GET", "/sessions/{id}/download_files", Deed("download")),
    ("POST", "/sessions/{id}/list_files", Deed("list")),
    (
        "POST",
        "/sessions/{id}/update_mcp_server",
        Deed("tool_host"),
    ),
    ("GET", "/sessions/{id}/mcp/sse", Outside),
    ("GET", "/sessions/{id}/sse", Outside),
    ("POST", "/sessions/{id}/mcp/messages/", Outside),
    ("POST", "/sessions/{id}/messages/", Outside),
    ("POST", "/sessions/{id}/programs", Deed("program")),
    ("POST", "/sessions/{id}/variables", Deed("set_variables")),
    ("GET", "/sessions/{id}/output", Absent),
    ("POST", "/sessions/{id}/output/stop", Absent),
    ("GET", "/sessions/{id}/files/status", Absent),
    ("GET", "/sessions/{id}/files/content", Absent),
    ("PUT", "/sessions/{id}/files/content", Absent),
    ("GET", "/sessions/{id}/files/entries", Absent),
    ("DELETE", "/sessions/{id}/files", Absent),
    ("POST", "/sessions/{id}/files/directories", Absent),
    ("POST", "/sessions/{id}/files/renames", Absent),
    ("GET", "/sessions/{id}/files/watch", Absent),
    ("POST", "/pause", Deed("pause")),
    ("POST", "/resume", Deed("resume")),
    ("POST", "/stop", Deed("close")),
];

/// Starts each server of tools that a client pushes, and lets it go.
struct Starter(Arc<dyn Place>);

struct Starters;

impl ToolProxies for Starters {
    fn make(&self, place: Arc<dyn Place>) -> Arc<dyn ToolServers> {
        Arc::new(Starter(place))
    }
}

impl ToolServers for Starter {
    fn replace(&self, programs: Vec<ToolProgram>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            for program in programs {
                let line = ProgramLine::Argv(vec![program.command]);
                let started = self.0.start(ProgramRequest::new(line)).await;
                drop(started.map_err(|error| error.message)?);
            }
            Ok(())
        })
    }

    fn connect(&self) -> Option<ToolClient> {
        None
    }
}

impl Client<'_> {
    /// Asks for a route of OpenHands' in the client's session.
    fn openhands(&self, method: &str, route: &str, workspace: &str) -> Request {
        let path = route.replace("{id}", &self.session);
        let request = match route.rsplit_once('/').map(|(_, last)| last) {
            Some("execute_action") => Request::post(&path, &json!({ "action": run("true") })),
            Some("upload_file") => {
                let form = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n\
                            hello\r\n--x--\r\n";
                Request::new(method, &format!("{path}?destination={workspace}"))
                    .header("Content-Type", "multipart/form-data; boundary=x")
                    .body(form.as_bytes().to_vec())
            }
            Some("download_files") => Request::get(&format!("{path}?path={workspace}")),
            Some("update_mcp_server") => {
                Request::post(&path, &json!([{ "name": "one", "command": "true" }]))
            }
            Some("programs") => {
                let asked = Request::post(&path, &json!({ "argv": ["true"] }));
                upgrading(asked, "zareba-program")
            }
            Some("variables") => Request::post(&path, &json!({ "A": "1" })),
            Some("output" | "stop") if route.contains("output") => {
                let path = format!("{path}?action=1&offset=0&means=kill");
                Request::new(method, &path)
            }
            Some("pause" | "resume" | "stop") => {
                Request::post(&path, &json!({ "runtime_id": self.session }))
            }
            _ if method == "GET" || method == "DELETE" => {
                Request::new(method, &format!("{path}?path=a"))
            }
            _ => Request::post(&path, &json!({ "path": "a", "from": "a", "to": "b" })),
        };
        request.key(&self.key)
    }
}

#[test]
fn every_route_of_openhands_says_what_it_leaves_in_the_log() {
    let routes: Vec<_> = routes()
        .into_iter()
        .map(|route| (route.method.to_string(), route.path))
        .collect();
    let routes: BTreeSet<_> = routes
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    let said = OPENHANDS.iter().map(|(method, path, _)| (*method, *path));
    assert_eq!(routes, said.collect(), "what does it do to a sandbox?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_of_openhands_that_reaches_a_sandbox_leaves_its_record() {
    let site = Site::start_with_tool_proxies(Arc::new(Starters)).await;
    let (client, key, _listener) = client(&site).await;
    let shown = site.get(format!("/v1/sessions/{}", client.session)).await;
    let workspace = shown.expect(200)["workspace"].as_str().unwrap().to_owned();
    for (method, route, mark) in OPENHANDS {
        if mark == Outside {
            continue;
        }
        let answer = site.send(client.openhands(method, route, &workspace)).await;
        let is_done = (101..300).contains(&answer.status);
        let text = String::from_utf8_lossy(&answer.body);
        // A runtime without walls cannot pause, and its refusal is recorded as well.
        let can = mark != Absent && mark != Deed("pause");
        assert_eq!(is_done, can, "{route}: {} {text}", answer.status);
    }
    let events = ended(&site, &client.session).await;
    let by = json!({ "owner": "ann", "key": key, "scope": "session", "surface": "openhands" });
    let of_client = |event: &&Value| event["by"] == by;
    for (_, route, mark) in OPENHANDS {
        let is_it = |event: &&Value| match mark {
            Deed(kind) => event["deed"]["kind"] == kind,
            _ => event["action"] == "run",
        };
        if matches!(mark, Deed(_) | Action) {
            let found = events.iter().filter(of_client).filter(is_it);
            assert_eq!(found.count(), 1, "{route}: {events:#?}");
        }
    }
    let all = events.iter().filter(of_client).count();
    let marks = OPENHANDS.iter().map(|(_, _, mark)| mark);
    let expected = marks
        .filter(|mark| matches!(mark, Deed(_) | Action))
        .count();
    assert_eq!(all, expected, "{events:#?}");
    site.stop().await;
}

/// CAMEL's API has pages, which tell of the tools, and one route for each tool: its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_by_camels_api_is_an_action_of_its_client() {
    let site = Site::start_with_openhands(|_| {}).await;
    let (client, key, _listener) = client(&site).await;
    let asked = |request: Request| site.send(request.key(&client.key));
    let add = Request::post(
        &format!("/v1/sessions/{}/tools", client.session),
        &json!({ "entrypoints": ["json.dumps"] }),
    );
    asked(add).await.expect(201);
    let base = format!("/sessions/{}/camel", client.session);
    for page in ["health", "openapi.json", "docs", "redoc"] {
        let shown = asked(Request::get(&format!("{base}/{page}"))).await;
        assert_eq!(shown.status, 200, "{page}");
    }
    // What the function makes of it does not matter here.
    let body = json!({ "args": [[1]], "kwargs": {} });
    asked(Request::post(&format!("{base}/dumps"), &body)).await;
    let events = ended(&site, &client.session).await;
    let by = json!({ "owner": "ann", "key": key, "scope": "session", "surface": "camel" });
    let of_camel: Vec<_> = events.iter().filter(|event| event["by"] == by).collect();
    let actions: Vec<_> = of_camel.iter().map(|event| &event["action"]).collect();
    assert_eq!(actions, [&json!("call_tool")], "{events:#?}");
    site.stop().await;
}
