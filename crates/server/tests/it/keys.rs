//! Keys: what they are for, how much they allow, when they end.

use std::time::Duration;

use serde_json::json;

use crate::{
    fixture::{Site, run},
    http::Request,
};

#[tokio::test]
async fn keys_are_made_listed_and_removed() {
    let site = Site::start().await;
    let new = json!({ "owner": "ann@example.org", "scope": "session" });
    let created = site.post("/v1/keys", new).await.expect(201);
    let secret = created["secret"].as_str().unwrap();
    let id = created["key"]["id"].as_str().unwrap();
    assert!(secret.starts_with("zrb_"), "{secret}");
    assert!(secret.len() > 4 + 64, "{secret}");

    let listed = site.get("/v1/keys").await;
    assert!(!listed.text().contains(secret));
    let listed = listed.expect(200);
    let keys = listed["keys"].as_array().unwrap();
    assert!(keys.contains(&created["key"]), "{listed}");

    let ask = || Request::get("/v1/sessions").key(secret);
    site.send(ask()).await.expect(200);
    assert_eq!(site.delete(format!("/v1/keys/{id}")).await.status, 204);
    assert_eq!(site.send(ask()).await.error(401), "unauthorized");
    let again = site.delete(format!("/v1/keys/{id}")).await;
    assert_eq!(again.error(404), "not_found");
    site.stop().await;
}

#[tokio::test]
async fn keys_that_make_no_sense_are_refused() {
    let site = Site::start().await;
    for body in [
        json!({ "owner": "ann" }),
        json!({ "owner": "", "scope": "read" }),
        json!({ "owner": "a b", "scope": "read" }),
        json!({ "owner": "ann", "scope": "everything" }),
        json!({ "owner": "ann", "scope": "read", "typo": 1 }),
        json!({ "owner": "ann", "scope": "admin", "session": "one" }),
        json!({ "owner": "ann", "scope": "read", "expires_in": -1 }),
        json!({ "owner": "ann", "scope": "read", "quota": { "session": 1 } }),
    ] {
        let answer = site.post("/v1/keys", body.clone()).await;
        assert_eq!(answer.error(400), "invalid_request", "{body}");
    }
    site.stop().await;
}

#[tokio::test]
async fn an_expired_key_opens_nothing() {
    let site = Site::start().await;
    let new = json!({ "owner": "ann", "scope": "read", "expires_in": 0 });
    let expired = site.key(new).await;
    let answer = site.send(Request::get("/v1/sessions").key(&expired)).await;
    assert_eq!(answer.error(401), "unauthorized");
    site.stop().await;
}

#[tokio::test]
async fn a_key_for_one_session_is_for_that_one_only() {
    let site = Site::start().await;
    let (mine, other) = (site.session().await, site.session().await);
    let created = site.post(format!("/v1/sessions/{mine}/keys"), json!({}));
    let created = created.await.expect(201);
    let key = created["secret"].as_str().unwrap();
    assert_eq!(created["key"]["session"], mine);

    let path = format!("/v1/sessions/{mine}/actions");
    let ran = site
        .send(Request::post(&path, &run("echo in")).key(key))
        .await;
    assert_eq!(ran.expect(200)["content"].as_str().unwrap().trim(), "in");
    let foreign = Request::get(&format!("/v1/sessions/{other}")).key(key);
    assert_eq!(site.send(foreign).await.error(404), "not_found");
    let listed = site.send(Request::get("/v1/sessions").key(key)).await;
    let listed = listed.expect(200);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    for (path, body) in [
        ("/v1/sessions".to_owned(), json!({})),
        (format!("/v1/sessions/{mine}/keys"), json!({})),
    ] {
        let answer = site.send(Request::post(&path, &body).key(key)).await;
        assert_eq!(answer.error(403), "forbidden", "{path}");
    }
    for path in ["/v1/status", "/metrics", "/v1/keys"] {
        let answer = site.send(Request::get(path).key(key)).await;
        assert_eq!(answer.error(403), "forbidden", "{path}");
    }
    let purge = Request::new("DELETE", &format!("/v1/sessions/{mine}?purge=true"));
    assert_eq!(site.send(purge.key(key)).await.error(403), "forbidden");
    site.stop().await;
}

/// Two at once do not both take the last place.
#[tokio::test]
async fn a_quota_of_sessions_holds_also_at_once() {
    let site = Site::start().await;
    let quota = json!({ "owner": "ann", "scope": "session", "quota": { "sessions": 2 } });
    let key = site.key(quota).await;
    let create = || site.send(Request::post("/v1/sessions", &json!({})).key(&key));
    let answers = tokio::join!(create(), create(), create(), create());
    let answers = [answers.0, answers.1, answers.2, answers.3];
    let made: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 201)
        .collect();
    assert_eq!(made.len(), 2);
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(answer.error(429), "quota_exceeded");
    }
    let id = made[0].json()["id"].as_str().unwrap().to_owned();
    let close = Request::new("DELETE", &format!("/v1/sessions/{id}"));
    assert_eq!(site.send(close.key(&key)).await.status, 204);
    create().await.expect(201);
    site.stop().await;
}

/// Going away before the answer does not make a session that is not counted.
#[tokio::test]
async fn a_quota_of_sessions_cannot_be_walked_away_from() {
    let site = Site::start().await;
    let quota = json!({ "owner": "ann", "scope": "session", "quota": { "sessions": 2 } });
    let key = site.key(quota).await;
    let request = Request::post("/v1/sessions", &json!({})).key(&key);
    let mut abandoned = Vec::new();
    for _ in 0..8 {
        let (head, stream) = (request.clone(), site.address);
        let sent = tokio::time::timeout(Duration::from_millis(5), head.send(stream));
        abandoned.push(sent.await.is_err());
    }
    // One more that is waited for: by then all others have been judged.
    let _ = site.send(request).await;
    let listed = site.send(Request::get("/v1/sessions").key(&key)).await;
    let listed = listed.expect(200)["sessions"].as_array().unwrap().len();
    assert!(listed <= 2, "{listed} of {abandoned:?}");
    site.stop().await;
}

#[tokio::test]
async fn a_quota_of_actions_holds() {
    let site = Site::start().await;
    let quota = json!({
        "owner": "admin", "scope": "session", "quota": { "actions_per_minute": 3 },
    });
    let key = site.key(quota).await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    let act = || site.send(Request::post(&path, &run("true")).key(&key));
    for _ in 0..3 {
        act().await.expect(200);
    }
    let refused = act().await;
    assert_eq!(refused.error(429), "too_many_requests");
    assert!(refused.header("retry-after").is_some());
    site.run(&session, "true").await;
    site.stop().await;
}

#[tokio::test]
async fn only_digests_are_stored() {
    let site = Site::start().await;
    let log = site.sessions.log().store();
    let stored = log.list("key").await.unwrap();
    assert_eq!(stored.len(), 1);
    let secret = site.admin.rsplit('_').next().unwrap();
    assert!(!stored[0].value.to_string().contains(secret));
    assert_eq!(site.keys.create_first().await.unwrap(), None);
    site.stop().await;
}
