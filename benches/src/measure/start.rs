//! From starting the program to the first answer that it is ready, its first shell included.

use std::time::Duration;

use crate::{
    executor::{Executor, Program, Transport},
    floors::{BashStart, RcFile},
    lane::{Subject, side_by_side},
    quantity::Quantity,
    setting::Setting,
    stats::Samples,
    table::{Goal, Row},
};

const RUNS: usize = 100;
const FLOOR: &str = "interactive bash";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let goal = Goal::AtMost(Quantity::milliseconds(20.0));
    let [executor, bash] = times(setting, &setting.program)?;
    let mut rows = vec![
        row(
            "executor start to /alive, no .bashrc, p50",
            executor.p50(),
            bash.p50(),
        )
        .goal(goal),
        row(
            "executor start to /alive, no .bashrc, p99",
            executor.p99(),
            bash.p99(),
        ),
    ];
    rows.push(match setting.peer() {
        Ok(peer) => Row::new(
            "executor start to /alive, beside SWE-ReX",
            Quantity::time(executor.p50()),
        )
        .beside("SWE-ReX", peer.start),
        Err(why) => Row::absent("executor start to /alive, beside SWE-ReX", why.clone()),
    });
    if let Some(program) = &setting.at_home {
        let [executor, bash] = times(setting, program)?;
        rows.push(row(
            "executor start to /alive, own ~/.bashrc, p50",
            executor.p50(),
            bash.p50(),
        ));
    }
    Ok(rows)
}

fn row(what: &str, value: Duration, floor: Duration) -> Row {
    Row::new(what, Quantity::time(value)).beside(FLOOR, Quantity::time(floor))
}

fn times(setting: &Setting, program: &Program) -> anyhow::Result<[Samples; 2]> {
    let mut executor = ExecutorStart { program };
    let mut bash = BashStart {
        home: program.home.clone(),
        rc_file: RcFile::Read,
    };
    side_by_side([&mut executor, &mut bash], setting.effort.slow_plan(RUNS))
}

struct ExecutorStart<'a> {
    program: &'a Program,
}

impl Subject for ExecutorStart<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        Ok(Executor::start(self.program, Transport::Tcp)?.start_time)
    }
}
