//! A running `zareba serve` in directories of its own, talked to by hand-written HTTP.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{
    http_client::{Answer, exchange},
    support::Place,
};

/// A server with a state directory that outlives it. On drop its sessions are closed.
pub(crate) struct Serving<'a> {
    place: &'a Place,
    child: Child,
}

/// What a client needs to talk to it, also from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    socket: PathBuf,
    key: String,
}

impl<'a> Serving<'a> {
    /// Starts a server and waits for its word that it answers.
    pub(crate) fn start(place: &'a Place, flags: &[&str]) -> Result<Self> {
        Self::start_heard(place, flags, Stdio::inherit())
    }

    /// The same, with another place for what it says.
    pub(crate) fn start_heard(place: &'a Place, flags: &[&str], errors: Stdio) -> Result<Self> {
        let listen = format!("unix:{}", socket(place).display());
        let mut child = place
            .zareba(&["serve", "--listen", &listen, "--ready-fd", "1"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()?;
        let ready = child.stdout.take().context("the server has no output")?;
        let mut line = String::new();
        BufReader::new(ready).read_line(&mut line)?;
        if line != "ready\n" {
            let status = child.wait()?;
            anyhow::bail!("the server said {line:?} and ended with {status}");
        }
        Ok(Self { place, child })
    }

    /// How to talk to it as its administrator.
    pub(crate) fn line(&self) -> Result<Line> {
        let key = fs::read_to_string(self.place.path("state").join("admin.key"))?;
        Ok(Line {
            socket: socket(self.place),
            key: key.trim_end().to_owned(),
        })
    }

    /// Ends it as nothing can prevent.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        std::mem::forget(self);
        Ok(())
    }

    /// Asks it to end and returns its exit code.
    pub(crate) fn stop(mut self) -> Result<Option<i32>> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        std::mem::forget(self);
        Ok(status.code())
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if let Ok(line) = self.line() {
            line.close_all();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(place: &Place) -> PathBuf {
    place.path("socket")
}

impl Line {
    /// The same with another key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    /// Sends a request with the key and these header lines.
    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        head: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        let stream = UnixStream::connect(&self.socket)?;
        let mut head = format!("Authorization: Bearer {}\r\n{head}", self.key);
        let body = match body {
            Some(body) => {
                head.push_str("Content-Type: application/json\r\n");
                body.to_string().into_bytes()
            }
            None => Vec::new(),
        };
        exchange(stream, method, target, &head, &body)
    }

    /// Sends a request that must be answered by 2xx, and returns what was answered.
    pub(crate) fn ask(&self, method: &str, target: &str, body: Option<&Value>) -> Result<Value> {
        self.ask_once(method, target, None, body)
    }

    /// The same with an idempotency key.
    pub(crate) fn ask_once(
        &self,
        method: &str,
        target: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Value> {
        let head = key.map_or(String::new(), |key| format!("Idempotency-Key: {key}\r\n"));
        let answer = self.send(method, target, &head, body)?;
        ensure!(
            (200..300).contains(&answer.status),
            "{method} {target}: {} {}",
            answer.status,
            answer.text()
        );
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        answer.json()
    }

    /// Ends every session that there is.
    fn close_all(&self) {
        let sessions = self.ask("GET", "/v1/sessions", None).unwrap_or_default();
        for session in sessions["sessions"].as_array().into_iter().flatten() {
            if let Some(id) = session["id"].as_str() {
                let _ = self.ask("DELETE", &format!("/v1/sessions/{id}"), None);
            }
        }
    }
}
