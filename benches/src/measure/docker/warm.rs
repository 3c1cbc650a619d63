//! Containers that were started before anybody asked for one.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use zareba_runtime::Runtime as _;
use zareba_runtime_docker::DockerRuntime;

use super::{Engine, plan, with_engine};
use crate::{
    lane::{Subject, side_by_side},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::Setting,
    table::{Goal, Row},
};

const RUNS: usize = 40;
const WAITING: usize = 2;
const WHAT: &str = "warm container, create";
const BESIDE: &str = "started when asked for";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    with_engine(setting, WHAT, |engine| measure_with(engine, setting))
}

fn measure_with(engine: &Engine, setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let warm = engine.sandboxes(setting, WAITING)?;
    let cold = engine.sandboxes(setting, 0)?;
    fill(&warm)?;
    let plan = plan(setting, RUNS);
    let subjects: [&mut dyn Subject; 2] = [&mut Taking(&warm), &mut Starting(&cold)];
    let [taken, started] = side_by_side(subjects, plan)?;
    let counts = warm.runtime().pool().unwrap_or_default();
    warm.wait(warm.runtime().cool_down());
    let row = |percentile: &str, value, beside| {
        Row::new(format!("{WHAT}, {percentile}"), Quantity::time(value))
            .beside(BESIDE, Quantity::time(beside))
    };
    let goal = Goal::AtMost(Quantity::milliseconds(5.0));
    let asked = Quantity::Count((counts.handed_out + counts.cold) as f64);
    Ok(vec![
        row("p50", taken.p50(), started.p50()).goal(goal),
        row("p99", taken.p99(), started.p99()),
        Row::new(
            "warm containers handed out",
            Quantity::Count(counts.handed_out as f64),
        )
        .goal(Goal::RatioAtLeast(1.0))
        .beside("asked for", asked),
    ])
}

/// Returns when as many wait as there shall be.
fn fill(sandboxes: &Sandboxes<DockerRuntime>) -> anyhow::Result<()> {
    let filled = sandboxes.wait(sandboxes.runtime().warm_up());
    filled.context("cannot start sandboxes ahead")
}

/// Takes one, while nothing else happens.
struct Taking<'a>(&'a Sandboxes<DockerRuntime>);

impl Subject for Taking<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let elapsed = create(self.0)?;
        fill(self.0)?;
        Ok(elapsed)
    }
}

/// Starts one.
struct Starting<'a>(&'a Sandboxes<DockerRuntime>);

impl Subject for Starting<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        create(self.0)
    }
}

fn create(sandboxes: &Sandboxes<DockerRuntime>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let sandbox = sandboxes.create()?;
    let elapsed = start.elapsed();
    sandboxes.ask(&*sandbox, "echo hi", "hi")?;
    sandboxes.close(&*sandbox)?;
    Ok(elapsed)
}
