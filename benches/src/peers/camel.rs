//! CAMEL's tool server and ours, started and ready to be asked.

mod client;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

pub(crate) use client::ClientClass;

use super::cache;
use crate::{
    children::Owned,
    executor::{HttpLane, Program, clean_environment},
    http::{self, Address},
};

/// How long a tool server may take to answer.
const START_MAX: Duration = Duration::from_secs(60);
/// How often theirs is asked whether it answers; ours says so itself.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// A directory with CAMEL's environment and some plain functions, to serve tools from.
#[derive(Debug)]
pub(crate) struct CamelWorkspace {
    directory: PathBuf,
    venv: PathBuf,
}

impl CamelWorkspace {
    /// Where the environment was made, which a sandbox can see only below its workspace.
    pub(crate) fn make(scratch: &Path) -> Result<Self, String> {
        let venv = cache().map(|cache| cache.join("zareba/venvs/camel-0.2.90"));
        let venv = venv.filter(|venv| venv.join(".zareba-stamp").exists());
        let venv = venv.ok_or("not installed (e2e/foreign/setup-camel)")?;
        let directory = scratch.join("camel");
        let made = Self::copy(&venv, &directory);
        made.map_err(|error| format!("failed: {error:#}"))?;
        Ok(Self { directory, venv })
    }

    /// By links where that is possible, which takes no time.
    fn copy(venv: &Path, directory: &Path) -> anyhow::Result<()> {
        fs::create_dir(directory)?;
        let plain = "def add(a: int, b: int) -> int:\n    \"\"\"Adds.\"\"\"\n    return a + b\n";
        fs::write(directory.join("plain.py"), plain)?;
        let copied = |how: &str| {
            let mut copy = Command::new("cp");
            let copy = copy.arg(how).arg(venv).arg(directory.join("venv"));
            copy.stderr(Stdio::null()).status()
        };
        if !copied("-al")?.success() {
            let _ = fs::remove_dir_all(directory.join("venv"));
            ensure!(copied("-a")?.success(), "cannot copy `{}`", venv.display());
        }
        Ok(())
    }

    /// Starts ours in a sandbox, with CAMEL's interpreter or with the system's.
    pub(crate) fn ours(&self, program: &Program, entrypoint: &str) -> anyhow::Result<ToolServer> {
        let mut command = Command::new(&program.binary);
        clean_environment(&mut command, &program.home);
        command
            // Theirs asks nobody who they are, so neither does ours.
            .args([
                "tools", "serve", "--open", "--output", "json", "--port", "0",
            ])
            .arg("--workspace")
            .arg(&self.directory)
            .env(
                "ZAREBA_STATE_DIRECTORY",
                program.scratch.join("tools-state"),
            );
        if entrypoint.starts_with("camel.") {
            command.args(["--python", "venv/bin/python"]);
        }
        command.arg(entrypoint);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let started = Instant::now();
        let mut process = Owned::spawn(&mut command)?;
        let stdout = process.child().stdout.take().context("it has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let start_time = started.elapsed();
        let told: Value = serde_json::from_str(&line).context("it does not say where it is")?;
        let url = told["url"]
            .as_str()
            .context("it does not say where it is")?;
        let address = url.strip_prefix("http://").unwrap_or(url).parse()?;
        Ok(ToolServer {
            process,
            address,
            start_time,
        })
    }

    /// Starts theirs.
    pub(crate) fn theirs(&self, entrypoint: &str) -> anyhow::Result<ToolServer> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/camel_api.py");
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = Command::new(self.venv.join("bin/python"));
        clean_environment(&mut command, &self.directory);
        command.arg(script).arg(port.to_string()).arg(entrypoint);
        command.current_dir(&self.directory);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Instant::now();
        let mut process = Owned::spawn(&mut command)?;
        while std::net::TcpStream::connect(address).is_err() {
            if let Some(status) = process.child().try_wait()? {
                bail!("CAMEL's server ended with {status}");
            }
            ensure!(
                started.elapsed() < START_MAX,
                "CAMEL's server does not answer"
            );
            std::thread::sleep(ASK_EVERY);
        }
        Ok(ToolServer {
            process,
            address,
            start_time: started.elapsed(),
        })
    }
}

/// A tool server that answers.
#[derive(Debug)]
pub(crate) struct ToolServer {
    process: Owned,
    address: SocketAddr,
    pub(crate) start_time: Duration,
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        // It clears its sandbox away then. What does not listen is killed with its owner.
        let _ = self.process.ask_to_end();
    }
}

impl ToolServer {
    /// A connection on which one addition is asked for over and over.
    pub(crate) fn lane(&self) -> anyhow::Result<HttpLane> {
        let body = r#"{"args": [1, 2], "kwargs": {}, "redirect_stdout": false}"#;
        let request = http::request("/math_add", Some(body));
        let lane = HttpLane::open(&Address::Tcp(self.address), vec![request])?;
        Ok(lane.expecting(r#"{"output":"3"}"#))
    }

    pub(crate) fn lanes(&self, count: usize) -> anyhow::Result<Vec<HttpLane>> {
        (0..count).map(|_| self.lane()).collect()
    }
}
