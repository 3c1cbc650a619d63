//! `cli`: the conformance suite, and what only it promises.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc};

use zareba_protocol::{Action, RunCommand};
use zareba_runtime::{Capabilities, Isolation, Runtime as _, SandboxSpec, Support};
use zareba_runtime_native::CliRuntime;
use zareba_wire::variables::VariableChanges;

use crate::fixture::{self, Fixture, output, spec};

async fn make() -> Fixture<CliRuntime> {
    fixture::cli()
}

zareba_testkit::conformance_suite!(make);

#[tokio::test]
async fn it_promises_no_more_than_it_can() {
    let expected = Capabilities {
        isolation: Isolation::None,
        pause: Support::No,
        checkpoint: Support::No,
        attach: Support::No,
        changes: Support::No,
    };
    assert_eq!(fixture::cli().runtime.capabilities(), expected);
}

#[tokio::test]
async fn what_a_killed_process_left_is_removed_by_the_next() {
    let fixture = fixture::cli();
    let left = fixture.state.path().join("cli/cli-0000000000000000");
    fs::create_dir_all(left.join("workspace/deep")).unwrap();
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(fixture.state.path().join("cli"), private).unwrap();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    assert!(!left.exists());
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_given_up_create_leaves_nothing() {
    let fixture = fixture::cli();
    let mut create = fixture.runtime.create(spec());
    let polled = tokio::select! {
        biased;
        created = &mut create => created.is_ok(),
        () = std::future::ready(()) => true,
    };
    assert!(polled);
    drop(create);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn variables_never_go_to_the_start_up_file_of_the_user() {
    let home = tempfile::tempdir().unwrap();
    let start_up = home.path().join(".bashrc");
    let before = "# mine\nexport TOKEN=old\n";
    fs::write(&start_up, before).unwrap();
    let fixture = fixture::cli();
    let with_home = SandboxSpec {
        environment: vec![("HOME".to_owned(), home.path().display().to_string())],
        ..spec()
    };
    let sandbox = fixture.runtime.create(with_home).await.unwrap();
    let pairs = vec![("TOKEN".to_owned(), "$a 'b'\nc".to_owned())];
    let changes = VariableChanges::set(pairs).unwrap();
    sandbox.set_variables(changes).await.unwrap();
    assert_eq!(output(&*sandbox, "echo \"$TOKEN\"").await, "$a 'b'\nc");
    sandbox.close().await.unwrap();
    assert_eq!(fs::read_to_string(&start_up).unwrap(), before);
}

#[tokio::test]
async fn closing_does_not_wait_for_a_future_that_nobody_polls() {
    let fixture = fixture::cli();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let held = Arc::clone(&sandbox);
    let action = Action::Run(RunCommand::new("sleep 1000"));
    let mut waits = held.run_action(action.into());
    let begun = tokio::select! {
        biased;
        _ = &mut waits => false,
        () = std::future::ready(()) => true,
    };
    assert!(begun);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
    assert!(waits.await.is_err());
}
