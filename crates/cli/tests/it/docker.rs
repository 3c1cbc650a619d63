//! The runtime `docker` where there is no Docker: what is said, and who is not bothered. With a
//! Docker Engine it is tested by `scripts/docker-tests`.

use std::{fs, os::unix::net::UnixListener};

use crate::support::{Place, Told};

/// Static, as the program in containers must be.
const STATIC: &str = "docker.program=/bin/busybox";
const AWAY: &str = "docker.engine=unix:///nonexistent/engine";

fn run(place: &Place, settings: &[&str], flags: &[&str]) -> Told {
    let mut arguments = vec!["run", "--runtime", "docker"];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    place.output(&[&arguments, flags, &["--", "true"]].concat())
}

#[test]
fn a_program_that_needs_a_linker_is_refused_with_what_to_do() {
    let place = Place::new();
    let told = run(&place, &["docker.program=/bin/sh", AWAY], &["--image", "a"]);
    assert_eq!(told.code, Some(122));
    let cause = "asks for a dynamic linker, which images may not have";
    assert!(told.stderr.contains(cause), "{}", told.stderr);
    let hint = "hint: name a static `zareba` by the setting `docker.program` or the variable \
                ZAREBA_DOCKER_PROGRAM";
    assert!(told.stderr.contains(hint), "{}", told.stderr);
}

#[test]
fn doctor_fails_for_those_who_use_it_and_says_what_is_missing() {
    let place = Place::new();
    let doctor = |settings: &[&str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        place.output(&["doctor"].into_iter().chain(settings).collect::<Vec<_>>())
    };
    let kind = "runtime.kind=docker";
    let told = doctor(&[kind, STATIC, AWAY]);
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    let said = "no sandbox of the runtime docker can start here: `Docker Engine` above says why and what to do\n";
    assert!(told.stderr.ends_with(said), "{}", told.stderr);
    assert!(
        told.stdout.contains("missing  Docker Engine"),
        "{}",
        told.stdout
    );
    let told = doctor(&[kind, "docker.program=/bin/sh", AWAY]);
    assert!(
        told.stderr
            .contains("`Docker Engine` and `static program` above"),
        "{}",
        told.stderr
    );
    // For a user of another runtime it is no failure.
    let told = doctor(&["runtime.kind=cli", STATIC, AWAY]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
}

#[test]
fn an_image_must_be_named() {
    let told = run(&Place::new(), &[STATIC, AWAY], &[]);
    assert_eq!(told.code, Some(120));
    insta::assert_snapshot!(told.stderr, @"
    error: the runtime `docker` needs an image, and none is named
      hint: name one by `--image NAME` or by the setting `docker.image`
    ");
}

#[test]
fn an_engine_that_is_not_there_is_told() {
    let told = run(&Place::new(), &[STATIC, AWAY], &["--image", "a"]);
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    let cause = "the Docker Engine cannot be asked anything, because it cannot be reached";
    assert!(told.stderr.contains(cause), "{}", told.stderr);
}

#[test]
fn flags_that_it_would_pass_over_are_refused() {
    let place = Place::new();
    for (flags, field) in [
        (["--workspace-mode", "read-only"], "workspace_mode"),
        (["--allow", "a.example"], "allow"),
        (["--network", "filtered"], "network"),
    ] {
        let told = run(&place, &[STATIC, AWAY, "docker.image=a"], &flags);
        assert_eq!(told.code, Some(120), "{}", told.stderr);
        let words = format!("the runtime `docker` cannot hold `{field}`");
        assert!(told.stderr.contains(&words), "{}", told.stderr);
    }
}

#[test]
fn a_server_that_offers_it_starts_only_with_an_engine() {
    let place = Place::new();
    let listen = format!("unix:{}", place.path("socket").display());
    let runtimes = "sessions.runtimes=[\"docker\"]";
    let settings = ["--set", STATIC, "--set", AWAY, "--set", runtimes];
    let told = place.output(&[&["serve", "--listen", &listen][..], &settings].concat());
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    assert!(told.stderr.contains("cannot be reached"), "{}", told.stderr);
}

#[test]
fn nobody_is_bothered_where_it_was_never_used() {
    let place = Place::new();
    for command in ["ps", "gc"] {
        let told = place.output(&["--set", AWAY, command]);
        assert_eq!(told.code, Some(0), "{}", told.stderr);
        assert!(!told.stderr.contains("Docker"), "{}", told.stderr);
    }
    assert!(!place.path("state/docker").exists());
}

#[test]
fn an_engine_that_hangs_is_not_waited_for() {
    let place = Place::new();
    let socket = place.path("engine");
    // Connections are taken by the system, and nobody ever answers.
    let _engine = UnixListener::bind(&socket).unwrap();
    let docker = place.path("state/docker");
    fs::create_dir_all(docker.join("docker-1")).unwrap();
    fs::write(docker.join(".instance"), "0123456789abcdef").unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    for path in [&place.path("state"), &docker] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let engine = format!("docker.engine=unix://{}", socket.display());
    let told = place.output(&["--set", &engine, "ps"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(told.stdout.lines().count(), 1, "{}", told.stdout);
    insta::assert_snapshot!(told.stderr, @"
    error: cannot list the sandboxes of the runtime `docker`
      caused by: the Docker Engine took longer than 2s
    ");
}

#[test]
fn the_doctor_says_what_is_missing_for_containers() {
    let place = Place::new();
    let told = place.output(&["--set", AWAY, "--set", "docker.program=/bin/sh", "doctor"]);
    for words in [
        "For containers (the runtime docker)\n",
        "  missing  Docker Engine    ",
        "  missing  static program   ",
    ] {
        assert!(told.stdout.contains(words), "{}", told.stdout);
    }
    assert!(!place.path("state/docker").exists());
}
