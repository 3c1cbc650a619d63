//! What is decided, and what is refused before the Engine hears of it.

use std::os::unix::fs::{PermissionsExt as _, chown};

use zareba_protocol::ErrorClass;

use super::*;
use crate::{EngineAddress, PortChoice, PortRequest};

fn options(state: &Path) -> DockerOptions {
    let engine = EngineAddress::Unix("/nowhere/docker.sock".into());
    let mut options = DockerOptions::hardened(engine, state.to_owned(), "/bin/busybox".into());
    options.image = Some("image".to_owned());
    options
}

fn spec() -> SandboxSpec {
    SandboxSpec {
        id: None,
        image: None,
        workspace: None,
        environment: Vec::new(),
        no_change_timeout: Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        request: zareba_runtime::SandboxRequest::default(),
        on_status: None,
    }
}

fn plan(options: &DockerOptions, spec: &SandboxSpec) -> Result<Plan, RuntimeError> {
    Plan::new(options, spec, SandboxId::new("x").unwrap())
}

#[test]
fn the_strictest_options_relax_nothing_dk_1() {
    let state = tempfile::tempdir().unwrap();
    let plan = plan(&options(state.path()), &spec()).unwrap();
    assert_eq!(plan.relaxed, [""; 0]);
    assert_ne!(plan.user.uid, 0);
    assert!(!plan.writes_to_machine());
}

#[test]
fn everything_that_is_weaker_is_named() {
    let state = tempfile::tempdir().unwrap();
    let shared = tempfile::tempdir().unwrap();
    let mut options = options(state.path());
    options.network = NetworkChoice::Named("lan".to_owned());
    options.additional_networks = vec!["more".to_owned()];
    options.relaxed.root = RootMode::Writable;
    options.relaxed.capabilities = vec!["NET_BIND_SERVICE".to_owned()];
    options.relaxed.debugging = Debugging::Allowed;
    options.bind_address = std::net::Ipv4Addr::UNSPECIFIED.into();
    options.ports = vec![PortRequest {
        choice: PortChoice::Any { inside: 80 },
        variable: None,
    }];
    options.extra.insert("shm_size".to_owned(), "1m".into());
    options.volumes = vec![VolumeRequest {
        source: VolumeSource::Host(shared.path().to_owned()),
        target: "/data".into(),
        mode: VolumeMode::ReadWrite,
    }];
    let plan = plan(&options, &spec()).unwrap();
    let shared = fs::canonicalize(shared.path()).unwrap();
    assert_eq!(
        plan.relaxed,
        [
            "network: `lan`, with all that is on it".to_owned(),
            "network: `more`, with all that is on it".to_owned(),
            "root: the image's files can be changed, without a bound".to_owned(),
            "capability: NET_BIND_SERVICE".to_owned(),
            "system calls: debuggers".to_owned(),
            format!("volume: `{}` can be changed at `/data`", shared.display()),
            "ports: published on 0.0.0.0".to_owned(),
            "option: shm_size".to_owned(),
        ]
    );
    assert!(plan.writes_to_machine());
}

#[test]
fn a_workspace_that_could_not_be_written_to_is_refused_or_given() {
    if !rustix::process::geteuid().is_root() {
        let state = tempfile::tempdir().unwrap();
        let mut options = options(state.path());
        options.user = SandboxUser::Numbers { uid: 1, gid: 1 };
        let error = plan(&options, &spec()).unwrap_err();
        assert!(error.to_string().contains("only root"), "{error}");
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let owner = || fs::metadata(workspace.path()).unwrap().uid();
    let mut options = options(state.path());
    let mut spec = spec();
    spec.workspace = Some(workspace.path().to_owned());
    let error = plan(&options, &spec).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert!(error.to_string().contains("cannot write"), "{error}");
    assert_eq!(owner(), 0);
    options.ownership = WorkspaceOwnership::Given;
    assert_eq!(plan(&options, &spec).unwrap().user.uid, UNPRIVILEGED);
    assert_eq!(owner(), UNPRIVILEGED);
    // From now on its owner is who programs run as.
    chown(workspace.path(), Some(4321), Some(4321)).unwrap();
    options.ownership = WorkspaceOwnership::Kept;
    assert_eq!(plan(&options, &spec).unwrap().user.uid, 4321);
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(workspace.path(), open).unwrap();
    options.user = SandboxUser::Numbers { uid: 77, gid: 77 };
    assert_eq!(plan(&options, &spec).unwrap().user.uid, 77);
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let state = tempfile::tempdir().unwrap();
    let port = PortRequest {
        choice: PortChoice::Any { inside: 80 },
        variable: None,
    };
    type Change<'a> = (&'a str, Box<dyn Fn(&mut DockerOptions)>);
    let changes: [Change<'_>; 6] = [
        ("no image", Box::new(|it| it.image = None)),
        ("need a network", {
            let port = port.clone();
            Box::new(move |it| it.ports = vec![port.clone()])
        }),
        ("no port is published", {
            Box::new(move |it| {
                it.network = NetworkChoice::Host;
                it.ports = vec![port.clone()];
            })
        }),
        ("no extra host", {
            Box::new(|it| it.extra_hosts = vec!["name".to_owned()])
        }),
        ("is taken", {
            Box::new(|it| it.workspace_path = "/proc/x".into())
        }),
        ("mode `overlay`", {
            Box::new(|it| {
                it.volumes = VolumeRequest::parse_list("/usr/share:/x:overlay").unwrap();
            })
        }),
    ];
    for (words, change) in changes {
        let mut options = options(state.path());
        change(&mut options);
        let error = plan(&options, &spec()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Invalid);
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
}

#[test]
fn elsewhere_nothing_of_this_machine_is_used_or_named() {
    let state = tempfile::tempdir().unwrap();
    let mut options = options(state.path());
    options.place = EnginePlace::Elsewhere;
    let decided = plan(&options, &spec()).unwrap();
    assert_eq!(
        decided.user,
        Identity {
            uid: 1000,
            gid: 1000
        }
    );
    // Nobody has to be able to open a socket, so it may be anybody.
    options.user = SandboxUser::Numbers { uid: 7, gid: 8 };
    let decided = plan(&options, &spec()).unwrap();
    assert_eq!(decided.user, Identity { uid: 7, gid: 8 });
    let refusal = |options: &DockerOptions, spec: &SandboxSpec| {
        let error = plan(options, spec).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Invalid);
        error.to_string()
    };
    let missing = state.path().join("workspace");
    let given = SandboxSpec {
        workspace: Some(missing.clone()),
        ..spec()
    };
    assert!(refusal(&options, &given).contains("copy the files in"));
    assert!(!missing.exists());
    options.volumes = VolumeRequest::parse_list("named:/a").unwrap();
    plan(&options, &spec()).unwrap();
    options.volumes = VolumeRequest::parse_list("/usr/share:/a:ro").unwrap();
    assert!(refusal(&options, &spec()).contains("volumes of the Engine"));
    options.volumes = Vec::new();
    options.network = NetworkChoice::Own(Reach::Inside);
    options.ports = vec![PortRequest {
        choice: PortChoice::Any { inside: 80 },
        variable: None,
    }];
    assert!(refusal(&options, &spec()).contains("every port inside"));
}
