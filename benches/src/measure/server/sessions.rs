//! Many sessions of one server: what it holds for them, whether all can work at once, and whether
//! its memory stays what it is while everybody is watched.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::{
    lane::race,
    measure::{memory::become_idle, native::idle::allow_many_open_files},
    proc,
    quantity::Quantity,
    server::{Server, Subscriber},
    setting::{Effort, Setting},
    table::{Goal, Row},
};

/// Memory that is left to the machine.
const SPARE_MEBIBYTES: f64 = 1024.0;
/// Time after which the sessions that are there must do.
const BUDGET: Duration = Duration::from_secs(120);
/// Time after which the rounds so far must do.
const ROUNDS_BUDGET: Duration = Duration::from_secs(60);

/// How many of everything.
struct Crowd {
    idle: usize,
    busy: usize,
    watched: usize,
    rounds: usize,
}

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let crowd = match setting.effort {
        Effort::Full => Crowd {
            idle: 100,
            busy: 200,
            watched: 1000,
            rounds: 20,
        },
        Effort::Quick => Crowd {
            idle: 5,
            busy: 10,
            watched: 20,
            rounds: 3,
        },
    };
    allow_many_open_files()?;
    let server = Server::start(&setting.program, &[])?;
    let mut rows = vec![idle(&server, crowd.idle)?];
    rows.push(busy(&server, crowd.busy, setting.effort.race_time())?);
    rows.extend(watched(&server, crowd.watched, crowd.rounds)?);
    server.close_sessions()?;
    Ok(rows)
}

fn idle(server: &Server, count: usize) -> anyhow::Result<Row> {
    let empty = proc::resident(server.pid())?;
    server.make_sessions(count, || false)?;
    become_idle();
    let name = format!("server with {count} sessions, RSS");
    Ok(Row::new(name, proc::resident(server.pid())?)
        .goal(Goal::AtMost(Quantity::mebibytes(50.0)))
        .beside("with none", empty))
}

/// All of them work at once; one wrong answer fails it.
fn busy(server: &Server, count: usize, time: Duration) -> anyhow::Result<Row> {
    server.make_sessions(count, || false)?;
    let alone = race(&mut [server.lane(0)?], time)?;
    let mut lanes = (0..count)
        .map(|session| server.lane(session))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let all = race(&mut lanes, time)?;
    let name = format!("`true` in {count} sessions at once, without an error");
    Ok(Row::new(name, Quantity::PerSecond(all)).beside("in one", Quantity::PerSecond(alone)))
}

/// Every session works, and everything that happens in it is told to somebody at once.
fn watched(server: &Server, wanted: usize, rounds: usize) -> anyhow::Result<Vec<Row>> {
    let start = Instant::now();
    server.make_sessions(wanted, || start.elapsed() > BUDGET || is_memory_short())?;
    let count = server.sessions();
    let mut subscribers = (0..count)
        .map(|session| server.subscribe(session))
        .collect::<anyhow::Result<Vec<_>>>()?;
    // The first round fills what is kept for each of them.
    round(server, &mut subscribers)?;
    let before = proc::resident(server.pid())?;
    let start = Instant::now();
    let mut done = 0;
    while done < rounds && start.elapsed() < ROUNDS_BUDGET {
        round(server, &mut subscribers)?;
        done += 1;
    }
    let rate = done as f64 * count as f64 / start.elapsed().as_secs_f64();
    let name = format!("server with {count} sessions and as many subscribers");
    let mut rows = vec![
        Row::new(
            format!("{name}, RSS after {done} rounds"),
            proc::resident(server.pid())?,
        )
        .goal(Goal::RatioAtMost(1.1))
        .beside("after the first", before),
        Row::new(
            format!("{name}, `true` told to all"),
            Quantity::PerSecond(rate),
        ),
    ];
    if count < wanted {
        let why = format!("{count}: there is no time or memory for more");
        rows.push(Row::absent(format!("{wanted} sessions"), why));
    }
    Ok(rows)
}

fn round(server: &Server, subscribers: &mut [Subscriber]) -> anyhow::Result<()> {
    let last = server.round(subscribers.len())?;
    ensure!(last.len() == subscribers.len(), "a session was left out");
    for (subscriber, last) in subscribers.iter_mut().zip(last) {
        subscriber.read_until(last)?;
    }
    Ok(())
}

fn is_memory_short() -> bool {
    let spare = Quantity::mebibytes(SPARE_MEBIBYTES).amount();
    proc::memory_available().is_ok_and(|left| left.amount() < spare)
}
