//! Clients that go on through refusals and kills: each writes number after number into a file of
//! a session, and notes what was acknowledged. Afterwards everything must be there, once.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::{serving::Line, support::Place};

/// How long a client waits before it asks again.
const PAUSE: Duration = Duration::from_millis(10);
/// How long nothing may be done.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);
/// How long one thing may take, with all refusals on the way.
const STEP_MAX: Duration = Duration::from_secs(120);

/// What came of asking once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was done.
    Done,
    /// The server said no, with this status and code.
    Refused(u16, String),
    /// There was no answer.
    Gone,
}

/// Someone who does one thing after the other in a shell of its own.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    session: &'static str,
    shell: &'static str,
    /// What each command says beside what it does.
    padding: String,
    /// The number of the next thing to do.
    next: u64,
    /// The observations that were acknowledged: the number of each and of its action.
    acknowledged: Vec<(u64, u64)>,
}

impl Worker {
    pub(crate) fn new(session: &'static str, shell: &'static str) -> Self {
        Self {
            session,
            shell,
            padding: String::new(),
            next: 0,
            acknowledged: Vec::new(),
        }
    }

    /// With commands of at least so many bytes.
    pub(crate) fn padded(self, bytes: usize) -> Self {
        Self {
            padding: "x".repeat(bytes),
            ..self
        }
    }

    /// How much it has done.
    pub(crate) fn done(&self) -> u64 {
        self.next
    }

    /// The number of the last observation that it was given.
    pub(crate) fn last_seen(&self) -> Option<u64> {
        self.acknowledged.last().map(|(id, _)| *id)
    }

    /// Writes its next number into its file; the same request however often it is sent.
    pub(crate) fn step(&mut self, line: &Line) -> Result<Told> {
        let (number, shell) = (self.next, self.shell);
        let command = format!("echo {number} >> {shell}; : {}", self.padding);
        let action = json!({ "action": "run", "shell": shell, "args": { "command": command } });
        let target = format!("/v1/sessions/{}/actions", self.session);
        let head = format!("Idempotency-Key: {shell}-{number}\r\n");
        let Ok(answer) = line.send("POST", &target, &head, Some(&action)) else {
            return Ok(Told::Gone);
        };
        if answer.status != 200 {
            let code = answer.json()?["error"]["code"].as_str().map(str::to_owned);
            return Ok(Told::Refused(answer.status, code.context("no code")?));
        }
        let seen = answer.json()?;
        let is_right = seen["extras"]["metadata"]["exit_code"] == 0;
        ensure!(is_right, "{shell}-{number}: {seen}");
        let numbers = (seen["id"].as_u64(), seen["cause"].as_u64());
        let (Some(id), Some(cause)) = numbers else {
            anyhow::bail!("{shell}-{number} has no number: {seen}");
        };
        self.acknowledged.push((id, cause));
        self.next += 1;
        Ok(Told::Done)
    }

    /// Does the next thing, however often that must be asked for.
    fn persist(&mut self, line: &Line, tell: &Sender<Told>) -> Result<()> {
        let start = Instant::now();
        loop {
            let told = self.step(line)?;
            tell.send(told.clone()).context("nobody listens any more")?;
            if told == Told::Done {
                return Ok(());
            }
            ensure!(start.elapsed() < STEP_MAX, "{}: still {told:?}", self.shell);
            std::thread::sleep(PAUSE);
        }
    }

    /// Works in a thread of its own until it is told to stop.
    pub(crate) fn start(mut self, line: Line) -> Working {
        let (tell, told) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                self.persist(&line, &tell)?;
            }
            Ok(self)
        });
        Working { thread, told, stop }
    }
}

/// A worker that is at work. It ends soon after this is dropped.
#[derive(Debug)]
pub(crate) struct Working {
    thread: JoinHandle<Result<Worker>>,
    told: Receiver<Told>,
    stop: Arc<AtomicBool>,
}

impl Working {
    /// Waits until it is told something like this, from now on.
    pub(crate) fn wait_for(&self, is_right: impl Fn(&Told) -> bool) -> Result<Told> {
        self.told.try_iter().for_each(drop);
        let start = Instant::now();
        loop {
            let left = STANDSTILL_MAX.saturating_sub(start.elapsed());
            let told = self.told.recv_timeout(left);
            let told = told.context("a client waits in vain, or has given up")?;
            if is_right(&told) {
                return Ok(told);
            }
        }
    }

    /// Waits until something more is done.
    pub(crate) fn wait_for_progress(&self) -> Result<()> {
        self.wait_for(|told| *told == Told::Done).map(drop)
    }

    /// Lets it end with what it has begun.
    pub(crate) fn stop(self) -> Result<Worker> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow!("a client panicked"))?
    }
}

/// Checks all that the workers of one session have done, the chain of the log included.
pub(crate) fn check(
    place: &Place,
    flags: &[&str],
    line: &Line,
    session: &str,
    workers: &[Worker],
) -> Result<()> {
    for worker in workers {
        check_file(line, worker)?;
    }
    check_events(line, session, workers)?;
    let told = place.output(&[&["log", "verify"], flags].concat());
    ensure!(told.code == Some(0), "{}{}", told.stdout, told.stderr);
    Ok(())
}

/// Every number once, in order.
fn check_file(line: &Line, worker: &Worker) -> Result<()> {
    let path = format!("/workspace/{}", worker.shell);
    let action = json!({ "action": "read", "args": { "path": path } });
    let target = format!("/v1/sessions/{}/actions", worker.session);
    let seen = line.ask("POST", &target, Some(&action))?;
    let content = seen["content"].as_str().context("no content")?;
    let numbers = (0..worker.next).map(|number| format!("{number}\n"));
    let expected: String = numbers.collect();
    ensure!(
        content == expected,
        "{path}: {content:?} and not {expected:?}"
    );
    Ok(())
}

/// Numbers without gaps, one observation per action, and every acknowledged one among them.
fn check_events(line: &Line, session: &str, workers: &[Worker]) -> Result<()> {
    let events = all_events(line, session)?;
    let mut causes: HashMap<u64, u64> = HashMap::new();
    let mut actions = 0;
    for (number, event) in (0..).zip(&events) {
        ensure!(event["sequence"] == number, "{event} stands at {number}");
        actions += usize::from(event["kind"] == "action");
        if event["kind"] == "observation" {
            let cause = event["cause"].as_u64().context("no cause")?;
            let before = causes.insert(cause, number);
            ensure!(before.is_none(), "{cause} was answered twice");
        }
    }
    let answered = causes.len();
    ensure!(
        answered == actions,
        "{actions} actions, {answered} observations"
    );
    for (id, cause) in workers.iter().flat_map(|worker| &worker.acknowledged) {
        let kept = causes.get(cause);
        ensure!(kept == Some(id), "{id} was acknowledged for {cause}");
    }
    Ok(())
}

/// All events of a session, page by page.
pub(crate) fn all_events(line: &Line, session: &str) -> Result<Vec<Value>> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let from = events.len();
        let target = format!("/v1/sessions/{session}/events?from={from}&limit=1000");
        let page = line.ask("GET", &target, None)?;
        let page = page["events"].as_array().context("no events")?;
        if page.is_empty() {
            return Ok(events);
        }
        events.extend_from_slice(page);
    }
}
