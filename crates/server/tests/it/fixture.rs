//! A server on a port of its own, with a log and a runtime in a directory of its own.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use zareba_eventlog::{Durability, EventLog};
use zareba_executor::{FileScope, Linting};
use zareba_facades::openhands::{OpenHandsSettings, ToolProxies};
use zareba_runtime::Runtime;
use zareba_runtime_native::{CliRuntime, NativeOptions};
use zareba_server::{Extension, Keys, Listen, Server, ServerSettings, Transport, camel, openhands};
use zareba_session::{AllowAll, Guard, Idle, Sessions, SessionsOptions};

use crate::http::{Request, Response};

/// The name of the log in a server's directory.
const LOG: &str = "events.db";

/// What a server has beside its own routes.
enum Extra {
    Nothing,
    Routes(Extension),
    OpenHands(OpenHandsSettings),
}

/// A running server.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    /// A key that may do everything.
    pub(crate) admin: String,
    pub(crate) keys: Keys,
    pub(crate) sessions: Sessions,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
    state: Arc<TempDir>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::begin(change, Extra::Nothing).await
    }

    pub(crate) async fn start_extended(
        change: impl FnOnce(&mut ServerSettings),
        extension: Option<Extension>,
    ) -> Self {
        let extra = extension.map_or(Extra::Nothing, Extra::Routes);
        Self::begin(change, extra).await
    }

    /// A server that also speaks OpenHands' APIs and CAMEL's.
    pub(crate) async fn start_with_openhands(change: impl FnOnce(&mut ServerSettings)) -> Self {
        Self::begin(change, Extra::OpenHands(OpenHandsSettings::default())).await
    }

    /// The same with tools that clients of OpenHands' API push.
    pub(crate) async fn start_with_tool_proxies(tools: Arc<dyn ToolProxies>) -> Self {
        let settings = OpenHandsSettings {
            tools: Some(tools),
            ..OpenHandsSettings::default()
        };
        Self::begin(|_| {}, Extra::OpenHands(settings)).await
    }

    /// A server that shares a log with others; the first of them makes the key.
    pub(crate) async fn start_on(
        log: EventLog,
        admin: Option<&str>,
        change: impl FnOnce(&mut ServerSettings),
    ) -> Self {
        let state = tempfile::Builder::new().prefix("zv").tempdir().unwrap();
        let sessions = sessions_on(log, &state, Arc::new(AllowAll)).await;
        Self::serve(state, sessions, admin, change, Extra::Nothing).await
    }

    /// A server with a guard.
    pub(crate) async fn start_guarded(guard: Arc<dyn Guard>) -> Self {
        let state = tempfile::Builder::new().prefix("zv").tempdir().unwrap();
        let file = state.path().join(LOG);
        let log = EventLog::open_file(&file, Durability::Process).await;
        let sessions = sessions_on(log.unwrap(), &state, guard).await;
        Self::serve(state, sessions, None, |_| {}, Extra::Nothing).await
    }

    async fn begin(change: impl FnOnce(&mut ServerSettings), extra: Extra) -> Self {
        let state = tempfile::Builder::new().prefix("zv").tempdir().unwrap();
        let file = state.path().join(LOG);
        let log = EventLog::open_file(&file, Durability::Process).await;
        let sessions = sessions_on(log.unwrap(), &state, Arc::new(AllowAll)).await;
        Self::serve(state, sessions, None, change, extra).await
    }

    async fn serve(
        state: TempDir,
        sessions: Sessions,
        admin: Option<&str>,
        change: impl FnOnce(&mut ServerSettings),
        extra: Extra,
    ) -> Self {
        let mut settings = ServerSettings::new(Listen::Tcp {
            address: ([127, 0, 0, 1], 0).into(),
            transport: Transport::Plain,
        });
        change(&mut settings);
        let server = Server::bind(settings, sessions.clone()).await.unwrap();
        let server = match extra {
            Extra::Nothing => server,
            Extra::Routes(extension) => server.with_extension(extension),
            Extra::OpenHands(facade) => {
                let authenticator = server.authenticator();
                let facade = openhands(&sessions, authenticator, facade).await;
                let tools = camel(&sessions, authenticator);
                server.with_extension(facade.unwrap()).with_extension(tools)
            }
        };
        let address = server.local_address().unwrap();
        let admin = match admin {
            Some(admin) => admin.to_owned(),
            None => server.first_key().unwrap().secret.0.clone(),
        };
        let keys = server.keys().clone();
        let (shutdown, told) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            let _ = told.await;
        }));
        Self {
            address,
            admin,
            keys,
            sessions,
            shutdown: Some(shutdown),
            serving,
            state: Arc::new(state),
        }
    }

    /// Ends the server and starts another one on the same log, with the same sessions.
    pub(crate) async fn restart(&mut self) {
        self.shut_down();
        (&mut self.serving).await.unwrap();
        let settings = ServerSettings::new(Listen::Tcp {
            address: ([127, 0, 0, 1], 0).into(),
            transport: Transport::Plain,
        });
        let bound = Server::bind(settings, self.sessions.clone()).await;
        let server = bound.unwrap();
        self.address = server.local_address().unwrap();
        let (shutdown, told) = oneshot::channel();
        self.shutdown = Some(shutdown);
        self.serving = tokio::spawn(server.serve(async {
            let _ = told.await;
        }));
    }

    /// The file of its log.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.state.path().join(LOG)
    }

    /// Tells the server to end, without waiting.
    pub(crate) fn shut_down(&mut self) {
        drop(self.shutdown.take());
    }

    /// Ends everything in order.
    pub(crate) async fn stop(mut self) {
        self.shut_down();
        (&mut self.serving).await.unwrap();
        for session in self.sessions.list(None, None, usize::MAX).await {
            let session = self.sessions.get(&session.id).await.unwrap();
            session.close().await.unwrap();
        }
        self.sessions.shut_down(Duration::from_secs(5)).await;
        self.sessions.log().store().close().await.unwrap();
        drop(self.state);
    }

    pub(crate) async fn send(&self, request: Request) -> Response {
        request.send(self.address).await
    }

    /// As the administrator.
    pub(crate) async fn get(&self, path: impl AsRef<str>) -> Response {
        self.send(Request::get(path.as_ref()).key(&self.admin))
            .await
    }

    pub(crate) async fn post(&self, path: impl AsRef<str>, body: Value) -> Response {
        self.send(Request::post(path.as_ref(), &body).key(&self.admin))
            .await
    }

    pub(crate) async fn delete(&self, path: impl AsRef<str>) -> Response {
        self.send(Request::new("DELETE", path.as_ref()).key(&self.admin))
            .await
    }

    /// A key as the API makes it.
    pub(crate) async fn key(&self, new: Value) -> String {
        let created = self.post("/v1/keys", new).await.expect(201);
        created["secret"].as_str().unwrap().to_owned()
    }

    /// A ready session of the administrator's.
    pub(crate) async fn session(&self) -> String {
        let session = self.post("/v1/sessions", json!({})).await.expect(201);
        session["id"].as_str().unwrap().to_owned()
    }

    /// Runs a command as the administrator.
    pub(crate) async fn run(&self, session: &str, command: &str) -> Value {
        let path = format!("/v1/sessions/{session}/actions");
        self.post(path, run(command)).await.expect(200)
    }
}

/// The action that runs a command.
pub(crate) fn run(command: &str) -> Value {
    json!({ "action": "run", "args": { "command": command } })
}

async fn sessions_on(log: EventLog, state: &TempDir, guard: Arc<dyn Guard>) -> Sessions {
    let home = state.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let environment = std::env::vars_os().filter(|(name, _)| name != "HOME");
    let cli: Arc<dyn Runtime> = Arc::new(CliRuntime::new(NativeOptions {
        state_dir: state.path().to_owned(),
        images: state.path().join("images"),
        environment: environment.chain([("HOME".into(), home.into())]).collect(),
        shell: None,
        scope: FileScope::WholeFilesystem,
        linting: Linting::Off,
    }));
    let options = SessionsOptions {
        runtimes: BTreeMap::from([("cli".to_owned(), cli)]),
        default_runtime: "cli".to_owned(),
        guard,
        idle_timeout: Duration::from_secs(3600),
        when_idle: Idle::Stay,
        life_max: None,
        no_change_timeout: Duration::from_secs(30),
        timeout: Duration::from_secs(60),
        sessions_max: 100,
        owner_sessions_max: 50,
        workspaces: Vec::new(),
        permissions: zareba_session::Permissions::default(),
        hidden: Vec::new(),
    };
    Sessions::start(log, options).await.unwrap().0
}
