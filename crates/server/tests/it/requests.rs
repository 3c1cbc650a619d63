//! What a session asks of its sandbox: it holds, or the answer says what does not.

use serde_json::{Value, json};

use crate::{
    fixture::Site,
    http::{Request, Response},
};

async fn asked(site: &Site, body: Value) -> Response {
    site.post("/v1/sessions", body).await
}

/// The runtime of these tests has no walls, and so holds nothing.
#[tokio::test]
async fn what_a_runtime_cannot_hold_is_refused_with_its_field_and_a_hint() {
    let site = Site::start().await;
    for (field, body) in [
        ("network.mode", json!({ "network": { "mode": "none" } })),
        (
            "network.allow",
            json!({ "network": { "allow": ["a.example"] } }),
        ),
        (
            "network.deny",
            json!({ "network": { "deny": ["a.example"] } }),
        ),
        (
            "resources.memory",
            json!({ "resources": { "memory": "64MiB" } }),
        ),
        ("resources.cpus", json!({ "resources": { "cpus": 0.5 } })),
        ("resources.pids", json!({ "resources": { "pids": 64 } })),
        (
            "resources.disk",
            json!({ "resources": { "disk": 1_048_576 } }),
        ),
        ("workspace_mode", json!({ "workspace_mode": "read-only" })),
        ("user", json!({ "user": "1000" })),
        ("mounts", json!({ "mounts": ["/srv:/srv"] })),
        ("plugins", json!({ "plugins": ["jupyter"] })),
    ] {
        let refused = asked(&site, body).await.expect(422);
        let error = &refused["error"];
        assert_eq!(
            (&error["code"], &error["field"]),
            (&json!("unsupported"), &json!(field))
        );
        assert!(error["hint"].is_string(), "{refused}");
    }
    let listed = site.get("/v1/sessions").await.expect(200);
    assert_eq!(
        listed["sessions"],
        json!([]),
        "a refused request leaves no session"
    );
    site.stop().await;
}

#[tokio::test]
async fn with_best_effort_the_session_names_what_does_not_hold_now_and_later() {
    let site = Site::start().await;
    let body = json!({
        "id": "loose",
        "network": { "mode": "none" },
        "resources": { "memory": 67_108_864 },
        "best_effort": true,
    });
    let created = asked(&site, body).await.expect(201);
    let not_held = json!(["network", "memory"]);
    assert_eq!(created["not_held"], not_held);
    assert_eq!(created["network"]["mode"], "host");
    let shown = site.get("/v1/sessions/loose").await.expect(200);
    assert_eq!(shown["not_held"], not_held);
    site.stop().await;
}

#[tokio::test]
async fn fields_that_are_not_known_and_amounts_that_are_none_are_refused() {
    let site = Site::start().await;
    for body in [
        json!({ "network": { "reach": "host" } }),
        json!({ "resources": { "ram": 1 } }),
        json!({ "resources": { "memory": "much" } }),
        json!({ "resources": { "memory": -1 } }),
        json!({ "resources": { "cpus": 0 } }),
        json!({ "environment": { "PATH": "" } }),
    ] {
        let refused = asked(&site, body.clone()).await;
        assert_eq!(refused.error(400), "invalid_request", "{body}");
    }
    site.stop().await;
}

#[tokio::test]
async fn the_maxima_of_a_key_bound_its_sessions_and_are_told() {
    let site = Site::start().await;
    let key = site
        .key(json!({
            "owner": "ann",
            "scope": "session",
            "quota": { "memory_max": "64MiB", "cpus_max": 0.5 },
        }))
        .await;
    let create = |memory: u64| {
        let body = json!({ "resources": { "memory": memory }, "best_effort": true });
        Request::post("/v1/sessions", &body).key(&key)
    };
    site.send(create(64 << 20)).await.expect(201);
    let refused = site.send(create((64 << 20) + 1)).await.expect(403);
    assert_eq!(refused["error"]["code"], "forbidden");
    assert_eq!(refused["error"]["field"], "resources.memory");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("64MiB") && message.contains("67108865"),
        "{message}"
    );
    let keys = site.get("/v1/keys").await.expect(200);
    let keys = keys["keys"].as_array().unwrap();
    let anns = keys.iter().find(|key| key["owner"] == "ann").unwrap();
    assert_eq!(
        anns["quota"],
        json!({ "memory_max": 67_108_864, "cpus_max": 0.5 })
    );
    site.stop().await;
}
