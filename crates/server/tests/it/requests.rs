//! What a session asks of its sandbox: it holds, or the answer says what does not.

use serde_json::{Map, Value, json};

use crate::{
    fixture::{Site, run},
    http::{Request, Response},
};

async fn asked(site: &Site, body: Value) -> Response {
    site.post("/v1/sessions", body).await
}

#[tokio::test]
async fn a_body_that_is_no_json_is_not_blamed_on_a_field() {
    let site = Site::start().await;
    for (body, problem) in [
        (
            "{x: 1}",
            "the body is not JSON: key must be a string at line 1 column 2",
        ),
        (
            "{\"id\": ",
            "the body is not JSON: EOF while parsing a value at line 1 column 7",
        ),
    ] {
        let request = Request::new("POST", "/v1/sessions")
            .key(&site.admin)
            .header("Content-Type", "application/json")
            .body(body.as_bytes().to_vec());
        let answer = site.send(request).await.expect(400);
        assert_eq!(answer["error"]["message"], problem, "{answer}");
    }
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

/// Every field of a new session as the contract names them: its own, and those of its parts.
fn contracted_fields() -> Vec<String> {
    let contract = include_str!("../../../../openapi/zareba.json");
    let contract: Value = serde_json::from_str(contract).unwrap();
    let schemas = &contract["components"]["schemas"];
    let names = |schema: &str| {
        let fields = schemas[schema]["properties"].as_object().unwrap();
        fields.keys().cloned().collect::<Vec<_>>()
    };
    let parts = [
        ("network", "Network"),
        ("resources", "Resources"),
        ("limits", "SessionLimits"),
    ];
    let whole = names("CreateSession").into_iter();
    let whole = whole.filter(|name| parts.iter().all(|(part, _)| part != name));
    let of_parts = parts.into_iter().flat_map(|(part, schema)| {
        let names = names(schema).into_iter();
        names.map(move |name| format!("{part}.{name}"))
    });
    whole.chain(of_parts).collect()
}

/// A body that asks for something else than usual by this field alone.
fn body_with(field: &str) -> Value {
    let value = match field {
        "id" => json!("chosen"),
        "runtime" => json!("nowhere"),
        "image" => json!("debian"),
        "workspace" => json!("/srv"),
        "environment" | "secrets" => json!({ "PROBE": "here" }),
        "labels" => json!({ "a": "1" }),
        "no_change_timeout" | "timeout" => json!(0.2),
        "network.mode" => json!("none"),
        "network.allow" | "network.deny" => json!(["a.example"]),
        "resources.memory" | "resources.disk" => json!(64 << 20),
        "resources.cpus" => json!(0.5),
        "resources.pids" => json!(64),
        "workspace_mode" => json!("read-only"),
        "user" => json!("1000"),
        "mounts" => json!(["/srv:/srv"]),
        "plugins" => json!(["jupyter"]),
        "limits.idle_timeout" | "limits.life_max" => json!(60),
        "limits.when_idle" => json!("close"),
        // Of another field, without which this one has nothing to do.
        "best_effort" => return json!({ "best_effort": true, "user": "1000" }),
        other => panic!("the field `{other}` has no sample here: say what it asks for"),
    };
    let mut value = value;
    for name in field.rsplit('.') {
        value = Value::Object(Map::from_iter([(name.to_owned(), value)]));
    }
    value
}

/// What a client sees of a session, apart from what differs in each.
async fn seen(site: &Site, session: &Value) -> Value {
    let mut shown = session.clone();
    for volatile in ["created", "last_active", "next_event", "workspace"] {
        shown.as_object_mut().unwrap().remove(volatile);
    }
    let id = shown["id"].as_str().unwrap().to_owned();
    if id.len() == 32 {
        shown.as_object_mut().unwrap().remove("id");
    }
    let path = format!("/v1/sessions/{id}/actions");
    let probed = site.post(path, run("test -z \"$PROBE\"; echo $?; sleep 1"));
    let probed = probed.await.expect(200);
    json!([
        shown,
        probed["content"],
        probed["extras"]["metadata"]["exit_code"]
    ])
}

/// A field that the contract has is read, or refused by a client's mistake being told.
#[tokio::test]
async fn every_field_of_the_contract_changes_the_session_or_is_refused() {
    let site = Site::start().await;
    let usual = asked(&site, json!({})).await.expect(201);
    let usual = seen(&site, &usual).await;
    // What the workspace brings is run or not: a test of sessions with a workspace shows it.
    let fields = contracted_fields().into_iter().filter(|it| it != "setup");
    for field in fields {
        let answer = asked(&site, body_with(&field)).await;
        match answer.status {
            201 => {
                let made = seen(&site, &answer.json()).await;
                assert_ne!(made, usual, "`{field}` is accepted without effect");
            }
            status => {
                assert!(
                    [400, 403, 422].contains(&status),
                    "`{field}`: {}",
                    answer.text()
                );
                assert!(answer.json()["error"]["message"].is_string(), "`{field}`");
            }
        }
    }
    site.stop().await;
}

#[tokio::test]
async fn a_key_of_some_runtimes_images_and_directories_gets_no_other() {
    let site = Site::start().await;
    for (quota, body, field) in [
        (json!({ "runtimes": ["native"] }), json!({}), "runtime"),
        (
            json!({ "runtimes": ["native"] }),
            json!({ "runtime": "cli" }),
            "runtime",
        ),
        (
            json!({ "images": ["debian:*"] }),
            json!({ "image": "other" }),
            "image",
        ),
        (
            json!({ "workspaces": ["/srv/own"] }),
            json!({ "workspace": "/srv" }),
            "workspace",
        ),
    ] {
        let key = json!({ "owner": "ann", "scope": "session", "quota": quota });
        let made = site.post("/v1/keys", key).await.expect(201);
        assert_eq!(made["key"]["quota"], quota);
        let key = made["secret"].as_str().unwrap();
        let asked = Request::post("/v1/sessions", &body).key(key);
        let refused = site.send(asked).await.expect(403);
        assert_eq!(refused["error"]["field"], field, "{quota} {body}");
        assert!(refused["error"]["hint"].is_string(), "{refused}");
    }
    let quota = json!({ "runtimes": ["cli"], "images": [] });
    let key = json!({ "owner": "ann", "scope": "session", "quota": quota });
    let key = site.key(key).await;
    let asked = Request::post("/v1/sessions", &json!({})).key(&key);
    site.send(asked).await.expect(201);
    let key = json!({ "owner": "ann", "scope": "session", "quota": { "workspaces": ["own"] } });
    assert_eq!(
        site.post("/v1/keys", key).await.error(400),
        "invalid_request"
    );
    site.stop().await;
}

#[tokio::test]
async fn a_life_beyond_the_keys_is_refused_at_creation_as_it_is_later() {
    let site = Site::start().await;
    let key = json!({ "owner": "ann", "scope": "session", "quota": { "life_max": 60 } });
    let key = site.key(key).await;
    let create = async |life: u64| {
        let body = json!({ "limits": { "life_max": life } });
        site.send(Request::post("/v1/sessions", &body).key(&key))
            .await
    };
    let refused = create(61).await.expect(403);
    assert_eq!(refused["error"]["field"], "limits.life_max");
    let hint = "ask for 60 seconds from its start or less";
    assert_eq!(refused["error"]["hint"], hint);
    let made = create(59).await.expect(201);
    assert_eq!(made["limits"]["life_max"], 59.0);
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

/// The runtime of these tests has no walls: every session could reach every host.
#[tokio::test]
async fn a_key_of_some_networks_gets_no_session_that_could_reach_more() {
    let site = Site::start().await;
    for (quota, body, status, field) in [
        (
            json!({ "networks": ["filtered"] }),
            json!({ "network": { "mode": "host" } }),
            403,
            "network.mode",
        ),
        (
            json!({ "networks": ["filtered"] }),
            json!({ "best_effort": true }),
            403,
            "network.mode",
        ),
        (
            json!({ "hosts": ["*.example"] }),
            json!({ "network": { "mode": "none" }, "best_effort": true }),
            403,
            "network.mode",
        ),
        (json!({ "networks": [] }), json!({}), 422, "network.mode"),
    ] {
        let key = json!({ "owner": "ann", "scope": "session", "quota": quota });
        let key = site.key(key).await;
        let asked = Request::post("/v1/sessions", &body).key(&key);
        let refused = site.send(asked).await.expect(status);
        assert_eq!(refused["error"]["field"], field, "{quota} {body}");
    }
    let key = json!({ "owner": "ann", "scope": "session", "quota": { "networks": ["host"] } });
    let key = site.key(key).await;
    let asked = Request::post("/v1/sessions", &json!({})).key(&key);
    site.send(asked).await.expect(201);
    let quotas = [
        json!({ "hosts": ["not a host"] }),
        json!({ "networks": [""] }),
    ];
    for quota in quotas {
        let key = json!({ "owner": "ann", "scope": "session", "quota": quota });
        assert_eq!(
            site.post("/v1/keys", key).await.error(400),
            "invalid_request"
        );
    }
    site.stop().await;
}

#[tokio::test]
async fn the_life_of_a_session_can_be_changed_within_what_the_key_may_have() {
    let site = Site::start().await;
    let quota = json!({ "life_max": 3600 });
    let key = json!({ "owner": "ann", "scope": "session", "quota": quota });
    let key = site.key(key).await;
    let make = json!({ "id": "s", "labels": { "a": "1" } });
    let made = site
        .send(Request::post("/v1/sessions", &make).key(&key))
        .await;
    assert_eq!(made.expect(201)["limits"], json!({ "life_max": 3600.0 }));
    let change = async |body: Value| {
        let request = Request {
            method: "PATCH".to_owned(),
            ..Request::post("/v1/sessions/s", &body)
        };
        site.send(request.key(&key)).await
    };
    let changed = change(json!({ "limits": { "life_max": 1800, "when_idle": "close" } })).await;
    let limits = json!({ "life_max": 1800.0, "when_idle": "close" });
    assert_eq!(changed.expect(200)["limits"], limits);
    let changed = change(json!({ "ends_in": 60, "labels": { "b": "2" } }))
        .await
        .expect(200);
    let life = changed["limits"]["life_max"].as_f64().unwrap();
    assert!((60.0..1800.0).contains(&life), "{changed}");
    assert_eq!(changed["labels"], json!({ "b": "2" }));
    for body in [
        json!({ "limits": { "life_max": 3601 } }),
        json!({ "ends_in": 3600 }),
    ] {
        let refused = change(body).await.expect(403);
        assert_eq!(refused["error"]["field"], "limits.life_max");
        assert!(refused["error"]["hint"].is_string(), "{refused}");
    }
    for body in [
        json!({ "ends_in": 0 }),
        json!({ "ends_in": 1, "limits": { "life_max": 1 } }),
        json!({ "life": 1 }),
        json!({ "labels": { "a": "x".repeat(5000) } }),
    ] {
        assert_eq!(change(body).await.error(400), "invalid_request");
    }
    site.stop().await;
}
