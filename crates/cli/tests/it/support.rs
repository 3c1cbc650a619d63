//! The program in private directories, and an executor that ends with its test.
//!
//! Nothing is shared between tests and nothing is left behind: every directory is in a
//! `TempDir`, every process is killed on drop.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine before a test calls it hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test.
pub(crate) const ZAREBA: &str = env!("CARGO_BIN_EXE_zareba");

/// Keeps snapshots beside the tests, wherever these are run from and by whom.
pub(crate) fn snapshots() -> impl Drop {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.bind_to_scope()
}

/// Private directories for one test.
#[derive(Debug)]
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("it").tempdir().unwrap();
        for name in ["home", "tmp", "workspace"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where temporary files go; empty when nothing runs.
    pub(crate) fn temporary_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The program with a small environment of its own, in the workspace.
    pub(crate) fn zareba(&self, arguments: &[&str]) -> Command {
        self.zareba_below(&[], arguments)
    }

    /// The same, started by another program.
    pub(crate) fn zareba_below(&self, starter: &[&str], arguments: &[&str]) -> Command {
        let words = [starter, &[ZAREBA], arguments].concat();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("ZAREBA_STATE_DIRECTORY", self.path("state"))
            .env("LANG", "C.UTF-8")
            .current_dir(self.path("workspace"))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn output(&self, arguments: &[&str]) -> Told {
        Told::from(self.zareba(arguments).output().unwrap())
    }

    /// Runs the program with this as its standard input.
    pub(crate) fn output_with_input(&self, arguments: &[&str], input: &str) -> Told {
        let mut child = self
            .zareba(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        Told::from(child.wait_with_output().unwrap())
    }
}

/// How a run of the program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Told {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A sandbox that lives on, and ends with its test.
#[derive(Debug)]
pub(crate) struct Lasting<'a> {
    place: &'a Place,
    id: String,
}

impl<'a> Lasting<'a> {
    pub(crate) fn create(place: &'a Place, arguments: &[&str]) -> Self {
        let told = place.output(&[&["create"], arguments].concat());
        assert_eq!(told.code, Some(0), "{}", told.stderr);
        let line = told.stdout.trim_end();
        let id = match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(object)) => object["id"].as_str().unwrap().to_owned(),
            _ => line.to_owned(),
        };
        Self { place, id }
    }

    /// One that was made otherwise.
    pub(crate) fn adopt(place: &'a Place, id: &str) -> Self {
        let id = id.to_owned();
        Self { place, id }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Lasting<'_> {
    fn drop(&mut self) {
        // One that the test has ended itself is nobody's any more, and that is no failure.
        self.place.output(&["rm", "--force", &self.id]);
    }
}

/// An executor on a Unix socket, ready for actions.
#[derive(Debug)]
pub(crate) struct Executor {
    child: Child,
    place: Place,
    socket: PathBuf,
}

impl Executor {
    pub(crate) fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts one with more arguments or variables.
    pub(crate) fn start_with(prepare: impl FnOnce(&mut Command)) -> Self {
        Self::launch(&[], prepare)
    }

    /// Starts one by another program that becomes it.
    pub(crate) fn start_below(starter: &[&str]) -> Self {
        Self::launch(starter, |_| {})
    }

    fn launch(starter: &[&str], prepare: impl FnOnce(&mut Command)) -> Self {
        let place = Place::new();
        let socket = place.path("socket");
        let arguments = ["executor", "--ready-fd", "1", "--lifeline-fd", "0"];
        // Tests may be started with the signal ignored, as `nohup` does, and programs inherit that.
        let starter = [&["env", "--default-signal=HUP"], starter].concat();
        let mut command = place.zareba_below(&starter, &arguments);
        command
            .arg("--unix")
            .arg(&socket)
            .arg("--working-dir")
            .arg(place.path("workspace"))
            .env("SU_TO_USER", "false")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let executor = Self {
            child,
            place,
            socket,
        };
        assert_eq!(line, "ready\n");
        executor
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends one request and reads the whole answer.
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        headers: &str,
        body: &[u8],
    ) -> Response {
        let stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        request_on(stream, method, target, headers, body)
    }

    /// Sends one action and returns its observation.
    pub(crate) fn act(&self, action: &Value) -> Value {
        let body = json!({ "action": action }).to_string();
        let headers = "content-type: application/json\r\n";
        let response = self.request("POST", "/execute_action", headers, body.as_bytes());
        assert_eq!(
            response.status,
            200,
            "{}",
            String::from_utf8_lossy(&response.body)
        );
        serde_json::from_slice(&response.body).unwrap()
    }

    /// Runs a command and returns what it wrote.
    pub(crate) fn run(&self, command: &str) -> String {
        let observation = self.act(&json!({ "action": "run", "args": { "command": command } }));
        observation["content"].as_str().unwrap().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The lifeline: dropping it lets the executor go.
    pub(crate) fn take_lifeline(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits for its end; returns its exit status and what it said.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let process = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).unwrap();
        assert!(ends_within(&process, PATIENCE), "the executor does not end");
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        (status, said)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // With its lifeline cut it cleans up after itself; one that does not is killed.
        drop(self.child.stdin.take());
        if let Ok(process) = pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty())
            && !ends_within(&process, PATIENCE)
        {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Whether the process of this descriptor ends in time.
pub(crate) fn ends_within(process: &impl std::os::fd::AsFd, patience: Duration) -> bool {
    let seconds = i64::try_from(patience.as_secs()).unwrap();
    let limit = Timespec {
        tv_sec: seconds,
        tv_nsec: patience.subsec_nanos().into(),
    };
    let mut ended = [PollFd::new(process, PollFlags::IN)];
    poll(&mut ended, Some(&limit)).unwrap() == 1
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Sends one request on a connection of its own and reads the whole answer.
pub(crate) fn request_on(
    mut stream: impl std::io::Read + std::io::Write,
    method: &str,
    target: &str,
    headers: &str,
    body: &[u8],
) -> Response {
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    assert!(
        !head.to_ascii_lowercase().contains("transfer-encoding"),
        "{head}"
    );
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response {
        status,
        body: answer[end + 4..].to_vec(),
    }
}
