//! Finding sandboxes again, keeping them, pausing them, and removing what is left of others.

use std::{sync::Arc, time::Duration};

use zareba_protocol::{ErrorClass, RuntimeStatus};
use zareba_runtime::{Runtime as _, SandboxId, SandboxSpec, SandboxState};
use zareba_runtime_docker::{DockerOptions, EngineAddress, Lifetime};

use crate::engine::OwnEngine;
use crate::fixture::{
    BUSYBOX, DEBIAN, container, fixture, fixture_in, fixture_with, output, spec,
    spec_with_statuses, told,
};

fn kept(options: &mut DockerOptions) {
    options.lifetime = Lifetime::KeptAlive { idle_timeout: None };
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_sandbox_outlives_its_handle_and_is_found_by_another_process() {
    let first = fixture_with(BUSYBOX, kept);
    let sandbox = first.sandbox().await;
    let id = sandbox.id().clone();
    output(&*sandbox, "A=kept; echo here > file").await;
    drop(sandbox);
    let state = Arc::clone(&first.state);
    drop(first);
    let second = fixture_in(state, BUSYBOX, kept);
    assert_eq!(second.runtime.reap().await.unwrap(), 0);
    let listed = second.runtime.list().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|it| (&it.id, it.state)).collect();
    assert_eq!(listed, [(&id, SandboxState::Running)]);
    let again = second.runtime.attach(&id).await.unwrap();
    assert_eq!(output(&*again, "echo $A; cat file").await, "kept\nhere");
    again.close().await.unwrap();
    assert_eq!(second.leftovers(), [""; 0]);
}

/// DK-6: whatever the moment, a sandbox that nobody got is not kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_leaves_nothing_of_a_sandbox_that_would_be_kept() {
    let fixture = fixture_with(BUSYBOX, kept);
    for moment in [
        RuntimeStatus::StartingRuntime,
        RuntimeStatus::RuntimeStarted,
        RuntimeStatus::Ready,
    ] {
        let (spec, mut statuses) = spec_with_statuses();
        let create = fixture.runtime.create(spec);
        tokio::select! {
            biased;
            () = told(&mut statuses, moment) => {}
            created = create => drop(created.unwrap().close().await),
        }
        // The last who could tell something is gone.
        while statuses.recv().await.is_some() {}
        assert_eq!(fixture.leftovers(), [""; 0], "{moment}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_sandbox_is_started_again_by_whoever_attaches() {
    let workspace = tempfile::tempdir().unwrap();
    let fixture = fixture_with(BUSYBOX, kept);
    let spec = SandboxSpec {
        workspace: Some(workspace.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    let id = sandbox.id().clone();
    output(&*sandbox, "echo here > file").await;
    fixture.runtime.stop(&id).await.unwrap();
    let listed = fixture.runtime.list().await.unwrap();
    assert_eq!(listed[0].state, SandboxState::Lost);
    let again = fixture.runtime.attach(&id).await.unwrap();
    assert_eq!(output(&*again, "cat file").await, "here");
    again.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_sandbox_is_reaped_and_a_busy_one_is_not() {
    let idle = |timeout| {
        move |options: &mut DockerOptions| {
            options.lifetime = Lifetime::KeptAlive {
                idle_timeout: Some(timeout),
            };
        }
    };
    let busy = fixture_with(BUSYBOX, idle(Duration::from_secs(3600)));
    drop(busy.sandbox().await);
    assert_eq!(reap_until_owned_by_nobody(&busy).await, 0);
    let listed = busy.runtime.list().await.unwrap();
    busy.runtime.destroy(&listed[0].id).await.unwrap();
    assert_eq!(busy.leftovers(), [""; 0]);

    let lazy = fixture_with(BUSYBOX, idle(Duration::ZERO));
    let sandbox = lazy.sandbox().await;
    assert_eq!(lazy.runtime.reap().await.unwrap(), 0, "it has an owner");
    drop(sandbox);
    assert_eq!(reap_until_owned_by_nobody(&lazy).await, 1);
    assert_eq!(lazy.leftovers(), [""; 0]);
}

/// Dropping a handle gives its lock up in the background; a second lock tells when.
async fn reap_until_owned_by_nobody(fixture: &crate::fixture::Fixture) -> usize {
    let kind = fixture.state.path().join("docker");
    let lock = std::fs::read_dir(&kind)
        .unwrap()
        .flatten()
        .find(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| std::fs::File::open(entry.path().join(".lock")).unwrap())
        .unwrap();
    let waited = tokio::task::spawn_blocking(move || lock.lock());
    waited.await.unwrap().unwrap();
    fixture.runtime.reap().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_left_is_removed_and_nobody_elses_is_dk_6() {
    // Leaves without a word: its lock goes, its container stays.
    let killed = fixture_with(BUSYBOX, kept);
    let sandbox = killed.sandbox().await;
    let id = sandbox.id().clone();
    let record = killed.state.path().join("docker").join(id.as_str());
    let record = record.join("sandbox.json");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(
        &record,
        text.replace("\"kept_alive\":true", "\"kept_alive\":false"),
    )
    .unwrap();
    drop(sandbox);
    let other = fixture(BUSYBOX);
    let beside = other.sandbox().await;
    let stranger = format!("stranger-{id}");
    other.docker(&["create", "--name", &stranger, BUSYBOX, "true"]);
    assert_eq!(reap_until_owned_by_nobody(&killed).await, 1);
    assert_eq!(killed.leftovers(), [""; 0]);
    assert_eq!(output(&*beside, "echo unharmed").await, "unharmed");
    other.docker(&["inspect", &stranger]);
    // One whose directory is gone can be found by nobody, and is removed as well.
    let lost = killed.sandbox().await;
    let directory = killed.state.path().join("docker").join(lost.id().as_str());
    drop(lost);
    std::fs::remove_dir_all(directory).unwrap();
    assert_eq!(killed.runtime.reap().await.unwrap(), 1);
    assert_eq!(killed.leftovers(), [""; 0]);
    other.docker(&["rm", &stranger]);
    beside.close().await.unwrap();
    assert_eq!(other.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_by_a_stranger_is_told_and_left_alone_dk_6() {
    let fixture = fixture(BUSYBOX);
    let id = SandboxId::new(format!("taken-{}", std::process::id())).unwrap();
    let name = format!("openhands-runtime-{id}");
    fixture.docker(&["create", "--name", &name, BUSYBOX, "true"]);
    let spec = SandboxSpec {
        id: Some(id),
        ..spec()
    };
    let error = fixture.runtime.create(spec).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert!(error.to_string().contains("not ours"), "{error}");
    assert_eq!(fixture.leftovers(), [""; 0]);
    fixture.docker(&["rm", &name]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_future_that_is_dropped_half_way_leaves_nothing() {
    let fixture = fixture(BUSYBOX);
    let (spec, mut statuses) = spec_with_statuses();
    {
        let mut making = Box::pin(fixture.runtime.create(spec));
        tokio::select! {
            made = &mut making => panic!("made at once: {}", made.is_ok()),
            () = told(&mut statuses, RuntimeStatus::RuntimeStarted) => {}
        }
    }
    told(&mut statuses, RuntimeStatus::Stopped).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sandbox_stands_still_and_goes_on() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    output(
        &*sandbox,
        "A=1; (while :; do date +%s%N > tick; done) & sleep 0.1",
    )
    .await;
    sandbox.pause().await.unwrap();
    sandbox.pause().await.unwrap();
    let refused = sandbox.list_files(None).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Busy);
    let listed = fixture.runtime.list().await.unwrap();
    assert_eq!(listed[0].state, SandboxState::Paused);
    let again = fixture.runtime.attach(sandbox.id()).await.unwrap();
    let refused = again.list_files(None).await.unwrap_err();
    assert_eq!(refused.class(), ErrorClass::Busy);
    sandbox.resume().await.unwrap();
    sandbox.resume().await.unwrap();
    assert_eq!(output(&*sandbox, "echo $A").await, "1");
    sandbox.pause().await.unwrap();
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_destroyed_by_its_name_and_its_owner_is_told() {
    let fixture = fixture(BUSYBOX);
    let (spec, mut statuses) = spec_with_statuses();
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    fixture.runtime.destroy(sandbox.id()).await.unwrap();
    told(&mut statuses, RuntimeStatus::RuntimeDisconnected).await;
    let error = sandbox.list_files(None).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Disconnected);
    let gone = fixture.runtime.destroy(sandbox.id()).await.unwrap_err();
    assert_eq!(gone.class(), ErrorClass::NotFound);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_labels_are_those_that_others_look_for() {
    let fixture = fixture(BUSYBOX);
    let id = SandboxId::new("named-by_us").unwrap();
    let spec = SandboxSpec {
        id: Some(id.clone()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec.clone()).await.unwrap();
    let twice = fixture.runtime.create(spec).await.err().unwrap();
    assert_eq!(twice.class(), ErrorClass::Invalid);
    let format = "{{index .Config.Labels \"dev.zareba.sandbox\"}}";
    let label = fixture.docker(&["inspect", "--format", format, &container(&*sandbox)]);
    assert_eq!(label.trim(), id.as_str());
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_sandbox_is_handed_out_at_once_and_replaced() {
    let fixture = fixture_with(BUSYBOX, |options| {
        options.warm.sandboxes = 1;
        options.warm.no_change_timeout = spec().no_change_timeout;
    });
    fixture.runtime.warm_up().await.unwrap();
    assert_eq!(fixture.runtime.pool().unwrap().ready, 1);
    let (spec_told, mut statuses) = spec_with_statuses();
    let asked = std::time::Instant::now();
    let sandbox = fixture.runtime.create(spec_told).await.unwrap();
    let waited = asked.elapsed();
    println!("handed out in {waited:?}");
    assert!(waited < Duration::from_millis(100), "{waited:?}");
    told(&mut statuses, RuntimeStatus::Ready).await;
    assert_eq!(output(&*sandbox, "echo warm; ls").await, "warm");
    // One that asks for more is made for it.
    let other = fixture.runtime.create(SandboxSpec {
        environment: vec![("A".to_owned(), "1".to_owned())],
        ..spec()
    });
    let other = other.await.unwrap();
    assert_eq!(output(&*other, "echo $A").await, "1");
    fixture.runtime.warm_up().await.unwrap();
    let counts = fixture.runtime.pool().unwrap();
    let counts = (counts.ready, counts.handed_out, counts.cold);
    assert_eq!(counts, (1, 1, 1));
    // One that ended while it waited is not handed out.
    let listed = fixture.runtime.list().await.unwrap();
    let used = [sandbox.id(), other.id()];
    let waiting = listed.iter().find(|it| !used.contains(&&it.id)).unwrap();
    fixture.runtime.destroy(&waiting.id).await.unwrap();
    let third = fixture.sandbox().await;
    assert_eq!(output(&*third, "echo alive").await, "alive");
    for sandbox in [sandbox, other, third] {
        sandbox.close().await.unwrap();
    }
    fixture.runtime.cool_down().await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_sandbox_that_is_kept_is_somebodys_only_when_it_is_handed_out() {
    let warm = |options: &mut DockerOptions| {
        kept(options);
        options.warm.sandboxes = 2;
        options.warm.no_change_timeout = spec().no_change_timeout;
    };
    let first = fixture_with(BUSYBOX, warm);
    first.runtime.warm_up().await.unwrap();
    // A name is written down first, and the sandbox comes by it.
    let name = first.runtime.reserve(&spec()).unwrap();
    let named = SandboxSpec {
        id: Some(name.clone()),
        ..spec()
    };
    let asked = std::time::Instant::now();
    let sandbox = first.runtime.create(named).await.unwrap();
    println!("handed out in {:?}", asked.elapsed());
    assert_eq!(sandbox.id(), &name);
    output(&*sandbox, "A=kept").await;
    let counts = first.runtime.pool().unwrap();
    assert_eq!((counts.handed_out, counts.cold), (1, 0));
    // Somebody was told the name of another one, and never came.
    first.runtime.warm_up().await.unwrap();
    let unused = first.runtime.reserve(&spec()).unwrap();
    drop(sandbox);
    let state = Arc::clone(&first.state);
    first.runtime.cool_down().await;
    drop(first);
    // Of all that were started, another process finds the one that is somebody's.
    let second = fixture_in(state, BUSYBOX, kept);
    second.runtime.reap().await.unwrap();
    let listed = second.runtime.list().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|it| &it.id).collect();
    assert_eq!(listed, [&name]);
    let gone = second.runtime.attach(&unused).await.err().unwrap();
    assert_eq!(gone.class(), ErrorClass::NotFound);
    let again = second.runtime.attach(&name).await.unwrap();
    assert_eq!(output(&*again, "echo $A").await, "kept");
    again.close().await.unwrap();
    assert_eq!(second.leftovers(), [""; 0]);
}

/// Only the Engine's socket has to be open to them.
#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_user_who_may_ask_the_engine_needs_no_more() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let engine = OwnEngine::start();
    let EngineAddress::Unix(socket) = engine.address() else {
        panic!("it listens on a socket");
    };
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&socket, 0o666);
    open(socket.parent().unwrap(), 0o711);
    let place = tempfile::tempdir().unwrap();
    chown(place.path(), Some(4321), Some(4321)).unwrap();
    for case in [
        "conformance::busybox::a_given_workspace_is_used_and_stays",
        "conformance::busybox::a_sandbox_is_found_again_where_that_is_promised",
        "conformance::busybox::closing_ends_everything_inside",
    ] {
        let ran = std::process::Command::new("setpriv")
            .args(["--reuid=4321", "--regid=4321", "--clear-groups"])
            .args(["--inh-caps=-all", "--bounding-set=-all"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", case])
            .env("HOME", place.path())
            .env("TMPDIR", place.path())
            .env("ZAREBA_TEST_DOCKER", &socket)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{said}{errors}");
        assert!(said.contains("1 passed"), "{said}");
    }
}
