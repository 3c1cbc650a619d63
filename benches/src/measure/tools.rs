//! Calls of tools through a registry: a function of Rust, and one of Python in a sandbox of the
//! runtime `cli`, beside a bare interpreter that reads a line and writes one. And commands through
//! the package for Python.

mod sdk;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use serde_json::json;
use zareba_runtime::{Sandbox, SandboxPlace};
use zareba_runtime_native::CliRuntime;
use zareba_tools::{Arguments, Call, PythonHost, PythonOptions, Registry};

use crate::{
    lane::{Subject, side_by_side},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::Setting,
    table::{Goal, Row},
};

const RUNS: usize = 3000;
const PYTHON: &str = "/usr/bin/python3";
const FLOOR: &str = "bare interpreter, one line each way";

/// Reads a line of JSON, adds, and writes the sum.
const ADDER: &str = "import json, sys\n\
    for line in sys.stdin:\n    \
    call = json.loads(line)\n    \
    sys.stdout.write(json.dumps(call['a'] + call['b']) + '\\n')\n    \
    sys.stdout.flush()\n";

zareba_tools::tool! {
    /// Adds two numbers.
    async fn add_in_rust(a: i64, b: i64) -> Result<i64, String> {
        Ok(a + b)
    }
}

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let sandboxes = Sandboxes::in_this_process(&setting.program)?;
    let sandbox = sandboxes.create()?;
    let registry = sandboxes.wait(registry(&sandbox))?;
    let caller = |tool| Caller {
        sandboxes: &sandboxes,
        registry: &registry,
        tool,
    };
    let (mut rust, mut python) = (caller("add_in_rust"), caller("add"));
    let mut floor = Adder::start()?;
    let plan = setting.effort.plan(RUNS);
    let [rust, python, floor] = side_by_side([&mut rust, &mut python, &mut floor], plan)?;
    sandboxes.wait(registry.close());
    sandboxes.close(&*sandbox)?;
    let row = |what: &str, value: Duration| {
        Row::new(format!("a tool call, {what}, p50"), Quantity::time(value))
    };
    let mut rows = vec![
        row("Rust", rust.p50()).goal(Goal::AtMost(Quantity::milliseconds(0.3))),
        row("Python", python.p50())
            .beside(FLOOR, Quantity::time(floor.p50()))
            .goal(Goal::AtMost(Quantity::milliseconds(1.0))),
    ];
    rows.extend(sdk::measure(setting)?);
    Ok(rows)
}

async fn registry(sandbox: &Arc<dyn Sandbox>) -> anyhow::Result<Registry> {
    let module = sandbox.workspace().join("adding.py");
    std::fs::write(&module, "def add(a: int, b: int):\n    return a + b\n")?;
    let place = Arc::new(SandboxPlace(Arc::clone(sandbox)));
    let options = PythonOptions {
        python: PYTHON.to_owned(),
        ..PythonOptions::default()
    };
    let (host, _) = PythonHost::start(place, vec!["adding.add".parse()?], options).await?;
    let registry = Registry::new();
    registry.add_all(host.tools())?;
    registry.add(add_in_rust()?)?;
    Ok(registry)
}

/// Calls one tool.
struct Caller<'a> {
    sandboxes: &'a Sandboxes<CliRuntime>,
    registry: &'a Registry,
    tool: &'static str,
}

impl Subject for Caller<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let arguments = json!({"a": 1, "b": 2}).as_object().cloned();
        let call = Call::new(Arguments::named(arguments.unwrap_or_default()));
        let start = Instant::now();
        let returned = self.sandboxes.wait(self.registry.call(self.tool, call))?;
        let took = start.elapsed();
        ensure!(returned.json == "3", "it returned {}", returned.json);
        Ok(took)
    }
}

/// The bare interpreter.
struct Adder {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Adder {
    fn start() -> anyhow::Result<Self> {
        let mut process = Command::new(PYTHON)
            .args(["-c", ADDER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{PYTHON}`"))?;
        let input = process.stdin.take().context("it reads nothing")?;
        let output = process.stdout.take().context("it writes nothing")?;
        Ok(Self {
            process,
            input,
            output: BufReader::new(output),
        })
    }
}

impl Subject for Adder {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.input.write_all(b"{\"a\": 1, \"b\": 2}\n")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let took = start.elapsed();
        ensure!(line == "3\n", "it answered {line:?}");
        Ok(took)
    }
}

impl Drop for Adder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
