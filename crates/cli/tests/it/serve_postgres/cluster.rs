//! A PostgreSQL of a test's own, which it may stop and start.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

/// What it says when it answers.
const READY: &str = "database system is ready to accept connections";

/// Where PostgreSQL's programs are.
pub(super) fn programs() -> Result<PathBuf> {
    let directory = std::env::var_os("ZAREBA_TEST_POSTGRES_BIN")
        .context("run this under scripts/postgresql, which sets ZAREBA_TEST_POSTGRES_BIN")?;
    Ok(directory.into())
}

/// A database cluster that answers on a Unix socket; gone when it is dropped.
pub(super) struct Cluster {
    server: Option<Child>,
    home: TempDir,
}

impl Cluster {
    pub(super) fn new() -> Result<Self> {
        let home = tempfile::Builder::new().prefix("it").tempdir()?;
        // The server is another user than we when we are root.
        let owner = if geteuid().is_root() { "postgres" } else { "" };
        run(Command::new("chmod").arg("711").arg(home.path()))?;
        if !owner.is_empty() {
            run(Command::new("chown").arg(owner).arg(home.path()))?;
        }
        let made = Command::output(as_owner(home.path(), "initdb")?.args([
            "--pgdata=data",
            "--username=zareba",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-sync",
            "--no-instructions",
        ]))?;
        let said = String::from_utf8_lossy(&made.stderr);
        ensure!(
            made.status.success(),
            "cannot make a database cluster: {said}"
        );
        let server = None;
        let mut cluster = Self { server, home };
        cluster.start()?;
        Ok(cluster)
    }

    pub(super) fn url(&self) -> String {
        let host = self.home.path().display();
        format!("postgresql://zareba@/postgres?host={host}")
    }

    /// Starts it, and returns when it answers.
    pub(super) fn start(&mut self) -> Result<()> {
        let sockets = format!("unix_socket_directories={}", self.home.path().display());
        let mut server = as_owner(self.home.path(), "postgres")?
            .args(["-D", "data", "-c", "listen_addresses=", "-c", &sockets])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = server.stderr.take().context("no standard error")?;
        self.server = Some(server);
        let mut lines = BufReader::new(said).lines();
        let mut before = String::new();
        loop {
            let line = lines.next();
            let line = line.with_context(|| format!("PostgreSQL has ended: {before}"))??;
            if line.contains(READY) {
                break;
            }
            before.push_str(&line);
        }
        // It must not stop because nobody reads on; this ends with it.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(())
    }

    /// Ends it: with `INT` in order, with `QUIT` as in a crash.
    pub(super) fn stop(&mut self, how: Signal) -> Result<()> {
        let mut server = self.server.take().context("it does not run")?;
        kill_process(Pid::from_child(&server), how)?;
        server.wait()?;
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.stop(Signal::QUIT);
    }
}

/// A program of PostgreSQL, which refuses to be run by root, and which ends with us.
fn as_owner(home: &Path, program: &str) -> Result<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if geteuid().is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command
        .arg(programs()?.join(program))
        .current_dir(home)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    Ok(command)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status()?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
