//! An Engine of one test, which may be stopped, started and starved.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;
use zareba_runtime_docker::{EngineAddress, TlsFiles};

use crate::{
    certificates,
    fixture::{BUSYBOX, Fixture, docker_at, engine_socket, leftovers},
};

/// A `dockerd` without networks. It ends with the test, and its data goes.
pub(crate) struct OwnEngine {
    place: TempDir,
    process: Option<Child>,
    has_own_disk: bool,
    /// Where it listens to the network, to those with a certificate.
    port: Option<u16>,
}

impl OwnEngine {
    pub(crate) fn start() -> Self {
        Self::begin(None, None)
    }

    /// It also listens on loopback, with certificates of its own.
    pub(crate) fn start_with_tls() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        Self::begin(None, Some(port))
    }

    /// Its data lies on a disk of this size.
    pub(crate) fn start_with_disk(bytes: u64) -> Self {
        Self::begin(Some(bytes), None)
    }

    fn begin(disk: Option<u64>, port: Option<u16>) -> Self {
        let place = tempfile::Builder::new().prefix("ze").tempdir().unwrap();
        let data = place.path().join("data");
        fs::create_dir(&data).unwrap();
        if let Some(bytes) = disk {
            let size = format!("size={bytes}");
            must(
                Command::new("mount")
                    .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                    .arg(&data),
            );
        }
        let mut engine = Self {
            place,
            process: None,
            has_own_disk: disk.is_some(),
            port,
        };
        if port.is_some() {
            certificates::write(engine.place.path());
        }
        engine.restart();
        engine.copy_image();
        engine
    }

    pub(crate) fn address(&self) -> EngineAddress {
        EngineAddress::Unix(self.socket())
    }

    pub(crate) fn tls_address(&self) -> EngineAddress {
        EngineAddress::Tcp {
            address: format!("localhost:{}", self.port.unwrap()),
            tls: Some(TlsFiles::in_directory(self.place.path())),
        }
    }

    /// What a runtime has left on it.
    pub(crate) fn leftovers(&self, fixture: &Fixture) -> Vec<String> {
        leftovers(fixture.state.path(), &self.socket())
    }

    /// Returns when it listens: it says so.
    pub(crate) fn restart(&mut self) {
        let place = self.place.path();
        let mut command = Command::new("dockerd");
        if let Some(port) = self.port {
            command.arg(format!("--host=tcp://127.0.0.1:{port}"));
            command
                .args(["--tlsverify", "--tlscacert"])
                .arg(place.join("ca.pem"));
            command.arg("--tlscert").arg(place.join("server.pem"));
            command.arg("--tlskey").arg(place.join("server-key.pem"));
        }
        let mut process = command
            // An Engine without a bridge would remove the one that the Engine of all tests has.
            .args(["--iptables=false", "--host"])
            .arg(format!("unix://{}", self.socket().display()))
            .arg("--data-root")
            .arg(place.join("data"))
            .arg("--exec-root")
            .arg(place.join("exec"))
            .arg("--pidfile")
            .arg(place.join("pid"))
            .arg("--cgroup-parent")
            .arg(Path::new("/").join(place.file_name().unwrap()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("dockerd starts");
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        let mut listening = 0;
        let wanted = 1 + usize::from(self.port.is_some());
        while listening < wanted {
            line.clear();
            let length = said.read_line(&mut line).unwrap();
            assert_ne!(length, 0, "dockerd ended before it was ready");
            listening += usize::from(line.contains("API listen on"));
        }
        // Somebody has to read on, or it would stand still.
        std::thread::spawn(move || {
            let _ = said.read_to_end(&mut Vec::new());
        });
        self.process = Some(process);
    }

    /// As an administrator would: its containers end with it.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let pid = process.id().to_string();
            must(Command::new("kill").args(["-TERM", &pid]));
            process.wait().unwrap();
        }
    }

    pub(crate) fn fill_disk(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        let written = std::io::copy(&mut std::io::repeat(0), &mut filler);
        assert!(written.is_err(), "the disk has an end");
    }

    pub(crate) fn free_disk(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.place.path().join("data/filler")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.place.path().join("s")
    }

    /// From the Engine that all tests share.
    fn copy_image(&self) {
        let image = self.place.path().join("image.tar");
        let image = image.to_str().unwrap();
        docker_at(&engine_socket(), &["save", "--output", image, BUSYBOX]);
        docker_at(&self.socket(), &["load", "--input", image]);
        fs::remove_file(image).unwrap();
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        self.stop();
        if self.has_own_disk {
            let data = self.place.path().join("data");
            let _ = Command::new("umount")
                .args(["--recursive"])
                .arg(data)
                .status();
        }
        let name = self.place.path().file_name().unwrap().to_owned();
        for group in fs::read_dir("/sys/fs/cgroup")
            .into_iter()
            .flatten()
            .flatten()
        {
            let _ = fs::remove_dir(group.path().join(&name));
        }
    }
}

fn must(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
}
