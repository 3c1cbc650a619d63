//! Programs with streams of their own, in this process, in a server and in a sandbox.

use std::time::Duration;

use tokio::time::timeout;
use zareba_protocol::ErrorClass;
use zareba_runtime::{Runtime, RuntimeError, Sandbox};
use zareba_wire::program::{
    ProgramEvent, ProgramEvents, ProgramExit, ProgramLine, ProgramRequest, ProgramStdin,
    StartFailure,
};

use crate::fixture::{self, Fixture, spec};

const PATIENCE: Duration = Duration::from_secs(30);

fn argv(words: &[&str]) -> ProgramRequest {
    let words = words.iter().map(|&word| word.to_owned());
    ProgramRequest {
        stdin: ProgramStdin::Open,
        ..ProgramRequest::new(ProgramLine::Argv(words.collect()))
    }
}

/// What a program writes until it ends, and how it does.
async fn rest(events: &mut ProgramEvents) -> (String, Option<ProgramEvent>) {
    let mut text = String::new();
    loop {
        match timeout(PATIENCE, events.next()).await.unwrap() {
            Some(ProgramEvent::Stdout(bytes)) => text.push_str(&String::from_utf8_lossy(&bytes)),
            other => return (text, other),
        }
    }
}

async fn carries_programs<R: Runtime>(fixture: Fixture<R>) {
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let program = sandbox.start_program(argv(&["sh", "-c", "cat; pwd; exit 4"]));
    let (input, mut events) = program.await.unwrap().split();
    input.write_stdin("typed\n".into()).await.unwrap();
    input.close_stdin().await.unwrap();
    let (text, end) = rest(&mut events).await;
    assert_eq!(text, format!("typed\n{}\n", sandbox.workspace().display()));
    assert_eq!(end, Some(ProgramEvent::Exit(ProgramExit::Code(4))));

    let missing = sandbox.start_program(argv(&["no-such-program"])).await;
    let missing = missing.unwrap_err();
    assert_eq!(missing.class(), ErrorClass::NotFound);
    assert!(
        matches!(&missing, RuntimeError::Program(error) if error.reason == StartFailure::NotFound),
        "{missing:?}"
    );
    ends_with(&*sandbox).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// A program that runs when its sandbox is closed ends with it.
async fn ends_with(sandbox: &dyn Sandbox) {
    let program = sandbox.start_program(argv(&["cat"])).await.unwrap();
    let (_input, mut events) = program.split();
    sandbox.close().await.unwrap();
    let (_, end) = rest(&mut events).await;
    assert!(
        !matches!(end, Some(ProgramEvent::Exit(ProgramExit::Code(_)))),
        "{end:?}"
    );
    let closed = sandbox.start_program(argv(&["cat"])).await.unwrap_err();
    assert!(matches!(closed, RuntimeError::Closed { .. }), "{closed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_run_in_this_process() {
    carries_programs(fixture::cli()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_run_in_a_server() {
    carries_programs(fixture::local()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_run_in_a_sandbox() {
    carries_programs(fixture::native()).await;
}
