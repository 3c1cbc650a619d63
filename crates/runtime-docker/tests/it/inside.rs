//! The program itself in containers of others: where its own sandboxes start there, and what it says
//! where they do not. `docs/platforms.md` has a row for each test.
//!
//! The root file system of these containers is an overlay, and `/etc/hosts`, `/etc/hostname` and
//! `/etc/resolv.conf` are mounts of their own, as in every container.

use std::{path::Path, process::Command};

use serde_json::Value;
use zareba_testkit::readme::Walk;

use crate::fixture::{BUSYBOX, DEBIAN, engine_socket, program};

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// An ordinary user with a place for the state.
pub(crate) const USER: [&str; 6] = [
    "--user",
    "1000",
    "--env",
    "HOME=/state",
    "--tmpfs",
    "/state:mode=777,exec",
];
/// Root with one.
const ROOT: [&str; 2] = ["--tmpfs", "/var/lib/zareba:mode=700"];
/// What a sandbox is made of, and Docker forbids by default.
pub(crate) const LIFTED: [&str; 4] = [
    "--security-opt",
    "seccomp=unconfined",
    "--security-opt",
    "systempaths=unconfined",
];
const CAPABLE: [&str; 4] = ["--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE"];

/// Runs these words in a container with these options, and with the program in its `PATH`.
pub(crate) fn in_container(options: &[&str], image: &str, words: &[&str]) -> Told {
    let socket = format!("unix://{}", engine_socket().display());
    let mount = format!("{}:/usr/local/bin/zareba:ro", program().display());
    let fixed = [
        "--host",
        &socket,
        "run",
        "--rm",
        "--network",
        "none",
        "--volume",
        &mount,
    ];
    let output = Command::new("docker")
        .args(fixed)
        .args(options)
        .arg(image)
        .args(words)
        .output()
        .unwrap();
    Told {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What `doctor` says of a sandbox that it tries to start, with its exit code.
fn examined(options: &[&str], starter: &[&str]) -> (Option<i32>, String) {
    let words = [starter, &["zareba", "doctor", "--output", "json"]].concat();
    let told = in_container(options, DEBIAN, &words);
    let document: Value = serde_json::from_str(&told.stdout).expect(&told.stderr);
    let checks = document["checks"].as_array().unwrap().iter();
    let mut trials = checks.filter(|check| check["name"] == "a trial start");
    let trial = trials.next().unwrap();
    assert_eq!(trial["status"] == "ok", told.code == Some(0), "{trial}");
    (told.code, trial["detail"].as_str().unwrap().to_owned())
}

/// A sandbox starts, with these flags of `run`, and `doctor` says so.
fn works(options: &[&[&str]], starter: &[&str], flags: &[&str]) {
    let options = options.concat();
    let command = "id -u; echo kept > file && cat file; rm /usr/bin/env && ls /usr/bin/env";
    let words = [starter, &["zareba", "run"], flags, &["--", command]].concat();
    let told = in_container(&options, DEBIAN, &words);
    assert_eq!(told.stdout, "1000\nkept\n", "{told:?}");
    assert!(
        told.stderr.contains("'/usr/bin/env': No such file"),
        "{told:?}"
    );
    if flags.is_empty() {
        let (code, said) = examined(&options, starter);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// None starts, and both `run` and `doctor` say this.
fn is_refused(options: &[&[&str]], sentence: &str) {
    let options = options.concat();
    let told = in_container(&options, DEBIAN, &["zareba", "run", "--", "true"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(122), ""),
        "{told:?}"
    );
    assert!(told.stderr.contains(sentence), "{told:?}");
    let (code, said) = examined(&options, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(sentence), "{said}");
}

const NO_NAMESPACES: &str = "start a container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`";

#[test]
fn the_line_of_the_documentation_works_as_it_is_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/platforms.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1);
    let mut lines = blocks.filter_map(|block| Some(block.split_once("```")?.0));
    let line = lines.find(|line| line.starts_with("docker run")).unwrap();
    let line = line
        .replace("./zareba", &program().display().to_string())
        .replace("debian:12", DEBIAN);
    let host = format!("unix://{}", engine_socket().display());
    let output = Command::new("sh")
        .args(["-ec", &line])
        .env("DOCKER_HOST", host)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        printed, "uid=1000(agent) gid=1000(agent) groups=1000(agent)\n",
        "{said}"
    );
}

/// The user has a name, because the README asks for it.
#[test]
fn an_ordinary_user_can_type_what_the_readme_says() {
    let readme = Walk::read();
    let user = ["--user", "65534", "--env", "HOME=/state"];
    let places = [
        "--tmpfs",
        "/state:mode=777,exec",
        "--tmpfs",
        "/work:mode=777",
    ];
    let options = [&user[..], &places, &["--workdir", "/work"], &LIFTED].concat();
    let told = in_container(&options, DEBIAN, &["bash", "-c", &readme.script()]);
    readme.check(&told.stdout);
}

#[test]
fn an_ordinary_user_has_sandboxes_with_what_docker_forbids_by_default() {
    works(&[&USER, &LIFTED], &[], &[]);
    works(&[&USER, &LIFTED], &[], &["--allow", "example.com"]);
}

#[test]
fn a_read_only_root_is_no_obstacle() {
    // Without the second, `doctor` misses a place for temporary files, which other commands use.
    works(
        &[&USER, &LIFTED, &["--read-only", "--tmpfs", "/tmp"]],
        &[],
        &[],
    );
}

/// As far as a container shows it: variables of services, one of which has our name, tokens, and files of
/// `/etc` as mounts.
#[test]
fn a_container_like_that_of_a_pod_is_no_obstacle() {
    let pod = [
        "--env",
        "KUBERNETES_SERVICE_HOST=10.0.0.1",
        "--env",
        "KUBERNETES_SERVICE_PORT=443",
        "--env",
        "ZAREBA_SERVICE_HOST=10.0.0.2",
        "--env",
        "ZAREBA_SERVICE_PORT=7070",
        "--env",
        "ZAREBA_PORT=tcp://10.0.0.2:7070",
        "--env",
        "ZAREBA_PORT_7070_TCP=tcp://10.0.0.2:7070",
        "--env",
        "ZAREBA_PORT_7070_TCP_ADDR=10.0.0.2",
        "--tmpfs",
        "/run/secrets/kubernetes.io/serviceaccount:ro,mode=755",
        "--tmpfs",
        "/etc/podinfo:ro,mode=755",
    ];
    works(&[&USER, &LIFTED, &pod], &[], &[]);
    let look = [
        "zareba",
        "run",
        "--",
        "ls /run/secrets; env | grep -c SERVICE",
    ];
    let options = [&USER[..], &LIFTED, &pod].concat();
    let told = in_container(&options, DEBIAN, &look);
    assert_eq!(told.stdout, "0\n", "{told:?}");
    assert!(
        told.stderr.contains("'/run/secrets': No such file"),
        "{told:?}"
    );
}

#[test]
fn root_of_a_user_namespace_that_a_user_made_has_sandboxes() {
    works(
        &[&USER, &LIFTED],
        &["unshare", "--user", "--map-root-user"],
        &[],
    );
}

#[test]
fn an_image_with_one_static_program_is_enough() {
    let options = [&USER[..], &LIFTED].concat();
    let words = ["zareba", "run", "--", "id -u; echo kept > file && cat file"];
    let told = in_container(&options, BUSYBOX, &words);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "1000\nkept\n"),
        "{told:?}"
    );
}

#[test]
fn the_defaults_of_docker_are_told_with_the_options_that_help() {
    is_refused(&[&USER], NO_NAMESPACES);
    is_refused(
        &[&USER, &LIFTED[..2]],
        "start it with an unmasked /proc (`docker run --security-opt systempaths=unconfined`, \
         `procMount: Unmasked` of a pod)",
    );
    is_refused(
        &[&ROOT],
        "root lacks SYS_ADMIN, SYS_PTRACE here: start it as an ordinary user, or give root these \
         capabilities (of a container: `docker run --cap-add …`)",
    );
}

#[test]
fn a_state_directory_that_cannot_keep_changes_is_told_with_the_setting() {
    is_refused(
        &[&["--user", "1000", "--env", "HOME=/tmp/home"], &LIFTED],
        "the state directory lies on an overlay file system, as in most containers, and cannot hold layers \
         of another: set `state.directory` to a volume or a tmpfs",
    );
    is_refused(
        &[&["--user", "1000", "--read-only"], &LIFTED],
        "set `state.directory` to a directory that can be written to",
    );
}

#[test]
fn root_with_capabilities_has_sandboxes_without_limits_of_processors() {
    let options = [&ROOT[..], &LIFTED, &CAPABLE].concat();
    is_refused(&[&options], "`--best-effort` goes on without");
    works(&[&options], &[], &["--best-effort"]);
}
