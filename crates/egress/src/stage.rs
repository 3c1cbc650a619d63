//! For tests: a world outside that follows a script, and a proxy in front of it.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection;
use crate::host::HostName;
use crate::policy::Policy;
use crate::proxy::Proxy;
use crate::record::{Decision, Recorder};
use crate::upstream::{Addresses, Family, Pending, ResolveError, Route, Upstream};

/// A public address for a server that is really on this machine.
pub(crate) const SERVER: &str = "93.184.215.14";
/// Another one, where nobody listens.
pub(crate) const STRANGER: &str = "93.184.215.99";

/// What the outside world does.
#[derive(Default)]
pub(crate) struct Script {
    /// Addresses of each name; names that are not here do not exist.
    pub(crate) names: HashMap<&'static str, Vec<&'static str>>,
    /// Where connections to an address and port really go; all others are refused.
    pub(crate) doors: HashMap<SocketAddr, SocketAddr>,
    /// Addresses that packets do not reach, and those that are this machine's.
    pub(crate) routes: HashMap<IpAddr, Route>,
}

/// The outside world, and what it was asked.
#[derive(Default)]
pub(crate) struct World {
    script: Script,
    pub(crate) lookups: Mutex<Vec<String>>,
    pub(crate) connections: Mutex<Vec<SocketAddr>>,
}

impl World {
    pub(crate) fn with(script: Script) -> Self {
        Self {
            script,
            ..Self::default()
        }
    }
}

impl Upstream for Arc<World> {
    fn resolve<'a>(
        &'a self,
        name: &'a HostName,
        family: Family,
    ) -> Pending<'a, Result<Addresses, ResolveError>> {
        self.lookups.lock().unwrap().push(name.to_string());
        let found = self.script.names.get(name.as_str());
        let is_wanted = |address: &IpAddr| address.is_ipv4() == (family == Family::V4);
        let found = found.map(|texts| Addresses {
            addresses: texts
                .iter()
                .map(|text| text.parse().unwrap())
                .filter(is_wanted)
                .collect(),
            ttl: Duration::from_secs(60),
        });
        Box::pin(async move {
            match name.as_str() {
                "broken.example" => Err(ResolveError::Failed {
                    source: "broken".into(),
                }),
                _ => found.ok_or(ResolveError::NoSuchName),
            }
        })
    }

    fn route(&self, address: IpAddr) -> Route {
        let route = self.script.routes.get(&address);
        route.copied().unwrap_or(Route::Out)
    }

    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        self.connections.lock().unwrap().push(address);
        let door = self.script.doors.get(&address).copied();
        Box::pin(
            async move { TcpStream::connect(door.ok_or(io::ErrorKind::ConnectionRefused)?).await },
        )
    }
}

/// A proxy in front of a scripted world.
pub(crate) struct Stage {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) world: Arc<World>,
    connections: JoinSet<()>,
    close: watch::Sender<bool>,
    recording: tokio::task::JoinHandle<()>,
    directory: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(policy: &str, script: Script) -> Self {
        let policy: Policy = serde_json::from_str(policy).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let (recorder, recording) = Recorder::open(&log, directory.path().join("sums")).unwrap();
        let world = Arc::new(World::with(script));
        let (close, closing) = watch::channel(false);
        let upstream = Box::new(world.clone());
        Self {
            proxy: Arc::new(Proxy::new(policy, upstream, recorder, closing)),
            world,
            connections: JoinSet::new(),
            close,
            recording: tokio::spawn(recording.run()),
            directory,
        }
    }

    /// What a program inside has when it connected to `wanted`.
    pub(crate) async fn connect(&mut self, wanted: &str) -> TcpStream {
        let wanted = wanted.parse().unwrap();
        let (client, accepted) = pair().await;
        let proxy = self.proxy.clone();
        self.connections
            .spawn(connection::serve(proxy, accepted, wanted));
        client
    }

    /// As if `name` had been looked up and answered with `address`.
    pub(crate) fn resolved(&self, name: &str, address: &str) {
        let name = HostName::parse(name).unwrap();
        let now = std::time::Instant::now();
        let mut resolved = self.proxy.resolved();
        resolved.insert(&name, address.parse().unwrap(), Duration::ZERO, now);
    }

    /// Waits until all connections have ended by themselves, and says what was decided.
    pub(crate) async fn decisions(mut self) -> Vec<Decision> {
        while let Some(ended) = self.connections.join_next().await {
            ended.unwrap();
        }
        self.end().await
    }

    /// Stops the proxy, and says what was decided.
    pub(crate) async fn stop(mut self) -> Vec<Decision> {
        self.close.send_replace(true);
        while let Some(ended) = self.connections.join_next().await {
            ended.unwrap();
        }
        self.end().await
    }

    async fn end(self) -> Vec<Decision> {
        drop(self.proxy);
        self.recording.await.unwrap();
        read_log(self.directory.path().join("log"))
    }
}

pub(crate) fn read_log(path: PathBuf) -> Vec<Decision> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Both ends of a connection on this machine.
pub(crate) async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), accepted.unwrap().0)
}

/// A server that stands at `SERVER` on the given port, and the script that leads there.
pub(crate) async fn server_at(port: u16) -> (TcpListener, Script) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let wanted = SocketAddr::new(SERVER.parse().unwrap(), port);
    let door = (wanted, listener.local_addr().unwrap());
    let script = Script {
        doors: [door].into(),
        ..Script::default()
    };
    (listener, script)
}
