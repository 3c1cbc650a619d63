//! Supervisors that are copies of a process that stands ready.

use std::{collections::BTreeSet, fs, sync::Arc};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use zareba_protocol::{Action, WriteFile};
use zareba_runtime::{Runtime, Sandbox};
use zareba_runtime_native::NativeRuntime;
use zareba_terminal::Process;

use crate::fixture::{self, Fixture, output, spec};

/// From this one on sandboxes are copies.
const COPIES_FROM: usize = 2;

/// Children of ours that have something to do with this runtime: other tests may have some, too.
fn our_children(command: &str, fixture: &Fixture<NativeRuntime>) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    let state = fixture.state.path().to_str().unwrap();
    let is_meant = |pid: &i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some(command) && line.contains(state)
    };
    let all = Process::all().into_iter();
    all.filter(|process| process.parent == own)
        .map(|process| process.id.pid)
        .filter(is_meant)
        .collect()
}

fn spawner(fixture: &Fixture<NativeRuntime>) -> Option<i32> {
    our_children("spawner", fixture).first().copied()
}

async fn create(runtime: &impl Runtime, count: usize) -> Vec<Arc<dyn Sandbox>> {
    let mut sandboxes = Vec::new();
    for _ in 0..count {
        sandboxes.push(runtime.create(spec()).await.unwrap());
    }
    sandboxes
}

async fn close(sandboxes: Vec<Arc<dyn Sandbox>>) {
    for sandbox in sandboxes {
        sandbox.close().await.unwrap();
    }
}

/// What a process was started with: a copy has nothing of its own there.
fn was_started_with(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap()
}

#[tokio::test]
async fn whoever_needs_many_sandboxes_gets_copies_that_are_its_own_children() {
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, 1).await;
    assert_eq!(spawner(&fixture), None, "one sandbox needs no spawner");
    sandboxes.extend(create(&fixture.runtime, 3).await);
    assert!(spawner(&fixture).is_some());
    let supervisors = our_children("supervise", &fixture);
    assert_eq!(supervisors.len(), 4);
    let copies = supervisors
        .iter()
        .filter(|pid| was_started_with(**pid).is_empty());
    assert_eq!(copies.count(), 4 - COPIES_FROM);
    for sandbox in &sandboxes {
        assert_eq!(output(&**sandbox, "echo $((6 * 7))").await, "42");
    }
    close(sandboxes).await;
    assert_eq!(our_children("supervise", &fixture), Vec::<i32>::new());
    assert_eq!(fixture.leftovers(), [""; 0]);
    let spawner = spawner(&fixture).unwrap();
    drop(fixture);
    assert!(Process::read(spawner).is_err());
}

/// A copy of a generator of random numbers would go on with the same numbers.
#[tokio::test]
async fn what_is_drawn_by_lot_is_drawn_anew_in_every_copy() {
    let fixture = fixture::native();
    let sandboxes = create(&fixture.runtime, COPIES_FROM + 3).await;
    let mut drawn = BTreeSet::new();
    for sandbox in &sandboxes {
        let token = output(&**sandbox, "echo $__zareba_token").await;
        assert_eq!(token.len(), 32, "{token}");
        assert!(drawn.insert(token), "{drawn:?}");
        // The name of the draft is drawn, too.
        let written = sandbox.run_action(Action::Write(WriteFile::new("drawn", "x")).into());
        let written = written.await.unwrap().observation;
        assert_eq!(written.kind_name(), "write", "{written:?}");
        let report = sandbox.inspect().await.unwrap();
        let user = &report["enforcement"]["users"][0]["outside"];
        let is_drawn = rustix::process::geteuid().is_root();
        assert!(!is_drawn || drawn.insert(user.to_string()), "{drawn:?}");
    }
    close(sandboxes).await;
}

#[tokio::test]
async fn a_spawner_that_was_killed_is_done_without_and_replaced() {
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, COPIES_FROM + 1).await;
    let killed = spawner(&fixture).unwrap();
    let pid = Pid::from_raw(killed).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    waitpid(Some(pid), WaitOptions::empty()).unwrap();
    sandboxes.extend(create(&fixture.runtime, COPIES_FROM + 2).await);
    assert!(spawner(&fixture).is_some_and(|spawner| spawner != killed));
    for sandbox in &sandboxes {
        assert_eq!(output(&**sandbox, "echo well").await, "well");
    }
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}
