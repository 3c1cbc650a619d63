//! How long a shared port is shared.

use serde_json::{Value, json};

use crate::{
    fixture::Site,
    http::Request,
    ports::{Program, share},
};

/// An address that was handed out goes on to work; what was taken back does not return.
#[tokio::test]
async fn shared_ports_survive_the_server() {
    let mut site = Site::start().await;
    let (session, closed) = (site.session().await, site.session().await);
    let mut program = Program::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let (path, _) = share(&site, &session, program.port).await;
    let (taken_back, _) = share(&site, &session, 9).await;
    let ports = format!("/v1/sessions/{session}/ports");
    site.delete(format!("{ports}/9")).await.expect(204);
    let (ended, _) = share(&site, &closed, program.port).await;
    let borrowed = site
        .post("/v1/keys", json!({ "owner": "admin", "scope": "session" }))
        .await
        .expect(201);
    let ask = Request::post(&format!("{ports}/10"), &json!({}));
    let ask = ask.key(borrowed["secret"].as_str().unwrap());
    let of_removed = site.send(ask).await.expect(200);
    let of_removed = of_removed["path"].as_str().unwrap().to_owned();
    // Behind the server's back, as another server on the same log would.
    site.keys
        .remove(borrowed["key"]["id"].as_str().unwrap())
        .await
        .unwrap();
    let gone = site.sessions.get(&closed.parse().unwrap()).await.unwrap();
    gone.close().await.unwrap();

    site.restart().await;
    let page = site.send(Request::get(&path)).await;
    assert_eq!((page.status, page.text().as_str()), (200, "hi"));
    program.request().await;
    let (again, _) = share(&site, &session, program.port).await;
    assert_eq!(again, path);
    for path in [taken_back, ended, of_removed] {
        assert_eq!(site.send(Request::get(&path)).await.error(404), "not_found");
    }
    let stored = site.sessions.log().store().list("share").await.unwrap();
    assert_eq!(stored.len(), 1, "{stored:?}");
    site.delete(format!("{ports}/{}", program.port))
        .await
        .expect(204);
    site.restart().await;
    assert_eq!(site.send(Request::get(&path)).await.error(404), "not_found");
    site.stop().await;
}

/// What could not be written down as taken back is not, and whoever tried is told.
#[tokio::test]
async fn a_share_stays_when_the_log_cannot_be_written() {
    let site = Site::start().await;
    let session = site.session().await;
    let program = Program::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let (path, _) = share(&site, &session, program.port).await;
    let meddle = |statement: &str| {
        let database = rusqlite::Connection::open(site.log_file()).unwrap();
        database.execute_batch(statement).unwrap();
    };
    meddle(
        "CREATE TRIGGER refuse BEFORE DELETE ON documents WHEN OLD.kind = 'share'
        BEGIN SELECT RAISE(ABORT, 'refused'); END",
    );
    let port = format!("/v1/sessions/{session}/ports/{}", program.port);
    let refused = site.delete(&port).await;
    assert!(refused.status >= 500, "{}", refused.status);
    assert_eq!(site.send(Request::get(&path)).await.status, 200);
    meddle("DROP TRIGGER refuse");
    site.delete(&port).await.expect(204);
    assert_eq!(site.send(Request::get(&path)).await.error(404), "not_found");
    site.stop().await;
}

/// HS-8: what a key has shared ends with it, and with what goes through it.
#[tokio::test]
async fn a_share_ends_with_the_key_that_made_it() {
    let site = Site::start().await;
    let session = site.session().await;
    let mut keys = Vec::new();
    for _ in 0..2 {
        let new = json!({ "owner": "admin", "scope": "session" });
        keys.push(site.post("/v1/keys", new).await.expect(201));
    }
    let program = Program::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let ask = |key: &Value| {
        let path = format!("/v1/sessions/{session}/ports/{}", program.port);
        Request::post(&path, &json!({})).key(key["secret"].as_str().unwrap())
    };
    let shared = site.send(ask(&keys[0])).await.expect(200);
    let path = shared["path"].as_str().unwrap();
    // Asked for again with another key, it is that one's.
    let again = site.send(ask(&keys[1])).await.expect(200);
    assert_eq!(again["path"], path);
    let remove = |key: &Value| format!("/v1/keys/{}", key["key"]["id"].as_str().unwrap());
    site.delete(remove(&keys[0])).await.expect(204);
    assert_eq!(site.send(Request::get(path)).await.status, 200);
    site.delete(remove(&keys[1])).await.expect(204);
    assert_eq!(site.send(Request::get(path)).await.error(404), "not_found");
    site.stop().await;
}
