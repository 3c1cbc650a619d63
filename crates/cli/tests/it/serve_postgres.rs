//! Servers that keep their events in PostgreSQL: killed, side by side, and with a database that
//! is restarted under them (EL-2, EL-3, EL-7). `scripts/postgresql` gives these tests one.

mod cluster;
mod stream;

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use crate::{
    serve_clients::{Told, Worker, Working, check},
    serve_kill::kill_again_and_again,
    serving::{Line, Serving},
    support::{PATIENCE, Place},
};

use cluster::{Cluster, programs};
use stream::Stream;

/// How often the server is killed.
const KILLS: usize = 30;
/// The longest that a server lives, by far more than one action takes.
const LIFE_MAX: Duration = Duration::from_millis(300);
/// How long a killed server's own sessions may wait for it, which is far less than others do.
const OWN_MAX: Duration = Duration::from_secs(5);
/// How often the database is restarted.
const RESTARTS: usize = 6;
/// Between two looks at what the server says of its log.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How many actions one server does while the other one watches.
const WATCHED: u64 = 20;

/// A database for one test.
struct Database {
    server: String,
    name: String,
}

impl Database {
    fn new(name: &str) -> Result<Self> {
        let server = std::env::var("ZAREBA_TEST_POSTGRES")
            .context("run this under scripts/postgresql, which sets ZAREBA_TEST_POSTGRES")?;
        let name = format!("serve_{name}_{}", std::process::id());
        let database = Self { server, name };
        ensure!(database.tell("createdb", &[])?, "cannot make a database");
        Ok(database)
    }

    fn tell(&self, program: &str, flags: &[&str]) -> Result<bool> {
        let status = Command::new(programs()?.join(program))
            .arg(format!("--maintenance-db={}", self.server))
            .args(flags)
            .arg(&self.name)
            .status()?;
        Ok(status.success())
    }

    /// The flag by which a server uses it.
    fn flag(&self) -> String {
        let url = self
            .server
            .replace("/postgres?", &format!("/{}?", self.name));
        format!("--set=log.database={url}")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.tell("dropdb", &["--force"]);
    }
}

fn make_session(line: &Line, name: &str) -> Result<()> {
    let session = json!({ "id": name, "setup": "nothing" });
    line.ask("POST", "/v1/sessions", Some(&session)).map(drop)
}

fn start_workers(line: &Line, session: &'static str) -> Vec<Working> {
    ["one", "two"]
        .map(|shell| Worker::new(session, shell).start(line.clone()))
        .into()
}

fn stop_workers(working: Vec<Working>) -> Result<Vec<Worker>> {
    working.into_iter().map(Working::stop).collect()
}

#[test]
#[ignore = "needs PostgreSQL"]
fn el_7_nothing_is_lost_or_done_twice_however_often_the_server_is_killed() -> Result<()> {
    let database = Database::new("kill")?;
    kill_again_and_again(&Place::new(), &[&database.flag()], KILLS, LIFE_MAX)
}

/// Its name is in its directory, so that a killed server has its sessions again at once; one
/// elsewhere must wait until it can be sure that the first is gone.
#[test]
#[ignore = "needs PostgreSQL"]
fn el_6_a_killed_server_takes_its_own_sessions_at_once_and_another_leaves_them() -> Result<()> {
    let database = Database::new("own")?;
    let flag = database.flag();
    let places = [Place::new(), Place::new()];
    let first = Serving::start(&places[0], &[&flag])?;
    make_session(&first.line()?, "mine")?;
    let listen = format!("unix:{}", places[0].path("second").display());
    let second = places[0].output(&["serve", "--listen", &listen, &flag]);
    ensure!(second.code == Some(122), "{second:?}");
    ensure!(
        second.stderr.contains("in use by another server"),
        "{second:?}"
    );
    first.kill()?;

    let elsewhere = Serving::start(&places[1], &[&flag])?;
    fs::copy(key_file(&places[0]), key_file(&places[1]))?;
    let action = json!({ "action": "run", "args": { "command": "true" } });
    let target = "/v1/sessions/mine/actions";
    let held = elsewhere.line()?.send("POST", target, "", Some(&action))?;
    ensure!(held.status == 409, "{} {}", held.status, held.text());

    let begun = Instant::now();
    let again = Serving::start(&places[0], &[&flag])?;
    let line = again.line()?;
    line.ask("POST", target, Some(&action))?;
    let waited = begun.elapsed();
    ensure!(waited < OWN_MAX, "its own sessions waited for {waited:?}");
    line.ask("DELETE", "/v1/sessions/mine", None)?;
    Ok(())
}

/// The file with the administrator's key.
fn key_file(place: &Place) -> PathBuf {
    place.path("state").join("admin.key")
}

#[test]
#[ignore = "needs PostgreSQL"]
fn el_7_servers_on_one_database_see_each_others_events_live() -> Result<()> {
    let database = Database::new("two")?;
    let flag = database.flag();
    let places = [Place::new(), Place::new()];
    let first = Serving::start(&places[0], &[&flag])?;
    let second = Serving::start(&places[1], &[&flag])?;
    // The key is in the database; the file with it is beside the server that has made it.
    fs::copy(key_file(&places[0]), key_file(&places[1]))?;
    let lines = [first.line()?, second.line()?];
    let watched = watch_each_other(&places, &lines);
    // Each by its own server, which has the sandbox.
    for (line, session) in lines.iter().zip(SESSIONS) {
        let closed = line.ask("DELETE", &format!("/v1/sessions/{session}"), None);
        if watched.is_ok() {
            closed?;
        }
    }
    watched
}

const SESSIONS: [&str; 2] = ["left", "right"];

/// Each server makes a session, and does things in it that the other one streams.
fn watch_each_other(places: &[Place; 2], lines: &[Line; 2]) -> Result<()> {
    let key = fs::read_to_string(key_file(&places[0]))?;
    for ((here, there), session) in [(0, 1), (1, 0)].into_iter().zip(SESSIONS) {
        make_session(&lines[here], session)?;
        let socket = places[there].path("socket");
        let mut stream = Stream::open(&socket, key.trim_end(), session)?;
        let mut worker = Worker::new(session, "one");
        for _ in 0..WATCHED {
            let told = worker.step(&lines[here])?;
            ensure!(told == Told::Done, "{told:?}");
            // Before anything else happens, so it is told and not found.
            let last = worker.last_seen().context("no number")?;
            stream.read_until(last)?;
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs PostgreSQL"]
fn el_3_a_database_that_is_restarted_under_load_loses_nothing() -> Result<()> {
    let mut cluster = Cluster::new()?;
    let flag = format!("--set=log.database={}", cluster.url());
    // One that crashes may lose what was not synced.
    let flags = [flag.as_str(), "--set=log.durability=disk"];
    let place = Place::new();
    let server = Serving::start(&place, &flags)?;
    let line = server.line()?;
    make_session(&line, "restart")?;
    let working = start_workers(&line, "restart");
    for round in 0..RESTARTS {
        for worker in &working {
            worker.wait_for_progress()?;
        }
        // In order, and as a crash.
        cluster.stop([Signal::INT, Signal::QUIT][round % 2])?;
        let away = wait_until_away(&line);
        cluster.start()?;
        away.with_context(|| format!("restart {round}"))?;
    }
    for worker in &working {
        worker.wait_for_progress()?;
    }
    let workers = stop_workers(working)?;
    check(&place, &flags, &line, "restart", &workers)?;
    let status = line.ask("GET", "/v1/status", None)?;
    ensure!(status["log"]["durable"] == true, "{status}");
    Ok(())
}

/// Waits until the server says that its log is away. Clients need not be refused meanwhile: an
/// action that was still recorded runs, and its client waits until the observation is, too.
fn wait_until_away(line: &Line) -> Result<()> {
    let start = Instant::now();
    loop {
        let status = line.send("GET", "/v1/status", "", None)?;
        // Whoever has a good key must not be told otherwise because it cannot be looked up.
        let is_known = status.status != 401 && status.status != 403;
        ensure!(is_known, "{}", status.text());
        if status.status != 200 || status.json()?["log"]["durable"] == false {
            return Ok(());
        }
        ensure!(start.elapsed() < PATIENCE, "nobody misses the database");
        std::thread::sleep(LOOK_AGAIN);
    }
}
