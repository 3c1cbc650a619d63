//! A server with nothing but the facade, over sessions of its own.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use http::{Request, Response, request::Parts};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use tower::ServiceExt as _;
use zareba_eventlog::{Durability, EventLog};
use zareba_executor::{FileScope, Linting};
use zareba_facades::openhands::{
    Denied, KeyCheck, OpenHands, OpenHandsSettings, Principal, Reserved, Rights, SessionKeys,
};
use zareba_runtime::Runtime;
use zareba_runtime_native::{
    CliRuntime, DiskLimit, LocalOptions, NativeOptions, NativeRuntime, Reachable, ServerLifetime,
    SystemMode, Usage, Walls, WorkspaceMode,
};
use zareba_session::{AllowAll, Idle, Owner, Sessions, SessionsOptions};
use zareba_wire::{
    BoxFuture, Endpoint,
    serving::{Admission, Listener, Respond, ServerLimits, accept_until},
};

/// How long a command may be silent where a test says nothing else.
const SILENCE: Duration = Duration::from_secs(10);

/// What a sandbox behind walls may use.
pub(crate) const MEMORY_BYTES: u64 = 512 * 1024 * 1024;
pub(crate) const CPU_MILLIS: u64 = 2000;

/// Which runtime sessions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In this process, without walls.
    Cli,
    /// Behind walls; the only one that can pause.
    Native,
}

/// A running server. Dropping it without [`stop`](Self::stop) leaves that to the test's end.
pub(crate) struct Provider {
    pub(crate) url: String,
    pub(crate) sessions: Sessions,
    pub(crate) keys: Keys,
    state: TempDir,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Provider {
    pub(crate) async fn start(kind: Kind) -> Self {
        Self::with(kind, OpenHandsSettings::default()).await
    }

    pub(crate) async fn with(kind: Kind, settings: OpenHandsSettings) -> Self {
        let (sessions, state) = sessions(kind).await;
        let session_keys = SessionKeys::of_log(sessions.log()).await.unwrap();
        let keys = Keys::default();
        let checks = Arc::new(keys.clone());
        let facade = OpenHands::new(sessions.clone(), checks, session_keys, settings);
        let endpoint = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
        let listener = Listener::bind(&endpoint, true).unwrap();
        let url = listener.endpoint().to_string();
        let (shutdown, wanted) = oneshot::channel();
        let responder = Arc::new(Bare(facade.router()));
        let serving = tokio::spawn(async move {
            let limits = ServerLimits::default();
            let wanted = async { drop(wanted.await) };
            accept_until(&listener, responder, &limits, wanted).await;
        });
        Self {
            url,
            sessions,
            keys,
            state,
            shutdown: Some(shutdown),
            serving,
        }
    }

    /// Ends the server and every session.
    pub(crate) async fn stop(mut self) {
        for info in self.sessions.list(None, None, 1000).await {
            let session = self.sessions.get(&info.id).await.unwrap();
            session.close().await.unwrap();
        }
        drop(self.shutdown.take());
        (&mut self.serving).await.unwrap();
        self.sessions.shut_down(Duration::from_secs(10)).await;
        assert_eq!(self.left(), [""; 0]);
    }

    /// What sandboxes have left in the state directory.
    pub(crate) fn left(&self) -> Vec<String> {
        let directories = ["cli", "native"].map(|kind| self.state.path().join(kind));
        let entries = directories.iter().flat_map(std::fs::read_dir).flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        let paths = paths.map(|path| path.display().to_string());
        paths.filter(|path| !path.ends_with("/.lock")).collect()
    }
}

/// Sessions with a log and a state directory of their own.
pub(crate) async fn sessions(kind: Kind) -> (Sessions, TempDir) {
    // Short: the path of a Unix socket is limited.
    let state = tempfile::Builder::new().prefix("zf").tempdir().unwrap();
    let file = state.path().join("log/events.db");
    let log = EventLog::open_file(&file, Durability::Process).await;
    let sessions = Sessions::start(log.unwrap(), options(kind, &state)).await;
    (sessions.unwrap().0, state)
}

fn options(kind: Kind, state: &TempDir) -> SessionsOptions {
    let (name, runtime): (&str, Arc<dyn Runtime>) = match kind {
        Kind::Cli => ("cli", Arc::new(CliRuntime::new(native_options(state)))),
        Kind::Native => ("native", Arc::new(native(state))),
    };
    SessionsOptions {
        runtimes: [(name.to_owned(), runtime)].into(),
        default_runtime: name.to_owned(),
        guard: Arc::new(AllowAll),
        idle_timeout: Duration::from_secs(3600),
        when_idle: Idle::Stay,
        life_max: None,
        no_change_timeout: SILENCE,
        timeout: Duration::from_secs(60),
        sessions_max: 100,
        owner_sessions_max: 100,
        // Where tests have their directories.
        workspaces: vec![std::env::temp_dir()],
        permissions: zareba_session::Permissions::default(),
        hidden: Vec::new(),
    }
}

fn native_options(state: &TempDir) -> NativeOptions {
    NativeOptions {
        state_dir: state.path().to_owned(),
        images: state.path().join("images"),
        environment: std::env::vars_os().collect(),
        shell: None,
        scope: FileScope::WholeFilesystem,
        linting: Linting::Off,
    }
}

fn native(state: &TempDir) -> NativeRuntime {
    let local = LocalOptions {
        program: program(),
        warm_servers: 0,
        warm_no_change_timeout: SILENCE,
        lifetime: ServerLifetime::WithUs,
    };
    let walls = Walls {
        workspace: WorkspaceMode::ReadWrite,
        system: SystemMode::CopyOnWrite,
        guarded: Vec::new(),
        home_tools: zareba_runtime_native::HomeAccess::Hidden,
        network: Reachable::Nothing,
        usage: Usage {
            memory_bytes: MEMORY_BYTES,
            pids: 256,
            cpu_millis: u32::try_from(CPU_MILLIS).unwrap(),
            disk: DiskLimit {
                bytes: 1024 * 1024 * 1024,
                inodes: 100_000,
            },
        },
        strictness: zareba_runtime::Strictness::Strict,
    };
    NativeRuntime::new(native_options(state), local, walls)
}

fn program() -> PathBuf {
    let built = || {
        // The test lies in `deps` beside the programs.
        let mut path = std::env::current_exe().unwrap();
        path.pop();
        path.pop();
        path.join("zareba")
    };
    let program = std::env::var_os("ZAREBA_BIN").map_or_else(built, PathBuf::from);
    assert!(
        program.is_file(),
        "there is no `{}`: run `cargo build -p zareba-cli` first, or set ZAREBA_BIN",
        program.display()
    );
    program
}

/// Keys as a server would know them: the holder's name after `key-`, and what it may do before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    state: Arc<Mutex<KeyState>>,
}

#[derive(Debug, Default)]
struct KeyState {
    removed: HashSet<String>,
    actions: HashMap<Owner, u32>,
    /// What is held now: requests that are open, and bytes of bodies.
    open: Arc<()>,
    body_bytes: Arc<AtomicUsize>,
}

/// Bytes of a body, until they are needed no more.
struct Bytes(Arc<AtomicUsize>, usize);

impl Drop for Bytes {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::SeqCst);
    }
}

/// Bytes of bodies that may be under way.
pub(crate) const BODIES_MAX: usize = 1024 * 1024;

impl KeyCheck for Keys {
    fn principal<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Principal, Denied>> {
        let key = head.headers.get("x-api-key");
        let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default();
        Box::pin(std::future::ready(self.known(key)))
    }

    fn holder<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Principal, Denied>> {
        Box::pin(std::future::ready(self.known(key)))
    }

    fn open(&self, _: &Principal) -> Result<Reserved, Denied> {
        let open = Arc::clone(&self.state.lock().unwrap().open);
        Ok(Reserved::new(open))
    }

    fn take_body(&self, _: &Principal, bytes: usize) -> Result<Reserved, Denied> {
        let taken = Arc::clone(&self.state.lock().unwrap().body_bytes);
        let before = taken.fetch_add(bytes, Ordering::SeqCst);
        let held = Bytes(taken, bytes);
        match before + bytes <= BODIES_MAX {
            true => Ok(Reserved::new(held)),
            false => Err(TOO_MANY),
        }
    }

    fn count_action(&self, principal: &Principal) -> Result<(), Denied> {
        let mut state = self.state.lock().unwrap();
        let counted = state.actions.entry(principal.owner.clone()).or_default();
        *counted += 1;
        match principal.actions_per_minute {
            Some(most) if *counted > most => Err(TOO_MANY),
            _ => Ok(()),
        }
    }
}

const TOO_MANY: Denied = Denied::TooMany {
    retry_after: Duration::from_secs(1),
};

impl Keys {
    /// Removes a key; what was given out for it is worth nothing any more.
    pub(crate) fn remove(&self, key: &str) {
        self.state.lock().unwrap().removed.insert(key.to_owned());
    }

    pub(crate) fn body_bytes(&self) -> usize {
        let state = self.state.lock().unwrap();
        state.body_bytes.load(Ordering::SeqCst)
    }

    fn known(&self, key: &str) -> Result<Principal, Denied> {
        if self.state.lock().unwrap().removed.contains(key) {
            return Err(Denied::WrongKey);
        }
        let found = match key.split_once("-key-") {
            Some(("use", owner)) => Some((owner, Rights::Use)),
            Some(("read", owner)) => Some((owner, Rights::Read)),
            Some(("admin", owner)) => Some((owner, Rights::Administer)),
            _ => None,
        };
        let principal = found.map(|(owner, rights)| Principal {
            key: key.to_owned(),
            owner: Owner(owner.to_owned()),
            rights,
            session: None,
            maxima: zareba_session::RequestMaxima::default(),
            parts: zareba_session::PermittedParts::default(),
            reach: zareba_session::PermittedReach::default(),
            life_max: None,
            sessions_max: (owner == "few").then_some(1),
            actions_per_minute: (owner == "slow").then_some(1),
        });
        principal.ok_or(Denied::WrongKey)
    }
}

/// The facade's routes, and nothing in front of them.
struct Bare(Router);

impl Respond for Bare {
    async fn respond(
        &self,
        request: Request<hyper::body::Incoming>,
        _: Admission,
    ) -> Response<Body> {
        let answered: Result<_, Infallible> = self.0.clone().oneshot(request.map(Body::new)).await;
        match answered {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
