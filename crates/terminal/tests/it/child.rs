//! How programs end, and what ends with them.

use std::{fs::File, io::Read as _, time::Duration};

use tokio::time::timeout;
use zareba_terminal::{Child, ExitReason, ExtraFd, Pty};

use crate::{LONG, SIZE, screen, script, see};

/// A pipe whose reading end comes to its end when no process has the other one open: that is
/// when everything that `text` started is gone.
struct Tracked {
    pty: Pty,
    child: Child,
    life: File,
}

fn tracked(text: &str) -> Tracked {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut spawn = script(text);
    spawn.extra = vec![ExtraFd {
        descriptor: writer,
        number: 9,
    }];
    let pty = Pty::open(SIZE).unwrap();
    let child = spawn.on(&pty).unwrap();
    Tracked {
        pty,
        child,
        life: File::from(reader),
    }
}

async fn all_gone(mut life: File) {
    let end = tokio::task::spawn_blocking(move || life.read_to_end(&mut Vec::new()).unwrap());
    assert_eq!(
        timeout(LONG, end)
            .await
            .expect("a process lives on")
            .unwrap(),
        0
    );
}

#[tokio::test]
async fn an_end_is_told_with_its_reason() {
    let cases = [
        ("exit 0", ExitReason::Code(0), 0),
        ("exit 77", ExitReason::Code(77), 77),
        ("kill -9 $$", ExitReason::Signal(9), 137),
        ("kill -SEGV $$", ExitReason::Signal(11), 139),
    ];
    for (text, reason, status) in cases {
        let pty = Pty::open(SIZE).unwrap();
        let mut child = script(text).on(&pty).unwrap();
        assert_eq!(
            timeout(LONG, child.wait()).await.unwrap().unwrap(),
            reason,
            "{text}"
        );
        assert_eq!(reason.shell_status(), status);
        assert_eq!(child.wait().await.unwrap(), reason, "the second time");
        assert_eq!(child.try_wait().unwrap(), Some(reason));
    }
}

#[tokio::test]
async fn a_wait_may_be_given_up_and_taken_up_again() {
    let pty = Pty::open(SIZE).unwrap();
    let mut child = script("read line; exit 5").on(&pty).unwrap();
    assert!(
        timeout(Duration::from_millis(20), child.wait())
            .await
            .is_err()
    );
    assert_eq!(child.try_wait().unwrap(), None);
    pty.write(b"\r").unwrap();
    assert_eq!(
        timeout(LONG, child.wait()).await.unwrap().unwrap(),
        ExitReason::Code(5)
    );
}

#[tokio::test]
async fn dropping_a_program_ends_everything_in_its_session() {
    let jobs = "set -m; sleep 1000 & (trap '' HUP INT TERM; sleep 1001) & nohup sleep 1002 >/dev/null & echo ready; cat";
    let Tracked { pty, child, life } = tracked(jobs);
    see(&pty, &mut screen(), "ready").await;
    drop(child);
    all_gone(life).await;
}

#[tokio::test]
async fn a_program_that_is_stopped_is_ended_too() {
    let Tracked { pty, child, life } = tracked("echo ready; kill -STOP $$");
    see(&pty, &mut screen(), "ready").await;
    drop(child);
    all_gone(life).await;
}

#[tokio::test]
async fn a_program_that_stopped_itself_goes_on_when_told_and_others_do_not_notice() {
    let pty = Pty::open(SIZE).unwrap();
    let mut child = script(
        "trap 'echo continued' CONT; echo ready; read line; kill -STOP $$; read line; exit 4",
    )
    .on(&pty)
    .unwrap();
    let mut screen = screen();
    see(&pty, &mut screen, "ready").await;
    child.resume_if_stopped();
    pty.write(b"stop\r").unwrap();
    assert_eq!(see(&pty, &mut screen, "stop").await, "ready\nstop");
    while !std::fs::read_to_string(format!("/proc/{}/stat", child.pid()))
        .unwrap()
        .contains(") T ")
    {
        tokio::task::yield_now().await;
    }
    child.resume_if_stopped();
    assert_eq!(
        see(&pty, &mut screen, "continued").await,
        "ready\nstop\ncontinued"
    );
    pty.write(b"\r").unwrap();
    assert_eq!(
        timeout(LONG, child.wait()).await.unwrap().unwrap(),
        ExitReason::Code(4)
    );
}

#[tokio::test]
async fn company_that_is_left_is_known_and_can_be_ended() {
    let Tracked {
        pty: _pty,
        mut child,
        life,
    } = tracked("trap '' HUP; sleep 1000 </dev/null >/dev/null 2>&1 & exit 3");
    assert_eq!(
        timeout(LONG, child.wait()).await.unwrap().unwrap(),
        ExitReason::Code(3)
    );
    assert!(child.has_company());
    child.kill_session();
    all_gone(life).await;
}

#[tokio::test]
async fn nobody_else_is_harmed() {
    let pty = Pty::open(SIZE).unwrap();
    let mut bystander = script("read line; exit 8").on(&pty).unwrap();
    let Tracked {
        pty: _pty,
        child,
        life,
    } = tracked("sleep 1000");
    drop(child);
    all_gone(life).await;
    pty.write(b"\r").unwrap();
    assert_eq!(
        timeout(LONG, bystander.wait()).await.unwrap().unwrap(),
        ExitReason::Code(8)
    );
}

#[tokio::test]
async fn no_zombie_stays_behind() {
    let pty = Pty::open(SIZE).unwrap();
    let child = script("exit 0").on(&pty).unwrap();
    let place = format!("/proc/{}", child.pid());
    drop(child);
    assert!(!std::path::Path::new(&place).exists());
}
