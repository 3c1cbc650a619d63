//! `local`: the conformance suite, and what only it promises.

use std::{fs, path::Path, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{io::AsyncReadExt as _, net::unix::pipe, process::Command};
use zareba_protocol::{Action, ErrorClass, RunCommand, RuntimeStatus};
use zareba_runtime::{Capabilities, Isolation, Runtime as _, RuntimeError, Support};
use zareba_runtime_native::{LocalOptions, LocalRuntime};
use zareba_testkit::traces;

use crate::fixture::{self, Fixture, output, spec, spec_with_statuses, told};

async fn make() -> Fixture<LocalRuntime> {
    fixture::local()
}

zareba_testkit::conformance_suite!(make);

#[tokio::test]
async fn it_promises_no_more_than_it_can() {
    let expected = Capabilities {
        isolation: Isolation::None,
        pause: Support::No,
        checkpoint: Support::No,
        attach: Support::Yes,
        changes: Support::No,
    };
    assert_eq!(fixture::local().runtime.capabilities(), expected);
}

#[tokio::test]
async fn shells_do_not_see_the_key_and_others_cannot_enter() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = fixture::local();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let shown = output(&*sandbox, "env | grep -e '^SESSION_API_KEY=' -e '^ZAREBA_'").await;
    assert_eq!(shown, format!("ZAREBA_EXECUTOR_SANDBOX={}", sandbox.id()));
    let place = fixture
        .state
        .path()
        .join("local")
        .join(sandbox.id().as_str());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&place), mode(&place.join("server.json"))),
        (0o700, 0o600)
    );
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn a_lost_executor_is_noticed_and_leaves_nothing() {
    let fixture = fixture::local();
    let (spec, mut statuses) = spec_with_statuses();
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    told(&mut statuses, RuntimeStatus::Ready).await;
    let pid = executor_of(&fixture, sandbox.id().as_str());
    kill_process(pid, Signal::KILL).unwrap();
    told(&mut statuses, RuntimeStatus::RuntimeDisconnected).await;
    assert_eq!(sandbox.status(), RuntimeStatus::RuntimeDisconnected);
    // Reaped: not even a zombie has the number.
    assert!(!Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists());
    let action = Action::Run(RunCommand::new("true"));
    let error = sandbox.run_action(action.into()).await.unwrap_err();
    assert!(
        matches!(&error, RuntimeError::Disconnected { sandbox: lost, .. } if lost == sandbox.id())
    );
    assert_eq!(error.class(), ErrorClass::Disconnected);
    sandbox.close().await.unwrap();
    told(&mut statuses, RuntimeStatus::Stopped).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn an_action_under_way_is_told_that_its_executor_is_lost() {
    let fixture = fixture::local();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let pid = executor_of(&fixture, sandbox.id().as_str());
    let command = format!("kill -9 {}; sleep 1000", pid.as_raw_nonzero());
    let action = Action::Run(RunCommand::new(command));
    let error = sandbox.run_action(action.into()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Disconnected);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_given_up_create_leaves_nothing() {
    let fixture = fixture::local();
    let (spec, mut statuses) = spec_with_statuses();
    let mut create = fixture.runtime.create(spec);
    loop {
        tokio::select! {
            biased;
            _ = &mut create => panic!("ready before it was said to be started"),
            status = statuses.recv() => {
                if status == Some(RuntimeStatus::RuntimeStarted) {
                    break;
                }
            }
        }
    }
    drop(create);
    told(&mut statuses, RuntimeStatus::Stopped).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_program_that_does_not_start_is_named() {
    let fixture = fixture::local_with(LocalOptions {
        program: "/nowhere/zareba".into(),
        ..fixture::local_options()
    });
    let (spec, mut statuses) = spec_with_statuses();
    let error = fixture.runtime.create(spec).await.err().unwrap();
    assert_eq!(
        error.to_string(),
        "cannot start a sandbox with the runtime `local`"
    );
    let cause = std::error::Error::source(&error).unwrap();
    assert_eq!(cause.to_string(), "cannot start `/nowhere/zareba`");
    let mut all = Vec::new();
    while let Some(status) = statuses.recv().await {
        all.push(status);
    }
    assert_eq!(all, [RuntimeStatus::StartingRuntime, RuntimeStatus::Error]);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[test]
fn the_end_of_the_async_runtime_takes_everything_along() {
    let fixture = fixture::local();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sandbox = runtime.block_on(async {
        let sandbox = fixture.runtime.create(spec()).await.unwrap();
        output(&*sandbox, "sleep 1000 &").await;
        sandbox
    });
    drop(runtime);
    assert_eq!(fixture.leftovers(), [""; 0]);
    drop(sandbox);
}

#[tokio::test]
async fn an_executor_ends_with_its_owner_even_if_that_is_killed() {
    let place = fixture::state();
    let begun = place.path().join("begun");
    let made = Command::new("mkfifo").arg(&begun).status().await.unwrap();
    assert!(made.success());
    // Open for both, so that it has no end while nobody writes.
    let mut signal = pipe::OpenOptions::new()
        .read_write(true)
        .open_receiver(&begun)
        .unwrap();
    let mut owner = Command::new(fixture::program())
        .args(["run", "--", "sh", "-c", "echo begun > \"$0\"; sleep 1000"])
        .arg(&begun)
        .env("ZAREBA_RUNTIME_KIND", "local")
        .env("ZAREBA_STATE_DIRECTORY", place.path())
        .env_remove("ZAREBA_BIN")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = [0; "begun\n".len()];
    tokio::select! {
        ended = owner.wait() => panic!("it ended before it began: {ended:?}"),
        read = signal.read_exact(&mut line) => read.map(drop).unwrap(),
    }
    assert_eq!(&line, b"begun\n");
    owner.kill().await.unwrap();
    assert_eq!(
        traces::processes(&place.path().display().to_string()),
        [""; 0]
    );

    // What it could not remove itself, the next one does.
    let next = LocalRuntime::new(fixture::options(&place), fixture::local_options());
    assert_eq!(next.reap().await.unwrap(), 1);
    let local = place.path().join("local");
    assert_eq!(
        traces::entries(&local),
        [local.join(".lock").display().to_string()]
    );
}

/// The process of a sandbox's executor, as it was written down.
fn executor_of(fixture: &Fixture<LocalRuntime>, sandbox: &str) -> Pid {
    let record = fixture
        .state
        .path()
        .join("local")
        .join(sandbox)
        .join("server.json");
    let record = fs::read_to_string(record).unwrap();
    let (_, rest) = record.split_once("\"pid\":").unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}
