//! A hundred sandboxes asked for at once, until the last one has answered.

use std::time::{Duration, Instant};

use zareba_runtime_native::NativeRuntime;

use crate::{
    ahead::fill,
    floors::Echo,
    lane::{Plan, Subject, side_by_side},
    measure::memory::become_idle,
    peers,
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::{Effort, Setting},
    stats::Samples,
    table::{Goal, Row},
};

const COUNT: usize = 100;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let sandboxes = Sandboxes::behind_walls(&setting.program, 0)?;
    let mut ours = Burst {
        sandboxes: &sandboxes,
    };
    // As a server does when it begins.
    sandboxes.wait(sandboxes.runtime().warm_up())?;
    become_idle();
    let first = ours.once()?;
    let mut bash = Echo::bash(&setting.program.home).at_once(COUNT);
    let plan = plan(setting.effort);
    let [created, started] = side_by_side([&mut ours, &mut bash], plan)?;
    let name = format!("{COUNT} sandboxes at once, create to last output, p50");
    let mut rows = vec![
        Row::new(name.clone(), Quantity::time(created.p50()))
            .goal(Goal::AtMost(Quantity::milliseconds(400.0)))
            .beside("as many bare `bash -c`", Quantity::time(started.p50())),
    ];
    let name = format!("{name}, beside bubblewrap");
    rows.push(Row::new(
        format!("the first {COUNT} of a server"),
        Quantity::time(first),
    ));
    rows.push(
        Row::new(
            format!("{COUNT} sandboxes at once, from a warm pool of as many, p50"),
            Quantity::time(from_a_pool(setting, plan)?),
        )
        .beside("started when asked for", Quantity::time(created.p50())),
    );
    rows.push(match peers::bubblewrap() {
        Err(why) => Row::absent(name, why),
        Ok(command) => {
            let mut peer = Echo::of(command).at_once(COUNT);
            let [created, wrapped] = side_by_side([&mut ours, &mut peer], plan)?;
            Row::new(name, Quantity::time(created.p50()))
                .beside("as many bwrap", Quantity::time(wrapped.p50()))
        }
    });
    Ok(rows)
}

/// What an operator has who knows how many will be wanted.
fn from_a_pool(setting: &Setting, plan: Plan) -> anyhow::Result<Duration> {
    let sandboxes = Sandboxes::behind_walls(&setting.program, COUNT)?;
    let mut taken = Vec::new();
    for _ in 0..plan.runs {
        fill(&sandboxes)?;
        let mut burst = Burst {
            sandboxes: &sandboxes,
        };
        taken.push(burst.once()?);
    }
    sandboxes.wait(sandboxes.runtime().cool_down());
    Ok(taken.into_iter().collect::<Samples>().p50())
}

fn plan(effort: Effort) -> Plan {
    let (warm_up, runs) = match effort {
        Effort::Full => (1, 5),
        Effort::Quick => (0, 1),
    };
    Plan {
        warm_up,
        runs,
        block: 1,
        budget: Duration::from_secs(15),
    }
}

struct Burst<'a> {
    sandboxes: &'a Sandboxes<NativeRuntime>,
}

impl Subject for Burst<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let created = self.sandboxes.create_at_once(COUNT)?;
        let elapsed = start.elapsed();
        self.sandboxes.close_all(&created)?;
        // What is made ready for the next ones shall take nothing from whoever is measured now.
        become_idle();
        Ok(elapsed)
    }
}
