//! Finding processes again, and their ends.

use std::process::{Child, Command, Stdio};

use super::*;

fn sleeper() -> ServerProcess {
    let child = Command::new("sleep").arg("1000").spawn().unwrap();
    adopt(child)
}

fn adopt(child: Child) -> ServerProcess {
    ServerProcess::adopt(child.id().try_into().unwrap()).unwrap()
}

#[tokio::test]
async fn a_number_with_another_start_time_is_another_process() {
    let process = sleeper();
    let identity = process.identity().clone();
    assert!(ServerProcess::find(&identity).is_some());
    let reused = ProcessIdentity {
        start_time: identity.start_time + 1,
        ..identity.clone()
    };
    assert!(ServerProcess::find(&reused).is_none());
    let before_the_boot = ProcessIdentity {
        boot: "another".to_owned(),
        ..identity.clone()
    };
    assert!(ServerProcess::find(&before_the_boot).is_none());
    process.terminate();
    process.end().await;
    assert!(ServerProcess::find(&identity).is_none());
}

#[tokio::test]
async fn an_end_is_noticed_by_all_who_wait_and_leaves_no_zombie() {
    let process = sleeper();
    let pid = process.identity().pid;
    tokio::join!(process.ended(), process.ended(), async {
        process.terminate()
    });
    assert!(process.has_ended());
    assert!(Process::read(pid).is_err());
}

#[tokio::test]
async fn what_started_sessions_of_its_own_is_killed_with_it() {
    let mut child = Command::new("sh");
    child
        .args(["-c", "setsid sh -c 'echo; sleep 1000 & wait' & wait"])
        .stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut output = io::BufReader::new(child.stdout.take().unwrap());
    io::BufRead::read_line(&mut output, &mut String::new()).unwrap();
    let process = adopt(child);
    process.kill();
    process.ended().await;
    // All that held the pipe are dead when it ends.
    let mut rest = String::new();
    io::Read::read_to_string(&mut output, &mut rest).unwrap();
    assert_eq!(rest, "");
}
