//! Who may use what.

use http::StatusCode;
use reqwest::Method;
use serde_json::json;
use zareba_facades::openhands::{Needs, Rights, routes};

use crate::{
    client::{ALICE, Api, BOB, answer},
    provider::{Kind, Provider},
};

#[tokio::test]
async fn no_route_answers_without_the_key_that_it_needs_hs_1() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, ALICE);
    let id = api.start("one").await["runtime_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for key in ["", "wrong", "admin-key"] {
        let stranger = Api::new(&provider, Box::leak(key.to_owned().into_boxed_str()));
        for route in routes() {
            let path = route.path.replace("{id}", &id);
            let request = stranger.request(route.method.clone(), &path);
            let request = request.header("x-session-api-key", key).json(&json!({}));
            let (status, body) = answer(request).await;
            let expected = json!({ "detail": "Invalid API Key" });
            assert_eq!(
                (status, body),
                (StatusCode::FORBIDDEN, expected),
                "{route:?}"
            );
        }
    }
    provider.stop().await;
}

#[tokio::test]
async fn a_key_that_may_only_look_changes_nothing() {
    let provider = Provider::start(Kind::Cli).await;
    let id = Api::new(&provider, ALICE).start("one").await["runtime_id"].clone();
    let reader = Api::new(&provider, "read-key-alice");
    for route in routes() {
        let path = route.path.replace("{id}", id.as_str().unwrap());
        let (status, _) =
            answer(reader.request(route.method.clone(), &path).json(&json!({}))).await;
        let may_look = route.needs == Needs::Key(Rights::Read);
        assert_eq!(
            status == StatusCode::FORBIDDEN,
            !may_look,
            "{route:?}: {status}"
        );
    }
    provider.stop().await;
}

/// HS-9: what is somebody else's and what was never there get the same answer.
#[tokio::test]
async fn sessions_of_others_do_not_exist_hs_9() {
    let provider = Provider::start(Kind::Cli).await;
    let (alice, bob) = (Api::new(&provider, ALICE), Api::new(&provider, BOB));
    let started = alice.start("shared name").await;
    let foreign = started["runtime_id"].as_str().unwrap().to_owned();
    for id in [foreign.as_str(), "never-was", "not%20a%20name"] {
        let expected = (StatusCode::NOT_FOUND, json!({ "detail": "Not found" }));
        assert_eq!(bob.get(&format!("/runtime/{id}")).await, expected, "{id}");
        let path = format!("/sessions/{id}/alive");
        assert_eq!(bob.get(&path).await, expected, "{id}");
        for verb in ["/stop", "/pause", "/resume"] {
            assert_eq!(
                bob.post(verb, json!({ "runtime_id": id })).await,
                expected,
                "{id}"
            );
        }
    }
    assert_eq!(
        bob.get("/sessions/shared%20name").await.0,
        StatusCode::NOT_FOUND
    );
    assert_eq!(bob.get("/list").await.1, json!({ "runtimes": [] }));
    // The same name means another session for another owner.
    let own = bob.start("shared name").await;
    assert_ne!(own["runtime_id"], started["runtime_id"]);
    assert_eq!(
        alice.runtime(&started).output("echo unharmed").await,
        "unharmed"
    );
    provider.stop().await;
}

#[tokio::test]
async fn the_key_of_one_session_opens_no_other_and_not_the_api() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, ALICE);
    let (one, two) = (api.start("one").await, api.start("two").await);
    let key = one["session_api_key"].as_str().unwrap();
    let nobody = Api::new(&provider, "");
    let (own, other) = (nobody.runtime(&one), nobody.runtime(&two));
    assert_eq!(own.get("/alive").await.0, StatusCode::OK);
    let path = format!("{}/alive", other.url.replace(&provider.url, ""));
    let request = nobody
        .request(Method::GET, &path)
        .header("x-session-api-key", key);
    assert_eq!(answer(request).await.0, StatusCode::FORBIDDEN);
    let request = nobody
        .request(Method::GET, "/list")
        .header("x-session-api-key", key);
    assert_eq!(answer(request).await.0, StatusCode::FORBIDDEN);
    // The owner's own key opens it as well.
    let path = format!("{}/alive", other.url.replace(&provider.url, ""));
    assert_eq!(api.get(&path).await.0, StatusCode::OK);
    provider.stop().await;
}

#[tokio::test]
async fn a_key_makes_as_many_sessions_as_it_may() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, "use-key-few");
    let first = api.start("one").await;
    let (status, body) = api.post("/start", json!({ "session_id": "two" })).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{body}");
    // The one that is there is no second one.
    assert_eq!(api.start("one").await["runtime_id"], first["runtime_id"]);
    let which = json!({ "runtime_id": first["runtime_id"] });
    assert_eq!(api.post("/stop", which).await.0, StatusCode::OK);
    api.start("two").await;
    provider.stop().await;
}

/// HS-8: the key of a session is as good as the key that it was given out for.
#[tokio::test]
async fn the_key_of_a_session_ends_with_the_key_behind_it() {
    let provider = Provider::start(Kind::Cli).await;
    let alice = Api::new(&provider, ALICE);
    let started = alice.start("one").await;
    let runtime = alice.runtime(&started);
    assert_eq!(runtime.get("/alive").await.0, StatusCode::OK);
    // Another key of the same owner has another one of its own.
    let other = Api::new(&provider, "admin-key-alice");
    let (_, listed) = other.get("/list").await;
    let others = other.runtime(&listed["runtimes"][0]);
    provider.keys.remove(ALICE);
    assert_eq!(runtime.get("/alive").await.0, StatusCode::FORBIDDEN);
    assert_eq!(others.get("/alive").await.0, StatusCode::OK);
    provider.stop().await;
}

#[tokio::test]
async fn actions_are_counted_whichever_key_is_shown() {
    let provider = Provider::start(Kind::Cli).await;
    let api = Api::new(&provider, "use-key-slow");
    let started = api.start("one").await;
    let runtime = api.runtime(&started);
    let act = json!({ "action": "run", "args": { "command": "true" } });
    assert_eq!(runtime.act(act.clone()).await.0, StatusCode::OK);
    let refused = runtime.act(act).await.0;
    assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS);
    // Only actions are.
    assert_eq!(runtime.get("/alive").await.0, StatusCode::OK);
    provider.stop().await;
}
