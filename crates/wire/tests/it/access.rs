//! Who gets in: keys on every route, names and origins without one.

use serde_json::json;
use zareba_wire::{
    Endpoint, SessionKey,
    server::{Access, BindError, OpenAccess, Server, ServerOptions, routes},
};

use crate::{
    fake::{keyed, keyless, start, start_at},
    http::{Answer, Ask, get, post},
};

fn ask(route: &zareba_wire::server::Route) -> Ask {
    match route.method.as_str() {
        "GET" => get(route.path),
        "POST" => post(route.path).json(&json!({})),
        "PUT" => Ask::new("PUT", route.path),
        "DELETE" => Ask::new("DELETE", route.path),
        other => panic!("{other}"),
    }
}

#[test]
fn the_public_routes_are_exactly_the_two_of_the_contract() {
    let all = routes();
    let public: Vec<_> = all
        .iter()
        .filter(|route| route.access == Access::Public)
        .map(|route| route.path)
        .collect();
    assert_eq!(public, ["/alive", "/server_info"]);
    assert_eq!(all.len(), 24);
}

#[tokio::test]
async fn every_route_but_the_public_ones_needs_the_key() {
    let refused = (403, json!({"detail": "Invalid API Key"}));
    for route in routes() {
        // A server each, since wrong keys are counted.
        let server = start(keyed("right"));
        for key in [None, Some(""), Some("wrong"), Some("right\t x")] {
            let mut ask = ask(&route);
            if let Some(key) = key {
                ask = ask.key(key);
            }
            let answer = ask.of(&server.endpoint).await;
            match route.access {
                Access::Public => assert_eq!(answer.status, 200, "{route:?}"),
                Access::SessionKey => {
                    assert_eq!((answer.status, answer.json()), refused, "{route:?} {key:?}");
                }
            }
        }
        let answer = ask(&route).key("right").of(&server.endpoint).await;
        assert_ne!(answer.status, 403, "{route:?}");
        assert!(server.service.actions.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn unknown_paths_and_near_misses_of_public_ones_need_the_key_too() {
    let server = start(keyed("right"));
    for path in [
        "/nope",
        "/alive/",
        "//alive",
        "/ALIVE",
        "/alive/../execute_action",
        "/docs",
    ] {
        assert_eq!(get(path).of(&server.endpoint).await.status, 403, "{path}");
        assert_eq!(
            get(path).key("right").of(&server.endpoint).await.status,
            404,
            "{path}"
        );
    }
    assert_eq!(
        get("/execute_action").of(&server.endpoint).await.status,
        403
    );
}

fn says_nothing_of_itself(answer: &Answer) {
    assert_eq!(
        answer.header("x-content-type-options"),
        Some("nosniff"),
        "{answer:?}"
    );
    assert_eq!(
        answer.header("cache-control"),
        Some("no-store"),
        "{answer:?}"
    );
    assert_eq!(
        answer.header("cross-origin-resource-policy"),
        Some("same-origin"),
        "{answer:?}"
    );
    assert_eq!(answer.header("server"), None, "{answer:?}");
    assert_eq!(
        answer.header("access-control-allow-origin"),
        None,
        "{answer:?}"
    );
}

#[tokio::test]
async fn every_answer_has_the_same_protective_headers() {
    let server = start(keyed("right"));
    for route in routes() {
        says_nothing_of_itself(&ask(&route).of(&server.endpoint).await);
        says_nothing_of_itself(&ask(&route).key("right").of(&server.endpoint).await);
    }
    says_nothing_of_itself(&get("/nope").key("right").of(&server.endpoint).await);
}

#[tokio::test]
async fn without_a_key_the_host_must_be_this_machine() {
    let server = start(keyless());
    let list = || post("/list_files").json(&json!({}));
    for host in ["localhost", "127.0.0.1:3000", "[::1]:3000"] {
        assert_eq!(
            list().host(Some(host)).of(&server.endpoint).await.status,
            200,
            "{host}"
        );
    }
    for host in [
        Some("rebound.example"),
        Some("rebound.example:3000"),
        Some("192.168.0.1"),
        None,
    ] {
        for ask in [list(), get("/alive"), get("/nope")] {
            let answer = ask.host(host).of(&server.endpoint).await;
            assert_eq!(answer.status, 421, "{host:?}");
            assert!(answer.json()["detail"].is_string(), "{answer:?}");
        }
    }
    let twice = list()
        .header("Host", "rebound.example")
        .of(&server.endpoint)
        .await;
    assert_eq!(twice.status, 421);
    let absolute = get("http://rebound.example/alive")
        .of(&server.endpoint)
        .await;
    assert_eq!(absolute.status, 421);
}

#[tokio::test]
async fn without_a_key_pages_of_other_origins_are_refused() {
    let server = start(keyless());
    let run = json!({"action": {"action": "run", "args": {"command": "ls"}}});
    for origin in [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "file://",
        // Another server on this machine, and another scheme.
        "http://localhost:5173",
        "https://localhost",
    ] {
        let ask = post("/execute_action").json(&run).header("Origin", origin);
        assert_eq!(ask.of(&server.endpoint).await.status, 403, "{origin}");
    }
    assert!(server.service.actions.lock().unwrap().is_empty());
    let ask = post("/execute_action")
        .json(&run)
        .header("Origin", "http://localhost");
    assert_eq!(ask.of(&server.endpoint).await.status, 200);
}

#[tokio::test]
async fn with_a_key_hosts_and_origins_do_not_matter() {
    let server = start(keyed("right"));
    let ask = post("/list_files")
        .json(&json!({}))
        .key("right")
        .host(Some("sandbox-7.cluster"));
    let answer = ask
        .header("Origin", "https://app.example")
        .of(&server.endpoint)
        .await;
    assert_eq!(answer.status, 200);
}

/// HS-10: guesses are told to wait, and the right key is let in all along.
#[tokio::test]
async fn wrong_keys_are_told_to_wait_and_the_right_one_is_not() {
    let server = start(keyed("right"));
    let ask = |key: &str| post("/list_files").json(&json!({})).key(key);
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(ask("wrong").of(&server.endpoint).await.status);
    }
    assert_eq!(statuses[..20], [403; 20]);
    assert_eq!(statuses[29], 429, "{statuses:?}");
    let waiting = ask("wrong").of(&server.endpoint).await;
    assert!(waiting.header("retry-after").is_some(), "{waiting:?}");
    assert_eq!(ask("right").of(&server.endpoint).await.status, 200);
}

/// HS-2.
#[tokio::test]
async fn the_network_is_closed_to_a_key_that_can_be_guessed() {
    let everywhere = Endpoint::Tcp(([0, 0, 0, 0], 0).into());
    let error = Server::bind(&everywhere, keyed("right")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "refusing to listen on `0.0.0.0:0` with a session key of fewer than 32 bytes"
    );
    let strong = keyed("0123456789abcdef0123456789abcdef");
    assert!(Server::bind(&everywhere, strong).is_ok());
}

#[tokio::test]
async fn the_network_is_closed_without_a_key_unless_it_is_acknowledged() {
    let everywhere = Endpoint::Tcp(([0, 0, 0, 0], 0).into());
    let error = Server::bind(&everywhere, keyless()).unwrap_err();
    assert!(
        matches!(error, BindError::OpenToNetwork { .. }),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "refusing to listen on `0.0.0.0:0` without a session key"
    );

    let acknowledged = ServerOptions {
        open_access: OpenAccess::Acknowledged,
        ..keyless()
    };
    let server = start_at(&everywhere, acknowledged);
    let Endpoint::Tcp(address) = server.endpoint.clone() else {
        panic!()
    };
    let endpoint = Endpoint::Tcp(([127, 0, 0, 1], address.port()).into());
    let ask = post("/list_files")
        .json(&json!({}))
        .host(Some("sandbox-7.cluster"));
    assert_eq!(ask.of(&endpoint).await.status, 200);
    let ask = post("/list_files")
        .json(&json!({}))
        .header("Origin", "https://evil.example");
    assert_eq!(ask.of(&endpoint).await.status, 403);

    let with_key = ServerOptions {
        session_key: SessionKey::new(&"k".repeat(32)).ok(),
        ..keyless()
    };
    assert!(Server::bind(&everywhere, with_key).is_ok());
}
