//! Spawners that are killed, stand still or say nothing.

use std::fs;

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
};
use tempfile::TempDir;
use zareba_runtime_native::{LocalOptions, NativeRuntime, ServerLifetime};
use zareba_terminal::Process;

use super::{
    COPIES_FROM, await_beginning, close, copies, create, our_children, program_with, spawner,
};
use crate::fixture::{self, Fixture};

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
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Without an order that asks for it: the order after would have to wait for its start.
#[tokio::test]
async fn a_spawner_that_was_killed_while_idle_is_replaced_at_once() {
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, COPIES_FROM + 1).await;
    let killed = Pid::from_raw(spawner(&fixture).unwrap()).unwrap();
    kill_process(killed, Signal::KILL).unwrap();
    let successor = loop {
        match spawner(&fixture) {
            Some(spawner) if spawner != killed.as_raw_nonzero().get() => break spawner,
            _ => tokio::task::yield_now().await,
        }
    };
    sandboxes.extend(create(&fixture.runtime, 1).await);
    assert_eq!(copies(&fixture), 2);
    assert_eq!(spawner(&fixture), Some(successor));
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_spawner_that_stands_still_is_done_without_and_cannot_go_on_later() {
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, COPIES_FROM + 1).await;
    let stopped = Pid::from_raw(spawner(&fixture).unwrap()).unwrap();
    kill_process(stopped, Signal::STOP).unwrap();
    sandboxes.extend(create(&fixture.runtime, 1).await);
    assert_eq!(kill_process(stopped, Signal::CONT), Err(Errno::SRCH));
    assert_eq!(our_children("spawner", &fixture), Vec::<i32>::new());
    assert_eq!(our_children("supervise", &fixture).len(), sandboxes.len());
    assert_eq!(copies(&fixture), 1);
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Carries an order to a real spawner and keeps the answer, as if that had been killed between the
/// two. What it writes would be taken for a supervisor's words by whoever reads there.
const MUTE: &str = r#"
import os, socket, sys
place, program, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
asked = socket.socket(fileno=os.dup(0))
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if os.fork():
    os.dup2(theirs.fileno(), 0)
    os.close(os.open(place + "/begun", os.O_WRONLY))
    os.execv(program, [program] + arguments)
os.close(0)
theirs.close()
order, descriptors, _, _ = socket.recv_fds(asked, 1 << 17, 3)
os.write(descriptors[1], b"no word of a supervisor\n")
socket.send_fds(ours, [order], descriptors)
for descriptor in descriptors:
    os.close(descriptor)
answer = int.from_bytes(ours.recv(4), sys.byteorder, signed=True)
with open(place + "/copy", "w") as file:
    file.write(str(answer))
asked.recv(1)
"#;

/// A runtime whose spawner never answers.
fn mute(place: &TempDir, lifetime: ServerLifetime) -> Fixture<NativeRuntime> {
    let place = place.path();
    fs::write(place.join("mute.py"), MUTE).unwrap();
    let spawner = "exec python3 -I \"$place/mute.py\" \"$place\" \"$program\" \"$@\"";
    fixture::native_by(LocalOptions {
        program: program_with(place, spawner),
        lifetime,
        ..fixture::local_options()
    })
}

#[tokio::test]
async fn a_copy_that_nobody_was_told_of_is_ended_and_has_no_part_in_what_is_started_instead() {
    let kept = ServerLifetime::KeptAlive { idle_timeout: None };
    for lifetime in [ServerLifetime::WithUs, kept] {
        let place = tempfile::tempdir().unwrap();
        let fixture = mute(&place, lifetime);
        let mut sandboxes = create(&fixture.runtime, COPIES_FROM).await;
        await_beginning(&place);
        sandboxes.extend(create(&fixture.runtime, 1).await);
        let copy = fs::read_to_string(place.path().join("copy")).unwrap();
        let copy: i32 = copy.parse().unwrap();
        assert!(copy > 0, "{copy}");
        assert!(Process::read(copy).is_err(), "{:?}", Process::read(copy));
        assert_eq!(our_children("spawner", &fixture), Vec::<i32>::new());
        assert_eq!(copies(&fixture), 0);
        close(sandboxes).await;
        assert_eq!(fixture.leftovers(), [""; 0]);
    }
}
