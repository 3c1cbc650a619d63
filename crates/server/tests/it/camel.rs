//! CAMEL's routes over the tools of a session, beside OpenHands' and the server's own.

use serde_json::{Value, json};

use crate::{
    fixture::Site,
    http::{Request, Response},
};

const MODULE: &str = r#"
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b
"#;

/// A session with one tool.
async fn session_with_a_tool(site: &Site, key: &str) -> String {
    let made = Request::post("/v1/sessions", &json!({})).key(key);
    let session = site.send(made).await.expect(201);
    let id = session["id"].as_str().unwrap().to_owned();
    let module = std::path::Path::new(session["workspace"].as_str().unwrap()).join("sample.py");
    std::fs::write(module, MODULE).unwrap();
    let tools = json!({ "entrypoints": ["sample.add"] });
    let added = Request::post(&format!("/v1/sessions/{id}/tools"), &tools).key(key);
    let added = site.send(added).await;
    assert!((200..300).contains(&added.status), "{}", added.text());
    id
}

async fn call(site: &Site, key: &str, id: &str, name: &str, args: Value) -> Response {
    let body = json!({ "args": args, "kwargs": {} });
    let request = Request::post(&format!("/sessions/{id}/camel/{name}"), &body);
    site.send(request.key(key)).await
}

/// HS-9: the tools of a session are for those who may use it.
#[tokio::test]
async fn tools_of_a_session_are_for_its_owner_hs_9() {
    let site = Site::start_with_openhands(|_| {}).await;
    let ann = site
        .key(json!({ "owner": "ann", "scope": "session" }))
        .await;
    let bob = site
        .key(json!({ "owner": "bob", "scope": "session" }))
        .await;
    let reader = site.key(json!({ "owner": "ann", "scope": "read" })).await;
    let id = session_with_a_tool(&site, &ann).await;

    let added = call(&site, &ann, &id, "add", json!([1, 2]))
        .await
        .expect(200);
    assert_eq!(added, json!({ "output": "3" }));
    let unknown = call(&site, &ann, &id, "nope", json!([])).await.expect(404);
    assert_eq!(unknown, json!({ "detail": "Not Found" }));
    for (key, status) in [(&bob, 404), (&reader, 403), (&"wrong".to_owned(), 401)] {
        let refused = call(&site, key, &id, "add", json!([1, 2])).await;
        assert_eq!(refused.status, status, "{}", refused.text());
    }
    let health = Request::get(&format!("/sessions/{id}/camel/health")).key(&ann);
    let expected = json!({ "status": "ok", "toolkits": [], "endpoints": ["add"] });
    assert_eq!(site.send(health).await.expect(200), expected);
    for path in ["camel", "camel/"] {
        let root = Request::get(&format!("/sessions/{id}/{path}")).key(&ann);
        let answer = site.send(root).await.expect(404);
        assert_eq!(answer, json!({ "detail": "Not Found" }), "{path}");
    }
    let slash = Request::get(&format!("/sessions/{id}/camel/health/")).key(&ann);
    let moved = site.send(slash).await;
    assert_eq!(moved.status, 307);
    let location = format!("/sessions/{id}/camel/health");
    assert_eq!(moved.header("location"), Some(location.as_str()));
    site.stop().await;
}

/// HS-14: a call of a tool counts as the action that it is.
#[tokio::test]
async fn calls_of_tools_count_as_actions() {
    let site = Site::start_with_openhands(|_| {}).await;
    let new = json!({
        "owner": "ann", "scope": "session", "quota": { "actions_per_minute": 2 },
    });
    let ann = site.key(new).await;
    let id = session_with_a_tool(&site, &ann).await;
    for _ in 0..2 {
        call(&site, &ann, &id, "add", json!([1, 2]))
            .await
            .expect(200);
    }
    let refused = call(&site, &ann, &id, "add", json!([1, 2])).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    site.stop().await;
}
