//! A command in a container that runs, beside the Engine's own way to start one.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use zareba_runtime::Sandbox;
use zareba_runtime_docker::DockerRuntime;

use super::{Engine, with_engine};
use crate::{
    floors::BareEngine,
    lane::{Plan, Subject, side_by_side},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::Setting,
    table::{Goal, Row},
};

const RUNS: usize = 1000;
const RUNS_OF_ENGINE: usize = 40;
const WHAT: &str = "`true` in a container";
const WHAT_BASH: &str = "`true` in a container with bash, p50";
pub(super) const PEER: &str = "Engine's exec";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    with_engine(setting, WHAT, |engine| measure_with(engine, setting))
}

fn measure_with(engine: &Engine, setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let sandboxes = engine.sandboxes(setting, 0)?;
    let bare = engine.bare()?;
    let mut shell = Shell {
        sandbox: sandboxes.create_and_ask()?,
        sandboxes: &sandboxes,
    };
    let container = bare.start()?;
    let mut exec = Exec {
        engine: &bare,
        container: &container,
    };
    let [ours] = side_by_side([&mut shell], setting.effort.plan(RUNS))?;
    let plan = setting.effort.slow_plan(RUNS_OF_ENGINE);
    let plan = Plan { block: 5, ..plan };
    let [in_turns, theirs] = side_by_side([&mut shell, &mut exec], plan)?;
    sandboxes.close(&*shell.sandbox)?;
    bare.remove(&container)?;
    let row = |what: String, value| {
        Row::new(what, Quantity::time(value)).beside(PEER, Quantity::time(theirs.p50()))
    };
    Ok(vec![
        row(format!("{WHAT}, p50"), ours.p50()).goal(goal()),
        row(format!("{WHAT}, p99"), ours.p99()),
        row(format!("{WHAT}, p50, in turns with it"), in_turns.p50()),
        measure_bash(engine, setting)?,
    ])
}

fn goal() -> Goal {
    Goal::AtMost(Quantity::milliseconds(1.0))
}

/// The same where the image has bash, which is driven in another way.
fn measure_bash(engine: &Engine, setting: &Setting) -> anyhow::Result<Row> {
    let engine = match engine.with_bash(setting) {
        Ok(engine) => engine,
        Err(why) => return Ok(Row::absent(WHAT_BASH, why)),
    };
    let sandboxes = engine.sandboxes(setting, 0)?;
    let mut shell = Shell {
        sandbox: sandboxes.create_and_ask()?,
        sandboxes: &sandboxes,
    };
    let [ours] = side_by_side([&mut shell], setting.effort.plan(RUNS))?;
    sandboxes.close(&*shell.sandbox)?;
    Ok(Row::new(WHAT_BASH, Quantity::time(ours.p50())).goal(goal()))
}

/// A shell that is there already.
struct Shell<'a> {
    sandboxes: &'a Sandboxes<DockerRuntime>,
    sandbox: Arc<dyn Sandbox>,
}

impl Subject for Shell<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.sandboxes.ask(&*self.sandbox, "true", "")?;
        Ok(start.elapsed())
    }
}

/// A new process by the Engine, until it has ended.
pub(super) struct Exec<'a> {
    pub(super) engine: &'a BareEngine,
    pub(super) container: &'a str,
}

impl Subject for Exec<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.engine.exec(self.container, "true")?;
        Ok(start.elapsed())
    }
}
