//! Stopping everything in a sandbox where it is, and letting it go on.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use zareba_runtime::Sandbox;
use zareba_runtime_native::NativeRuntime;

use crate::{
    floors::Group,
    lane::{Subject, side_by_side},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::Setting,
    table::{Goal, Row},
};

const PROCESSES: usize = 20;
const RUNS: usize = 100;
/// The kernel tells of a control group's changes at most once in 10 ms, which only those meet who
/// pause what they have just resumed.
const REST: Duration = Duration::from_millis(20);

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let sandboxes = Sandboxes::behind_walls(&setting.program, 0)?;
    let sandbox = sandboxes.create()?;
    sandboxes.fill(&*sandbox, PROCESSES)?;
    let group = Group::start(&setting.program.home, PROCESSES)?;
    let ours = |timed| Ours {
        sandboxes: &sandboxes,
        sandbox: &*sandbox,
        timed,
    };
    let bare = |timed| Bare {
        group: &group,
        timed,
    };
    let subjects: [&mut dyn Subject; 4] = [
        &mut ours(Half::Stopping),
        &mut ours(Half::GoingOn),
        &mut bare(Half::Stopping),
        &mut bare(Half::GoingOn),
    ];
    let plan = setting.effort.slow_plan(RUNS);
    let [paused, resumed, stopped, went_on] = side_by_side(subjects, plan)?;
    // What went on can still answer.
    sandboxes.ask(&*sandbox, "echo hi", "hi")?;
    sandboxes.close(&*sandbox)?;
    let goal = Goal::AtMost(Quantity::milliseconds(2.0));
    let row = |what: &str, value, beside, floor| {
        Row::new(
            format!("sandbox of {PROCESSES} processes, {what}, p50"),
            Quantity::time(value),
        )
        .goal(goal)
        .beside(beside, Quantity::time(floor))
    };
    Ok(vec![
        row("pause", paused.p50(), "SIGSTOP to as many", stopped.p50()),
        row("resume", resumed.p50(), "SIGCONT to as many", went_on.p50()),
    ])
}

/// Both are done in every run, and one is timed.
#[derive(Clone, Copy)]
enum Half {
    Stopping,
    GoingOn,
}

impl Half {
    fn of(self, stopping: Duration, going_on: Duration) -> Duration {
        match self {
            Self::Stopping => stopping,
            Self::GoingOn => going_on,
        }
    }
}

struct Ours<'a> {
    sandboxes: &'a Sandboxes<NativeRuntime>,
    sandbox: &'a dyn Sandbox,
    timed: Half,
}

impl Subject for Ours<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        std::thread::sleep(REST);
        let start = Instant::now();
        let paused = self.sandboxes.wait(self.sandbox.pause());
        let stopping = start.elapsed();
        paused.context("cannot pause a sandbox")?;
        let start = Instant::now();
        let resumed = self.sandboxes.wait(self.sandbox.resume());
        let going_on = start.elapsed();
        resumed.context("cannot resume a sandbox")?;
        Ok(self.timed.of(stopping, going_on))
    }
}

struct Bare<'a> {
    group: &'a Group,
    timed: Half,
}

impl Subject for Bare<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let stopping = self.group.stop()?;
        let going_on = self.group.go_on()?;
        Ok(self.timed.of(stopping, going_on))
    }
}
