//! Several shells at once, each with a connection of its own.

use crate::{
    actions::{self, Place},
    executor::{Executor, HttpLane, Transport},
    floors::{Bash, RcFile},
    lane::race_beside,
    proc,
    quantity::Quantity,
    setting::Setting,
    table::{Goal, Row},
};

/// What agents do all day, without what a disk or a program would add.
const LIGHT: [&str; 5] = [
    "true",
    "echo hi",
    "cd /tmp && pwd",
    "x=$((x + 1)); echo $x",
    "[ -d /usr ] || echo gone",
];

/// Some milliseconds of one core.
const HEAVY: [&str; 1] = ["for ((i = 0; i < 5000; i++)); do :; done"];

const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];
const FLOOR: &str = "as many bashes on pipes";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let executor = Executor::start(&setting.program, Transport::Tcp)?;
    let mut rows = Vec::new();
    let (light, mut light_rates) = (&LIGHT[..], Vec::new());
    for count in COUNTS {
        let (ours, floor) = rates(setting, &executor, light, count)?;
        rows.push(
            Row::new(format!("light commands, {}", shells(count)), ours).beside(FLOOR, floor),
        );
        light_rates.push((ours, floor));
    }
    // Without a goal: one bare bash and its asker wait for each other, and how fast that goes
    // depends on whether the kernel puts them on one core, so its speed-up varies threefold.
    rows.push(speed_up(
        "light commands, 16 shells against 1",
        light_rates[0],
        light_rates[COUNTS.len() - 1],
    ));
    let one = rates(setting, &executor, &HEAVY, 1)?;
    let all = rates(setting, &executor, &HEAVY, COUNTS[COUNTS.len() - 1])?;
    let what = format!(
        "busy commands, 16 shells against 1, {} cores",
        proc::cores()
    );
    rows.push(speed_up(&what, one, all).goal(Goal::RatioAtLeast(0.8)));
    Ok(rows)
}

fn shells(count: usize) -> String {
    if count == 1 {
        "1 shell".to_owned()
    } else {
        format!("{count} shells")
    }
}

/// How many times the first rate the second is; bare bashes say what the cores can give.
fn speed_up(what: &str, one: (Quantity, Quantity), many: (Quantity, Quantity)) -> Row {
    let ours = Quantity::Times(many.0.amount() / one.0.amount());
    let floor = Quantity::Times(many.1.amount() / one.1.amount());
    Row::new(what, ours).beside(FLOOR, floor)
}

fn rates(
    setting: &Setting,
    executor: &Executor,
    commands: &[&str],
    count: usize,
) -> anyhow::Result<(Quantity, Quantity)> {
    let mut lanes: Vec<HttpLane> = (0..count)
        .map(|number| {
            let name = format!("shell-{number}");
            let place = Place::Shell(&name);
            let requests = commands
                .iter()
                .map(|command| actions::run(command, &place))
                .collect();
            Ok(executor.lane(requests)?.expecting("\"exit_code\":0"))
        })
        .collect::<anyhow::Result<_>>()?;
    let mut bashes: Vec<Bash> = (0..count)
        .map(|_| Bash::start(&setting.program.home, RcFile::Ignored, commands))
        .collect::<anyhow::Result<_>>()?;
    race_beside(&mut lanes, &mut bashes, setting.effort.race_time())
}
