//! Python tools over HTTP, beside the tool server of `camel-ai` with the same toolkit and the same
//! interpreter: once asked by the same bare requests, and once as programs do it, by the runtime
//! class of each side. Ours runs them in a sandbox, theirs has none.

use crate::{
    lane::{race_beside, side_by_side},
    peers::{CamelWorkspace, ClientClass},
    quantity::Quantity,
    setting::{Effort, Setting},
    stats::{Samples, median},
    table::{Goal, Row},
};

const RUNS: usize = 2000;
const CALLERS: usize = 8;
const PROGRAM_RUNS: usize = 500;
const THREADS: u32 = 8;
const THREAD_CALLS: u32 = 50;
const ROUNDS: usize = 3;
const STARTS: usize = 5;
const THEIRS: &str = "camel-ai";
const TOOLKIT: &str = "camel.toolkits.MathToolkit";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let workspace = match CamelWorkspace::make(&setting.program.scratch) {
        Ok(workspace) => workspace,
        Err(why) => return Ok(vec![Row::absent("a Python tool over HTTP", why)]),
    };
    let mut rows = calls(setting, &workspace)?;
    rows.extend(programs(setting, &workspace)?);
    rows.extend(starts(setting, &workspace)?);
    Ok(rows)
}

fn calls(setting: &Setting, workspace: &CamelWorkspace) -> anyhow::Result<Vec<Row>> {
    let ours = workspace.ours(&setting.program, TOOLKIT)?;
    let theirs = workspace.theirs(TOOLKIT)?;
    let (mut one, mut other) = (ours.lane()?, theirs.lane()?);
    let plan = setting.effort.plan(RUNS);
    let [of_ours, of_theirs] = side_by_side([&mut one, &mut other], plan)?;
    let timed = |percentile: &str, ours, theirs| {
        let name = format!("a Python tool over HTTP, one caller, {percentile}");
        Row::new(name, Quantity::time(ours)).beside(THEIRS, Quantity::time(theirs))
    };
    let goal = Goal::AtMost(Quantity::milliseconds(1.0));
    let mut rows = vec![
        timed("p50", of_ours.p50(), of_theirs.p50()).goal(goal),
        timed("p99", of_ours.p99(), of_theirs.p99()),
    ];
    let (mut many, mut others) = (ours.lanes(CALLERS)?, theirs.lanes(CALLERS)?);
    let (rate, of_theirs) = race_beside(&mut many, &mut others, setting.effort.race_time())?;
    // Both are held up by the one interpreter that runs the tools.
    let name = format!("Python tools over HTTP, {CALLERS} callers");
    rows.push(Row::new(name, rate).beside(THEIRS, of_theirs));
    Ok(rows)
}

/// What a program of their users sees: their class and their server, or with one import changed.
fn programs(setting: &Setting, workspace: &CamelWorkspace) -> anyhow::Result<Vec<Row>> {
    let program = &setting.program;
    let (server, their_server) = (
        workspace.ours(program, TOOLKIT)?,
        workspace.theirs(TOOLKIT)?,
    );
    let mut ours = workspace.client(program, ClientClass::Ours, &server)?;
    let mut theirs = workspace.client(program, ClientClass::Theirs, &their_server)?;
    let plan = setting.effort.plan(PROGRAM_RUNS);
    let [one, other] = side_by_side([&mut ours, &mut theirs], plan)?;
    let calls = match setting.effort {
        Effort::Full => THREAD_CALLS,
        Effort::Quick => 5,
    };
    let (mut rates, mut their_rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        rates.push(ours.race(THREADS, calls)?);
        their_rates.push(theirs.race(THREADS, calls)?);
    }
    let class = "a Python tool by the runtime class";
    let latency = Row::new(format!("{class}, p50"), Quantity::time(one.p50()));
    let name = format!("{class}, {THREADS} threads");
    let rate = Row::new(name, Quantity::PerSecond(median(&rates)));
    Ok(vec![
        latency.beside(THEIRS, Quantity::time(other.p50())),
        rate.beside(THEIRS, Quantity::PerSecond(median(&their_rates)))
            .goal(Goal::RatioAtLeast(5.0)),
    ])
}

/// From the start of the program to the first answer: a sandbox, an interpreter, the tools.
fn starts(setting: &Setting, workspace: &CamelWorkspace) -> anyhow::Result<Vec<Row>> {
    let count = match setting.effort {
        Effort::Full => STARTS,
        Effort::Quick => 1,
    };
    let (mut plain, mut toolkit, mut theirs) =
        (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..count {
        plain.push(workspace.ours(&setting.program, "plain.add")?.start_time);
        toolkit.push(workspace.ours(&setting.program, TOOLKIT)?.start_time);
        theirs.push(workspace.theirs(TOOLKIT)?.start_time);
    }
    let row = |what: &str, samples: &Samples| {
        let name = format!("a tool server is ready, {what}, p50");
        let row = Row::new(name, Quantity::time(samples.p50()));
        row.beside(THEIRS, Quantity::time(theirs.p50()))
    };
    let goal = Goal::AtMost(Quantity::milliseconds(150.0));
    Ok(vec![
        row("a plain function", &plain).goal(goal),
        row("CAMEL's MathToolkit", &toolkit),
    ])
}
