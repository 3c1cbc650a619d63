//! Sandboxes that were started before anybody asked for one.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use zareba_runtime::{Runtime as _, Sandbox};
use zareba_runtime_native::NativeRuntime;

use crate::{
    ahead::{Starting, Taking, fill},
    lane::{Plan, Subject, side_by_side},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::{Effort, Setting},
    stats::Samples,
    table::{Goal, Row},
};

const RUNS: usize = 120;
const BESIDE: &str = "started when asked for";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let (size, rounds) = match setting.effort {
        Effort::Full => (16, 4),
        Effort::Quick => (4, 1),
    };
    let warm = Sandboxes::behind_walls(&setting.program, size)?;
    let cold = Sandboxes::behind_walls(&setting.program, 0)?;
    fill(&warm)?;
    let plan = setting.effort.slow_plan(RUNS);
    let plan = Plan {
        budget: plan.budget * 2,
        ..plan
    };
    let subjects: [&mut dyn Subject; 2] = [&mut Taking(&warm), &mut Starting(&cold)];
    let [taken, started] = side_by_side(subjects, plan)?;
    let in_a_row = (0..rounds)
        .map(|_| take_all(&warm, size))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let in_a_row: Samples = in_a_row.into_iter().flatten().collect();
    let counts = warm.runtime().pool().unwrap_or_default();
    warm.wait(warm.runtime().cool_down());
    let goal = Goal::AtMost(Quantity::milliseconds(1.0));
    let row = |what: &str, value, beside| {
        Row::new(what, Quantity::time(value)).beside(BESIDE, Quantity::time(beside))
    };
    let all = format!("{size} in a row while others are started, p50");
    let hits = Quantity::Count(counts.handed_out as f64);
    let asked = Quantity::Count((counts.handed_out + counts.cold) as f64);
    Ok(vec![
        row("warm sandbox, create, p50", taken.p50(), started.p50()).goal(goal),
        row("warm sandbox, create, p99", taken.p99(), started.p99()),
        row(
            &format!("warm sandbox, create, {all}"),
            in_a_row.p50(),
            started.p50(),
        ),
        Row::new("warm sandboxes handed out", hits)
            .goal(Goal::RatioAtLeast(1.0))
            .beside("asked for", asked),
    ])
}

/// Takes as many as wait, one after the other; the first of those that take their places are
/// being started meanwhile.
fn take_all(sandboxes: &Sandboxes<NativeRuntime>, count: usize) -> anyhow::Result<Vec<Duration>> {
    fill(sandboxes)?;
    let mut taken: Vec<Arc<dyn Sandbox>> = Vec::new();
    let mut timings = Vec::new();
    for _ in 0..count {
        let start = Instant::now();
        taken.push(sandboxes.create()?);
        timings.push(start.elapsed());
    }
    for sandbox in &taken {
        sandboxes.ask(&**sandbox, "echo hi", "hi")?;
    }
    sandboxes.close_all(&taken)?;
    Ok(timings)
}
