//! From asking for a sandbox to the output of its first command, beside a container of the same
//! image that is only made and started.

use std::time::{Duration, Instant};

use zareba_runtime_docker::DockerRuntime;

use super::{Engine, plan, with_engine};
use crate::{
    floors::BareEngine,
    lane::{Subject, side_by_side},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::Setting,
    table::{Goal, Row},
};

const RUNS: usize = 40;
const WHAT: &str = "container, create to first output";
const FLOOR: &str = "Engine's create and start";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    with_engine(setting, WHAT, |engine| measure_with(engine, setting))
}

fn measure_with(engine: &Engine, setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let sandboxes = engine.sandboxes(setting, 0)?;
    let (mut ours, mut bare) = (Creation(&sandboxes), Bare(engine.bare()?));
    let plan = plan(setting, RUNS);
    let [created, started] = side_by_side([&mut ours, &mut bare], plan)?;
    let row = |percentile: &str, value, floor| {
        Row::new(format!("{WHAT}, {percentile}"), Quantity::time(value))
            .beside(FLOOR, Quantity::time(floor))
    };
    let more = created.p50().as_secs_f64() - started.p50().as_secs_f64();
    Ok(vec![
        row("p50", created.p50(), started.p50()),
        row("p99", created.p99(), started.p99()),
        Row::new(format!("{WHAT}, p50, what we add"), Quantity::Seconds(more))
            .goal(Goal::AtMost(Quantity::milliseconds(60.0))),
    ])
}

/// All that a session needs before it has an answer.
struct Creation<'a>(&'a Sandboxes<DockerRuntime>);

impl Subject for Creation<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let sandbox = self.0.create_and_ask()?;
        let elapsed = start.elapsed();
        self.0.close(&*sandbox)?;
        Ok(elapsed)
    }
}

/// The two requests that no way around the Engine avoids.
struct Bare(BareEngine);

impl Subject for Bare {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let container = self.0.start()?;
        let elapsed = start.elapsed();
        self.0.remove(&container)?;
        Ok(elapsed)
    }
}
