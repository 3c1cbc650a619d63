//! Whether a read has to wait for a command that runs in a shell.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;

use crate::{
    actions::{self, Place},
    executor::{Executor, Transport},
    lane::{Lane as _, Plan, side_by_side},
    quantity::Quantity,
    setting::{Effort, Setting},
    stats::Samples,
    table::{Goal, Row},
};

const READS: usize = 3000;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let seconds = match setting.effort {
        Effort::Full => 5,
        Effort::Quick => 1,
    };
    let file = setting.program.working_dir.join("note.txt");
    fs::write(&file, "sixteen letters\n".repeat(64))?;
    let executor = Executor::start(&setting.program, Transport::Tcp)?;
    let sleeps = format!("sleep {seconds}");
    let floods = format!("timeout {seconds} yes 'a line of output'");
    let during = Duration::from_secs(seconds);
    let beside = |command: &str| beside(setting, &executor, &file, command, during);
    let (sleeper, flood) = (beside(&sleeps)?, beside(&floods)?);
    // The flood takes a core for itself, so only the sleeper can be held to a goal.
    let goal = Goal::RatioAtMost(1.5);
    let [p50, p99] = rows("while a command sleeps", &sleeper);
    let mut rows = rows("while a command floods its terminal", &flood).to_vec();
    rows.splice(0..0, [p50.goal(goal), p99.goal(goal)]);
    Ok(rows)
}

/// Reads while a command runs, between two times of reading while nothing does.
struct Beside {
    busy: Samples,
    idle: [Samples; 2],
}

impl Beside {
    /// The stricter of the two: the first is colder.
    fn idle(&self, percentile: fn(&Samples) -> Duration) -> Duration {
        let [before, after] = &self.idle;
        percentile(before).min(percentile(after))
    }
}

fn beside(
    setting: &Setting,
    executor: &Executor,
    file: &Path,
    command: &str,
    during: Duration,
) -> anyhow::Result<Beside> {
    let before = reads(setting, executor, file)?;
    let mut command = executor.lane(vec![actions::run(command, &Place::DefaultShell)])?;
    let start = Instant::now();
    command.send()?;
    let busy = reads(setting, executor, file)?;
    ensure!(
        start.elapsed() < during,
        "the reads outlasted the command beside them"
    );
    command.receive()?;
    let after = reads(setting, executor, file)?;
    Ok(Beside {
        busy,
        idle: [before, after],
    })
}

fn rows(name: &str, beside: &Beside) -> [Row; 2] {
    [
        row(name, "p50", beside.busy.p50(), beside.idle(Samples::p50)),
        row(name, "p99", beside.busy.p99(), beside.idle(Samples::p99)),
    ]
}

fn row(name: &str, percentile: &str, value: Duration, idle: Duration) -> Row {
    Row::new(
        format!("read of 1 KiB {name}, {percentile}"),
        Quantity::time(value),
    )
    .beside("idle", Quantity::time(idle))
}

fn reads(setting: &Setting, executor: &Executor, file: &Path) -> anyhow::Result<Samples> {
    let mut lane = executor
        .lane(vec![actions::read(file)])?
        .expecting("\"observation\":\"read\"");
    let budget = match setting.effort {
        Effort::Full => Duration::from_secs(3),
        Effort::Quick => Duration::from_millis(300),
    };
    let plan = Plan {
        budget,
        ..setting.effort.plan(READS)
    };
    let [samples] = side_by_side([&mut lane], plan)?;
    Ok(samples)
}
