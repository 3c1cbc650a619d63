//! Tools of a session over HTTP.

use serde_json::{Value, json};

use crate::{fixture::Site, http::Request};

const MODULE: &str = "class Counter:\n    def __init__(self, start=0):\n        self.count = start\n    \
    def up(self, by: int = 1) -> int:\n        \"\"\"Counts up.\"\"\"\n        self.count += by\n        \
    return self.count\n    def get_tools(self):\n        return [self.up]\n";

async fn with_module(site: &Site, session: &str) {
    let action = json!({"action": "write", "args": {"path": "counting.py", "content": MODULE}});
    let path = format!("/v1/sessions/{session}/actions");
    site.post(&path, action).await.expect(200);
}

fn added() -> Value {
    let parameters = json!([{"name": "word"}]);
    json!({
        "entrypoints": ["counting.Counter{\"start\": 5}", "nowhere.f"],
        "python": "/usr/bin/python3",
        "commands": [{"name": "say", "argv": ["echo", "{word}"], "parameters": parameters}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_added_listed_called_reset_and_removed() {
    let site = Site::start().await;
    let session = site.session().await;
    with_module(&site, &session).await;
    let path = format!("/v1/sessions/{session}/tools");
    let answer = site.post(&path, added()).await.expect(201);
    let names: Vec<_> = answer["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["say", "up"]);
    assert_eq!(answer["failures"][0]["type"], "ModuleNotFoundError");
    assert_eq!(answer["tools"][1]["origin"]["kind"], "python");

    let openai = site.get(&format!("{path}?format=openai")).await.expect(200);
    assert_eq!(openai["tools"][1]["function"]["name"], "up");
    let mcp = site.get(&format!("{path}?format=mcp")).await.expect(200);
    assert_eq!(mcp["tools"][1]["inputSchema"]["required"], json!([]));
    assert_eq!(
        site.get(&format!("{path}?format=x")).await.error(400),
        "invalid_request"
    );

    let up = format!("{path}/up");
    let called = site
        .post(&up, json!({"arguments": {"by": 2}}))
        .await
        .expect(200);
    assert_eq!(called["extras"]["result"], 7);
    let called = site
        .post(&up, json!({"positional": [3], "timeout": 5}))
        .await
        .expect(200);
    assert_eq!(called["extras"]["result"], 10);
    let wrong = site
        .post(&up, json!({"arguments": {"by": "x"}}))
        .await
        .expect(200);
    assert_eq!(wrong["extras"]["error"]["type"], "invalid_arguments");
    let missing = site
        .post(&format!("{path}/nothing"), json!({}))
        .await
        .expect(200);
    assert_eq!(missing["extras"]["error"]["class"], "not_found");
    let said = site
        .post(
            &format!("{path}/say"),
            json!({"arguments": {"word": "$(x)"}}),
        )
        .await;
    assert_eq!(said.expect(200)["extras"]["result"], "$(x)\n");
    assert_eq!(
        site.post(&up, json!({"argument": {}})).await.error(400),
        "invalid_request"
    );

    site.post(&format!("{path}/reset"), json!({}))
        .await
        .expect(204);
    let called = site.post(&up, json!({})).await.expect(200);
    assert_eq!(called["extras"]["result"], 6);
    let remove = || site.send(Request::new("DELETE", &up).key(&site.admin));
    remove().await.expect(204);
    assert_eq!(remove().await.error(404), "not_found");
}

/// A tool that runs until it is stopped, and leaves word of both.
const LINGER: &str = "import time\ndef linger():\n    open('lingers', 'w').close()\n    try:\n        \
    while True:\n            time.sleep(0.02)\n    finally:\n        open('ended', 'w').close()\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_away_has_its_call_stopped() {
    let site = Site::start().await;
    let session = site.session().await;
    let action = json!({"action": "write", "args": {"path": "waiting.py", "content": LINGER}});
    let actions = format!("/v1/sessions/{session}/actions");
    site.post(&actions, action).await.expect(200);
    let path = format!("/v1/sessions/{session}/tools");
    let new = json!({"entrypoints": ["waiting.linger"], "python": "/usr/bin/python3"});
    site.post(&path, new).await.expect(201);
    let call = Request::post(&format!("{path}/linger"), &json!({})).key(&site.admin);
    let address = site.address;
    let client = tokio::spawn(async move { call.send(address).await });
    let wait = |name: &str| format!("until test -e {name}; do sleep 0.02; done");
    site.run(&session, &wait("lingers")).await;
    client.abort();
    site.run(&session, &wait("ended")).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_added_is_refused_with_its_reason() {
    let site = Site::start().await;
    let session = site.session().await;
    with_module(&site, &session).await;
    let path = format!("/v1/sessions/{session}/tools");
    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!({"entrypoints": ["math"]}), 400, "invalid_request"),
        (
            json!({"entrypoints": ["a.b"], "x": 1}),
            400,
            "invalid_request",
        ),
        (
            json!({"commands": [{"name": "a b", "argv": ["x"]}]}),
            400,
            "invalid_request",
        ),
        (json!({"commands": [{"name": "x"}]}), 400, "invalid_request"),
        (
            json!({"entrypoints": ["nowhere.f"], "python": "/usr/bin/python3"}),
            400,
            "invalid_request",
        ),
        (
            json!({"entrypoints": ["a.b"], "python": "/no/python"}),
            404,
            "not_found",
        ),
    ] {
        assert_eq!(
            site.post(&path, body.clone()).await.error(status),
            code,
            "{body}"
        );
    }
    site.post(&path, added()).await.expect(201);
    assert_eq!(site.post(&path, added()).await.error(409), "exists");
}
