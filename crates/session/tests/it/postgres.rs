//! Several servers on one log, and backends that do not answer.

mod lease;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use zareba_eventlog::{Durability, EventLog};
use zareba_protocol::ErrorClass;
use zareba_runtime::{
    Capabilities, Runtime, RuntimeError, Sandbox, SandboxId, SandboxSpec, SandboxSummary,
};
use zareba_session::{NewSession, SessionError, SessionState, Sessions};

use crate::fixture::{Place, on, output, owner, request, run};

/// A runtime whose backend can be away.
struct Moody {
    inner: Arc<dyn Runtime>,
    is_away: Arc<AtomicBool>,
}

impl Moody {
    fn trouble(&self) -> Option<RuntimeError> {
        let is_away = self.is_away.load(Ordering::SeqCst);
        is_away.then(|| RuntimeError::Internal {
            deed: "reach the backend",
            source: "it is away".into(),
        })
    }
}

impl Runtime for Moody {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn create(&self, spec: SandboxSpec) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        self.inner.create(spec)
    }

    fn attach(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, RuntimeError>> {
        match self.trouble() {
            Some(trouble) => Box::pin(async { Err(trouble) }),
            None => self.inner.attach(sandbox),
        }
    }

    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        match self.trouble() {
            Some(trouble) => Box::pin(async { Err(trouble) }),
            None => self.inner.destroy(sandbox),
        }
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        match self.trouble() {
            Some(trouble) => Box::pin(async { Err(trouble) }),
            None => self.inner.list(),
        }
    }
}

#[tokio::test]
async fn a_sandbox_whose_backend_is_only_down_is_not_lost() {
    let place = Place::new();
    let id = place.id("kept");
    let sessions = place.serve().await;
    let new = NewSession {
        id: Some(id.clone()),
        ..on("local")
    };
    let session = sessions.create_ready(new, owner()).await.unwrap();
    output(&session, "A=kept").await;
    sessions.shut_down(Duration::from_secs(5)).await;
    sessions.log().store().close().await.unwrap();
    drop((session, sessions));

    let is_away = Arc::new(AtomicBool::new(true));
    let mut options = place.options();
    let inner = options.runtimes.remove("local").unwrap();
    let moody = Moody {
        inner,
        is_away: Arc::clone(&is_away),
    };
    options.runtimes.insert("local".to_owned(), Arc::new(moody));
    let (sessions, recovery) = place.recover_with(options).await;
    assert_eq!((recovery.found, recovery.lost), (1, 0));
    let session = sessions.get(&id).await.unwrap();
    let error = session.run(request(run("true"))).await.unwrap_err();
    assert!(matches!(error, SessionError::Away { .. }), "{error}");
    assert_eq!(session.info().state, SessionState::Ready);
    assert!(session.close().await.is_err());
    let mut events = session.events(session.info().next_event);
    is_away.store(false, Ordering::SeqCst);
    // It is asked for again within seconds, and that is noted.
    let noted = tokio::time::timeout(Duration::from_secs(20), events.next()).await;
    assert_eq!(noted.unwrap().unwrap().payload["note"], "recovered");
    assert_eq!(output(&session, "echo $A").await, "kept");
    sessions.remove(&id).await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

async fn open_database() -> EventLog {
    // Set by `scripts/postgresql`, under which this is to be run.
    let url = std::env::var("ZAREBA_TEST_POSTGRES").unwrap();
    EventLog::open_database(&url, Durability::Process)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_second_server_leaves_the_sessions_of_the_first_alone() {
    let place = Place::new();
    let id = place.id("held");
    let start = async || {
        Sessions::start(open_database().await, place.options())
            .await
            .unwrap()
    };
    let (first, _) = start().await;
    let new = NewSession {
        id: Some(id.clone()),
        ..on("local")
    };
    let session = first.create_ready(new, owner()).await.unwrap();
    output(&session, "A=kept").await;

    let (second, recovery) = start().await;
    assert_eq!((recovery.found, recovery.lost), (0, 0));
    let listed = second.list(Some(&owner()), None, 10).await;
    assert!(listed.iter().any(|info| info.id == id), "{listed:?}");
    let there = second.get(&id).await.unwrap();
    assert_eq!(there.events(0).next().await.unwrap().sequence, 0);
    let before = session.info().next_event;
    let held = [
        there.run(request(run("true"))).await.map(drop),
        there.pause().await,
        there.sandbox().await.map(drop),
        there.close().await,
        second.remove(&id).await,
    ];
    for outcome in held {
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, SessionError::HeldElsewhere { .. }),
            "{error}"
        );
        assert_eq!(error.class(), ErrorClass::Busy);
    }
    assert_eq!(session.info().next_event, before, "nothing was recorded");
    assert_eq!(output(&session, "echo $A").await, "kept");

    // One that ends in order leaves its sessions to whoever starts next.
    first.shut_down(Duration::from_secs(5)).await;
    let (third, recovery) = start().await;
    assert_eq!((recovery.found, recovery.lost), (1, 0));
    let session = third.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo $A").await, "kept");
    third.remove(&id).await.unwrap();
    for sessions in [second, third] {
        sessions.shut_down(Duration::from_secs(5)).await;
    }
    assert_eq!(place.leftovers(), [""; 0]);
}
