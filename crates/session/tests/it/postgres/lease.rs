//! A server that is gone, and the one that takes its sessions over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::{
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_postgres::NoTls;
use zareba_eventlog::{Document, DocumentName, Durability, EntryKind, EventLog, Expected};
use zareba_runtime::{
    Capabilities, Runtime, RuntimeError, Sandbox, SandboxId, SandboxSpec, SandboxSummary,
};
use zareba_session::{
    NewSession, SessionError, SessionId, SessionState, Sessions, SessionsOptions,
};

use crate::fixture::{Place, on, output, owner, request, run};

/// A server is taken for gone after 20 s, which is looked at every 5 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A database of a test's own: a server of another one would take the sessions over.
struct Database {
    server: String,
    name: String,
}

impl Database {
    async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let database = Self {
            // Set by `scripts/postgresql`, under which this is to be run.
            server: std::env::var("ZAREBA_TEST_POSTGRES").unwrap(),
            name: format!("lease_{}_{count}", std::process::id()),
        };
        let create = format!("CREATE DATABASE {}", database.name);
        tell(&database.server, &create).await;
        database
    }

    fn url(&self) -> String {
        let own = format!("/{}?", self.name);
        self.server.replace("/postgres?", &own)
    }

    async fn open(&self) -> EventLog {
        let opened = EventLog::open_database(&self.url(), Durability::Process).await;
        opened.unwrap()
    }

    async fn remove(self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        tell(&self.server, &drop).await;
    }
}

async fn tell(url: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// Makes sessions in an async runtime of its own, which is gone afterwards without a word, like
/// the process that it stands for.
async fn in_a_lost_life(
    database: &Database,
    place: &Place,
    work: impl AsyncFnOnce(&Sessions) + Send + 'static,
) {
    let (url, place) = (database.url(), place.clone());
    let life = move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let log = runtime.block_on(async {
            let opened = EventLog::open_database(&url, Durability::Process).await;
            let started = Sessions::start(opened.unwrap(), place.options()).await;
            let sessions = started.unwrap().0;
            work(&sessions).await;
            sessions.log().clone()
        });
        drop((runtime, log));
    };
    tokio::task::spawn_blocking(life).await.unwrap();
}

/// A runtime that finds nothing again until it is let.
struct Slow {
    inner: Arc<dyn Runtime>,
    asked: Semaphore,
    may_answer: Semaphore,
}

impl Slow {
    /// Options of a server whose sandboxes are found again when that is let.
    fn options(place: &Place) -> (SessionsOptions, Arc<Self>) {
        let mut options = place.options();
        let slow = Arc::new(Self {
            inner: options.runtimes.remove("local").unwrap(),
            asked: Semaphore::new(0),
            may_answer: Semaphore::new(0),
        });
        let runtime: Arc<dyn Runtime> = slow.clone();
        options.runtimes.insert("local".to_owned(), runtime);
        (options, slow)
    }
}

impl Runtime for Slow {
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
        let sandbox = sandbox.clone();
        Box::pin(async move {
            self.asked.add_permits(1);
            let _turn = self.may_answer.acquire().await.unwrap();
            self.inner.attach(&sandbox).await
        })
    }

    fn destroy(&self, sandbox: &SandboxId) -> BoxFuture<'_, Result<(), RuntimeError>> {
        self.inner.destroy(sandbox)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<SandboxSummary>, RuntimeError>> {
        self.inner.list()
    }
}

/// Has the database refuse to write down that a session has failed.
async fn refuse_failure(database: &Database, session: &SessionId) {
    // The count is no part of what fails.
    let refuse = format!(
        "CREATE SEQUENCE refusals;
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'refused'; END $$;
        CREATE TRIGGER refuse BEFORE UPDATE ON zareba.documents FOR EACH ROW
        WHEN (NEW.name = '{session}' AND NEW.value::jsonb ->> 'state' = 'failed')
        EXECUTE FUNCTION refuse()"
    );
    tell(&database.url(), &refuse).await;
}

/// Waits until that has happened, and has it refuse nothing any more.
async fn mend_when_refused(database: &Database) {
    let (client, connection) = tokio_postgres::connect(&database.url(), NoTls)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let refused = async {
        let question = "SELECT is_called FROM refusals";
        while !client
            .query_one(question, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
        {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, refused).await.unwrap();
    let mend = "DROP TRIGGER refuse ON zareba.documents";
    client.batch_execute(mend).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

/// A session whose start does not end by itself.
fn never_ready(place: &Place, id: &SessionId) -> NewSession {
    let workspace = place.path("workspace");
    std::fs::create_dir_all(workspace.join(".openhands")).unwrap();
    std::fs::write(workspace.join(".openhands/setup.sh"), "sleep 1000").unwrap();
    NewSession {
        id: Some(id.clone()),
        workspace: Some(workspace),
        ..on("local")
    }
}

/// Begins one, and returns when its script runs, or will: when its action is recorded.
async fn begin_start(sessions: &Sessions, new: NewSession) {
    let session = sessions.create(new, owner()).await.unwrap();
    let mut events = session.events(0);
    while events.next().await.unwrap().kind != EntryKind::Action {}
}

/// The documents of servers.
async fn servers(log: &EventLog) -> Vec<Document> {
    log.store().list("server").await.unwrap()
}

async fn wait_for_recovery(sessions: &Sessions, id: &SessionId) {
    let mut events = sessions.get(id).await.unwrap().events(0);
    let recovered = async {
        loop {
            let record = events.next().await.unwrap();
            if record.kind == EntryKind::Note && record.payload["note"] == "recovered" {
                return;
            }
        }
    };
    timeout(PATIENCE, recovered).await.unwrap();
}

/// One that took over would otherwise be taken for gone itself, as soon as that lasts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_server_shows_that_it_is_there_while_it_takes_over() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("taken");
    let new = NewSession {
        id: Some(id.clone()),
        ..on("local")
    };
    in_a_lost_life(&database, &place, async |sessions| {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "A=kept").await;
    })
    .await;

    let (options, slow) = Slow::options(&place);
    let (sessions, recovery) = Sessions::start(database.open().await, options)
        .await
        .unwrap();
    assert_eq!((recovery.found, recovery.lost), (0, 0));
    drop(timeout(PATIENCE, slow.asked.acquire()).await.unwrap());
    let version = async || {
        let servers = servers(sessions.log()).await;
        let claimed = |server: &&Document| server.value.get("taken_by").is_some();
        assert_eq!(servers.iter().filter(claimed).count(), 1, "{servers:?}");
        let own = servers.iter().find(|server| !claimed(server)).unwrap();
        own.version
    };
    let begun = version().await;
    let shown = async {
        while version().await < begun + 2 {
            sleep(Duration::from_millis(500)).await;
        }
    };
    timeout(PATIENCE, shown).await.unwrap();

    slow.may_answer.add_permits(1);
    wait_for_recovery(&sessions, &id).await;
    let session = sessions.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo $A").await, "kept");
    sessions.remove(&id).await.unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// A session may have got the name of its new server before that fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn what_could_not_be_taken_over_is_tried_again() {
    let (database, place) = (Database::new().await, Place::new());
    let (ready, starting) = (place.id("ready"), place.id("starting"));
    let new = NewSession {
        id: Some(ready.clone()),
        ..on("local")
    };
    let never_ready = never_ready(&place, &starting);
    in_a_lost_life(&database, &place, async |sessions| {
        sessions.create_ready(new, owner()).await.unwrap();
        begin_start(sessions, never_ready).await;
    })
    .await;
    refuse_failure(&database, &starting).await;
    let log = database.open().await;
    let (sessions, _) = Sessions::start(log, place.options()).await.unwrap();
    mend_when_refused(&database).await;
    let undone = async {
        let is_over = async || {
            let session = sessions.get(&starting).await.unwrap();
            let claimed = servers(sessions.log()).await;
            session.info().state == SessionState::Failed && claimed.len() == 1
        };
        while !is_over().await {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, undone).await.unwrap();
    let session = sessions.get(&ready).await.unwrap();
    assert_eq!(output(&session, "echo up").await, "up");
    sessions.remove(&ready).await.unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// What fails when a server starts is not another one's, and is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn what_could_not_be_taken_up_at_the_start_is_tried_again() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("starting");
    let never_ready = never_ready(&place, &id);
    in_a_lost_life(&database, &place, async |sessions| {
        begin_start(sessions, never_ready).await;
    })
    .await;
    let log = database.open().await;
    // As if it had ended in order: whoever starts next takes its sessions up.
    for server in servers(&log).await {
        log.store().delete(server.name).await.unwrap();
    }
    refuse_failure(&database, &id).await;
    let (sessions, _) = Sessions::start(log, place.options()).await.unwrap();
    let session = sessions.get(&id).await.unwrap();
    let error = session.close().await.unwrap_err();
    assert!(matches!(error, SessionError::NotTakenUp { .. }), "{error}");
    mend_when_refused(&database).await;
    let undone = async {
        while sessions.get(&id).await.unwrap().info().state != SessionState::Failed {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, undone).await.unwrap();
    sessions.shut_down(Duration::from_secs(5)).await;
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}

/// Two would have the session otherwise: the one that has lost its name only finds it later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_server_that_is_taken_over_while_it_takes_over_has_nothing() {
    let (database, place) = (Database::new().await, Place::new());
    let id = place.id("contested");
    let new = NewSession {
        id: Some(id.clone()),
        ..on("local")
    };
    in_a_lost_life(&database, &place, async |sessions| {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "A=kept").await;
    })
    .await;
    let (options, slow) = Slow::options(&place);
    let log = database.open().await;
    let (sessions, _) = Sessions::start(log.clone(), options).await.unwrap();
    drop(timeout(PATIENCE, slow.asked.acquire()).await.unwrap());

    // A third server claims it, and takes the session that is being taken up.
    let is_claimed = |server: &Document| server.value.get("taken_by").is_some();
    let found = servers(&log).await;
    let own = found.iter().find(|server| !is_claimed(server)).unwrap();
    let gone = found.iter().find(|server| is_claimed(server)).unwrap();
    let claim = json!({ "taken_by": "third" });
    let put = log.store().put(own.name.clone(), claim, Expected::Anything);
    put.await.unwrap();
    let name = DocumentName {
        kind: "session",
        name: id.to_string(),
    };
    let mut taken = log.store().get(name.clone()).await.unwrap().unwrap();
    taken.value["holder"] = "third".into();
    let expected = Expected::Version(taken.version);
    let put = log.store().put(name, taken.value, expected);
    put.await.unwrap();
    let renamed = async {
        while servers(&log).await.iter().all(is_claimed) {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, renamed).await.unwrap();
    slow.may_answer.add_permits(1);
    let over = async {
        while servers(&log).await.iter().any(|it| it.name == gone.name) {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, over).await.unwrap();
    let session = sessions.get(&id).await.unwrap();
    let error = session.run(request(run("true"))).await.unwrap_err();
    assert!(
        matches!(error, SessionError::HeldElsewhere { .. }),
        "{error}"
    );

    // Nobody has shown that the third one is there: whoever starts next takes the session up.
    let (next, recovery) = Sessions::start(database.open().await, place.options())
        .await
        .unwrap();
    assert_eq!((recovery.found, recovery.lost), (1, 0));
    let session = next.get(&id).await.unwrap();
    assert_eq!(output(&session, "echo $A").await, "kept");
    next.remove(&id).await.unwrap();
    for sessions in [sessions, next] {
        sessions.shut_down(Duration::from_secs(5)).await;
    }
    database.remove().await;
    assert_eq!(place.leftovers(), [""; 0]);
}
