//! Making, finding and ending sessions.

use serde_json::json;

use crate::{
    fixture::{Site, run},
    http::Request,
};

#[tokio::test]
async fn the_first_minute_works() {
    let site = Site::start().await;
    assert_eq!(
        site.send(Request::get("/v1/health")).await.expect(200),
        json!({ "status": "ok" })
    );
    let created = site
        .post(
            "/v1/sessions",
            json!({ "id": "one", "labels": { "for": "me" } }),
        )
        .await;
    assert_eq!(created.header("location"), Some("/v1/sessions/one"));
    let created = created.expect(201);
    assert_eq!(created["state"], "ready");
    assert_eq!(created["owner"], "admin");
    assert_eq!(created["labels"]["for"], "me");

    let observation = site
        .run("one", "echo hello; exit_code() { return 3; }; exit_code")
        .await;
    assert_eq!(observation["observation"], "run");
    assert_eq!(observation["content"].as_str().unwrap().trim(), "hello");
    assert_eq!(observation["extras"]["metadata"]["exit_code"], 3);
    assert!(observation["cause"].is_u64(), "{observation}");

    assert_eq!(site.delete("/v1/sessions/one").await.status, 204);
    assert_eq!(site.delete("/v1/sessions/one").await.status, 204);
    let closed = site.get("/v1/sessions/one").await.expect(200);
    assert_eq!(closed["state"], "closed");
    let refused = site.post("/v1/sessions/one/actions", run("true")).await;
    assert_eq!(refused.error(409), "conflict");
    site.stop().await;
}

#[tokio::test]
async fn a_session_can_be_asked_for_without_waiting() {
    let site = Site::start().await;
    let accepted = site
        .post("/v1/sessions?wait=false", json!({ "id": "later" }))
        .await;
    assert_eq!(accepted.header("location"), Some("/v1/sessions/later"));
    let accepted = accepted.expect(202);
    assert_eq!(accepted["id"], "later");
    let again = site.post("/v1/sessions", json!({ "id": "later" })).await;
    assert_eq!(again.error(409), "exists");
    site.stop().await;
}

#[tokio::test]
async fn lists_come_in_pages() {
    let site = Site::start().await;
    for name in ["a", "b", "c"] {
        let made = site.post("/v1/sessions?wait=false", json!({ "id": name }));
        made.await.expect(202);
    }
    let page = site.get("/v1/sessions?limit=2").await.expect(200);
    let sessions = page["sessions"].as_array().unwrap().iter();
    let names: Vec<_> = sessions.map(|session| session["id"].clone()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(page["next"], "b");
    let rest = site.get("/v1/sessions?after=b&limit=2").await.expect(200);
    assert_eq!(rest["sessions"][0]["id"], "c");
    assert_eq!(rest.get("next"), None);
    site.stop().await;
}

#[tokio::test]
async fn a_purged_session_is_forgotten_with_its_keys() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}");
    let key = site
        .post(format!("{path}/keys"), json!({}))
        .await
        .expect(201);
    let secret = key["secret"].as_str().unwrap().to_owned();
    let purged = site.delete(format!("{path}?purge=true")).await;
    assert_eq!(purged.status, 204, "{}", purged.text());
    assert_eq!(site.get(&path).await.error(404), "not_found");
    let asked = site.send(Request::get(&path).key(&secret)).await;
    assert_eq!(asked.error(401), "unauthorized");
    site.stop().await;
}

#[tokio::test]
async fn what_a_runtime_cannot_do_it_says() {
    let site = Site::start().await;
    let session = site.session().await;
    let paused = site.post(format!("/v1/sessions/{session}/pause"), json!({}));
    assert_eq!(paused.await.error(422), "unsupported");
    let alive = site.post(format!("/v1/sessions/{session}/keep_alive"), json!({}));
    assert_eq!(alive.await.expect(200)["state"], "ready");
    let runtimes = site.get("/v1/runtimes").await.expect(200);
    assert_eq!(runtimes["runtimes"][0]["name"], "cli");
    assert_eq!(runtimes["runtimes"][0]["isolation"], "none");
    let unknown = site.post("/v1/sessions", json!({ "runtime": "nowhere" }));
    assert_eq!(unknown.await.error(400), "invalid_request");
    site.stop().await;
}

#[tokio::test]
async fn the_server_tells_of_itself() {
    let site = Site::start().await;
    site.session().await;
    let status = site.get("/v1/status").await.expect(200);
    assert_eq!(status["sessions"]["ready"], 1);
    assert_eq!(status["log"]["durable"], true);
    assert_eq!(site.get("/v1/ready").await.expect(200)["ready"], true);
    let limits = site.get("/v1/limits").await.expect(200);
    assert_eq!(limits["json_depth"], 64);
    let document = site.get("/v1/openapi.json").await.expect(200);
    assert_eq!(document, zareba_api::openapi());
    site.stop().await;
}
