//! An Engine behind `ssh`, with the real program, the real `ssh` and an `sshd` on loopback that
//! lets in nobody but the test.
//!
//! `ssh` does not take its configuration from HOME, so a script of its name in front of it in PATH
//! hands it ours. Nothing of the machine's own configuration is read or changed.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use tempfile::TempDir;

use crate::{
    engine::OwnEngine,
    fixture::{BUSYBOX, leftovers, program},
};

/// The name of the machine in the configuration.
const HOST: &str = "zareba-far";
/// An image of the Engine there.
const BUILT: &str = "zareba-test/built-far";
/// The directory that `sshd` wants to be there.
const PRIVATE: &str = "/run/sshd";

/// A server and a client that know each other. They end with the test.
struct Ssh {
    place: TempDir,
    server: Child,
    made_private: bool,
}

impl Ssh {
    fn start() -> Self {
        let place = tempfile::Builder::new().prefix("zs").tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            assert!(keygen.arg(path(key)).status().unwrap().success());
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let host_key = fs::read_to_string(path("host.pub")).unwrap();
        fs::write(path("known"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
        let server = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {host}\nAuthorizedKeysFile {user}\n\
             PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             UsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n",
            host = path("host").display(),
            user = path("user.pub").display(),
        );
        fs::write(path("server"), server).unwrap();
        let client = format!(
            "Host {HOST}\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {key}\n \
             IdentitiesOnly yes\n UserKnownHostsFile {known}\n StrictHostKeyChecking yes\n",
            key = path("user").display(),
            known = path("known").display(),
        );
        fs::write(path("client"), client).unwrap();
        let script = format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n",
            path("client").display()
        );
        fs::create_dir(path("bin")).unwrap();
        fs::write(path("bin/ssh"), script).unwrap();
        fs::set_permissions(path("bin/ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        let made_private = fs::create_dir(PRIVATE).is_ok();
        let server = serve(&path("server"));
        Self {
            place,
            server,
            made_private,
        }
    }

    fn bin(&self) -> PathBuf {
        self.place.path().join("bin")
    }

    /// Waits for the ends of the processes that carry connections of ours. No new ones come:
    /// whoever started them has ended.
    fn wait_for_clients(&self) {
        let ours = self.place.path().join("client");
        let listed = Command::new("ps")
            .args(["-eo", "pid=,args="])
            .output()
            .unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for line in listed
            .lines()
            .filter(|it| it.contains(&*ours.to_string_lossy()))
        {
            let pid = line.split_whitespace().next().unwrap().parse().unwrap();
            let pid = Pid::from_raw(pid).unwrap();
            let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            let patience = Timespec {
                tv_sec: 10,
                tv_nsec: 0,
            };
            let mut ends = [PollFd::new(&process, PollFlags::IN)];
            assert_eq!(poll(&mut ends, Some(&patience)), Ok(1), "left: {line}");
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        if self.made_private {
            let _ = fs::remove_dir(PRIVATE);
        }
    }
}

/// Returns when it listens: it says so.
fn serve(configuration: &Path) -> Child {
    let mut server = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f"])
        .arg(configuration)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("`openssh-server` is installed");
    let mut said = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on") {
        line.clear();
        let length = said.read_line(&mut line).unwrap();
        assert_ne!(length, 0, "sshd ended before it was ready");
    }
    std::thread::spawn(move || {
        let _ = said.read_to_end(&mut Vec::new());
    });
    server
}

#[test]
fn an_engine_behind_ssh_is_used_as_the_docker_command_does() {
    let engine = OwnEngine::start();
    let ssh = Ssh::start();
    let place = tempfile::Builder::new().prefix("zp").tempdir().unwrap();
    let state = place.path().join("state");
    let zareba = |host: &str, arguments: &[&str]| -> Output {
        Command::new(program())
            .args(arguments)
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/local/bin:/usr/bin:/bin", ssh.bin().display()),
            )
            .env("HOME", place.path())
            .env("TMPDIR", place.path())
            .env("DOCKER_HOST", host)
            .env("ZAREBA_STATE_DIRECTORY", &state)
            .env("ZAREBA_RUNTIME_KIND", "docker")
            .env("ZAREBA_DOCKER_IMAGE", BUSYBOX)
            .current_dir(place.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let host = format!("ssh://{HOST}{}", engine.socket().display());
    let told = zareba(&host, &["run", "--", "echo over SSH; exit 3"]);
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(3), "{said}");
    assert_eq!(told.stdout, b"over SSH\n", "{said}");
    assert_eq!(leftovers(&state, &engine.socket()), [""; 0]);

    // Images are built and looked up the same way.
    let context = place.path().join("context");
    fs::create_dir(&context).unwrap();
    let dockerfile = format!("FROM {BUSYBOX}\nRUN echo far > /built\n");
    fs::write(context.join("Dockerfile"), dockerfile).unwrap();
    let build = ["image", "build", "--tag", BUILT, "context"];
    let told = zareba(&host, &build);
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(0), "{said}");
    let told = zareba(&host, &["run", "--image", BUILT, "--", "cat /built"]);
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.stdout, b"far\n", "{said}");
    fs::write(context.join("Dockerfile"), "FROM not/there\n").unwrap();
    let told = zareba(&host, &build);
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(
        said.contains("does not have the image `not/there`"),
        "{said}"
    );
    let told = zareba("ssh://nobody@zareba-nowhere.invalid", &build);
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(said.contains("ssh said: "), "{said}");

    // What `ssh` complains about is told, and it never asks.
    let told = zareba(
        "ssh://nobody@zareba-nowhere.invalid",
        &["run", "--", "true"],
    );
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(122), "{said}");
    assert!(said.contains("ssh said: "), "{said}");

    // Connections end with the program; the other end needs a moment to notice.
    ssh.wait_for_clients();
}
