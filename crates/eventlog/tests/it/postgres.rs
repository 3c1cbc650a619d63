//! The suite on PostgreSQL, and what is peculiar to it. `scripts/postgresql` gives it one.

mod doubt;
mod servers;

use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::NoTls;
use zareba_eventlog::{Durability, EventLog, Options};

use crate::suite::suite;

suite!(with_log, #[ignore = "needs PostgreSQL"]);

async fn with_log<F: Future<Output = ()>>(case: impl FnOnce(EventLog) -> F) {
    let database = Database::new().await;
    let log = database.open(Durability::Process).await;
    case(log.clone()).await;
    // Closed already by some cases.
    let _ = log.store().close().await;
    database.remove().await;
}

/// A database for one test.
struct Database {
    server: String,
    name: String,
}

impl Database {
    async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("ZAREBA_TEST_POSTGRES")
            .expect("ZAREBA_TEST_POSTGRES is set: run this under scripts/postgresql");
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{count}", std::process::id());
        let database = Self { server, name };
        database
            .tell_server(&format!("CREATE DATABASE {}", database.name))
            .await;
        database
    }

    fn url(&self) -> String {
        self.server
            .replace("/postgres?", &format!("/{}?", self.name))
    }

    async fn open(&self, durability: Durability) -> EventLog {
        let options = Options {
            durability,
            session_bytes_max: Some(8 * 1024 * 1024),
        };
        EventLog::open_database_with(&self.url(), options)
            .await
            .unwrap()
    }

    /// A connection of the test's own, to look and to meddle.
    async fn client(&self) -> tokio_postgres::Client {
        connect(&self.url()).await
    }

    async fn tell_server(&self, statement: &str) {
        connect(&self.server)
            .await
            .batch_execute(statement)
            .await
            .unwrap();
    }

    async fn remove(self) {
        self.tell_server(&format!("DROP DATABASE {} WITH (FORCE)", self.name))
            .await;
    }
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
