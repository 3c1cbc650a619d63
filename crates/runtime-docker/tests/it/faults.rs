//! What goes wrong, and what is said and left then (DK-7, DK-8).

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use zareba_protocol::{Action, ErrorClass, LimitKind, ObservationKind, RunCommand, RuntimeStatus};
use zareba_runtime::{Runtime as _, RuntimeError, Sandbox, SandboxSpec};
use zareba_runtime_docker::{
    DockerRuntime, EngineAddress, EngineError, EngineFault, ExitReason, NetworkChoice, PortChoice,
    PortRequest, Reach,
};

use crate::{
    engine::OwnEngine,
    fixture::{
        BUSYBOX, DEBIAN, container, fixture, fixture_with, options, output, run, spec,
        spec_with_statuses, state, told,
    },
};

/// Why the Engine failed, from whichever error it is in.
pub(crate) fn engine_fault(error: &RuntimeError) -> Option<EngineFault> {
    let mut current: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = current {
        if let Some(error) = error.downcast_ref::<EngineError>() {
            return Some(error.fault);
        }
        current = error.source();
    }
    None
}

/// Why a sandbox that was lost is gone.
fn exit_reason(error: &RuntimeError) -> Option<ExitReason> {
    assert_eq!(error.class(), ErrorClass::Disconnected, "{error}");
    let RuntimeError::Disconnected { source, .. } = error else {
        return None;
    };
    source.as_ref()?.downcast_ref().copied()
}

async fn failure(sandbox: &dyn Sandbox) -> RuntimeError {
    sandbox.list_files(None).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_or_removed_container_is_noticed_within_a_second_dk_8() {
    let fixture = fixture(BUSYBOX);
    for (arguments, reason) in [
        (&["kill"][..], ExitReason::Signal(9)),
        (&["rm", "--force"], ExitReason::Removed),
    ] {
        let (spec, mut statuses) = spec_with_statuses();
        let sandbox = fixture.runtime.create(spec).await.unwrap();
        told(&mut statuses, RuntimeStatus::Ready).await;
        let name = container(&*sandbox);
        let mut arguments = arguments.to_vec();
        arguments.push(&name);
        fixture.docker(&arguments);
        let ended = Instant::now();
        told(&mut statuses, RuntimeStatus::RuntimeDisconnected).await;
        assert!(ended.elapsed() < Duration::from_secs(1));
        let found = exit_reason(&failure(&*sandbox).await);
        // Removing by force kills first.
        let killed = Some(ExitReason::Signal(9));
        assert!(found == Some(reason) || found == killed, "{found:?}");
        sandbox.close().await.unwrap();
        assert_eq!(fixture.leftovers(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_under_way_ends_when_its_container_does() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    output(&*sandbox, "mkfifo begun").await;
    let name = container(&*sandbox);
    let asked = std::sync::Arc::clone(&sandbox);
    let under_way = tokio::spawn(async move {
        let command = RunCommand::new("echo yes > begun; sleep 1000");
        asked.run_action(Action::Run(command).into()).await
    });
    let other = zareba_protocol::ShellName::new("other").unwrap();
    let cat = zareba_protocol::ActionEvent::from(Action::Run(RunCommand::new("cat begun")));
    sandbox.run_action(cat.with_shell(other)).await.unwrap();
    fixture.docker(&["kill", &name]);
    let error = under_way.await.unwrap().unwrap_err();
    assert_eq!(error.class(), ErrorClass::Disconnected);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_out_of_memory_costs_a_command_and_not_the_sandbox_dk_8() {
    let fixture = fixture_with(DEBIAN, |options| options.usage.memory_bytes = 96 << 20);
    let sandbox = fixture.sandbox().await;
    let greedy = RunCommand {
        blocking: true,
        ..RunCommand::new("python3 -c 'x = bytearray(400 << 20)'")
    };
    let answer = sandbox
        .run_action(Action::Run(greedy).into())
        .await
        .unwrap();
    let ObservationKind::Run(output_of) = answer.observation.kind else {
        panic!("{:?}", answer.observation);
    };
    assert_eq!(output_of.metadata.exit_code, 137);
    let limits: Vec<LimitKind> = output_of.metadata.limits.iter().map(|it| it.kind).collect();
    assert_eq!(limits, [LimitKind::OomKilled]);
    assert_eq!(output(&*sandbox, "echo unharmed").await, "unharmed");
    // One that kills itself was not short of memory.
    let (code, said) = run(&*sandbox, "sh -c 'kill -9 $$'").await;
    assert_eq!((code, said.contains("Limit")), (137, false));
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_missing_or_not_allowed_is_told() {
    let missing = fixture("zareba-test/none");
    let error = missing.runtime.create(spec()).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::NotFound);
    assert_eq!(error.to_string(), "cannot use the image `zareba-test/none`");
    assert_eq!(missing.leftovers(), [""; 0]);

    let picky = fixture_with(BUSYBOX, |options| {
        options.allowed.images = Some(vec!["zareba-test/b*".to_owned()]);
    });
    let error = picky.runtime.create(SandboxSpec {
        image: Some(DEBIAN.to_owned()),
        ..spec()
    });
    let error = error.await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Permission);
    picky.sandbox().await.close().await.unwrap();
    assert_eq!(picky.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_is_missing_is_told() {
    let fixture = fixture_with(BUSYBOX, |options| {
        options.network = NetworkChoice::Named("nowhere".to_owned());
    });
    let error = fixture.runtime.create(spec()).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(fixture.leftovers(), [""; 0]);

    let also = fixture_with(BUSYBOX, |options| {
        options.network = NetworkChoice::Own(Reach::Inside);
        options.additional_networks = vec!["nowhere".to_owned()];
    });
    let error = also.runtime.create(spec()).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert_eq!(also.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let outside = taken.local_addr().unwrap().port();
    let fixture = fixture_with(BUSYBOX, |options| {
        options.network = NetworkChoice::Own(Reach::Everywhere);
        options.ports = vec![PortRequest {
            choice: PortChoice::Fixed {
                inside: 8000,
                outside,
            },
            variable: None,
        }];
    });
    let error = fixture.runtime.create(spec()).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Busy);
    assert_eq!(fixture.leftovers(), [""; 0]);
    drop(taken);
    let sandbox = fixture.sandbox().await;
    assert_eq!(sandbox.ports()[0].outside.port(), outside);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_static_is_refused_before_anything_is_made() {
    let fixture = fixture_with(BUSYBOX, |options| options.program = "/bin/sh".into());
    let error = fixture.runtime.create(spec()).await.err().unwrap();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("asks for a dynamic linker"), "{reason}");
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_no_executor_ends_the_attempt() {
    let fixture = fixture_with(BUSYBOX, |options| options.program = "/bin/busybox".into());
    let error = fixture.runtime.create(spec()).await.err().unwrap();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("ended before it was ready"), "{reason}");
    assert!(reason.contains("exit code"), "{reason}");
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_engine_is_told_with_what_to_do() {
    let state = state();
    let mut options = options(&state, BUSYBOX);
    options.engine = EngineAddress::Unix("/nowhere/docker.sock".into());
    let runtime = DockerRuntime::new(options).unwrap();
    let error = runtime.create(spec()).await.err().unwrap();
    assert_eq!(engine_fault(&error), Some(EngineFault::Unreachable));
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.ends_with("is it running?"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_stopped_and_started_under_load_dk_7() {
    let mut engine = OwnEngine::start();
    let fixture = fixture_with(BUSYBOX, |options| options.engine = engine.address());
    let (spec_told, mut statuses) = spec_with_statuses();
    let sandbox = fixture.runtime.create(spec_told).await.unwrap();
    let busy = std::sync::Arc::clone(&sandbox);
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let mut begun = Some(begun);
    let load = tokio::spawn(async move {
        // Until the sandbox goes, each action is answered.
        loop {
            let command = Action::Run(RunCommand::new("echo x"));
            match busy.run_action(command.into()).await {
                Ok(_) => drop(begun.take().map(|begun| begun.send(()))),
                Err(error) => return error,
            }
        }
    });
    has_begun.await.unwrap();
    engine.stop();
    let error = load.await.unwrap();
    assert_eq!(error.class(), ErrorClass::Disconnected, "{error}");
    let refused = fixture.runtime.create(spec()).await.err().unwrap();
    assert_eq!(engine_fault(&refused), Some(EngineFault::Unreachable));
    engine.restart();
    told(&mut statuses, RuntimeStatus::RuntimeDisconnected).await;
    sandbox.close().await.unwrap();
    let again = fixture.sandbox().await;
    assert_eq!(output(&*again, "echo back").await, "back");
    again.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_is_closed_while_the_engine_is_away_is_removed_later_dk_7() {
    let mut engine = OwnEngine::start();
    let fixture = fixture_with(BUSYBOX, |options| options.engine = engine.address());
    let sandbox = fixture.sandbox().await;
    engine.stop();
    let error = sandbox.close().await.unwrap_err();
    assert_eq!(engine_fault(&error), Some(EngineFault::Unreachable));
    sandbox.close().await.unwrap();
    engine.restart();
    assert_ne!(fixture.leftovers(), [""; 0]);
    assert_eq!(fixture.runtime.reap().await.unwrap(), 1);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_and_nothing_is_left() {
    let engine = OwnEngine::start_with_disk(48 << 20);
    let fixture = fixture_with(BUSYBOX, |options| options.engine = engine.address());
    engine.fill_disk();
    let error = fixture.runtime.create(spec()).await.err().unwrap();
    assert_eq!(
        engine_fault(&error),
        Some(EngineFault::NoSpace),
        "{error:?}"
    );
    engine.free_disk();
    assert_eq!(fixture.leftovers(), [""; 0]);
    let sandbox = fixture.sandbox().await;
    assert_eq!(output(&*sandbox, "echo fits").await, "fits");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}
