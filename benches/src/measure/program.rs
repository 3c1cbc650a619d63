//! Commands that bring their own shell, and the program called once per command.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::ensure;

use crate::{
    actions::{self, Place},
    children::Owned,
    executor::{Executor, Program, Transport, clean_environment},
    floors::{BashStart, RcFile},
    lane::{Subject, side_by_side},
    quantity::Quantity,
    setting::Setting,
    table::Row,
};

const RUNS: usize = 200;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let plan = setting.effort.slow_plan(RUNS);
    let executor = Executor::start(&setting.program, Transport::Tcp)?;
    let mut once = executor
        .lane(vec![actions::run("true", &Place::Once)])?
        .expecting("\"exit_code\":0");
    let mut bash = BashStart {
        home: setting.program.home.clone(),
        rc_file: RcFile::Read,
    };
    let [once, bash] = side_by_side([&mut once, &mut bash], plan)?;
    let (mut ours, mut bare) = (
        Run {
            program: &setting.program,
        },
        BashRun {
            home: &setting.program.home,
        },
    );
    let [run, bash_run] = side_by_side([&mut ours, &mut bare], plan)?;
    Ok(vec![
        Row::new(
            "`true` in a shell of its own, TCP, p50",
            Quantity::time(once.p50()),
        )
        .beside("interactive bash", Quantity::time(bash.p50())),
        Row::new("`zareba run -- true`, p50", Quantity::time(run.p50()))
            .beside("bash -c true", Quantity::time(bash_run.p50())),
    ])
}

struct Run<'a> {
    program: &'a Program,
}

impl Subject for Run<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let mut command = self.program.command();
        command.env("ZAREBA_STATE_DIRECTORY", self.program.home.join("state"));
        command.args(["run", "--", "true"]);
        timed(command)
    }
}

struct BashRun<'a> {
    home: &'a Path,
}

impl Subject for BashRun<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let mut command = Command::new("bash");
        clean_environment(&mut command, self.home);
        command.args(["-c", "true"]);
        timed(command)
    }
}

fn timed(mut command: Command) -> anyhow::Result<Duration> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let status = Owned::spawn(&mut command)?.wait()?;
    let elapsed = start.elapsed();
    ensure!(
        status.success(),
        "{} ended with {status}",
        command.get_program().display()
    );
    Ok(elapsed)
}
