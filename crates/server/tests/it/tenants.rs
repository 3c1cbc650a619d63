//! Several owners on one server: what one does takes nothing from another.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    fixture::{Site, run},
    http::{Request, Response},
};

const PATIENCE: Duration = Duration::from_secs(30);

impl Site {
    async fn key_of(&self, owner: &str) -> String {
        let new = json!({ "owner": owner, "scope": "session" });
        self.key(new).await
    }

    async fn session_with(&self, key: &str) -> Value {
        let create = Request::post("/v1/sessions", &json!({})).key(key);
        self.send(create).await.expect(201)
    }
}

fn name(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

fn id_of(secret: &str) -> &str {
    secret.split('_').nth(1).unwrap()
}

/// Asks again until the answer is another one, which it must be soon.
async fn until(site: &Site, request: Request, status: u16) -> Response {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = site.send(request.clone()).await;
        if answer.status == status {
            return answer;
        }
        assert!(Instant::now() < deadline, "still {}", answer.status);
    }
}

/// G-3: only what the operator has named becomes a workspace, whoever asks.
#[tokio::test]
async fn directories_of_the_machine_are_no_workspaces() {
    let site = Site::start().await;
    for workspace in ["/etc", "/", "/no/such/place"] {
        let asked = json!({ "workspace": workspace });
        let refused = site.post("/v1/sessions", asked).await;
        assert_eq!(refused.error(400), "invalid_request", "{workspace}");
    }
    let listed = site.get("/v1/sessions").await.expect(200);
    assert_eq!(listed["sessions"], json!([]));
    site.stop().await;
}

/// HS-14: streams of one owner leave room for others, and for the end of the owner's own sessions.
#[tokio::test]
async fn one_owner_cannot_take_all_connections() {
    let site = Site::start_with(|settings| settings.limits.connections = 8).await;
    let (ann, ben) = (site.key_of("ann").await, site.key_of("ben").await);
    let (of_ann, of_ben) = (site.session_with(&ann).await, site.session_with(&ben).await);
    let stream = |session: &Value, key: &str| {
        let path = format!("/v1/sessions/{}/events/stream", name(session));
        Request::get(&path).key(key)
    };
    let mut open = Vec::new();
    for _ in 0..2 {
        let (head, stream) = stream(&of_ann, &ann).open(site.address).await;
        assert_eq!(head.status, 200);
        open.push(stream);
    }
    // Another key of the same owner is no way around.
    for key in [&ann, &site.key_of("ann").await] {
        let refused = site.send(stream(&of_ann, key)).await;
        assert_eq!(refused.error(429), "too_many_requests");
        assert!(refused.header("retry-after").is_some());
    }
    let act = format!("/v1/sessions/{}/actions", name(&of_ann));
    let waiting = site.send(Request::post(&act, &run("true")).key(&ann)).await;
    assert_eq!(waiting.error(429), "too_many_requests");

    let (head, other) = stream(&of_ben, &ben).open(site.address).await;
    assert_eq!(head.status, 200);
    site.send(Request::get("/v1/status").key(&ann))
        .await
        .expect(200);
    open.pop();
    until(&site, Request::post(&act, &run("true")).key(&ann), 200).await;
    let close = Request::new("DELETE", &format!("/v1/sessions/{}", name(&of_ann)));
    assert_eq!(site.send(close.key(&ann)).await.status, 204);
    drop((open, other));
    site.stop().await;
}

/// A pipe in a session's workspace, on which a command waits until it is written to.
struct Valve(PathBuf);

impl Valve {
    async fn make(site: &Site, session: &Value) -> Self {
        site.run(name(session), "mkfifo valve").await;
        Self(Path::new(session["workspace"].as_str().unwrap()).join("valve"))
    }

    /// Lets the command go on, once it is there.
    async fn open(self) {
        let opened = tokio::task::spawn_blocking(move || std::fs::write(self.0, "go"));
        tokio::time::timeout(PATIENCE, opened)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

/// HS-12: a large action counts until it is done, also when nobody waits for it.
#[tokio::test]
async fn large_actions_count_until_they_are_done() {
    let site = Site::start_with(|settings| {
        settings.limits.action_bytes = 100 * 1024;
        settings.limits.large_bodies_bytes = 800 * 1024;
    })
    .await;
    let session = site.post("/v1/sessions", json!({})).await.expect(201);
    let other = site.session().await;
    let valve = Valve::make(&site, &session).await;
    let waits = format!("cat valve # {}", "x".repeat(60 * 1024));
    let path = format!("/v1/sessions/{}/actions?wait=false", name(&session));
    site.post(&path, run(&waits)).await.expect(202);

    let content = "y".repeat(60 * 1024);
    let write = json!({ "action": "write", "args": { "path": "f", "content": content } });
    let to_other = format!("/v1/sessions/{other}/actions");
    let refused = site.post(&to_other, write.clone()).await;
    assert_eq!(refused.error(429), "too_many_requests");
    // What is small is not held up, and neither is another owner.
    site.run(&other, "true").await;
    let ben = site.key_of("ben").await;
    let of_ben = site.session_with(&ben).await;
    let path = format!("/v1/sessions/{}/actions", name(&of_ben));
    site.send(Request::post(&path, &write).key(&ben))
        .await
        .expect(200);

    valve.open().await;
    let again = Request::post(&to_other, &write).key(&site.admin);
    until(&site, again, 200).await;
    site.stop().await;
}

/// Keys that an owner makes for single sessions have no allowance of their own.
#[tokio::test]
async fn more_keys_give_no_more_actions() {
    let site = Site::start().await;
    let new = json!({
        "owner": "ann", "scope": "session", "quota": { "actions_per_minute": 2 },
    });
    let ann = site.key(new).await;
    let session = site.session_with(&ann).await;
    let minted = Request::post(&format!("/v1/sessions/{}/keys", name(&session)), &json!({}));
    let minted = site.send(minted.key(&ann)).await.expect(201);
    let path = format!("/v1/sessions/{}/actions", name(&session));
    let act = |key: &str| site.send(Request::post(&path, &run("true")).key(key));
    act(&ann).await.expect(200);
    act(minted["secret"].as_str().unwrap()).await.expect(200);
    for key in [&ann, minted["secret"].as_str().unwrap()] {
        assert_eq!(act(key).await.error(429), "too_many_requests");
    }
    site.stop().await;
}

/// HS-8: the facade's keys of single sessions are as good as the key that they were given out
/// for, and count as it does.
#[tokio::test]
async fn keys_of_the_facade_depend_on_the_key_behind_them() {
    let site = Site::start_with_openhands(|_| {}).await;
    let new = json!({
        "owner": "ann", "scope": "session", "quota": { "actions_per_minute": 2 },
    });
    let ann = site.key(new).await;
    let start = Request::post("/start", &json!({ "session_id": "s" }));
    let started = site.send(start.header("X-API-Key", &ann)).await.expect(200);
    let (id, key) = (&started["runtime_id"], &started["session_api_key"]);
    let below = |path: &str| format!("/sessions/{}{path}", id.as_str().unwrap());
    let act = Request::post(&below("/execute_action"), &json!({ "action": run("true") }));
    let act = act.header("X-Session-API-Key", key.as_str().unwrap());
    for _ in 0..2 {
        site.send(act.clone()).await.expect(200);
    }
    let refused = site.send(act.clone()).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.header("retry-after").is_some());

    let alive = Request::get(&below("/alive"));
    let alive = alive.header("X-Session-API-Key", key.as_str().unwrap());
    assert_eq!(site.send(alive.clone()).await.status, 200);
    let removed = site.delete(format!("/v1/keys/{}", id_of(&ann))).await;
    assert_eq!(removed.status, 204);
    assert_eq!(site.send(alive).await.status, 403);
    assert_eq!(site.send(act).await.status, 403);
    site.stop().await;
}

/// HS-14: what is open through the facade counts among the same.
#[tokio::test]
async fn the_facade_is_no_way_around_the_limit_of_streams() {
    let site = Site::start_with_openhands(|settings| settings.limits.connections = 4).await;
    let ann = site.key_of("ann").await;
    let session = site.session_with(&ann).await;
    let path = format!("/v1/sessions/{}/events/stream", name(&session));
    let (head, stream) = Request::get(&path).key(&ann).open(site.address).await;
    assert_eq!(head.status, 200);
    let list = Request::get("/list").header("X-API-Key", &ann);
    assert_eq!(site.send(list.clone()).await.status, 429);
    drop(stream);
    until(&site, list, 200).await;
    site.stop().await;
}

/// HS-8: what a key has shared ends with it.
#[tokio::test]
async fn a_shared_port_ends_with_its_key() {
    let site = Site::start().await;
    let session = site.session().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let new = json!({ "owner": "admin", "scope": "session" });
    let key = site.key(new).await;
    let share = format!("/v1/sessions/{session}/ports/{port}");
    let shared = site.send(Request::post(&share, &json!({})).key(&key)).await;
    let path = shared.expect(200)["path"].as_str().unwrap().to_owned();
    let visit = Request::get(&path);
    let answering = async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
        }
        let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
        stream.write_all(answer).await.unwrap();
    };
    let (visited, ()) = tokio::join!(site.send(visit.clone()), answering);
    assert_eq!(visited.status, 204, "{}", visited.text());
    let removed = site.delete(format!("/v1/keys/{}", id_of(&key))).await;
    assert_eq!(removed.status, 204);
    assert_eq!(site.send(visit).await.error(404), "not_found");
    site.stop().await;
}

/// SN-4: a name is used once; what was right for the first session opens nothing later.
#[tokio::test]
async fn nothing_of_a_purged_session_opens_a_later_one() {
    let site = Site::start_with_openhands(|_| {}).await;
    let (ann, ben) = (site.key_of("ann").await, site.key_of("ben").await);
    let create = |key: &str| Request::post("/v1/sessions", &json!({ "id": "ci" })).key(key);
    site.send(create(&ann)).await.expect(201);
    let listed = Request::get("/list").header("X-API-Key", &ann);
    let listed = site.send(listed).await.expect(200);
    let session_key = listed["runtimes"][0]["session_api_key"].as_str().unwrap();
    let share = Request::post("/v1/sessions/ci/ports/9", &json!({})).key(&ann);
    let shared = site.send(share).await.expect(200);
    let preview = shared["path"].as_str().unwrap();

    let purge = Request::new("DELETE", "/v1/sessions/ci?purge=true").key(&ann);
    assert_eq!(site.send(purge).await.status, 204);
    let refused = site.send(create(&ann)).await;
    assert_eq!(refused.error(409), "exists");
    let message = "the name `ci` was that of a session that was removed, and names are not \
                   given again; choose another";
    assert_eq!(refused.json()["error"]["message"], message);
    // To another owner it is free, as every name is that this owner has not used.
    site.send(create(&ben)).await.expect(201);
    let alive = Request::get("/sessions/ci/alive").header("X-Session-API-Key", session_key);
    assert_eq!(site.send(alive).await.status, 403);
    let visit = site.send(Request::get(preview)).await;
    assert_eq!(visit.error(404), "not_found");
    site.stop().await;
}

/// What one owner calls a session tells others nothing, and administrators see all.
#[tokio::test]
async fn a_name_is_unique_to_its_owner_and_cannot_be_probed_by_others() {
    let site = Site::start().await;
    let (ann, ben) = (site.key_of("ann").await, site.key_of("ben").await);
    let create = |key: &str| Request::post("/v1/sessions", &json!({ "id": "ci" })).key(key);
    let get = |key: &str| Request::get("/v1/sessions/ci").key(key);
    let unknown = site.send(get(&ben)).await;
    let of_ann = site.send(create(&ann)).await.expect(201);
    assert_eq!(of_ann["id"], "ci");
    let not_theirs = site.send(get(&ben)).await;
    assert_eq!(not_theirs.error(404), unknown.error(404));
    assert_eq!(
        not_theirs.json()["error"]["message"],
        unknown.json()["error"]["message"]
    );
    // Only one has the name, and an administrator can use it.
    assert_eq!(
        site.get("/v1/sessions/ci").await.expect(200)["owner"],
        "ann"
    );
    assert_eq!(site.send(create(&ben)).await.expect(201)["id"], "ci");
    for (key, owner) in [(&ann, "ann"), (&ben, "ben")] {
        let again = site.send(create(key)).await;
        assert_eq!(again.error(409), "exists");
        let message = again.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains("`ci`"), "{message}");
        assert_eq!(site.send(get(key)).await.expect(200)["owner"], owner);
        let listed = site.send(Request::get("/v1/sessions").key(key)).await;
        let listed = listed.expect(200)["sessions"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed[0]["id"], "ci");
        let after = Request::get("/v1/sessions?after=ci").key(key);
        assert_eq!(site.send(after).await.expect(200)["sessions"], json!([]));
    }
    let all = site.get("/v1/sessions").await.expect(200)["sessions"].clone();
    let named: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(named, ["ci", "ci"]);
    assert_ne!(all[0]["id"], all[1]["id"]);
    // Two have the name now, so that only the ids tell which is meant.
    assert_eq!(site.get("/v1/sessions/ci").await.error(404), "not_found");
    for session in all.as_array().unwrap() {
        let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
        assert_eq!(site.get(&path).await.expect(200)["owner"], session["owner"]);
        let theirs = [&ann, &ben][usize::from(session["owner"] == "ann")];
        assert_eq!(
            site.send(Request::get(&path).key(theirs)).await.error(404),
            "not_found"
        );
    }
    let bound = json!({ "owner": "ben", "scope": "session", "session": "ci" });
    let bound = site.key(bound).await;
    assert_eq!(site.send(get(&bound)).await.expect(200)["owner"], "ben");
    let own = json!({ "scope": "session" });
    let own = Request::post("/v1/sessions/ci/keys", &own).key(&ann);
    let own = site.send(own).await.expect(201);
    assert_eq!(own["key"]["session"], "ci");
    let own = own["secret"].as_str().unwrap().to_owned();
    assert_eq!(site.send(get(&own)).await.expect(200)["owner"], "ann");
    site.stop().await;
}

/// Keys that have expired make room for others.
#[tokio::test]
async fn expired_keys_are_removed() {
    let site = Site::start().await;
    let short = json!({ "owner": "ann", "scope": "session", "expires_in": 0.001 });
    let expired = site.key(short).await;
    let ask = Request::get("/v1/sessions").key(&expired);
    until(&site, ask, 401).await;
    site.key_of("ben").await;
    let listed = site.get("/v1/keys").await.text();
    assert!(!listed.contains(id_of(&expired)), "{listed}");
    site.stop().await;
}

/// Two starts at once do not both take the last place.
#[tokio::test]
async fn a_quota_of_sessions_holds_in_the_facade_also_at_once() {
    let site = Site::start_with_openhands(|_| {}).await;
    let new = json!({ "owner": "ann", "scope": "session", "quota": { "sessions": 2 } });
    let ann = site.key(new).await;
    let start = |name: &str| {
        let start = Request::post("/start", &json!({ "session_id": name }));
        site.send(start.header("X-API-Key", &ann))
    };
    let answers = tokio::join!(start("a"), start("b"), start("c"), start("d"));
    let statuses = [answers.0, answers.1, answers.2, answers.3].map(|answer| answer.status);
    let made = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((made, refused), (2, 2), "{statuses:?}");
    site.stop().await;
}
