//! A server whose event log is on a disk without space: it takes nothing new on, loses nothing
//! that it has acknowledged, and goes on by itself (EL-3).

use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use serde_json::{Value, json};

use crate::{
    serve_clients::{Told, Worker, Working, all_events, check},
    serving::{Line, Serving},
    support::{PATIENCE, Place},
};

/// How often the disk is filled; every second time the server is killed meanwhile.
const ROUNDS: usize = 4;
/// What a command says: some commands fill a journal that has a little room left.
const PADDING_BYTES: usize = 8 * 1024;
/// Between two looks at what the server says of its log.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long a server may take to end that waits for its clients for a second.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
const SESSION: &str = "full";
const ACTIONS: &str = "/v1/sessions/full/actions";
/// The name of an action that ends too late.
const LATE: &str = "late";

/// A state directory on a small disk, but for the files of sandboxes: only the log is short of
/// space.
struct SmallDisk<'a> {
    place: &'a Place,
    state: PathBuf,
    bound: Vec<PathBuf>,
}

impl<'a> SmallDisk<'a> {
    fn new(place: &'a Place) -> Result<Self> {
        let state = place.path("state");
        fs::DirBuilder::new().mode(0o700).create(&state)?;
        let none = MountFlags::empty();
        mount("zareba-test", &state, "tmpfs", none, c"size=32m,mode=700")
            .context("may mount: run this as root")?;
        let mut disk = Self {
            place,
            state,
            bound: Vec::new(),
        };
        for name in ["native", "skeleton"] {
            let (elsewhere, here) = (place.path(name), disk.state.join(name));
            for directory in [&elsewhere, &here] {
                fs::DirBuilder::new().mode(0o700).create(directory)?;
            }
            mount_bind(&elsewhere, &here)?;
            disk.bound.push(here);
        }
        Ok(disk)
    }

    /// Takes all the space there is.
    fn fill(&self) -> Result<Filler> {
        let filler = Filler(self.state.join("filler"));
        filler.grow()?;
        Ok(filler)
    }
}

/// What takes the space. It goes before the server does, which cannot close a session without.
struct Filler(PathBuf);

impl Filler {
    /// Takes what is free, until for the first time not all is to be had that it asks for: a server
    /// that notices gives its reserve back, which is not meant to be taken with the rest.
    fn grow(&self) -> Result<()> {
        let chunk = vec![0; 1 << 16];
        let mut file = File::options().create(true).append(true).open(&self.0)?;
        while file.write(&chunk).is_ok_and(|taken| taken == chunk.len()) {}
        Ok(())
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // A test that failed while there was no server has left its sandbox.
        self.place.output(&["rm", "--force", SESSION]);
        for mounted in self.bound.iter().chain([&self.state]) {
            let _ = unmount(mounted, UnmountFlags::DETACH);
        }
    }
}

fn is_refused(told: &Told) -> bool {
    *told == Told::Refused(507, "log_full".to_owned())
}

fn log_status(line: &Line) -> Result<Value> {
    Ok(line.ask("GET", "/v1/status", None)?["log"].take())
}

/// Waits until the log is full. Nobody need be refused then: an action that was still recorded
/// runs, and its client waits until the observation can be recorded, too.
fn wait_until_full(line: &Line) -> Result<()> {
    let start = Instant::now();
    while log_status(line)?["durable"] == true {
        ensure!(start.elapsed() < PATIENCE, "the disk does not fill up");
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn run(command: &str) -> Value {
    json!({ "action": "run", "shell": "slow", "args": { "command": command } })
}

#[test]
#[ignore = "needs root"]
fn el_3_a_full_disk_refuses_new_actions_loses_nothing_and_mends_itself() -> Result<()> {
    let place = Place::new();
    let disk = SmallDisk::new(&place)?;
    let mut server = Serving::start(&place, &[])?;
    let line = server.line()?;
    let session = json!({ "id": SESSION, "setup": "nothing" });
    line.ask("POST", "/v1/sessions", Some(&session))?;
    let started: Vec<Working> = ["one", "two"]
        .map(|shell| Worker::new(SESSION, shell).padded(PADDING_BYTES))
        .map(|worker| worker.start(line.clone()))
        .into();
    for round in 0..ROUNDS {
        for worker in &started {
            worker.wait_for_progress()?;
        }
        let filler = disk.fill()?;
        for worker in &started {
            worker.wait_for(is_refused)?;
        }
        let status = log_status(&line)?;
        ensure!(status["durable"] == false, "{status}");
        ensure!(status["reason"].is_string(), "{status}");
        if round % 2 == 1 {
            server.kill()?;
            server = Serving::start(&place, &[]).context("on what is left of the reserve")?;
            wait_until_full(&line)?;
        }
        drop(filler);
        for worker in &started {
            worker.wait_for_progress()?;
        }
    }
    let stopped: Result<Vec<Worker>> = started.into_iter().map(Working::stop).collect();
    let status = log_status(&line)?;
    ensure!(
        status["durable"] == true && status["waiting"] == 0,
        "{status}"
    );
    check(&place, &[], &line, SESSION, &stopped?)?;
    drop(server);
    Ok(())
}

/// Has a client work, and fills the disk until it is refused.
fn refuse_on_full_disk(disk: &SmallDisk<'_>, line: &Line) -> Result<(Working, Filler)> {
    let worker = Worker::new(SESSION, "one")
        .padded(PADDING_BYTES)
        .start(line.clone());
    worker.wait_for_progress()?;
    let filler = disk.fill()?;
    worker.wait_for(is_refused)?;
    Ok((worker, filler))
}

#[test]
#[ignore = "needs root"]
fn el_3_a_server_starts_without_a_byte_of_space_to_be_read_and_goes_on_when_there_is_some()
-> Result<()> {
    let place = Place::new();
    let disk = SmallDisk::new(&place)?;
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    let session = json!({ "id": SESSION, "setup": "nothing" });
    line.ask("POST", "/v1/sessions", Some(&session))?;
    let (worker, filler) = refuse_on_full_disk(&disk, &line)?;
    server.kill()?;
    // The reserve was given back, and is gone now, too.
    filler.grow()?;

    let server = Serving::start(&place, &[])?;
    let refused = line.send("POST", ACTIONS, "", Some(&run("true")))?;
    ensure!(
        refused.status == 503,
        "{} {}",
        refused.status,
        refused.text()
    );
    ensure!(
        refused.text().contains("disk is full"),
        "{}",
        refused.text()
    );
    let another = json!({ "id": "another" });
    let refused = line.send("POST", "/v1/sessions", "", Some(&another))?;
    ensure!(
        refused.status == 503,
        "{} {}",
        refused.status,
        refused.text()
    );
    ensure!(refused.text().contains("no space"), "{}", refused.text());
    ensure!(log_status(&line)?["durable"] == false);
    let listed = line.ask("GET", "/v1/sessions", None)?;
    ensure!(listed["sessions"][0]["id"] == SESSION, "{listed}");
    ensure!(!all_events(&line, SESSION)?.is_empty());

    drop(filler);
    worker.wait_for_progress()?;
    let worker = worker.stop()?;
    check(&place, &[], &line, SESSION, &[worker])?;
    drop(server);
    Ok(())
}

#[test]
#[ignore = "needs root"]
fn hs_17_a_server_on_a_full_disk_ends_in_time_and_tells_what_it_could_not_write() -> Result<()> {
    let place = Place::new();
    let disk = SmallDisk::new(&place)?;
    let said = place.path("said");
    let flags = ["--set=server.drain=1"];
    let server = Serving::start_heard(&place, &flags, File::create(&said)?.into())?;
    let line = server.line()?;
    let session = json!({ "id": SESSION, "setup": "nothing" });
    line.ask("POST", "/v1/sessions", Some(&session))?;
    // Filling the disk takes a fraction of that.
    let late = run("sleep 4; echo late");
    let asked = {
        let (line, late) = (line.clone(), late.clone());
        std::thread::spawn(move || line.ask_once("POST", ACTIONS, Some(LATE), Some(&late)))
    };
    let (worker, filler) = refuse_on_full_disk(&disk, &line)?;
    // The reserve, too: nothing that happens from now on can be recorded.
    filler.grow()?;
    let start = Instant::now();
    while log_status(&line)?["waiting"] == 0 {
        ensure!(start.elapsed() < PATIENCE, "nothing waits to be written");
        std::thread::sleep(LOOK_AGAIN);
    }

    let begun = Instant::now();
    let code = server.stop()?;
    let (took, said) = (begun.elapsed(), fs::read_to_string(&said)?);
    ensure!(took < ENDS_WITHIN, "it took {took:?} to end: {said}");
    ensure!(
        code != Some(0),
        "it seems to have written everything: {said}"
    );
    ensure!(said.contains("could not be written before"), "{said}");
    let asked = asked
        .join()
        .map_err(|_| anyhow::anyhow!("a client panicked"))?;
    // A server that ends may say that it has the action, and nothing of what came of it.
    let told = asked.ok().filter(|told| told["observation"].is_string());

    drop(filler);
    let server = Serving::start(&place, &flags)?;
    let seen = line.ask_once("POST", ACTIONS, Some(LATE), Some(&late))?;
    ensure!(seen["content"] == "late", "{seen}");
    // What anybody was told of is recorded, and what nobody was told of is not done again.
    ensure!(told.is_none_or(|told| told["id"] == seen["id"]), "{seen}");
    let worker = worker.stop()?;
    check(&place, &[], &line, SESSION, &[worker])?;
    drop(server);
    Ok(())
}

#[test]
#[ignore = "needs root"]
fn el_3_what_runs_when_the_disk_fills_up_is_still_recorded_and_told() -> Result<()> {
    let place = Place::new();
    let disk = SmallDisk::new(&place)?;
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    let session = json!({ "id": SESSION, "setup": "nothing" });
    line.ask("POST", "/v1/sessions", Some(&session))?;
    // Filling the disk takes a fraction of that.
    let slow = line.clone();
    let slow =
        std::thread::spawn(move || slow.ask("POST", ACTIONS, Some(&run("sleep 4; echo late"))));
    let (worker, filler) = refuse_on_full_disk(&disk, &line)?;
    ensure!(!slow.is_finished(), "it ended before the disk was full");
    let seen = slow
        .join()
        .map_err(|_| anyhow::anyhow!("a client panicked"))??;
    ensure!(seen["content"] == "late", "{seen}");
    let status = log_status(&line)?;
    ensure!(status["durable"] == false, "{status}");
    let refused = line.send("POST", ACTIONS, "", Some(&run("true")))?;
    ensure!(refused.status == 507, "{}", refused.text());

    drop(filler);
    worker.wait_for_progress()?;
    let worker = worker.stop()?;
    check(&place, &[], &line, SESSION, &[worker])?;
    let events = all_events(&line, SESSION)?;
    let notes = events.iter().filter(|event| event["kind"] == "note");
    let is_told = |note: &Value| note["payload"]["note"] == "event_log_not_durable";
    ensure!(notes.clone().any(is_told), "the failure is not in the log");
    Ok(())
}
