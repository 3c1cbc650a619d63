//! What an operator can set, seen from inside and from outside.

use std::{
    fs,
    io::Read as _,
    net::TcpStream,
    os::unix::fs::{PermissionsExt as _, chown},
    time::{Duration, Instant, SystemTime},
};

use futures_util::StreamExt as _;
use serde_json::json;
use zareba_protocol::ErrorClass;
use zareba_runtime::{Runtime as _, SandboxSpec};
use zareba_runtime_docker::{
    LogMode, LogQuery, NetworkChoice, PortChoice, PortRequest, Reach, SandboxUser, VolumeRequest,
    WorkspaceOwnership,
};

use crate::fixture::{BUSYBOX, DEBIAN, container, fixture, fixture_with, output, run, spec};

/// A program inside that answers every connection, and a wait until it listens.
const SERVE: &str = "nc -ll -p 8000 -e echo served > /dev/null 2>&1 & \
                     until grep -q :1F40 /proc/net/tcp*; do :; done";

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_mounted_as_their_modes_say_dk_2() {
    let shared = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    for name in ["ro", "rw", "over"] {
        let directory = shared.path().join(name);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("given"), name).unwrap();
        chown(&directory, Some(1000), Some(1000)).unwrap();
    }
    let path = shared.path().display();
    let name = format!("zareba-test-{}", std::process::id());
    let list = format!("{path}/ro:/ro:ro,{path}/rw:/rw,{path}/over:/over:overlay,{name}:/named");
    let fixture = fixture_with(BUSYBOX, |options| {
        options.volumes = VolumeRequest::parse_list(&list).unwrap();
        options.overlays = Some(place.path().to_owned());
    });
    let sandbox = fixture.sandbox().await;
    let read = "cat /ro/given /rw/given /over/given";
    assert_eq!(output(&*sandbox, read).await, "rorwover");
    let (code, said) = run(&*sandbox, "echo x > /ro/new").await;
    assert!(code != 0 && said.contains("Read-only"), "{said}");
    output(
        &*sandbox,
        "echo x > /rw/new; echo x > /over/new; rm -f /over/given",
    )
    .await;
    assert_eq!(output(&*sandbox, "ls /over").await, "new");
    let inspect = sandbox.inspect().await.unwrap();
    assert_eq!(inspect["relaxed"].as_array().unwrap().len(), 3);
    sandbox.close().await.unwrap();
    assert_eq!(
        fs::read_to_string(shared.path().join("rw/new")).unwrap(),
        "x\n"
    );
    assert!(!shared.path().join("over/new").exists());
    assert!(shared.path().join("over/given").exists());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    assert_eq!(fixture.leftovers(), [""; 0]);
    // A volume with a name is not the sandbox's own.
    fixture.docker(&["volume", "rm", &name]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_not_be_mounted_is_refused_dk_2() {
    let listed = tempfile::tempdir().unwrap();
    let fixture = fixture_with(BUSYBOX, |options| {
        options.allowed.mounts = Some(vec![listed.path().to_owned()]);
    });
    let other = tempfile::tempdir().unwrap();
    for path in ["/", "/etc", "/proc", &other.path().display().to_string()] {
        let error = fixture.runtime.create(SandboxSpec {
            workspace: Some(path.into()),
            ..spec()
        });
        let error = error.await.err().unwrap();
        assert_eq!(error.class(), ErrorClass::Invalid, "{path}: {error}");
    }
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_user_can_be_chosen_and_a_workspace_keeps_its_owner() {
    let workspace = tempfile::tempdir().unwrap();
    chown(workspace.path(), Some(4321), Some(4321)).unwrap();
    let fixture = fixture_with(DEBIAN, |options| {
        options.ownership = WorkspaceOwnership::Kept;
        options.workspace_path = "/srv/project".into();
    });
    let sandbox = fixture
        .runtime
        .create(SandboxSpec {
            workspace: Some(workspace.path().to_owned()),
            ..spec()
        })
        .await
        .unwrap();
    let said = output(&*sandbox, "id -u; pwd; touch new; stat -c %u new").await;
    assert_eq!(said, "4321\n/srv/project\n4321");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);

    let fixture = fixture_with(BUSYBOX, |options| {
        options.user = SandboxUser::Numbers { uid: 77, gid: 88 };
    });
    let sandbox = fixture.sandbox().await;
    assert_eq!(output(&*sandbox, "id -u; id -g; touch new").await, "77\n88");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn published_ports_lead_inside_and_are_told_there() {
    let request = |choice, variable: &str| PortRequest {
        choice,
        variable: Some(variable.to_owned()),
    };
    let fixture = fixture_with(BUSYBOX, |options| {
        options.network = NetworkChoice::Own(Reach::Everywhere);
        options.ports = vec![
            request(PortChoice::Any { inside: 8000 }, "TOOL_PORT"),
            request(
                PortChoice::Same {
                    first: 50_000,
                    last: 54_999,
                },
                "APP_PORT_1",
            ),
        ];
        options.extra_hosts = vec!["far.example:192.0.2.7".to_owned()];
    });
    let (sandbox, beside) = tokio::join!(fixture.sandbox(), fixture.sandbox());
    output(&*sandbox, SERVE).await;
    let ports = sandbox.ports();
    assert_eq!(ports.len(), 2);
    let tool = ports.iter().find(|port| port.inside == 8000).unwrap();
    assert!(tool.outside.ip().is_loopback());
    let app = ports.iter().find(|port| port.inside != 8000).unwrap();
    assert_eq!(app.inside, app.outside.port());
    assert!((50_000..55_000).contains(&app.inside));
    assert!(!beside.ports().contains(app), "each has ports of its own");
    let told = output(&*sandbox, "echo $TOOL_PORT $APP_PORT_1").await;
    assert_eq!(told, format!("8000 {}", app.inside));
    let mut said = String::new();
    let mut stream = TcpStream::connect(tool.outside).unwrap();
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(said, "served\n");
    assert_eq!(
        output(&*sandbox, "grep -c far.example /etc/hosts").await,
        "1"
    );
    beside.close().await.unwrap();
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_inside_is_reached_without_being_published() {
    let fixture = fixture_with(BUSYBOX, |options| {
        options.network = NetworkChoice::Own(Reach::Inside);
    });
    let sandbox = fixture.sandbox().await;
    output(&*sandbox, SERVE).await;
    let stream = sandbox
        .connect_port(8000)
        .await
        .unwrap()
        .into_std()
        .unwrap();
    stream.set_nonblocking(false).unwrap();
    let mut said = String::new();
    (&stream).read_to_string(&mut said).unwrap();
    assert_eq!(said, "served\n");
    let error = sandbox.connect_port(8001).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_options_are_passed_on_and_more_networks_joined() {
    let network = format!("zareba-test-{}", std::process::id());
    let fixture = fixture_with(BUSYBOX, |options| {
        let extra = json!({ "hostname": "chosen", "mem_limit": "256m", "cpu_quota": 75_000 });
        options.extra = extra.as_object().unwrap().clone();
        options.network = NetworkChoice::Own(Reach::Inside);
        options.additional_networks = vec![network.clone()];
    });
    fixture.docker(&["network", "create", &network]);
    let sandbox = fixture.sandbox().await;
    assert_eq!(output(&*sandbox, "hostname").await, "chosen");
    let interfaces = "tail -n +3 /proc/net/dev | wc -l";
    assert_eq!(output(&*sandbox, interfaces).await, "3");
    let inspect = sandbox.inspect().await.unwrap();
    assert_eq!(inspect["limits"]["memory_bytes"], 256 << 20);
    sandbox.close().await.unwrap();
    fixture.docker(&["network", "rm", &network]);
    assert_eq!(fixture.leftovers(), [""; 0]);

    let refused = fixture_with(BUSYBOX, |options| {
        options.extra.insert("privileged".to_owned(), true.into());
    });
    let error = refused.runtime.create(spec()).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert_eq!(refused.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_the_engine_does_not_have_is_refused_dk_9() {
    let fixture = fixture_with(BUSYBOX, |options| {
        options.extra.insert("runtime".to_owned(), "runsc".into());
    });
    let error = fixture.runtime.create(spec()).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Invalid, "{error}");
    let report = fixture.runtime.probe().await.unwrap();
    assert_eq!(report.problems.len(), 1, "{report:?}");
    assert!(report.problems[0].contains("runsc"), "{report:?}");
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_by_part_and_followed_until_the_end() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    let query = LogQuery {
        mode: LogMode::Follow,
        since: None,
        tail: None,
    };
    // What was said reaches the log a moment later, so it is waited for.
    let mut live = fixture.runtime.logs(sandbox.id(), query).await.unwrap();
    let mut text = String::new();
    while !text.contains("listening on") {
        let piece = live.next().await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&piece.bytes));
    }
    let query = LogQuery {
        mode: LogMode::Present,
        ..query
    };
    let mut present = fixture.runtime.logs(sandbox.id(), query).await.unwrap();
    let mut again = String::new();
    while let Some(piece) = present.next().await {
        again.push_str(&String::from_utf8_lossy(&piece.unwrap().bytes));
    }
    assert!(again.contains("listening on"), "{again}");
    for query in [
        LogQuery {
            tail: Some(0),
            ..query
        },
        LogQuery {
            since: Some(SystemTime::now() + Duration::from_secs(60)),
            ..query
        },
    ] {
        let mut none = fixture.runtime.logs(sandbox.id(), query).await.unwrap();
        assert!(none.next().await.is_none());
    }
    let follow = LogQuery {
        mode: LogMode::Follow,
        tail: Some(0),
        since: None,
    };
    let mut followed = fixture.runtime.logs(sandbox.id(), follow).await.unwrap();
    fixture.docker(&["kill", &container(&*sandbox)]);
    while followed.next().await.is_some() {}
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn use_is_measured() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    let before = fixture.runtime.measure(sandbox.id()).await.unwrap();
    output(
        &*sandbox,
        "dd if=/dev/zero of=/tmp/f bs=1M count=64 2>/dev/null",
    )
    .await;
    let after = fixture.runtime.measure(sandbox.id()).await.unwrap();
    assert!(
        after.memory_bytes > before.memory_bytes + (60 << 20),
        "{before:?} {after:?}"
    );
    assert!(after.cpu_nanoseconds > before.cpu_nanoseconds);
    assert_eq!(after.memory_limit_bytes, 2 << 30);
    assert!(after.pids >= 2);
    let report = fixture.runtime.probe().await.unwrap();
    assert_eq!(report.problems, [""; 0]);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_an_image_wants_for_volumes_have_a_bound() {
    let fixture = fixture(BUSYBOX);
    let from = fixture.docker(&["create", BUSYBOX, "true"]);
    let from = from.trim();
    let image = format!("zareba-test/volume-{}", std::process::id());
    fixture.docker(&["commit", "--change", "VOLUME /data", from, &image]);
    fixture.docker(&["rm", from]);
    let sandbox = fixture
        .runtime
        .create(SandboxSpec {
            image: Some(image.clone()),
            ..spec()
        })
        .await
        .unwrap();
    let bound = "grep ' /data ' /proc/mounts";
    let bound = output(&*sandbox, bound).await;
    assert!(
        bound.starts_with("tmpfs") && bound.contains("size="),
        "{bound}"
    );
    output(&*sandbox, "touch /data/x").await;
    sandbox.close().await.unwrap();
    fixture.docker(&["rmi", &image]);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_entered_though_its_parents_are_shut() {
    let parent = tempfile::tempdir().unwrap();
    let workspace = parent.path().join("work");
    fs::create_dir(&workspace).unwrap();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture
        .runtime
        .create(SandboxSpec {
            workspace: Some(workspace.clone()),
            ..spec()
        })
        .await
        .unwrap();
    output(&*sandbox, "echo x > file").await;
    sandbox.close().await.unwrap();
    assert!(workspace.join("file").exists());
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Not a promise, but a number to read: `--no-capture` shows it.
#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_is_ready_about_as_soon_as_a_bare_container_has_run() {
    let fixture = fixture(BUSYBOX);
    fixture.sandbox().await.close().await.unwrap();
    let mut ours = Duration::MAX;
    let mut bare = Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        let sandbox = fixture.sandbox().await;
        output(&*sandbox, "echo ready").await;
        ours = ours.min(started.elapsed());
        sandbox.close().await.unwrap();
        let started = Instant::now();
        let arguments = ["run", "--rm", "--network", "none", BUSYBOX, "echo", "ready"];
        fixture.docker(&arguments);
        bare = bare.min(started.elapsed());
    }
    let sandbox = fixture.sandbox().await;
    let started = Instant::now();
    for _ in 0..100 {
        output(&*sandbox, "true").await;
    }
    let action = started.elapsed() / 100;
    sandbox.close().await.unwrap();
    println!("ready and first output {ours:?}, a bare container {bare:?}, an action {action:?}");
    assert!(
        ours < bare * 2 + Duration::from_millis(500),
        "{ours:?} {bare:?}"
    );
}
