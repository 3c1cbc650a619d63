//! CAMEL's way to call tools: a runtime class in Python, theirs or the one of our package that
//! stands in for it, in a program of its own.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, ensure};

use super::{CamelWorkspace, ToolServer};
use crate::{
    children::Owned,
    executor::{Program, clean_environment},
    lane::Subject,
};

/// For each line with two numbers it calls a tool, so many times in each of so many threads, and
/// says how many nanoseconds all of that took.
const CALLER: &str = r#"
import importlib, sys, threading, time
from camel.toolkits import MathToolkit
module, port = sys.argv[1], int(sys.argv[2])
runtime = importlib.import_module(module).RemoteHttpRuntime("127.0.0.1", port)
runtime.add(MathToolkit().get_tools(), "camel.toolkits.MathToolkit")
add = runtime.get_tools()[0].func
for line in sys.stdin:
    threads, count = map(int, line.split())
    right = []
    def work():
        for number in range(count):
            right.append(add(number, 1) == number + 1)
    workers = [threading.Thread(target=work) for _ in range(threads - 1)]
    begun = time.perf_counter_ns()
    for worker in workers:
        worker.start()
    work()
    for worker in workers:
        worker.join()
    took = time.perf_counter_ns() - begun
    assert right == [True] * (threads * count), right
    print(took, flush=True)
"#;

/// Whose class it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientClass {
    /// The one of `camel-ai`.
    Theirs,
    /// The one of our package.
    Ours,
}

/// A Python program with one such runtime.
#[derive(Debug)]
pub(crate) struct CamelClient {
    _process: Owned,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl CamelWorkspace {
    /// A client of a server, in the environment that has `camel-ai`.
    pub(crate) fn client(
        &self,
        program: &Program,
        class: ClientClass,
        server: &ToolServer,
    ) -> anyhow::Result<CamelClient> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/python/src");
        let module = match class {
            ClientClass::Theirs => "camel.runtimes",
            ClientClass::Ours => "zareba.camel",
        };
        let mut command = Command::new(self.venv.join("bin/python"));
        clean_environment(&mut command, &program.home);
        command
            .args(["-c", CALLER, module, &server.address.port().to_string()])
            .env("PYTHONPATH", package)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Owned::spawn(&mut command)?;
        let input = process.child().stdin.take().context("it reads nothing")?;
        let output = process.child().stdout.take();
        Ok(CamelClient {
            _process: process,
            input,
            output: BufReader::new(output.context("it writes nothing")?),
        })
    }
}

impl CamelClient {
    /// Calls the tool from several threads and returns how many calls there were in a second.
    pub(crate) fn race(&mut self, threads: u32, calls: u32) -> anyhow::Result<f64> {
        let took = self.call(threads, calls)?;
        Ok(f64::from(threads * calls) / took.as_secs_f64())
    }

    fn call(&mut self, threads: u32, calls: u32) -> anyhow::Result<Duration> {
        writeln!(self.input, "{threads} {calls}")?;
        let mut line = String::new();
        let read = self.output.read_line(&mut line)?;
        ensure!(read > 0, "the Python program ended instead of calling");
        let took = line.trim_end().parse();
        let took = took.with_context(|| format!("the Python program said {line:?}"))?;
        Ok(Duration::from_nanos(took))
    }
}

impl Subject for CamelClient {
    fn once(&mut self) -> anyhow::Result<Duration> {
        self.call(1, 1)
    }
}
