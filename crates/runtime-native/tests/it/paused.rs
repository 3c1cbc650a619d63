//! Pausing, resuming and ending a `native` sandbox.

use std::time::Duration;

use zareba_runtime::{Runtime as _, RuntimeError, SandboxState};

use crate::fixture::{self, output, spec};

/// Something that shows whether time passes inside.
const TICKS: &str = "(while :; do echo tick >> ticks; sleep 0.01; done) &";

#[tokio::test]
async fn a_paused_sandbox_stands_still_and_goes_on_where_it_was_sn_3() {
    let fixture = fixture::native();
    let workspace = tempfile::tempdir().unwrap();
    let spec = zareba_runtime::SandboxSpec {
        workspace: Some(workspace.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    output(&*sandbox, TICKS).await;
    let ticks = || std::fs::read(workspace.path().join("ticks")).map_or(0, |ticks| ticks.len());
    output(&*sandbox, "until [ -s ticks ]; do sleep 0.01; done").await;
    sandbox.pause().await.unwrap();
    let paused_at = ticks();
    let refused = sandbox.list_files(None).await;
    assert!(
        matches!(refused, Err(RuntimeError::Paused { .. })),
        "{refused:?}"
    );
    let listed = fixture.runtime.list().await.unwrap();
    assert_eq!(listed[0].state, SandboxState::Paused);
    // Pausing twice changes nothing.
    sandbox.pause().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(ticks(), paused_at);
    sandbox.resume().await.unwrap();
    sandbox.resume().await.unwrap();
    let more =
        format!("until [ $(stat -c %s ticks) -gt {paused_at} ]; do sleep 0.01; done; echo on");
    assert_eq!(output(&*sandbox, &more).await, "on");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_command_that_was_paused_ends_as_if_nothing_had_happened() {
    let fixture = fixture::native();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    output(&*sandbox, "mkfifo door").await;
    let running = output(&*sandbox, "echo in > started; cat door; echo done");
    let pausing = async {
        let other = "until [ -e started ]; do sleep 0.01; done";
        crate::fixture::output_in(&*sandbox, "other", other).await;
        for _ in 0..3 {
            sandbox.pause().await.unwrap();
            sandbox.resume().await.unwrap();
        }
        crate::fixture::output_in(&*sandbox, "other", "echo through > door").await
    };
    let (ended, _) = tokio::join!(running, pausing);
    assert_eq!(ended, "through\ndone");
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn two_hundred_processes_are_gone_with_the_sandbox_also_when_paused_ns_20() {
    for paused in [false, true] {
        let fixture = fixture::native();
        let sandbox = fixture.runtime.create(spec()).await.unwrap();
        let crowd = "(for n in $(seq 200); do setsid tail -f /dev/null & done); \
                     until [ $(pgrep -xc tail) = 200 ]; do :; done; echo all";
        assert_eq!(output(&*sandbox, crowd).await, "all");
        if paused {
            sandbox.pause().await.unwrap();
        }
        sandbox.close().await.unwrap();
        assert_eq!(fixture.leftovers(), [""; 0]);
    }
}

#[tokio::test]
async fn a_name_is_taken_as_it_is_given_and_only_once() {
    let fixture = fixture::native();
    let named = || zareba_runtime::SandboxSpec {
        id: zareba_runtime::SandboxId::new("web"),
        ..spec()
    };
    let sandbox = fixture.runtime.create(named()).await.unwrap();
    assert_eq!(sandbox.id().as_str(), "web");
    let second = fixture.runtime.create(named()).await.err().unwrap();
    assert!(
        second
            .to_string()
            .contains("there is a sandbox `web` already"),
        "{second}"
    );
    assert_eq!(output(&*sandbox, "echo still here").await, "still here");
    sandbox.close().await.unwrap();
    let again = fixture.runtime.create(named()).await.unwrap();
    again.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_sandbox_that_does_not_answer_is_ended_by_its_name() {
    let fixture = fixture::native();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    // Its processes stand still, and so does its executor.
    sandbox.pause().await.unwrap();
    fixture.runtime.destroy(sandbox.id()).await.unwrap();
    assert_eq!(fixture.runtime.list().await.unwrap(), []);
    let again = fixture.runtime.destroy(sandbox.id()).await;
    assert!(
        matches!(again, Err(RuntimeError::NotFound { .. })),
        "{again:?}"
    );
    drop(sandbox);
    assert_eq!(fixture.leftovers(), [""; 0]);
}
