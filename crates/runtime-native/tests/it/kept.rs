//! Executors that outlive the process that started them.

use std::{sync::Arc, time::Duration};

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{Runtime as _, SandboxId};
use zareba_runtime_native::{LocalOptions, LocalRuntime, ServerLifetime};

use crate::fixture::{self, Fixture, output, spec, spec_with_statuses, told};

fn kept(idle_timeout: Option<Duration>) -> LocalOptions {
    LocalOptions {
        lifetime: ServerLifetime::KeptAlive { idle_timeout },
        ..fixture::local_options()
    }
}

/// Makes a sandbox with some state in an async runtime of its own, which is gone afterwards like
/// the process that it stands for, and returns a second runtime on the same state.
async fn abandoned(idle_timeout: Option<Duration>) -> (Fixture<LocalRuntime>, SandboxId) {
    let state = fixture::state();
    let place = Arc::clone(&state);
    let first = move || {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let fixture = fixture::local_in(place, kept(idle_timeout));
            let sandbox = fixture.runtime.create(spec()).await.unwrap();
            output(&*sandbox, "A=kept; echo content > file").await;
            sandbox.id().clone()
        })
    };
    let id = tokio::task::spawn_blocking(first).await.unwrap();
    (fixture::local_in(state, kept(idle_timeout)), id)
}

#[tokio::test]
async fn one_is_found_again_with_its_state_until_it_is_closed() {
    let (fixture, id) = abandoned(None).await;
    assert_eq!(fixture.runtime.reap().await.unwrap(), 0);
    let sandbox = fixture.runtime.attach(&id).await.unwrap();
    assert_eq!(
        output(&*sandbox, "echo $A; cat file").await,
        "kept\ncontent"
    );
    drop(sandbox);
    let sandbox = fixture.runtime.attach(&id).await.unwrap();
    assert_eq!(output(&*sandbox, "echo $A").await, "kept");
    sandbox.close().await.unwrap();
    assert_eq!(sandbox.status(), RuntimeStatus::Stopped);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn one_that_nobody_used_for_too_long_is_ended() {
    let (fixture, id) = abandoned(Some(Duration::ZERO)).await;
    assert_eq!(fixture.runtime.reap().await.unwrap(), 1);
    assert!(fixture.runtime.attach(&id).await.is_err());
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn one_that_is_in_use_is_not_idle() {
    let (fixture, id) = abandoned(Some(Duration::from_secs(3600))).await;
    assert_eq!(fixture.runtime.reap().await.unwrap(), 0);
    let sandbox = fixture.runtime.attach(&id).await.unwrap();
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[test]
fn one_outlives_the_async_runtime_that_started_it() {
    let state = fixture::state();
    let first = tokio::runtime::Runtime::new().unwrap();
    let sandbox = first.block_on(async {
        let fixture = fixture::local_in(Arc::clone(&state), kept(None));
        fixture.runtime.create(spec()).await.unwrap()
    });
    let id = sandbox.id().clone();
    drop(first);
    drop(sandbox);
    let second = tokio::runtime::Runtime::new().unwrap();
    second.block_on(async {
        let fixture = fixture::local_in(Arc::clone(&state), kept(None));
        let sandbox = fixture.runtime.attach(&id).await.unwrap();
        assert_eq!(output(&*sandbox, "echo here").await, "here");
        sandbox.close().await.unwrap();
    });
    assert_eq!(fixture::leftovers(&state), [""; 0]);
}

#[tokio::test]
async fn its_owner_is_told_when_another_closes_it() {
    let fixture = fixture::local_with(kept(None));
    let (spec, mut statuses) = spec_with_statuses();
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    let other = fixture::local_in(Arc::clone(&fixture.state), kept(None));
    let found = other.runtime.attach(sandbox.id()).await.unwrap();
    found.close().await.unwrap();
    told(&mut statuses, RuntimeStatus::RuntimeDisconnected).await;
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}
