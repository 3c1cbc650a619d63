//! What an executor holds while nothing runs.

use std::time::Duration;

use crate::{
    actions::{self, Place},
    executor::{Executor, Transport},
    lane::Lane as _,
    proc,
    quantity::Quantity,
    setting::Setting,
    table::{Goal, Row},
};

const COMMANDS: usize = 100;

/// Enough to see what the pages cost that all of them share.
const COMPANY: usize = 8;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let goal = Goal::AtMost(Quantity::mebibytes(3.0));
    let executor = Executor::start(&setting.program, Transport::Tcp)?;
    become_idle();
    let fresh = proc::memory(executor.pid())?;
    let mut lane = executor.lane(vec![actions::run("echo hi", &Place::DefaultShell)])?;
    for _ in 0..COMMANDS {
        lane.send()?;
        lane.receive()?;
    }
    become_idle();
    let used = proc::memory(executor.pid())?;
    let shells = proc::children(executor.pid())?;
    let mut shell_resident = 0.0;
    for shell in shells {
        shell_resident += proc::resident(shell)?.amount();
    }
    let shell_resident = Quantity::Bytes(shell_resident);
    let in_company = in_company(setting)?;
    let mut rows = vec![
        Row::new("executor idle, PSS", fresh.proportional)
            .goal(goal)
            .beside("RSS of its bash", shell_resident),
        Row::new("executor idle after 100 commands, PSS", used.proportional)
            .goal(goal)
            .beside("RSS of its bash", shell_resident),
        Row::new("of that anonymous, thus not shared", used.anonymous),
        Row::new(
            format!("executor idle, PSS of one of {COMPANY}"),
            in_company,
        )
        .goal(goal)
        .beside("RSS of its bash", shell_resident),
    ];
    rows.push(match setting.peer() {
        Ok(peer) => Row::new("executor idle, PSS, beside SWE-ReX", used.proportional)
            .beside("SWE-ReX, RSS", peer.resident),
        Err(why) => Row::absent("executor idle, PSS, beside SWE-ReX", why.clone()),
    });
    Ok(rows)
}

/// An executor counts as idle, and gives memory back, when it was quiet for a second.
pub(super) fn become_idle() {
    std::thread::sleep(Duration::from_millis(1500));
}

/// The mean of several executors that run at once.
fn in_company(setting: &Setting) -> anyhow::Result<Quantity> {
    let executors = (0..COMPANY)
        .map(|_| Executor::start(&setting.program, Transport::Tcp))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut sum = 0.0;
    for executor in &executors {
        sum += proc::memory(executor.pid())?.proportional.amount();
    }
    Ok(Quantity::Bytes(sum / COMPANY as f64))
}
