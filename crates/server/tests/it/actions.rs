//! Running actions: waiting, not waiting, asking again.

use std::time::Duration;

use serde_json::json;

use crate::{
    fixture::{Site, run},
    http::Request,
};

#[tokio::test]
async fn an_action_can_be_asked_about_later() {
    let site = Site::start().await;
    let session = site.session().await;
    let actions = format!("/v1/sessions/{session}/actions");
    let accepted = site
        .post(format!("{actions}?wait=false"), run("sleep 0.3; echo done"))
        .await;
    let place = accepted.header("location").unwrap().to_owned();
    let number = accepted.expect(202)["action"].as_u64().unwrap();
    assert_eq!(place, format!("{actions}/{number}"));
    assert_eq!(site.get(&place).await.expect(202)["action"], number);
    let answer = site.get(format!("{place}?wait=20")).await.expect(200);
    assert_eq!(answer["cause"], number);
    assert_eq!(answer["content"].as_str().unwrap().trim(), "done");
    assert_eq!(site.get(&place).await.expect(200), answer);
    let missing = site.get(format!("{actions}/999")).await;
    assert_eq!(missing.error(404), "not_found");
    site.stop().await;
}

#[tokio::test]
async fn a_wait_that_gets_too_long_ends_with_a_number() {
    let site = Site::start_with(|settings| {
        settings.limits.wait = Duration::from_millis(100);
    })
    .await;
    let session = site
        .post("/v1/sessions?wait=false", json!({ "id": "s" }))
        .await;
    session.expect(202);
    // Ready or not, the action waits its turn.
    let slow = loop {
        let answer = site
            .post("/v1/sessions/s/actions", run("sleep 1; echo late"))
            .await;
        match answer.status {
            409 => tokio::task::yield_now().await,
            _ => break answer.expect(202),
        }
    };
    let path = format!("/v1/sessions/s/actions/{}?wait=30", slow["action"]);
    let late = loop {
        let answer = site.get(&path).await;
        if answer.status == 200 {
            break answer.json();
        }
    };
    assert_eq!(late["content"].as_str().unwrap().trim(), "late");
    site.stop().await;
}

/// §14: the same key and body gives the first result, another body is refused.
#[tokio::test]
async fn an_action_with_a_key_runs_once() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    let send = |command: &str, key: &str| {
        Request::post(&path, &run(command))
            .key(&site.admin)
            .header("Idempotency-Key", key)
    };
    let once = "echo x >> once; wc -l < once";
    let first = site.send(send(once, "k1")).await.expect(200);
    let second = site.send(send(once, "k1")).await.expect(200);
    assert_eq!(first, second);
    let other = site.send(send("echo other", "k1")).await;
    assert_eq!(other.error(422), "idempotency_mismatch");
    let third = site.send(send(once, "k2")).await.expect(200);
    assert_eq!(third["content"].as_str().unwrap().trim(), "2");
    for bad in ["", "a b", &"k".repeat(256)] {
        let answer = site.send(send(once, bad)).await;
        assert_eq!(answer.error(400), "invalid_request", "{bad:?}");
    }
    site.stop().await;
}

/// HS-16: a client that goes away does not stop its action, and the result stays.
#[tokio::test]
async fn a_client_that_goes_away_leaves_its_action_running() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    let request = Request::post(&path, &run("sleep 0.5; echo survived"))
        .key(&site.admin)
        .header("Idempotency-Key", "gone");
    let abandoned = tokio::time::timeout(Duration::from_millis(200), request.send(site.address));
    assert!(abandoned.await.is_err());
    let answer = site.send(request).await.expect(200);
    assert_eq!(answer["content"].as_str().unwrap().trim(), "survived");
    let events = site.get(format!("/v1/sessions/{session}/events"));
    let events = events.await.expect(200);
    let kinds = events["events"].as_array().unwrap().iter();
    let actions = kinds.filter(|event| event["kind"] == "action");
    assert_eq!(actions.count(), 1);
    site.stop().await;
}

#[tokio::test]
async fn what_is_no_action_is_refused_before_it_is_recorded() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    let before = site
        .get(format!("/v1/sessions/{session}"))
        .await
        .expect(200);
    for (body, status, code) in [
        (json!({}), 400, "invalid_request"),
        (json!([]), 400, "invalid_request"),
        (json!({ "action": "fly", "args": {} }), 422, "unsupported"),
        (
            json!({ "action": "run", "args": {} }),
            400,
            "invalid_request",
        ),
        (
            json!({ "action": "run", "args": { "command": 1 } }),
            400,
            "invalid_request",
        ),
        (
            json!({ "action": "run", "args": { "command": "true", "as_root": true } }),
            400,
            "invalid_request",
        ),
    ] {
        let answer = site.post(&path, body.clone()).await;
        assert_eq!(answer.error(status), code, "{body}");
    }
    let after = site
        .get(format!("/v1/sessions/{session}"))
        .await
        .expect(200);
    assert_eq!(after["next_event"], before["next_event"]);
    site.stop().await;
}
