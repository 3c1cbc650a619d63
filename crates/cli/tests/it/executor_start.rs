//! Starting an executor: who may reach it, who its shells run as, what is refused.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::{SocketAddr, TcpStream},
    os::unix::{fs::MetadataExt as _, net::UnixStream},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Executor, Place, Told, request_on};

#[test]
fn an_executor_that_is_ready_answers_and_performs_actions() {
    let executor = Executor::start();
    let alive = executor.request("GET", "/alive", "", b"");
    assert_eq!(
        (alive.status, alive.body.as_slice()),
        (200, &br#"{"status":"ok"}"#[..])
    );
    let workspace = fs::canonicalize(executor.place().path("workspace")).unwrap();
    assert_eq!(executor.run("pwd"), workspace.to_str().unwrap());
}

#[test]
fn shells_inherit_our_environment_without_the_key_and_without_our_descriptors() {
    let mut executor = Executor::start_with(|command| {
        command
            .env("SESSION_API_KEY", "swordfish")
            .env("APP_PORT_1", "50000")
            .env("SANDBOX_ENV_FROM_OPERATOR", "yes");
    });
    let body = json!({ "action": { "action": "run", "args": {
        "command": "echo $APP_PORT_1 $FROM_OPERATOR; env | grep -c swordfish; \
                    readlink /proc/$$/fd/* | grep -c -e socket -e anon_inode; grep -c swordfish /proc/$PPID/environ"
    } } });
    let headers = "x-session-api-key: swordfish\r\n";
    let response = executor.request(
        "POST",
        "/execute_action",
        headers,
        body.to_string().as_bytes(),
    );
    let observation: Value = serde_json::from_slice(&response.body).unwrap();
    let content = observation["content"].as_str().unwrap();
    assert!(content.starts_with("50000 yes\n0\n0\n"), "{content}");
    if !rustix::process::geteuid().is_root() {
        assert!(content.contains("Permission denied"), "{content}");
    }
    let refused = executor.request("POST", "/execute_action", "", body.to_string().as_bytes());
    assert_eq!(refused.status, 403);
    drop(executor.take_lifeline());
    let (status, said) = executor.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!said.contains("swordfish"), "{said}");
}

/// A free port, its server, and what it said until it listened.
fn start_tcp(place: &Place, more: impl FnOnce(&mut Command)) -> (Server, SocketAddr, String) {
    let mut command = place.zareba(&["executor", "0", "-o", "json", "--lifeline-fd", "0"]);
    command
        .env("SU_TO_USER", "false")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    more(&mut command);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let server = Server(child);
    let announced: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(announced["pid"], json!(server.0.id()));
    let endpoint = announced["endpoint"].as_str().unwrap().to_owned();
    let address = endpoint.strip_prefix("http://").unwrap().parse().unwrap();
    (server, address, endpoint)
}

struct Server(std::process::Child);

impl Server {
    /// Lets it go and returns what it said.
    fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let mut said = String::new();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn descriptors_of_any_number_are_taken_over_and_the_one_for_ready_is_closed() {
    let place = Place::new();
    let socket = place.path("socket");
    let zareba = place.zareba(&[
        "executor",
        "--ready-fd",
        "3",
        "--lifeline-fd",
        "4",
        "--unix",
    ]);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec \"$0\" \"$@\" 3>&1 4<&0 >/dev/null </dev/null"])
        .arg(zareba.get_program())
        .args(zareba.get_args())
        .arg(&socket)
        .env_clear()
        .envs(
            zareba
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("SU_TO_USER", "false")
        .current_dir(place.path("workspace"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut server = Server(command.spawn().unwrap());
    let mut said = String::new();
    let mut ready = server.0.stdout.take().unwrap();
    // Only the end of the pipe lets this return.
    ready.read_to_string(&mut said).unwrap();
    assert_eq!(said, "ready\n");
    let alive = request_on(
        UnixStream::connect(&socket).unwrap(),
        "GET",
        "/alive",
        "",
        b"",
    );
    assert_eq!(alive.status, 200);
    server.end();
    assert!(!socket.exists());
}

#[test]
fn without_a_key_only_this_machine_is_listened_to_and_that_is_said() {
    let place = Place::new();
    let (server, address, _) = start_tcp(&place, |_| {});
    assert!(address.ip().is_loopback(), "{address}");
    let alive = request_on(
        TcpStream::connect(address).unwrap(),
        "GET",
        "/alive",
        "",
        b"",
    );
    assert_eq!(alive.status, 200);
    let note = "zareba: no SESSION_API_KEY is set, so only this machine is listened to\n";
    assert!(server.end().contains(note));
}

#[test]
fn with_a_key_every_interface_is_listened_to() {
    let place = Place::new();
    let (server, address, _) = start_tcp(&place, |command| {
        command.env("SESSION_API_KEY", "0123456789abcdef0123456789abcdef");
    });
    assert!(address.ip().is_unspecified(), "{address}");
    let said = server.end();
    assert!(!said.contains("SESSION_API_KEY"), "{said}");
}

/// HS-2, HS-10: a key that can be guessed opens nothing to the network.
#[test]
fn with_a_short_key_only_this_machine_is_listened_to_unless_that_is_asked_for() {
    let place = Place::new();
    let (server, address, _) = start_tcp(&place, |command| {
        command.env("SESSION_API_KEY", "swordfish");
    });
    assert!(address.ip().is_loopback(), "{address}");
    let said = server.end();
    let note = "SESSION_API_KEY has fewer than 32 bytes, so only this machine is listened to\n";
    assert!(said.contains(note), "{said}");
    for (key, error) in [
        (
            "s",
            "refusing to listen on `0.0.0.0:0` with a session key of fewer than 32 bytes\n",
        ),
        (
            "0123456789abcdef0123456789abcde",
            "of fewer than 32 bytes\n",
        ),
        (" ", "the session key is empty"),
    ] {
        let mut command = place.zareba(&["executor", "0", "--host", "0.0.0.0"]);
        let refused = Told::from(command.env("SESSION_API_KEY", key).output().unwrap());
        assert_ne!(refused.code, Some(0), "{key:?}");
        assert!(refused.stderr.contains(error), "{}", refused.stderr);
    }
}

#[test]
fn the_network_is_listened_to_without_a_key_only_when_that_is_asked_for() {
    let place = Place::new();
    let refused = place.output(&["executor", "0", "--host", "0.0.0.0"]);
    assert_eq!(refused.code, Some(122));
    let (_, words) = refused.stderr.split_once("error: ").unwrap();
    insta::assert_snapshot!(words, @"
    refusing to listen on `0.0.0.0:0` without a session key
      hint: set SESSION_API_KEY, or pass `--allow-network-without-key` where nobody else can reach the port
    ");
    let (server, address, _) = start_tcp(&place, |command| {
        command.arg("--allow-network-without-key");
    });
    assert!(address.ip().is_unspecified(), "{address}");
    assert!(
        server
            .end()
            .contains("whoever reaches 0.0.0.0:0 may run commands")
    );
}

#[test]
fn the_command_line_of_the_original_is_taken_as_it_is() {
    let place = Place::new();
    let (server, _, _) = start_tcp(&place, |command| {
        command.args(["--plugins", "agent_skills", "jupyter", "vscode"]);
        command.args(["--username", "openhands", "--user-id", "1000"]);
        command.args(["--browsergym-eval-env", "browsergym/openended", "more"]);
    });
    let said = server.end();
    let note = "zareba: not available in this version: agent_skills, jupyter, vscode, browser\n";
    assert!(said.contains(note), "{said}");
}

#[test]
fn what_the_original_refuses_is_refused() {
    let place = Place::new();
    let unknown = place.output(&["executor", "0", "--plugins", "jupyter", "nonsense"]);
    insta::assert_snapshot!(unknown.stderr, @"
    error: Plugin nonsense not found
      hint: there are: jupyter, agent_skills, vscode
    ");
    assert_eq!(unknown.code, Some(120));
    let contradiction = place.output(&[
        "executor",
        "0",
        "--browsergym-eval-env",
        "a",
        "--no-enable-browser",
    ]);
    insta::assert_snapshot!(contradiction.stderr, @"
    error: Browser environment is not enabled in config
      hint: `--browsergym-eval-env` does not go with `--no-enable-browser`
    ");
    assert_eq!(contradiction.code, Some(120));
    assert_eq!(place.output(&["executor"]).code, Some(120));
}

#[test]
fn a_socket_that_is_in_use_is_left_to_its_owner() {
    let executor = Executor::start();
    let socket = executor.socket().to_str().unwrap().to_owned();
    let refused = executor.place().output(&["executor", "--unix", &socket]);
    assert_eq!(refused.code, Some(122), "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .starts_with("error: another server listens on"),
        "{}",
        refused.stderr
    );
    assert_eq!(executor.run("echo still here"), "still here");
}

/// As root the shell changes to the user and the workspace is given to it; as anybody else it
/// runs as ourselves, which is said. The suite runs both ways.
#[test]
fn another_user_is_changed_to_by_root_and_only_by_root() {
    let mut executor = Executor::start_with(|command| {
        command
            .args(["--username", "daemon"])
            .env("SU_TO_USER", "true");
        let home = command.get_envs().find(|(name, _)| *name == "HOME");
        let place = home.unwrap().1.unwrap().to_owned();
        let place = std::path::Path::new(&place).parent().unwrap().to_owned();
        // The test's own directory is closed to others.
        fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
        fs::write(place.join("workspace/file"), "").unwrap();
    });
    let us = rustix::process::geteuid();
    let owner = fs::metadata(executor.place().path("workspace/file"))
        .unwrap()
        .uid();
    let who: u32 = executor.run("id -u").parse().unwrap();
    drop(executor.take_lifeline());
    let (_, said) = executor.wait();
    if us.is_root() {
        assert_eq!((who, owner), (1, 1), "{said}");
    } else {
        assert_eq!((who, owner), (us.as_raw(), us.as_raw()), "{said}");
        assert!(
            said.contains("and not as `daemon`, because only root can change the user"),
            "{said}"
        );
    }
}

#[test]
fn flags_and_variables_reach_the_executor() {
    let executor = Executor::start_with(|command| {
        command.args([
            "--scope",
            "workspace",
            "--shell",
            "/bin/sh",
            "--set",
            "env.FROM_SET=yes",
        ]);
        command.env("NO_CHANGE_TIMEOUT_SECONDS", "1");
    });
    let outside = executor.act(&json!({ "action": "read", "args": { "path": "/etc/passwd" } }));
    assert_eq!(outside["observation"], "error");
    assert_eq!(
        executor.run("echo $FROM_SET ${BASH_VERSION:-none}"),
        "yes none"
    );
    let silent = executor.act(&json!({ "action": "run", "args": { "command": "sleep 100" } }));
    let suffix = silent["extras"]["metadata"]["suffix"].as_str().unwrap();
    assert!(suffix.contains("no new output after 1 seconds"), "{suffix}");
}

#[test]
fn a_mistake_in_the_environment_is_told_before_anything_starts() {
    let place = Place::new();
    let mut command = place.zareba(&["executor", "0"]);
    let output = command
        .env("NO_CHANGE_TIMEOUT_SECONDS", "soon")
        .env("ZAREBA_SHEL_TIMEOUT", "1");
    let told = Told::from(output.output().unwrap());
    assert_eq!(told.code, Some(121));
    assert!(
        told.stderr
            .starts_with("error: cannot use the configuration\n  caused by: "),
        "{}",
        told.stderr
    );
    assert!(
        told.stderr.contains("did you mean `ZAREBA_SHELL_TIMEOUT`?"),
        "{}",
        told.stderr
    );
}
