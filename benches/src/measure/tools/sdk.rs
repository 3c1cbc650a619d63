//! The smallest command through the Python package: with the private server that it starts by
//! itself, and with one that is there. Timed inside Python, as a program of its users sees it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};

use crate::{
    children::Owned,
    executor::{Program, clean_environment},
    lane::{Subject, side_by_side},
    quantity::Quantity,
    setting::Setting,
    stats::Samples,
    table::{Goal, Row},
};

const RUNS: usize = 2000;
const NAME: &str = "`sandbox.run(\"true\")` of the Python package";

/// Runs a command for each line that it reads, and says how many nanoseconds that took.
const RUNNER: &str = r#"
import sys, time
from zareba import Sandbox
with Sandbox.create() as sandbox:
    for _ in sys.stdin:
        begun = time.perf_counter_ns()
        sandbox.run("true").check()
        took = time.perf_counter_ns() - begun
        sys.stdout.write(f"{took}\n")
        sys.stdout.flush()
"#;

pub(super) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let Some(python) = python() else {
        return Ok(vec![Row::absent(NAME, "not installed (e2e/sdk/run)")]);
    };
    let program = &setting.program;
    let server = Server::start(program)?;
    let mut daemonless = Runner::start(&python, program, &[])?;
    let known = [
        ("ZAREBA_URL", server.url.as_str()),
        ("ZAREBA_API_KEY", server.key.as_str()),
    ];
    let mut served = Runner::start(&python, program, &known)?;
    let plan = setting.effort.plan(RUNS);
    let [of_daemonless, of_served] = side_by_side([&mut daemonless, &mut served], plan)?;
    // Their sandboxes end before the server does.
    daemonless.end()?;
    served.end()?;
    drop(server);
    let mut all = rows("daemonless", &of_daemonless);
    all.extend(rows("with a server", &of_served));
    Ok(all)
}

fn rows(how: &str, samples: &Samples) -> Vec<Row> {
    let row = |percentile: &str, value| {
        Row::new(
            format!("{NAME}, {how}, {percentile}"),
            Quantity::time(value),
        )
    };
    let goal = Goal::AtMost(Quantity::milliseconds(2.0));
    vec![
        row("p50", samples.p50()).goal(goal),
        row("p99", samples.p99()),
    ]
}

/// The interpreter of the environment in which the package is tested.
fn python() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    let environment = cache.join("zareba-test/sdk-venv");
    // Written when everything is in it.
    let is_whole = environment.join("made-of").exists();
    is_whole.then(|| environment.join("bin/python"))
}

/// A Python program with a sandbox.
struct Runner {
    process: Owned,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Runner {
    fn start(python: &Path, program: &Program, known: &[(&str, &str)]) -> anyhow::Result<Self> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/python/src");
        let mut command = Command::new(python);
        clean_environment(&mut command, &program.home);
        command
            .args(["-c", RUNNER])
            .env("PYTHONPATH", package)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ZAREBA_BIN", &program.binary)
            // Where no server runs that could be found.
            .env("ZAREBA_STATE_DIRECTORY", program.scratch.join("no-state"))
            .envs(known.iter().copied())
            .current_dir(&program.working_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = Owned::spawn(&mut command)?;
        let input = process.child().stdin.take().context("it reads nothing")?;
        let output = process.child().stdout.take();
        let output = output.context("it writes nothing")?;
        Ok(Self {
            process,
            input: Some(input),
            output: BufReader::new(output),
        })
    }

    /// Lets it close its sandbox, and waits for its end.
    fn end(mut self) -> anyhow::Result<()> {
        self.input = None;
        self.output.read_to_end(&mut Vec::new())?;
        let status = self.process.child().wait()?;
        ensure!(status.success(), "the Python program ended with {status}");
        Ok(())
    }
}

impl Subject for Runner {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let input = self.input.as_mut().context("it was ended")?;
        input.write_all(b"\n")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let took = line.trim_end().parse();
        let took = took.with_context(|| format!("the Python program said {line:?}"))?;
        Ok(Duration::from_nanos(took))
    }
}

/// A server that is there before the package is used.
struct Server {
    process: Owned,
    url: String,
    key: String,
}

impl Server {
    fn start(program: &Program) -> anyhow::Result<Self> {
        // Short, because the path of a Unix socket is limited.
        let state = program.scratch.join("p");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = program.command();
        command
            .args(["serve", "--ready-fd", "1", "--listen"])
            .arg(port.to_string())
            .env("ZAREBA_STATE_DIRECTORY", &state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Owned::spawn(&mut command)?;
        let ready = process.child().stdout.take().context("it has no output")?;
        let mut line = String::new();
        BufReader::new(ready).read_line(&mut line)?;
        ensure!(line == "ready\n", "the server does not start");
        let key = fs::read_to_string(state.join("admin.key"))?;
        Ok(Self {
            process,
            url: format!("http://{port}"),
            key: key.trim_end().to_owned(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What does not listen is killed with its owner.
        let _ = self.process.ask_to_end();
    }
}
