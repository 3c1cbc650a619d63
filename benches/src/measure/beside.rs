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
    let idle = reads(setting, &executor, &file)?;
    let mut rows = Vec::new();
    for (command, name) in [
        (format!("sleep {seconds}"), "while a command sleeps"),
        (
            format!("timeout {seconds} yes 'a line of output'"),
            "while a command floods its terminal",
        ),
    ] {
        let mut busy = executor.lane(vec![actions::run(&command, &Place::DefaultShell)])?;
        let start = Instant::now();
        busy.send()?;
        let samples = reads(setting, &executor, &file)?;
        let during = start.elapsed() < Duration::from_secs(seconds);
        ensure!(during, "the reads outlasted the command beside them");
        busy.receive()?;
        rows.extend([
            row(name, "p50", samples.p50(), idle.p50()),
            row(name, "p99", samples.p99(), idle.p99()),
        ]);
    }
    executor.stop()?;
    // The flood takes a core for itself, so only the sleeper can be held to a goal.
    for row in rows.iter_mut().take(2) {
        *row = row.clone().goal(Goal::RatioAtMost(1.5));
    }
    Ok(rows)
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
