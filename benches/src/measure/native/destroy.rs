//! The end of a sandbox, empty or full, also when it is paused.

use std::{
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use zareba_runtime_native::NativeRuntime;

use crate::{
    floors::Group,
    lane::{Plan, Subject, side_by_side},
    proc,
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::Setting,
    table::{Goal, Row},
};

const RUNS: usize = 120;
const CROWD: usize = 200;
const RUNS_OF_CROWD: usize = 10;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let sandboxes = Sandboxes::behind_walls(&setting.program, 0)?;
    let ending = |processes, state| Ending {
        sandboxes: &sandboxes,
        processes,
        state,
    };
    let killing = |processes| Killing {
        home: &setting.program.home,
        processes,
    };
    let (mut empty, mut bare) = (ending(0, State::Running), killing(0));
    let plan = plan(setting, RUNS);
    let [ended, killed] = side_by_side([&mut empty, &mut bare], plan)?;
    let row = |percentile: &str, value, floor| {
        let name = format!("sandbox, destroy, {percentile}");
        Row::new(name, Quantity::time(value)).beside("SIGKILL to a bash", Quantity::time(floor))
    };
    let goal = Goal::AtMost(Quantity::milliseconds(10.0));
    let mut rows = vec![
        row("p50", ended.p50(), killed.p50()).goal(goal),
        row("p99", ended.p99(), killed.p99()),
    ];
    let mut crowds = (
        ending(CROWD, State::Running),
        ending(CROWD, State::Paused),
        killing(CROWD),
    );
    let subjects: [&mut dyn Subject; 3] = [&mut crowds.0, &mut crowds.1, &mut crowds.2];
    let plan = self::plan(setting, RUNS_OF_CROWD);
    let [running, paused, killed] = side_by_side(subjects, plan)?;
    for (state, samples) in [("", running), (", paused", paused)] {
        let name = format!("sandbox of {CROWD} processes{state}, destroy, slowest");
        rows.push(
            Row::new(name, Quantity::time(samples.percentile(100)))
                .goal(Goal::AtMost(Quantity::milliseconds(1000.0)))
                .beside("SIGKILL to as many", Quantity::time(killed.percentile(100))),
        );
    }
    Ok(rows)
}

/// What is to be ended must be started first, which takes longer.
fn plan(setting: &Setting, runs: usize) -> Plan {
    let plan = setting.effort.slow_plan(runs);
    let budget = plan.budget * 2;
    Plan { budget, ..plan }
}

#[derive(Clone, Copy)]
enum State {
    Running,
    Paused,
}

/// Ends a sandbox with some processes in it.
struct Ending<'a> {
    sandboxes: &'a Sandboxes<NativeRuntime>,
    processes: usize,
    state: State,
}

impl Subject for Ending<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let sandbox = self.sandboxes.create_and_ask()?;
        self.sandboxes.fill(&*sandbox, self.processes)?;
        let living = Living::find()?;
        ensure!(
            living.0.len() > self.processes,
            "only {} of {} processes were started",
            living.0.len(),
            self.processes
        );
        if let State::Paused = self.state {
            let paused = self.sandboxes.wait(sandbox.pause());
            paused.context("cannot pause a sandbox")?;
        }
        let start = Instant::now();
        self.sandboxes.close(&*sandbox)?;
        let elapsed = start.elapsed();
        living.require_end()?;
        Ok(elapsed)
    }
}

/// Kills a bash with some processes.
struct Killing<'a> {
    home: &'a Path,
    processes: usize,
}

impl Subject for Killing<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        Group::start(self.home, self.processes)?.kill()
    }
}

/// Everything of ours that a sandbox consists of, held by descriptors, so that whoever gets their numbers is
/// not taken for them.
struct Living(Vec<OwnedFd>);

impl Living {
    /// Nothing but one sandbox and its supervisor may run for us.
    fn find() -> anyhow::Result<Self> {
        let mut others = Vec::new();
        for supervisor in proc::supervisors()? {
            others.extend(proc::family(supervisor)?);
        }
        let open = |pid| {
            let pid = Pid::from_raw(i32::try_from(pid)?).context("not a process")?;
            Ok(pidfd_open(pid, PidfdFlags::empty())?)
        };
        Ok(Self(
            others
                .into_iter()
                .map(open)
                .collect::<anyhow::Result<_>>()?,
        ))
    }

    /// Fails when one of them still lives.
    fn require_end(&self) -> anyhow::Result<()> {
        let mut ended: Vec<PollFd<'_>> = self
            .0
            .iter()
            .map(|process| PollFd::new(process, PollFlags::IN))
            .collect();
        let count = poll(&mut ended, Some(&Timespec::default()))?;
        ensure!(
            count == ended.len(),
            "{} processes have outlived their sandbox",
            ended.len() - count
        );
        Ok(())
    }
}
