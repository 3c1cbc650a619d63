//! Executors that are started ahead.

use std::time::Duration;

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{PoolCounts, Runtime as _, SandboxSpec};
use zareba_runtime_native::{LocalOptions, LocalRuntime};

use crate::fixture::{self, Fixture, SILENCE, output, spec, spec_with_statuses, told};

fn warm(servers: usize) -> Fixture<LocalRuntime> {
    fixture::local_with(LocalOptions {
        warm_servers: servers,
        ..fixture::local_options()
    })
}

/// Ends what waits, and checks that nothing is left.
async fn done(fixture: Fixture<LocalRuntime>) {
    fixture.runtime.cool_down().await;
    assert_eq!(fixture.runtime.pool().unwrap().ready, 0);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_one_works_where_its_sandbox_says() {
    let fixture = warm(2);
    fixture.runtime.warm_up().await.unwrap();
    assert_eq!(
        fixture.runtime.pool().unwrap(),
        PoolCounts {
            ready: 2,
            ..PoolCounts::default()
        }
    );
    let (spec, mut statuses) = spec_with_statuses();
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    let told_so_far: Vec<_> = std::iter::from_fn(|| statuses.try_recv().ok()).collect();
    let expected = [
        RuntimeStatus::StartingRuntime,
        RuntimeStatus::RuntimeStarted,
        RuntimeStatus::Ready,
    ];
    assert_eq!(told_so_far, expected);
    assert_eq!(fixture.runtime.pool().unwrap().handed_out, 1);
    let workspace = sandbox.workspace().display().to_string();
    assert_eq!(output(&*sandbox, "pwd; ls -A").await, workspace);
    output(&*sandbox, "touch made").await;
    assert_eq!(sandbox.list_files(None).await.unwrap(), ["made"]);
    // Another takes its place.
    fixture.runtime.warm_up().await.unwrap();
    assert_eq!(fixture.runtime.pool().unwrap().ready, 2);
    sandbox.close().await.unwrap();
    told(&mut statuses, RuntimeStatus::Stopped).await;
    done(fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_with_wishes_of_its_own_starts_cold() {
    let fixture = warm(1);
    fixture.runtime.warm_up().await.unwrap();
    let here = tempfile::tempdir().unwrap();
    let wishes = [
        SandboxSpec {
            workspace: Some(here.path().to_owned()),
            ..spec()
        },
        SandboxSpec {
            environment: vec![("A".to_owned(), "1".to_owned())],
            ..spec()
        },
        SandboxSpec {
            no_change_timeout: SILENCE + Duration::from_secs(1),
            ..spec()
        },
    ];
    for (index, wish) in wishes.into_iter().enumerate() {
        let sandbox = fixture.runtime.create(wish).await.unwrap();
        let expected = PoolCounts {
            ready: 1,
            cold: index as u64 + 1,
            ..PoolCounts::default()
        };
        assert_eq!(fixture.runtime.pool().unwrap(), expected);
        let workspace = sandbox.workspace().display().to_string();
        assert_eq!(output(&*sandbox, "pwd").await, workspace);
        sandbox.close().await.unwrap();
    }
    done(fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_wait_are_never_more_than_asked_for() {
    let fixture = warm(2);
    let fill = || fixture.runtime.warm_up();
    tokio::try_join!(fill(), fill(), fill(), fill()).unwrap();
    assert_eq!(fixture.runtime.pool().unwrap().ready, 2);
    done(fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_name_was_told_is_kept_for_whoever_asks_for_it() {
    let fixture = warm(1);
    fixture.runtime.warm_up().await.unwrap();
    let name = fixture.runtime.reserve(&spec()).unwrap();
    assert_eq!(fixture.runtime.reserve(&spec()), None);
    let wish = SandboxSpec {
        id: Some(name.clone()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(wish).await.unwrap();
    assert_eq!(*sandbox.id(), name);
    assert_eq!(fixture.runtime.pool().unwrap().handed_out, 1);
    sandbox.close().await.unwrap();
    done(fixture).await;
}
