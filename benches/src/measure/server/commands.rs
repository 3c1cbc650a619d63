//! The smallest command through everything: HTTP, session, log, walls. Beside it the executor
//! alone, and what the disk takes for one promise.

use crate::{
    actions::{self, Place},
    executor::{Executor, Transport},
    floors::Sync,
    lane::side_by_side,
    quantity::Quantity,
    server::Server,
    setting::Setting,
    stats::Samples,
    table::{Goal, Row},
};

const RUNS: usize = 2000;
const BARE: &str = "executor alone, TCP";
const SYNC: &str = "one fdatasync";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let program = &setting.program;
    let in_process = Server::start(program, &["log.durability=process"])?;
    let on_disk = Server::start(program, &["log.durability=disk"])?;
    for server in [&in_process, &on_disk] {
        server.make_sessions(1, || false)?;
    }
    let executor = Executor::start(program, Transport::Tcp)?;
    let request = actions::run("true", &Place::DefaultShell);
    let mut alone = executor.lane(vec![request])?.expecting("\"content\":\"\"");
    let (mut surviving_us, mut surviving_all) = (in_process.lane(0)?, on_disk.lane(0)?);
    let mut sync = Sync::new(&program.scratch.join("synced"))?;
    let plan = setting.effort.plan(RUNS);
    let [of_process, of_disk, of_executor, of_sync] = side_by_side(
        [&mut surviving_us, &mut surviving_all, &mut alone, &mut sync],
        plan,
    )?;
    in_process.close_sessions()?;
    on_disk.close_sessions()?;
    let mut rows = Vec::new();
    rows.extend(judged("process", 1.0, &of_process, BARE, &of_executor));
    rows.extend(judged("disk", 1.5, &of_disk, BARE, &of_executor));
    // Two events are recorded, one after the other.
    let promised = Row::new(
        "`true` through the server, log.durability disk, p50, beside the disk",
        Quantity::time(of_disk.p50()),
    );
    rows.push(promised.beside(SYNC, Quantity::time(of_sync.p50())));
    Ok(rows)
}

fn judged(
    durability: &str,
    goal: f64,
    samples: &Samples,
    floor: &'static str,
    of_floor: &Samples,
) -> [Row; 2] {
    let row = |percentile: &str, value, of_floor| {
        let name = format!("`true` through the server, log.durability {durability}, {percentile}");
        Row::new(name, Quantity::time(value)).beside(floor, Quantity::time(of_floor))
    };
    let goal = Goal::AtMost(Quantity::milliseconds(goal));
    [
        row("p50", samples.p50(), of_floor.p50()).goal(goal),
        row("p99", samples.p99(), of_floor.p99()),
    ]
}
