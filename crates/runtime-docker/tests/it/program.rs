//! The program with this runtime: commands, sandboxes that live on, and a server.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::{BUSYBOX, DEBIAN, docker_at, engine_socket, leftovers, program};

/// Private directories for one test, and the program in them.
struct Place {
    directory: TempDir,
}

/// How a run of the program ended.
#[derive(Debug)]
struct Told {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("zp").tempdir().unwrap();
        for name in ["home", "tmp", "workspace"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn zareba(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env(
                "DOCKER_HOST",
                format!("unix://{}", engine_socket().display()),
            )
            .env("ZAREBA_STATE_DIRECTORY", self.path("state"))
            .env("ZAREBA_RUNTIME_KIND", "docker")
            .env("ZAREBA_DOCKER_IMAGE", BUSYBOX)
            .current_dir(self.path("workspace"))
            .stdin(Stdio::null());
        command
    }

    fn tell(&self, arguments: &[&str]) -> Told {
        let output = self.zareba(arguments).output().unwrap();
        Told {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What it prints when all goes well.
    fn output(&self, arguments: &[&str]) -> String {
        let told = self.tell(arguments);
        assert_eq!(told.code, Some(0), "{arguments:?}: {}", told.stderr);
        told.stdout
    }

    /// The state of the one sandbox that there is.
    fn state(&self) -> String {
        let row: Value = serde_json::from_str(&self.output(&["ps", "-o", "json"])).unwrap();
        assert_eq!(row["runtime"], "docker");
        row["state"].as_str().unwrap().to_owned()
    }

    fn is_clean(&self) {
        let state = self.path("state");
        assert_eq!(leftovers(&state, &engine_socket()), [""; 0]);
        let temporary = fs::read_dir(self.path("tmp")).unwrap();
        assert_eq!(temporary.count(), 0, "temporary files are left");
    }
}

#[test]
fn a_command_runs_in_a_container_and_nothing_is_left() {
    let place = Place::new();
    let mut command = place.zareba(&["run", "--runtime", "docker", "--image", BUSYBOX]);
    let told = command
        .env_remove("ZAREBA_RUNTIME_KIND")
        .env_remove("ZAREBA_DOCKER_IMAGE")
        .args(["--", "echo", "hello"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(0), "{said}");
    assert_eq!(told.stdout, b"hello\n");
    // The summary is for terminals.
    assert_eq!(said, "");

    let told = place.tell(&["run", "-e", "A=b", "--", "id -u; echo $A; exit 7"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(7), "1000\nb\n"));
    let told = place.tell(&["run", "--image", "zareba-test/none", "--", "true"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    assert!(
        told.stderr.contains("the Engine does not have it"),
        "{}",
        told.stderr
    );
    place.is_clean();
}

#[test]
fn a_workspace_is_the_directory_itself() {
    let place = Place::new();
    let told = place.tell(&["run", "--workspace", ".", "--", "echo kept > file"]);
    // Root's directory is not to be written to by somebody else, unless it is given to them.
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    let give = "docker.give_workspace=true";
    place.output(&[
        "run",
        "--set",
        give,
        "--workspace",
        ".",
        "--",
        "echo kept > file",
    ]);
    let kept = fs::read_to_string(place.path("workspace/file"));
    assert_eq!(kept.unwrap(), "kept\n");
    place.is_clean();
}

#[test]
fn a_sandbox_lives_on_until_it_is_stopped() {
    let place = Place::new();
    let name = format!("life-{}", std::process::id());
    let made = place.output(&["create", "--name", &name, "--memory", "64M"]);
    assert_eq!(made.trim_end(), name);
    assert_eq!(place.state(), "running");
    place.output(&["exec", &name, "--", "echo kept > file"]);
    assert_eq!(
        place.output(&["exec", &name, "--", "cat", "file"]),
        "kept\n"
    );
    let document = place.output(&["inspect", "-o", "json", &name]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["limits"]["memory_bytes"], 64 << 20);
    assert_eq!(document["relaxed"], serde_json::json!([]));
    let log = place.output(&["logs", "--executor", &name]);
    assert!(log.contains("listening on unix:/.zareba/door/s"), "{log}");
    assert!(!log.contains("ready"), "{log}");
    assert_eq!(
        place.output(&["logs", "--executor", "--since", "1h", &name]),
        log
    );
    assert_eq!(
        place.output(&["logs", "--executor", "--tail", "0", &name]),
        ""
    );
    let last = place.output(&["logs", "--executor", "--tail", "1", &name]);
    assert!(last.lines().count() <= 1 && log.ends_with(&last), "{last}");
    assert_eq!(
        place.output(&[
            "logs",
            "--executor",
            "--since",
            "2100-01-01T00:00:00Z",
            &name
        ]),
        ""
    );
    let told = place.output(&["inspect", &name]);
    assert!(told.contains("  network         none"), "{told}");

    place.output(&["pause", &name]);
    assert_eq!(place.state(), "paused");
    assert_ne!(place.tell(&["exec", &name, "--", "true"]).code, Some(0));
    place.output(&["resume", &name]);
    assert_eq!(
        place.output(&["exec", &name, "--", "cat", "file"]),
        "kept\n"
    );
    // It is nobody's waste.
    place.output(&["gc"]);
    assert_eq!(place.state(), "running");

    assert_eq!(place.output(&["stop", &name]).trim_end(), name);
    assert_eq!(place.output(&["ps", "-q"]), "");
    place.is_clean();
}

#[test]
fn a_container_that_was_ended_by_somebody_else_starts_again() {
    let place = Place::new();
    let name = format!("ended-{}", std::process::id());
    place.output(&["create", "--name", &name]);
    docker_at(
        &engine_socket(),
        &["kill", &format!("openhands-runtime-{name}")],
    );
    assert_eq!(place.state(), "lost");
    let document = place.output(&["inspect", "-o", "json", &name]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["ended"]["kind"], "signal");
    assert_eq!(document["ended"]["signal"], 9);
    let told = place.output(&["inspect", &name]);
    assert!(told.contains("ended by signal 9"), "{told}");
    assert_eq!(
        place.output(&["exec", &name, "--", "echo", "again"]),
        "again\n"
    );
    assert_eq!(place.state(), "running");
    place.output(&["rm", "--force", &name]);
    place.is_clean();
}

#[test]
fn what_a_killed_command_left_is_collected() {
    let place = Place::new();
    let mut child = place
        .zareba(&["run", "--", "sleep 1000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Its events tell when the container runs.
    let mut events = Command::new("docker")
        .arg("--host")
        .arg(format!("unix://{}", engine_socket().display()))
        .args(["events", "--since", "5m", "--filter", "event=start"])
        .args(["--format", "{{.Actor.Attributes.name}}"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(events.stdout.take().unwrap()).lines();
    let is_ours = |line: &String| {
        let id = line.strip_prefix("openhands-runtime-");
        id.is_some_and(|id| place.path("state/docker").join(id).is_dir())
    };
    assert!(lines.map_while(Result::ok).any(|line| is_ours(&line)));
    events.kill().unwrap();
    events.wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let told = place.tell(&["gc"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(
        told.stderr.contains("removed what 1 sandbox"),
        "{}",
        told.stderr
    );
    place.is_clean();
}

#[test]
fn an_engine_that_is_away_is_told_and_hides_nobody_else() {
    let place = Place::new();
    let name = format!("away-{}", std::process::id());
    place.output(&["create", "--name", &name]);
    let away = "docker.engine=unix:///nonexistent/socket";
    let told = place.tell(&["--set", away, "ps", "-q"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(0), ""));
    let words = "cannot list the sandboxes of the runtime `docker`";
    assert_eq!(told.stderr.matches(words).count(), 1, "{}", told.stderr);
    let told = place.tell(&["--set", away, "gc"]);
    assert_eq!(told.code, Some(0));
    assert_eq!(told.stderr.matches(words).count(), 1, "{}", told.stderr);
    assert_eq!(place.output(&["ps", "-q"]).trim_end(), name);
    place.output(&["stop", &name]);
    place.is_clean();
}

#[test]
fn the_doctor_asks_the_engine_and_leaves_nothing() {
    let place = Place::new();
    let told = place.tell(&["doctor", "-o", "json"]);
    let report: Value = serde_json::from_str(&told.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let of_docker: Vec<_> = checks
        .iter()
        .filter(|check| check["needed"] == "docker")
        .map(|check| (check["name"].as_str(), check["status"].as_str()))
        .collect();
    let expected = [
        (Some("Docker Engine"), Some("ok")),
        (Some("static program"), Some("ok")),
    ];
    assert_eq!(of_docker, expected, "{}", told.stdout);
    assert!(!place.path("state/docker").exists());
}

#[test]
fn an_image_for_openhands_is_made_by_a_command() {
    let place = Place::new();
    let tag = format!("zareba-test/made-{}", std::process::id());
    let told = place.tell(&["image", "openhands", DEBIAN, &tag]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(told.stdout.trim_end(), tag);
    let variable = format!("SANDBOX_RUNTIME_CONTAINER_IMAGE={tag}");
    assert!(told.stderr.contains(&variable), "{}", told.stderr);
    docker_at(&engine_socket(), &["rmi", &tag]);
    place.is_clean();
}

/// A server that ends with its test.
struct Serving<'a> {
    place: &'a Place,
    child: Child,
}

impl<'a> Serving<'a> {
    fn start(place: &'a Place) -> Self {
        let mut child = place
            .zareba(&["serve", "--listen", &url(place), "--ready-fd", "1"])
            .env("ZAREBA_RUNTIME_KIND", "native")
            .env("ZAREBA_SESSIONS_RUNTIMES", "[\"docker\"]")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let ready = child.stdout.take().unwrap();
        BufReader::new(ready).read_line(&mut line).unwrap();
        let serving = Self { place, child };
        assert_eq!(line, "ready\n");
        serving
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let left = self.place.tell(&["ps", "-q"]).stdout;
            let ids: Vec<&str> = left.lines().collect();
            self.place.tell(&[&["rm", "--force"][..], &ids].concat());
        }
    }
}

fn url(place: &Place) -> String {
    format!("unix:{}", place.path("socket").display())
}

#[test]
fn sessions_of_a_server_have_containers_and_are_found_again_after_a_kill() {
    let place = Place::new();
    let mut server = Serving::start(&place);
    let url = url(&place);
    let with_server = |arguments: &[&str]| {
        let all = [&["--server", &url][..], arguments].concat();
        place.tell(&all)
    };
    let told = with_server(&["run", "--", "echo", "hello"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "hello\n"),
        "{}",
        told.stderr
    );
    // Clients get what the operator has listed, which is the one image of the settings.
    let told = with_server(&["run", "--image", DEBIAN, "--", "true"]);
    assert_ne!(told.code, Some(0));
    assert!(told.stderr.contains("allowed images"), "{}", told.stderr);

    let told = with_server(&["create"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let id = told.stdout.trim_end().to_owned();
    let told = with_server(&["exec", &id, "--", "echo kept > file"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    server.kill();
    drop(server);
    let server = Serving::start(&place);
    let told = with_server(&["exec", &id, "--", "cat", "file"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "kept\n"),
        "{}",
        told.stderr
    );
    let told = with_server(&["stop", &id]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    drop(server);
    place.is_clean();
}
