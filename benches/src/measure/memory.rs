//! What an executor holds while nothing runs.

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

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let goal = Goal::AtMost(Quantity::mebibytes(3.0));
    let executor = Executor::start(&setting.program, Transport::Tcp)?;
    let fresh = proc::memory(executor.pid())?;
    let mut lane = executor.lane(vec![actions::run("echo hi", &Place::DefaultShell)])?;
    for _ in 0..COMMANDS {
        lane.send()?;
        lane.receive()?;
    }
    let used = proc::memory(executor.pid())?;
    let shells = proc::children(executor.pid())?;
    let mut shell_resident = 0.0;
    for shell in shells {
        shell_resident += proc::resident(shell)?.amount();
    }
    let shell_resident = Quantity::Bytes(shell_resident);
    executor.stop()?;
    let mut rows = vec![
        Row::new("executor idle, PSS", fresh.proportional)
            .goal(goal)
            .beside("RSS of its bash", shell_resident),
        Row::new("executor idle after 100 commands, PSS", used.proportional)
            .goal(goal)
            .beside("RSS of its bash", shell_resident),
        Row::new("of that anonymous, thus not shared", used.anonymous),
    ];
    rows.push(match setting.peer() {
        Ok(peer) => Row::new("executor idle, PSS, beside SWE-ReX", used.proportional)
            .beside("SWE-ReX, RSS", peer.resident),
        Err(why) => Row::absent("executor idle, PSS, beside SWE-ReX", why.clone()),
    });
    Ok(rows)
}
