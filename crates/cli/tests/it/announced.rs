//! A server of the program that says in a line of JSON where it listens and where its token is.

use std::{
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;

use crate::support::{PATIENCE, ends_within};

/// Such a server, until it is dropped.
pub(crate) struct Announced {
    child: Child,
    told: Value,
}

impl Announced {
    /// Starts it, and waits for its word.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        let told = serde_json::from_str(&line).unwrap_or_default();
        let server = Self { child, told };
        assert!(server.told["url"].is_string(), "it said {line:?}");
        server
    }

    /// What it said.
    pub(crate) fn told(&self) -> &Value {
        &self.told
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self) -> &str {
        self.told["url"].as_str().unwrap()
    }

    pub(crate) fn token_file(&self) -> String {
        self.told["token_file"].as_str().unwrap().to_owned()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let (_, rest) = self.url().split_once("://").unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    /// A connection to it from this machine.
    pub(crate) fn connect(&self) -> TcpStream {
        let mut address = self.address();
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Asks it to end, and returns when it has.
    pub(crate) fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        assert!(ends_within(&process, PATIENCE), "the server does not end");
        self.child.wait().unwrap();
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The header that shows a token.
pub(crate) fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}
