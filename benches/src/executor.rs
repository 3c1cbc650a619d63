//! The program under test: `zareba executor`, started, found ready, asked and stopped.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::fd::{AsFd as _, BorrowedFd},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};

use crate::{
    actions,
    children::Owned,
    http::{Address, Connection},
    lane::Lane,
};

/// An executor that is not ready by then will not be.
const START_MAX: Duration = Duration::from_secs(20);
/// Between two looks whether it listens. Looking all the time would take a core from it.
const LOOK_AGAIN: Duration = Duration::from_micros(100);
/// How much of its log is shown when it does not start.
const LOG_SHOWN_BYTES: usize = 2000;

/// How the server is to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Unix,
}

/// The program and the surroundings in which it is started.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) binary: PathBuf,
    /// Home of the shells' user: what is in its `.bashrc` is part of every start.
    pub(crate) home: PathBuf,
    pub(crate) working_dir: PathBuf,
    /// For sockets, logs and generated files.
    pub(crate) scratch: PathBuf,
    pub(crate) user: String,
}

impl Program {
    /// The program with the environment of a service: nothing that this shell happens to have.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        clean_environment(&mut command, &self.home);
        command
            .env("USER", &self.user)
            .current_dir(&self.working_dir);
        // Shells get the home of their user in the system's database, whatever HOME says.
        command
            .arg("--set")
            .arg(format!("env.HOME={}", self.home.display()));
        command
    }
}

/// Leaves a command what every program needs, so that floors and subjects start alike.
pub(crate) fn clean_environment(command: &mut Command, home: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("LANG", "C.UTF-8");
}

/// A running executor.
#[derive(Debug)]
pub(crate) struct Executor {
    process: Owned,
    address: Address,
    /// From its start to the first 200 of `/alive`.
    pub(crate) start_time: Duration,
}

impl Executor {
    pub(crate) fn start(program: &Program, transport: Transport) -> anyhow::Result<Self> {
        let (address, listen) = address_for(program, transport)?;
        let log = program.scratch.join("executor.log");
        let output = File::create(&log).context("cannot make the log of the executor")?;
        let mut command = program.command();
        command
            .arg("executor")
            .args(listen)
            .arg("--working-dir")
            .arg(&program.working_dir)
            .args(["--username", &program.user])
            .args(["--user-id", &rustix::process::getuid().as_raw().to_string()])
            .arg("--no-enable-browser")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let start = Instant::now();
        let mut process = Owned::spawn(&mut command)?;
        while !is_alive(&address) {
            if let Some(status) = process.child().try_wait()? {
                bail!("the executor ended with {status}: {}", end_of(&log));
            }
            if start.elapsed() > START_MAX {
                bail!(
                    "the executor was not ready within {} s: {}",
                    START_MAX.as_secs(),
                    end_of(&log)
                );
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(Self {
            process,
            address,
            start_time: start.elapsed(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A connection of its own that sends these requests in turn.
    pub(crate) fn lane(&self, requests: Vec<Vec<u8>>) -> anyhow::Result<HttpLane> {
        HttpLane::open(&self.address, requests)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Killed, it would leave its state directory behind. What does not listen is killed next.
        let _ = self.process.ask_to_end();
    }
}

fn address_for(program: &Program, transport: Transport) -> anyhow::Result<(Address, Vec<String>)> {
    Ok(match transport {
        Transport::Tcp => {
            let free =
                TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?.local_addr()?;
            (Address::Tcp(free), vec![free.port().to_string()])
        }
        Transport::Unix => {
            let socket = program.scratch.join("executor.sock");
            let listen = vec!["--unix".to_owned(), socket.display().to_string()];
            (Address::Unix(socket), listen)
        }
    })
}

fn is_alive(address: &Address) -> bool {
    let Ok(mut connection) = Connection::open(address) else {
        return false;
    };
    if connection.send(&actions::alive()).is_err() {
        return false;
    }
    connection
        .receive()
        .is_ok_and(|answer| answer.status == 200)
}

/// The last of what a process has said.
pub(crate) fn end_of(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let shown = &bytes[bytes.len().saturating_sub(LOG_SHOWN_BYTES)..];
    String::from_utf8_lossy(shown).trim().to_owned()
}

/// Requests over one kept connection.
#[derive(Debug)]
pub(crate) struct HttpLane {
    connection: Connection,
    requests: Vec<Vec<u8>>,
    sent: usize,
    /// What every good answer contains.
    expected: Vec<u8>,
}

impl HttpLane {
    pub(crate) fn open(address: &Address, requests: Vec<Vec<u8>>) -> anyhow::Result<Self> {
        ensure!(!requests.is_empty(), "nothing to send");
        let connection = Connection::open(address).context("cannot connect")?;
        Ok(Self {
            connection,
            requests,
            sent: 0,
            expected: Vec::new(),
        })
    }

    /// An answer without this is an error, so that no failure is timed as a success.
    pub(crate) fn expecting(self, part: &str) -> Self {
        Self {
            expected: part.as_bytes().to_owned(),
            ..self
        }
    }
}

impl Lane for HttpLane {
    fn send(&mut self) -> std::io::Result<()> {
        let request = &self.requests[self.sent % self.requests.len()];
        self.sent += 1;
        self.connection.send(request)
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let answer = self.connection.receive()?;
        let right =
            self.expected.is_empty() || memchr::memmem::find(answer.body, &self.expected).is_some();
        if answer.status != 200 || !right {
            let shown = &answer.body[..answer.body.len().min(LOG_SHOWN_BYTES)];
            bail!(
                "answered with {}: {}",
                answer.status,
                String::from_utf8_lossy(shown)
            );
        }
        Ok(())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
