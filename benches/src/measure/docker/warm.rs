//! Containers that were started before anybody asked for one.

use std::time::{Duration, Instant};

use zareba_runtime::Runtime as _;
use zareba_runtime_docker::DockerRuntime;

use super::{
    Engine,
    exec::{Exec, PEER as EXEC},
    plan, with_engine,
};
use crate::{
    ahead::{Starting, Taking, fill},
    floors::Echo,
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
const WHAT_ANSWERED: &str = "warm container, create to first output";

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
    let answered = measure_answers(engine, setting, &warm)?;
    let counts = warm.runtime().pool().unwrap_or_default();
    warm.wait(warm.runtime().cool_down());
    let row = |percentile: &str, value, beside| {
        Row::new(format!("{WHAT}, {percentile}"), Quantity::time(value))
            .beside(BESIDE, Quantity::time(beside))
    };
    let goal = Goal::AtMost(Quantity::milliseconds(5.0));
    let asked = Quantity::Count((counts.handed_out + counts.cold) as f64);
    let created = [
        row("p50", taken.p50(), started.p50()).goal(goal),
        row("p99", taken.p99(), started.p99()),
    ];
    let handed_out = Row::new(
        "warm containers handed out",
        Quantity::Count(counts.handed_out as f64),
    )
    .goal(Goal::RatioAtLeast(1.0))
    .beside("asked for", asked);
    Ok(created
        .into_iter()
        .chain(answered)
        .chain([handed_out])
        .collect())
}

/// What a session waits for in all, beside the two ways that the Engine offers to the same answer:
/// a container of its own, and a process in one that runs already.
fn measure_answers(
    engine: &Engine,
    setting: &Setting,
    warm: &Sandboxes<DockerRuntime>,
) -> anyhow::Result<[Row; 3]> {
    let bare = engine.bare()?;
    let container = bare.start()?;
    let mut exec = Exec {
        engine: &bare,
        container: &container,
    };
    let mut run = Echo::of(engine.image.command());
    let subjects: [&mut dyn Subject; 3] = [&mut Answering(warm), &mut run, &mut exec];
    let measured = side_by_side(subjects, plan(setting, RUNS));
    bare.remove(&container)?;
    let [ours, run, exec] = measured?;
    let row = |what: &str, value, peer: &'static str, beside| {
        Row::new(format!("{WHAT_ANSWERED}, {what}"), Quantity::time(value))
            .beside(peer, Quantity::time(beside))
    };
    Ok([
        row("p50", ours.p50(), "docker run", run.p50()),
        row("p99", ours.p99(), "docker run", run.p99()),
        row("p50, beside exec", ours.p50(), EXEC, exec.p50()),
    ])
}

/// Takes one, and has it answer.
struct Answering<'a>(&'a Sandboxes<DockerRuntime>);

impl Subject for Answering<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let sandbox = self.0.create_and_ask()?;
        let elapsed = start.elapsed();
        self.0.close(&*sandbox)?;
        fill(self.0)?;
        Ok(elapsed)
    }
}
