//! From asking for a sandbox to the output of its first command, beside other ways to get there.

use std::time::{Duration, Instant};

use zareba_runtime_native::NativeRuntime;

use crate::{
    floors::Echo,
    lane::{Plan, Subject, side_by_side},
    peers::{self, DockerImage},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::{Effort, Setting},
    table::{Goal, Row},
};

/// Enough for a 99th percentile.
const RUNS: usize = 200;
/// A container takes a hundred times as long as a bare bash.
const RUNS_OF_DOCKER: usize = 10;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let sandboxes = Sandboxes::behind_walls(&setting.program, 0)?;
    let mut ours = Creation {
        sandboxes: &sandboxes,
    };
    let mut bash = Echo::bash(&setting.program.home);
    let plan = plan(setting.effort, RUNS);
    let [created, started] = side_by_side([&mut ours, &mut bash], plan)?;
    let row = |percentile: &str, value, floor, limit| {
        Row::new(name(percentile), Quantity::time(value))
            .goal(Goal::AtMost(Quantity::milliseconds(limit)))
            .beside("bare `bash -c`", Quantity::time(floor))
    };
    let mut rows = vec![
        row("p50", created.p50(), started.p50(), 8.0),
        row("p99", created.p99(), started.p99(), 25.0),
    ];
    rows.extend(beside_bubblewrap(&mut ours, plan)?);
    rows.push(beside_docker(&mut ours, setting)?);
    Ok(rows)
}

fn beside_bubblewrap(ours: &mut Creation<'_>, plan: Plan) -> anyhow::Result<Vec<Row>> {
    let named = |percentile: &str| format!("{}, beside bubblewrap", name(percentile));
    let command = match peers::bubblewrap() {
        Ok(command) => command,
        Err(why) => return Ok(vec![Row::absent(named("p50"), why)]),
    };
    let [created, wrapped] = side_by_side([ours, &mut Echo::of(command)], plan)?;
    let row = |percentile: &str, value, peer| {
        Row::new(named(percentile), Quantity::time(value)).beside("bwrap", Quantity::time(peer))
    };
    Ok(vec![
        row("p50", created.p50(), wrapped.p50()),
        row("p99", created.p99(), wrapped.p99()),
    ])
}

fn beside_docker(ours: &mut Creation<'_>, setting: &Setting) -> anyhow::Result<Row> {
    let named = format!("{}, beside Docker", name("p50"));
    let image = match DockerImage::make(&setting.program.scratch) {
        Ok(image) => image,
        Err(why) => return Ok(Row::absent(named, why)),
    };
    let mut docker = Echo::of(image.command());
    let plan = plan(setting.effort, RUNS_OF_DOCKER);
    let [created, run] = side_by_side([ours, &mut docker], plan)?;
    Ok(Row::new(named, Quantity::time(created.p50()))
        .beside("docker run", Quantity::time(run.p50())))
}

fn name(percentile: &str) -> String {
    format!("sandbox, create to first output, {percentile}")
}

/// Clearing a sandbox away takes its time, too, so there is more of it than others have.
fn plan(effort: Effort, runs: usize) -> Plan {
    let plan = effort.slow_plan(runs);
    let budget = plan.budget * 3;
    Plan { budget, ..plan }
}

struct Creation<'a> {
    sandboxes: &'a Sandboxes<NativeRuntime>,
}

impl Subject for Creation<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let sandbox = self.sandboxes.create_and_ask()?;
        let elapsed = start.elapsed();
        self.sandboxes.close(&*sandbox)?;
        Ok(elapsed)
    }
}
