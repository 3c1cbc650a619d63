//! What walls cost a command: the same executor with and without them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use zareba_runtime::{Runtime, Sandbox};

use crate::{
    lane::{Subject, side_by_side},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::Setting,
    table::{Goal, Row},
};

const RUNS: usize = 3000;
const FLOOR: &str = "without walls";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let walled = Sandboxes::behind_walls(&setting.program, 0)?;
    let open = Sandboxes::without_walls(&setting.program)?;
    let (mut inside, mut outside) = (Shell::start(&walled)?, Shell::start(&open)?);
    let plan = setting.effort.plan(RUNS);
    let [with, without] = side_by_side([&mut inside, &mut outside], plan)?;
    inside.end()?;
    outside.end()?;
    let row = |percentile: &str, value, floor| {
        Row::new(
            format!("`true` in a sandbox, {percentile}"),
            Quantity::time(value),
        )
        .beside(FLOOR, Quantity::time(floor))
    };
    Ok(vec![
        row("p50", with.p50(), without.p50()),
        row("p99", with.p99(), without.p99()),
        Row::new(
            "`true` in a sandbox, p50, what the walls cost",
            difference(with.p50(), without.p50()),
        )
        .goal(Goal::AtMost(Quantity::milliseconds(0.2))),
    ])
}

fn difference(one: Duration, other: Duration) -> Quantity {
    Quantity::Seconds(one.as_secs_f64() - other.as_secs_f64())
}

/// A shell that is there already.
struct Shell<'a, R> {
    sandboxes: &'a Sandboxes<R>,
    sandbox: Arc<dyn Sandbox>,
}

impl<'a, R: Runtime + 'static> Shell<'a, R> {
    fn start(sandboxes: &'a Sandboxes<R>) -> anyhow::Result<Self> {
        let sandbox = sandboxes.create_and_ask()?;
        Ok(Self { sandboxes, sandbox })
    }

    fn end(self) -> anyhow::Result<()> {
        self.sandboxes.close(&*self.sandbox)
    }
}

impl<R: Runtime + 'static> Subject for Shell<'_, R> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.sandboxes.ask(&*self.sandbox, "true", "")?;
        Ok(start.elapsed())
    }
}
