//! Several servers on one log. `scripts/postgresql` gives them one.

use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_postgres::NoTls;
use zareba_eventlog::{Durability, EventLog, Expected};

use crate::{
    fixture::Site,
    http::Request,
    ports::{Program, share},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A database of a test's own, with a key that all of its servers know.
struct Database {
    server: String,
    name: String,
}

impl Database {
    async fn new(name: &str) -> Self {
        let database = Self {
            // Set by `scripts/postgresql`, under which this is to be run.
            server: std::env::var("ZAREBA_TEST_POSTGRES").unwrap(),
            name: format!("{name}_{}", std::process::id()),
        };
        let create = format!("CREATE DATABASE {}", database.name);
        tell(&database.server, &create).await;
        database
    }

    async fn open(&self) -> EventLog {
        let url = self
            .server
            .replace("/postgres?", &format!("/{}?", self.name));
        let opened = EventLog::open_database(&url, Durability::Process).await;
        opened.unwrap()
    }

    /// The server that makes the session, and looks often whether a visit may go on.
    async fn first(&self) -> Site {
        let change = |settings: &mut zareba_server::ServerSettings| {
            settings.limits.ping_interval = Duration::from_millis(100);
        };
        Site::start_on(self.open().await, None, change).await
    }

    async fn second(&self, first: &Site) -> Site {
        Site::start_on(self.open().await, Some(&first.admin), |_| {}).await
    }

    /// Ends both servers, the one without sessions first, and removes the database.
    async fn end(self, first: Site, session: &str, second: Site) {
        let session = format!("/v1/sessions/{session}");
        first.delete(&session).await.expect(204);
        for site in [second, first] {
            site.stop().await;
        }
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        tell(&self.server, &drop).await;
    }
}

async fn tell(url: &str, statement: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statement).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Only the server that has the session reaches its ports; any of them may take one back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_port_that_is_taken_back_at_one_server_is_shared_at_none() {
    let database = Database::new("taken_back").await;
    let first = database.first().await;
    let session = first.session().await;
    let program = Program::answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let (path, _) = share(&first, &session, program.port).await;
    // Has it in memory, because it was shared before.
    let second = database.second(&first).await;
    assert_eq!(first.send(Request::get(&path)).await.status, 200);
    let port = format!("/v1/sessions/{session}/ports/{}", program.port);
    second.delete(&port).await.expect(204);
    for site in [&first, &second] {
        assert_eq!(site.send(Request::get(&path)).await.error(404), "not_found");
    }
    first.delete(&port).await.error(404);

    // Shared at the one, it is at the other, under the same address.
    let (shared, _) = share(&second, &session, program.port).await;
    assert_ne!(shared, path);
    assert_eq!(first.send(Request::get(&shared)).await.status, 200);
    assert_eq!(share(&first, &session, program.port).await.0, shared);
    first.delete(&port).await.expect(204);
    assert_eq!(
        second.send(Request::get(&shared)).await.error(404),
        "not_found"
    );
    database.end(first, &session, second).await;
}

/// What goes through a port ends, too, wherever it was taken back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_visit_ends_when_another_server_takes_the_port_back() {
    let database = Database::new("visit").await;
    let first = database.first().await;
    let session = first.session().await;
    let endless = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let inside = endless.local_addr().unwrap().port();
    let program = tokio::spawn(async move {
        let (mut stream, _) = endless.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
        }
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun";
        stream.write_all(head).await.unwrap();
        // Until whoever carries it hangs up.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let (path, _) = share(&first, &session, inside).await;
    let second = database.second(&first).await;
    let mut visitor = TcpStream::connect(first.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", first.address);
    visitor.write_all(request.as_bytes()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"begun") {
        let read = timeout(PATIENCE, visitor.read_buf(&mut seen)).await;
        assert_ne!(read.unwrap().unwrap(), 0);
    }
    let port = format!("/v1/sessions/{session}/ports/{inside}");
    second.delete(&port).await.expect(204);
    let rest = timeout(PATIENCE, visitor.read_to_end(&mut Vec::new())).await;
    assert_eq!(rest.unwrap().unwrap(), 0);
    timeout(PATIENCE, program).await.unwrap().unwrap();
    database.end(first, &session, second).await;
}

/// Ports of an owner are counted in memory, where those are, too, that were taken back elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_port_that_was_taken_back_elsewhere_takes_no_room() {
    // As many as one owner may share.
    const SHARES_MAX: u16 = 1024;
    let database = Database::new("room").await;
    let first = database.first().await;
    let (session, other) = (first.session().await, first.session().await);
    share(&first, &session, 1).await;
    let store = first.sessions.log().store();
    let shared = store.list("share").await.unwrap().remove(0);
    let more = (2..=SHARES_MAX).map(|port| {
        let (mut name, mut value) = (shared.name.clone(), shared.value.clone());
        name.name = format!("{port:032x}");
        value["port"] = port.into();
        store.put(name, value, Expected::Absent)
    });
    try_join_all(more).await.unwrap();
    // Has all of them in memory.
    let second = database.second(&first).await;
    let ask = || second.post(format!("/v1/sessions/{other}/ports/1"), json!({}));
    assert_eq!(ask().await.error(429), "quota_exceeded");
    // As any server does that takes a port back.
    store.delete(shared.name).await.unwrap();
    ask().await.expect(200);
    first
        .delete(format!("/v1/sessions/{other}"))
        .await
        .expect(204);
    database.end(first, &session, second).await;
}
