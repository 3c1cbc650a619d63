//! A plain HTTP client and a running executor: what a program of another project has.
//!
//! The client is written by hand on purpose: our own would prove only itself.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A key of the length that the server asks for.
pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A running `zareba executor` in directories of its own; killed and waited for on drop.
pub(crate) struct Executor {
    child: Child,
    socket: PathBuf,
    directory: TempDir,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Executor {
    /// Starts an executor with a key and the given variables and flags, and waits for its word
    /// that actions can run.
    pub(crate) fn start(variables: &[(&str, &str)], flags: &[&str]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("zareba-test-").tempdir()?;
        for name in ["home", "workspace", "tmp"] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        let socket = directory.path().join("socket");
        let mut child = program()
            .arg("executor")
            .arg("--unix")
            .arg(&socket)
            .arg("--working-dir")
            .arg(directory.path().join("workspace"))
            .args([
                "--no-enable-browser",
                "--ready-fd",
                "1",
                "--lifeline-fd",
                "0",
            ])
            .args(["--username", &user()])
            .args(flags)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", directory.path().join("home"))
            .env("TMPDIR", directory.path().join("tmp"))
            .env("SESSION_API_KEY", KEY)
            .envs(variables.iter().copied())
            .envs(surroundings())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ready = child.stdout.take().context("the executor has no output")?;
        let mut line = String::new();
        BufReader::new(ready).read_line(&mut line)?;
        ensure!(
            line == "ready\n",
            "the executor said {line:?} and not that it is ready"
        );
        Ok(Self {
            child,
            socket,
            directory,
        })
    }

    /// The directory that shells start in, as they see it.
    pub(crate) fn workspace(&self) -> Result<PathBuf> {
        Ok(self.directory.path().join("workspace").canonicalize()?)
    }

    /// Where temporary files go.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.directory.path().join("tmp")
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Opens a connection.
    pub(crate) fn connect(&self) -> Result<UnixStream> {
        UnixStream::connect(&self.socket).with_context(|| self.socket.display().to_string())
    }

    /// Sends a request with the key.
    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        kind: &str,
        body: &[u8],
    ) -> Result<Answer> {
        let head = format!("X-Session-API-Key: {KEY}\r\nContent-Type: {kind}\r\n");
        self.exchange(method, target, &head, body)
    }

    /// Sends a request with these header lines, each ended by CR LF.
    pub(crate) fn exchange(
        &self,
        method: &str,
        target: &str,
        head: &str,
        body: &[u8],
    ) -> Result<Answer> {
        exchange(self.connect()?, method, target, head, body)
    }

    /// Sends an action and returns the observation.
    pub(crate) fn act(&self, action: &Value) -> Result<Value> {
        let body = serde_json::to_vec(&json!({ "action": action }))?;
        let answer = self.send("POST", "/execute_action", "application/json", &body)?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.text());
        answer.json()
    }

    /// Runs a command with a hard timeout and returns the observation.
    pub(crate) fn run(&self, command: &str, seconds: f64) -> Result<Value> {
        self.act(&json!({
            "action": "run",
            "args": { "command": command, "blocking": true },
            "timeout": seconds,
        }))
    }

    /// Runs a command that must succeed and returns what it wrote.
    pub(crate) fn output(&self, command: &str) -> Result<String> {
        let observation = self.run(command, 30.0)?;
        ensure!(exit_code(&observation) == 0, "{command}: {observation}");
        Ok(content(&observation).to_owned())
    }

    /// Asks the executor to stop and waits for its exit status.
    pub(crate) fn stop(mut self) -> Result<(std::process::ExitStatus, TempDir)> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        let directory = tempfile::Builder::new().prefix("zareba-test-").tempdir()?;
        Ok((status, std::mem::replace(&mut self.directory, directory)))
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Closing the lifeline makes it end with all its shells; waiting leaves no zombie.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Sends one request with these header lines, each ended by CR LF, and reads the answer.
pub(crate) fn exchange(
    mut stream: UnixStream,
    method: &str,
    target: &str,
    head: &str,
    body: &[u8],
) -> Result<Answer> {
    let length = body.len();
    let mut request = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    // All at once: whoever refuses a request need not wait for its end.
    stream.write_all(&request)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Answer::parse(&bytes)
}

impl Answer {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .context("no head")?;
        let head = std::str::from_utf8(&bytes[..end])?.to_lowercase();
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        let mut body = bytes[end + 4..].to_vec();
        if head.contains("transfer-encoding: chunked") {
            body = dechunk(&body)?;
        }
        Ok(Self { status, head, body })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).with_context(|| self.text())
    }
}

fn dechunk(mut bytes: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = bytes
            .windows(2)
            .position(|window| window == b"\r\n")
            .context("a cut chunk")?;
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end])?.trim(), 16)?;
        bytes = &bytes[end + 2..];
        if length == 0 {
            return Ok(body);
        }
        if bytes.len() < length + 2 {
            bail!("a cut chunk");
        }
        body.extend_from_slice(&bytes[..length]);
        bytes = &bytes[length + 2..];
    }
}

pub(crate) fn content(observation: &Value) -> &str {
    observation["content"].as_str().unwrap_or_default()
}

pub(crate) fn exit_code(observation: &Value) -> i64 {
    observation["extras"]["metadata"]["exit_code"]
        .as_i64()
        .unwrap_or(i64::MIN)
}

/// The program under test, or what stands in for it: `ZAREBA_TEST_EXECUTOR` names a program that
/// takes the same command line and runs it elsewhere, such as in a container.
fn program() -> Command {
    let elsewhere = std::env::var_os("ZAREBA_TEST_EXECUTOR");
    Command::new(elsewhere.unwrap_or_else(|| env!("CARGO_BIN_EXE_zareba").into()))
}

/// What such a program needs to know.
fn surroundings() -> Vec<(&'static str, std::ffi::OsString)> {
    if std::env::var_os("ZAREBA_TEST_EXECUTOR").is_none() {
        return Vec::new();
    }
    let names = ["ZAREBA_TEST_DOCKER", "ZAREBA_STATIC_BIN"];
    let set = names.into_iter();
    set.filter_map(|name| Some((name, std::env::var_os(name)?)))
        .collect()
}

/// Our own login name: shells run as whoever runs the tests.
fn user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let database = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = database
        .lines()
        .find(|line| line.split(':').nth(2) == Some(uid.as_str()));
    entry
        .and_then(|line| line.split(':').next())
        .unwrap_or("nobody")
        .to_owned()
}

/// A multipart body with one file.
pub(crate) fn form(file_name: &str, content: &[u8]) -> (String, Vec<u8>) {
    let boundary = "----zareba-test-boundary";
    let mut body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// A recorded exchange of the original server.
pub(crate) fn recorded(name: &str) -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../protocol/tests/fixtures/openhands")
        .join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}
