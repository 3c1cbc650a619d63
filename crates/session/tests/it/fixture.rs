//! A server's sessions in a directory of their own.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use zareba_eventlog::{Durability, EntryKind, EventLog};
use zareba_executor::{FileScope, Linting};
use zareba_protocol::{Action, ActionEvent, RunCommand, ShellName};
use zareba_runtime::{Runtime, Strictness};
use zareba_runtime_native::{
    CliRuntime, DiskLimit, LocalOptions, LocalRuntime, NativeOptions, NativeRuntime, Reachable,
    ServerLifetime, SystemMode, Usage, Walls, WorkspaceMode,
};
use zareba_session::{
    ActionRequest, AllowAll, Home, IdempotencyKey, Idle, NewSession, Owner, Record, Recovery,
    Requester, RequesterScope, Session, SessionId, Sessions, SessionsOptions, Surface, event_json,
};
use zareba_testkit::traces;

/// Where a server keeps what it has; another server can be started on the same place.
#[derive(Clone)]
pub(crate) struct Place {
    state: Arc<State>,
}

/// A directory, and the executors that a test which fails leaves in it.
struct State(TempDir);

/// How often the directory is tried to be removed beside sandboxes that remove theirs in it.
const REMOVALS_MAX: usize = 10_000;

impl Drop for State {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // A sandbox that was dropped and not closed goes by itself, at this very moment.
            let is_gone = |_: &usize| std::fs::remove_dir_all(self.0.path()).is_ok();
            (0..REMOVALS_MAX).find(is_gone);
            return;
        }
        let mark = self.0.path().display().to_string();
        for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let names_it = std::fs::read_to_string(process.path().join("cmdline"))
                .is_ok_and(|line| line.contains(&mark));
            let pid = process
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            if let Some(pid) = pid.and_then(Pid::from_raw).filter(|_| names_it) {
                // An executor ends its shells itself.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        // Short: the path of a Unix socket is limited.
        let state = tempfile::Builder::new().prefix("zs").tempdir().unwrap();
        Self {
            state: Arc::new(State(state)),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.state.0.path().join(name)
    }

    /// A session's name that no other test has: without walls, processes are known by it.
    pub(crate) fn id(&self, name: &str) -> SessionId {
        let place = self.state.0.path().file_name().unwrap();
        SessionId::new(format!("{name}-{}", place.display())).unwrap()
    }

    /// The log in this place.
    pub(crate) async fn log(&self) -> EventLog {
        let path = self.path("events.db");
        EventLog::open_file(&path, Durability::Process)
            .await
            .unwrap()
    }

    /// A server with the runtimes `cli`, `local` and `native`.
    pub(crate) fn options(&self) -> SessionsOptions {
        let native = NativeRuntime::new(self.native_options(), local_options(), walls());
        let local = LocalRuntime::new(self.native_options(), local_options());
        let runtimes: [(&str, Arc<dyn Runtime>); 3] = [
            ("cli", Arc::new(CliRuntime::new(self.native_options()))),
            ("local", Arc::new(local)),
            ("native", Arc::new(native)),
        ];
        SessionsOptions {
            runtimes: runtimes
                .into_iter()
                .map(|(name, runtime)| (name.to_owned(), runtime))
                .collect::<BTreeMap<_, _>>(),
            default_runtime: "cli".to_owned(),
            guard: Arc::new(AllowAll),
            idle_timeout: Duration::from_secs(3600),
            when_idle: Idle::Stay,
            life_max: None,
            no_change_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(60),
            sessions_max: 100,
            owner_sessions_max: 50,
            workspaces: vec![std::env::temp_dir()],
            permissions: zareba_session::Permissions::default(),
            hidden: Vec::new(),
        }
    }

    pub(crate) async fn serve(&self) -> Sessions {
        self.serve_with(self.options()).await
    }

    pub(crate) async fn serve_with(&self, options: SessionsOptions) -> Sessions {
        self.recover_with(options).await.0
    }

    pub(crate) async fn recover_with(&self, options: SessionsOptions) -> (Sessions, Recovery) {
        let home = Home::open(&self.path("")).await.unwrap();
        let started = Sessions::start_in(home, self.log().await, options).await;
        started.unwrap()
    }

    /// What is left of sandboxes: processes, and directories of theirs.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let mut found = traces::processes(&self.state.0.path().display().to_string());
        for kind in ["cli", "local", "native"] {
            let entries = traces::entries(&self.path(kind));
            found.extend(entries.into_iter().filter(|path| !path.ends_with("/.lock")));
        }
        found
    }

    fn native_options(&self) -> NativeOptions {
        let environment = std::env::vars_os().filter(|(name, _)| name != "HOME");
        let home = self.path("home");
        std::fs::create_dir_all(&home).unwrap();
        NativeOptions {
            state_dir: self.state.0.path().to_owned(),
            images: self.path("images"),
            environment: environment.chain([("HOME".into(), home.into())]).collect(),
            shell: None,
            scope: FileScope::WholeFilesystem,
            linting: Linting::Off,
        }
    }
}

fn local_options() -> LocalOptions {
    LocalOptions {
        program: program(),
        warm_servers: 0,
        warm_no_change_timeout: Duration::from_secs(30),
        lifetime: ServerLifetime::KeptAlive { idle_timeout: None },
    }
}

fn walls() -> Walls {
    Walls {
        workspace: WorkspaceMode::ReadWrite,
        system: SystemMode::CopyOnWrite,
        guarded: Vec::new(),
        home_tools: zareba_runtime_native::HomeAccess::Hidden,
        network: Reachable::Nothing,
        usage: Usage {
            memory_bytes: 512 * 1024 * 1024,
            pids: 256,
            cpu_millis: 2000,
            disk: DiskLimit {
                bytes: 1024 * 1024 * 1024,
                inodes: 100_000,
            },
        },
        strictness: Strictness::Strict,
    }
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

pub(crate) fn owner() -> Owner {
    Owner("somebody".to_owned())
}

/// A client with a key.
pub(crate) fn client() -> Requester {
    Requester {
        owner: owner(),
        key: Some("k1".to_owned()),
        scope: Some(RequesterScope::Session),
        surface: Surface::Api,
    }
}

pub(crate) fn on(runtime: &str) -> NewSession {
    NewSession {
        runtime: Some(runtime.to_owned()),
        ..NewSession::default()
    }
}

pub(crate) fn run(command: &str) -> ActionEvent {
    Action::Run(RunCommand::new(command)).into()
}

pub(crate) fn run_in(shell: &str, command: &str) -> ActionEvent {
    run(command).with_shell(ShellName::new(shell).unwrap())
}

pub(crate) fn request(action: impl Into<ActionEvent>) -> ActionRequest {
    ActionRequest {
        action: action.into(),
        key: None,
        requester: None,
    }
}

pub(crate) fn keyed(key: &str, action: impl Into<ActionEvent>) -> ActionRequest {
    ActionRequest {
        action: action.into(),
        key: Some(IdempotencyKey::new(key).unwrap()),
        requester: None,
    }
}

/// The observation of an action, as clients see it.
pub(crate) async fn observe(session: &Session, action: impl Into<ActionEvent>) -> Value {
    event_json(&session.run(request(action)).await.unwrap())
}

/// The text that came of a command.
pub(crate) async fn output(session: &Session, command: &str) -> String {
    text(&observe(session, run(command)).await)
}

pub(crate) fn text(event: &Value) -> String {
    event["content"].as_str().unwrap().to_owned()
}

/// All that was recorded until now.
pub(crate) async fn records(session: &Session) -> Vec<Arc<Record>> {
    let count = session.info().next_event;
    let mut events = session.events(0);
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(events.next().await.unwrap());
    }
    all
}

/// The statuses that were recorded, as words.
pub(crate) async fn statuses(session: &Session) -> Vec<String> {
    let records = records(session).await.into_iter();
    records
        .filter(|record| record.kind == EntryKind::Status)
        .map(|record| record.payload["status"].as_str().unwrap().to_owned())
        .collect()
}

/// Each action with the numbers of its observations.
pub(crate) async fn answers(session: &Session) -> Vec<(u64, Vec<u64>)> {
    let records = records(session).await;
    let of_kind = |kind| records.iter().filter(move |record| record.kind == kind);
    of_kind(EntryKind::Action)
        .map(|action| {
            let observations = of_kind(EntryKind::Observation)
                .filter(|record| record.cause == Some(action.sequence))
                .map(|record| record.sequence);
            (action.sequence, observations.collect())
        })
        .collect()
}

/// Every action has exactly one observation.
pub(crate) async fn assert_all_answered(session: &Session, count: usize) {
    let answers = answers(session).await;
    assert_eq!(answers.len(), count, "{answers:?}");
    assert!(
        answers.iter().all(|(_, answers)| answers.len() == 1),
        "{answers:?}"
    );
}
