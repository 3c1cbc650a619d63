//! The other program under test: `zareba serve` in a state directory of its own, and sessions of
//! it. Sandboxes outlive a server, so the sessions are closed before it goes.

mod subscriber;

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::Stdio,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    children::Owned,
    executor::{HttpLane, Program, end_of},
    http::{Address, Connection},
};

pub(crate) use subscriber::Subscriber;

/// Clients that make and close sessions at the same time.
const CLIENTS: usize = 8;
/// Owners that the sessions are dealt out to: no single one may have so many open requests that
/// there are none left for others.
const OWNERS: usize = 8;

/// A running server with sessions that are named by their numbers.
#[derive(Debug)]
pub(crate) struct Server {
    // In this order: its files go when it is gone.
    process: Owned,
    address: SocketAddr,
    /// One of each owner.
    keys: Vec<String>,
    /// How many sessions were asked for.
    asked: AtomicUsize,
    _state: TempDir,
}

impl Server {
    /// Starts one with these settings, and waits for its word that it answers.
    pub(crate) fn start(program: &Program, settings: &[&str]) -> anyhow::Result<Self> {
        // Short, because the path of a Unix socket is limited.
        let state = tempfile::Builder::new()
            .prefix("v")
            .tempdir_in(&program.scratch)?;
        let address =
            TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?.local_addr()?;
        let log = state.path().join("server.log");
        let mut command = program.command();
        for setting in settings {
            command.args(["--set", setting]);
        }
        command
            .args(["serve", "--ready-fd", "1", "--listen"])
            .arg(address.to_string())
            .env("ZAREBA_STATE_DIRECTORY", state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?);
        let mut process = Owned::spawn(&mut command)?;
        let ready = process.child().stdout.take().context("it has no output")?;
        let mut line = String::new();
        BufReader::new(ready).read_line(&mut line)?;
        ensure!(
            line == "ready\n",
            "the server does not start: {}",
            end_of(&log)
        );
        let admin = fs::read_to_string(state.path().join("admin.key"))?;
        let mut server = Self {
            process,
            address,
            keys: Vec::new(),
            asked: AtomicUsize::new(0),
            _state: state,
        };
        server.keys = server.make_keys(admin.trim_end())?;
        Ok(server)
    }

    /// Makes a key for each owner, as whoever runs a server for several does.
    fn make_keys(&self, admin: &str) -> anyhow::Result<Vec<String>> {
        let mut connection = self.connect()?;
        let key = |owner| {
            let body = json!({ "owner": format!("owner{owner}"), "scope": "session" });
            let request = self.request(admin, "POST", "/v1/keys", Some(&body));
            let made = answered(&mut connection, &request)?;
            let secret = made["secret"].as_str().context("a key has no secret")?;
            Ok(secret.to_owned())
        };
        (0..OWNERS).map(key).collect()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How many sessions there are.
    pub(crate) fn sessions(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Makes sessions until there are so many, some at a time, and asks each for one command.
    /// Stops early, without an error, when `is_enough` says so.
    pub(crate) fn make_sessions(
        &self,
        count: usize,
        is_enough: impl Fn() -> bool + Sync,
    ) -> anyhow::Result<()> {
        let first = self.sessions();
        let next = AtomicUsize::new(first);
        each_client(|| {
            let mut connection = self.connect()?;
            while !is_enough() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                self.asked.fetch_max(number + 1, Ordering::Relaxed);
                let body = json!({ "id": name(number), "setup": "nothing" });
                self.ask(&mut connection, number, "POST", "/v1/sessions", Some(&body))?;
                self.run_true(&mut connection, number)?;
            }
            Ok(())
        })
    }

    /// A connection of its own that runs `true` in a session again and again.
    pub(crate) fn lane(&self, session: usize) -> anyhow::Result<HttpLane> {
        let key = self.key(session);
        let request = self.request(key, "POST", &actions(session), Some(&run_true()));
        let lane = HttpLane::open(&Address::Tcp(self.address), vec![request])?;
        Ok(lane.expecting("\"exit_code\":0"))
    }

    /// Runs `true` in each of the sessions, and returns the number of each one's last event.
    pub(crate) fn round(&self, sessions: usize) -> anyhow::Result<Vec<u64>> {
        let next = AtomicUsize::new(0);
        let last: Vec<_> = (0..sessions).map(|_| AtomicU64::new(0)).collect();
        each_client(|| {
            let mut connection = self.connect()?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = last.get(number) else {
                    return Ok(());
                };
                let seen = self.run_true(&mut connection, number)?;
                let id = seen["id"]
                    .as_u64()
                    .context("an observation has no number")?;
                place.store(id, Ordering::Relaxed);
            }
        })?;
        Ok(last.into_iter().map(AtomicU64::into_inner).collect())
    }

    /// Somebody who reads all events of a session as they come.
    pub(crate) fn subscribe(&self, session: usize) -> anyhow::Result<Subscriber> {
        let target = format!("/v1/sessions/{}/events/stream", name(session));
        let request = self.request(self.key(session), "GET", &target, None);
        Subscriber::open(self.address, &request)
    }

    /// Ends all sessions, with their sandboxes, also when some cannot be ended.
    pub(crate) fn close_sessions(&self) -> anyhow::Result<()> {
        let count = self.asked.swap(0, Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        each_client(|| {
            let mut outcome = Ok(());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return outcome;
                }
                // On a connection of its own: one that failed is of no use to the others.
                outcome = outcome.and(self.close_session(number));
            }
        })
    }

    fn close_session(&self, number: usize) -> anyhow::Result<()> {
        let target = format!("/v1/sessions/{}", name(number));
        self.ask(&mut self.connect()?, number, "DELETE", &target, None)?;
        Ok(())
    }

    fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(&Address::Tcp(self.address)).context("cannot connect to the server")
    }

    fn run_true(&self, connection: &mut Connection, session: usize) -> anyhow::Result<Value> {
        self.ask(
            connection,
            session,
            "POST",
            &actions(session),
            Some(&run_true()),
        )
    }

    /// The key of a session's owner.
    fn key(&self, session: usize) -> &str {
        &self.keys[session % self.keys.len()]
    }

    /// Sends a request about a session that must be answered by 2xx.
    fn ask(
        &self,
        connection: &mut Connection,
        session: usize,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let request = self.request(self.key(session), method, target, body);
        answered(connection, &request).with_context(|| format!("{method} {target}"))
    }

    fn request(&self, key: &str, method: &str, target: &str, body: Option<&Value>) -> Vec<u8> {
        let host = self.address;
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"
        );
        let body = body.map(Value::to_string).unwrap_or_default();
        if !body.is_empty() {
            let length = body.len();
            head.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        format!("{head}\r\n{body}").into_bytes()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A measurement that failed; what cannot be closed now is said by nobody else either.
        let _ = self.close_sessions();
        let _ = self.process.ask_to_end();
    }
}

/// Sends a request that must be answered by 2xx.
fn answered(connection: &mut Connection, request: &[u8]) -> anyhow::Result<Value> {
    connection.send(request)?;
    let answer = connection.receive()?;
    if !(200..300).contains(&answer.status) {
        let said = String::from_utf8_lossy(answer.body);
        bail!("{} {said}", answer.status);
    }
    Ok(serde_json::from_slice(answer.body).unwrap_or_default())
}

fn name(session: usize) -> String {
    format!("s{session}")
}

fn actions(session: usize) -> String {
    format!("/v1/sessions/{}/actions", name(session))
}

fn run_true() -> Value {
    json!({ "action": "run", "args": { "command": "true", "blocking": true }, "timeout": 60 })
}

/// Does the same in several threads, and fails when one of them does.
fn each_client(work: impl Fn() -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(&work)).collect();
        let mut outcome = Ok(());
        for client in clients {
            match client.join() {
                Ok(done) => outcome = outcome.and(done),
                Err(_) => bail!("a client panicked"),
            }
        }
        outcome
    })
}
