//! A server that is killed again and again, with clients that try again: nothing that was
//! acknowledged is lost, nothing is done twice (EL-2, EL-7).

use std::{
    collections::HashMap,
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rand::RngExt as _;
use serde_json::json;

use crate::{
    serving::{Line, Serving},
    support::Place,
};

/// How often the server is killed; `make soak` sets more.
fn rounds() -> usize {
    let asked = std::env::var("ZAREBA_TEST_KILL_ROUNDS");
    asked
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(300)
}

/// The longest that a server lives, by far more than one action takes.
const LIFE_MAX: Duration = Duration::from_millis(80);

/// Someone who does one thing after the other in a shell of its own.
#[derive(Clone, Debug)]
struct Worker {
    shell: &'static str,
    /// The number of the next thing to do.
    next: u64,
    /// The observations that were acknowledged: the number of each and of its action.
    acknowledged: Vec<(u64, u64)>,
}

impl Worker {
    fn new(shell: &'static str) -> Self {
        Self {
            shell,
            next: 0,
            acknowledged: Vec::new(),
        }
    }

    /// Writes its next number into its file; the same request however often it is sent.
    fn step(&mut self, line: &Line) -> Result<()> {
        let number = self.next;
        let shell = self.shell;
        let key = format!("{shell}-{number}");
        let action = json!({ "action": "run", "shell": shell, "args": {
            "command": format!("echo {number} >> {shell}") } });
        let seen = line.ask_once(
            "POST",
            "/v1/sessions/loop/actions",
            Some(&key),
            Some(&action),
        )?;
        ensure!(
            seen["extras"]["metadata"]["exit_code"] == 0,
            "{key}: {seen}"
        );
        let numbers = (seen["id"].as_u64(), seen["cause"].as_u64());
        let (Some(id), Some(cause)) = numbers else {
            anyhow::bail!("{key} has no number: {seen}");
        };
        self.acknowledged.push((id, cause));
        self.next += 1;
        Ok(())
    }

    /// Works until the server goes away. The first step may be one that was cut off.
    fn work(mut self, line: Line) -> (JoinHandle<Self>, Receiver<()>) {
        let (tell, first) = channel();
        let working = std::thread::spawn(move || {
            while self.step(&line).is_ok() {
                let _ = tell.send(());
            }
            self
        });
        (working, first)
    }
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_the_server_is_killed() -> Result<()> {
    let place = Place::new();
    let mut server = Serving::start(&place, &[])?;
    let session = json!({ "id": "loop", "setup": "nothing" });
    server.line()?.ask("POST", "/v1/sessions", Some(&session))?;
    let mut workers = vec![Worker::new("one"), Worker::new("two")];
    let rounds = rounds();
    for round in 0..rounds {
        let line = server.line()?;
        let started: Vec<_> = workers
            .drain(..)
            .map(|worker| worker.work(line.clone()))
            .collect();
        // At any point of a server's life, its very start included.
        let life = rand::rng().random_range(Duration::ZERO..LIFE_MAX);
        if round % 4 == 0 {
            let (_, first) = &started[0];
            let _ = first.recv_timeout(Duration::from_secs(20));
        }
        std::thread::sleep(life);
        server.kill()?;
        for (worker, _) in started {
            workers.push(
                worker
                    .join()
                    .map_err(|_| anyhow::anyhow!("a client panicked"))?,
            );
        }
        server = Serving::start(&place, &[]).with_context(|| format!("after {round} kills"))?;
    }
    let line = server.line()?;
    for worker in &mut workers {
        // The one that was cut off by the last kill.
        worker.step(&line)?;
        check_file(&line, worker)?;
    }
    check_events(&line, &workers)?;
    let told = place.output(&["log", "verify"]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);
    let kept = place.output(&["ps", "--quiet"]);
    assert_eq!(kept.stdout.trim(), "loop", "{}", kept.stderr);
    let done: u64 = workers.iter().map(|worker| worker.next).sum();
    println!("{done} actions in {rounds} lives of a server");
    ensure!(done as usize > rounds / 2, "only {done} actions were done");
    Ok(())
}

/// Every number once, in order.
fn check_file(line: &Line, worker: &Worker) -> Result<()> {
    let action =
        json!({ "action": "read", "args": { "path": format!("/workspace/{}", worker.shell) } });
    let seen = line.ask("POST", "/v1/sessions/loop/actions", Some(&action))?;
    let content = seen["content"].as_str().context("no content")?;
    let expected: String = (0..worker.next)
        .map(|number| format!("{number}\n"))
        .collect();
    ensure!(
        content == expected,
        "{}: {content:?} and not {expected:?}",
        worker.shell
    );
    Ok(())
}

/// Numbers without gaps, one observation per action, and every acknowledged one among them.
fn check_events(line: &Line, workers: &[Worker]) -> Result<()> {
    let mut causes: HashMap<u64, u64> = HashMap::new();
    let mut actions = 0;
    let mut next = 0;
    loop {
        let page = line.ask(
            "GET",
            &format!("/v1/sessions/loop/events?from={next}&limit=1000"),
            None,
        )?;
        let events = page["events"].as_array().context("no events")?;
        if events.is_empty() {
            break;
        }
        for event in events {
            ensure!(event["sequence"] == next, "{event} stands at {next}");
            if event["kind"] == "action" {
                actions += 1;
            }
            if event["kind"] == "observation" {
                let cause = event["cause"].as_u64().context("no cause")?;
                let before = causes.insert(cause, next);
                ensure!(before.is_none(), "{cause} was answered twice");
            }
            next += 1;
        }
    }
    ensure!(
        causes.len() == actions,
        "{actions} actions, {} observations",
        causes.len()
    );
    for (id, cause) in workers.iter().flat_map(|worker| &worker.acknowledged) {
        ensure!(
            causes.get(cause) == Some(id),
            "{id} was acknowledged for {cause}"
        );
    }
    Ok(())
}
