//! Podman in the place of a Docker Engine: the conformance suite on an image with one static
//! program, and the walls that it does not tell of.
//!
//! `scripts/docker-tests` runs these with a Podman of their own, and nothing else of this crate.

use std::sync::Arc;

use zareba_protocol::ErrorClass;
use zareba_runtime::Runtime as _;
use zareba_runtime_docker::{
    BuildError, BuildListener, BuildManner, BuildOrder, BuildSource, BuilderChoice, PullPolicy,
};

use crate::{
    build::{context, nobody, order},
    elsewhere::elsewhere,
    fixture::{BUSYBOX, Fixture, container, fixture, fixture_with, output, run, spec},
};

mod conformance {
    use super::{BUSYBOX, Fixture, fixture};

    async fn make() -> Fixture {
        fixture(BUSYBOX)
    }

    zareba_testkit::conformance_suite!(make);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walls_are_the_same_with_podman_dk_1() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    let status = output(&*sandbox, "cat /proc/1/status").await;
    let words: Vec<&str> = status.split_whitespace().collect();
    for pair in [
        ["CapEff:", "0000000000000000"],
        ["CapBnd:", "0000000000000000"],
        ["NoNewPrivs:", "1"],
        ["Seccomp:", "2"],
    ] {
        assert!(words.windows(2).any(|it| it == pair), "{pair:?}: {status}");
    }
    assert_eq!(output(&*sandbox, "id -u; id -g").await, "1000\n1000");
    // Ours and not Podman's own, which lets namespaces be made where it has the right to.
    let (code, said) = run(&*sandbox, "unshare -U true").await;
    assert_ne!(code, 0, "{said}");
    for masked in ["/proc/interrupts", "/proc/keys", "/proc/timer_list"] {
        let found = output(&*sandbox, &format!("cat {masked} | wc -c")).await;
        assert_eq!(found, "0", "{masked}");
    }
    for closed in ["/made", "/proc/sys/kernel/hostname", "/.zareba/zareba"] {
        let (code, _) = run(&*sandbox, &format!("echo > {closed}")).await;
        assert_ne!(code, 0, "{closed} can be written to");
    }
    let seen = sandbox.inspect().await.unwrap();
    assert_eq!(seen["kernel"]["seccomp"], "filter", "{seen}");
    let format = "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.NetworkMode}}";
    let told = fixture.docker(&["inspect", "--format", format, &container(&*sandbox)]);
    assert_eq!(told.trim(), "2147483648 512 none");
    // As much shared memory of either kind; the other numbers are in `limits` of `inspect`.
    let bytes = seen["limits"]["shm_bytes"].as_u64().unwrap();
    let pages = output(&*sandbox, "cat /proc/sys/kernel/shmall").await;
    assert_eq!(pages.parse::<u64>().unwrap(), bytes / 4096);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_removed_is_noticed() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    output(&*sandbox, "true").await;
    fixture.docker(&["rm", "--force", &container(&*sandbox)]);
    let action = zareba_protocol::Action::Run(zareba_protocol::RunCommand::new("true"));
    let error = sandbox.run_action(action.into()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Disconnected, "{error}");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_built_and_started() {
    const IMAGE: &str = "localhost/zareba-test/built-by-podman:it";
    let fixture = fixture(IMAGE);
    let context = tempfile::tempdir().unwrap();
    let text = format!("FROM {BUSYBOX}\nRUN echo built > /made\n");
    std::fs::write(context.path().join("Dockerfile"), text).unwrap();
    let order = BuildOrder {
        source: BuildSource::Directory {
            directory: context.path().to_owned(),
            dockerfile: None,
        },
        names: vec![IMAGE.to_owned()],
        platform: None,
        arguments: Vec::new(),
        manner: BuildManner::default(),
    };
    let listener: BuildListener = Arc::new(|_| {});
    let builder = fixture.runtime.image_builder().for_operator();
    builder.build(order, &listener).await.unwrap();
    let sandbox = fixture.sandbox().await;
    assert_eq!(output(&*sandbox, "cat /made").await, "built");
    sandbox.close().await.unwrap();
    fixture.docker(&["rmi", IMAGE]);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gives_no_name_that_podman_may_fetch() {
    let fixture = fixture_with(BUSYBOX, |options| options.pull = PullPolicy::Missing);
    let context = context(&format!("FROM {BUSYBOX}\n"), &[]);
    let order = order(&context, "python:3.13".to_owned(), BuilderChoice::Best);
    let alice = fixture.runtime.image_builder().on_behalf_of("alice");
    let error = alice.build(order, &nobody()).await.unwrap_err();
    assert!(
        matches!(error, BuildError::RegistryUnsure { .. }),
        "{error}"
    );
    assert_eq!(alice.find("python:3.13").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_sees_none_of_our_files_is_refused_with_the_reason() {
    let fixture = fixture_with(BUSYBOX, elsewhere);
    let error = fixture.runtime.create(spec()).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert!(error.to_string().contains("only as files"), "{error}");
    let report = fixture.runtime.probe().await.unwrap();
    let told = report
        .problems
        .iter()
        .any(|it| it.contains("only as files"));
    assert!(told, "{:?}", report.problems);
    assert_eq!(fixture.leftovers(), [""; 0]);
}
