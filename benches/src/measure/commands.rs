//! The smallest commands in an existing shell, over HTTP.

use crate::{
    actions::{self, Place},
    executor::{Executor, Transport},
    floors::{Bash, RcFile},
    lane::side_by_side,
    quantity::Quantity,
    setting::Setting,
    stats::Samples,
    table::{Goal, Row},
};

const RUNS: usize = 3000;
const FLOOR: &str = "bash on pipes";

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let tcp = Executor::start(&setting.program, Transport::Tcp)?;
    let unix = Executor::start(&setting.program, Transport::Unix)?;
    let mut rows = vec![round_trip(setting, &tcp)?];
    for (command, answer) in [
        ("true", "\"content\":\"\""),
        ("echo hi", "\"content\":\"hi\""),
    ] {
        let request = || vec![actions::run(command, &Place::DefaultShell)];
        let mut over_tcp = tcp.lane(request())?.expecting(answer);
        let mut over_unix = unix.lane(request())?.expecting(answer);
        let mut bash = Bash::start(&setting.program.home, RcFile::Ignored, &[command])?;
        let plan = setting.effort.plan(RUNS);
        let [of_tcp, of_unix, of_bash] =
            side_by_side([&mut over_tcp, &mut over_unix, &mut bash], plan)?;
        rows.extend(judged(command, "TCP", &of_tcp, &of_bash));
        rows.extend(judged(command, "Unix socket", &of_unix, &of_bash));
        rows.extend(beside_peer(setting, command, &of_tcp));
    }
    Ok(rows)
}

/// What HTTP alone costs, which every other row contains.
fn round_trip(setting: &Setting, executor: &Executor) -> anyhow::Result<Row> {
    let mut lane = executor.lane(vec![actions::alive()])?.expecting("ok");
    let [samples] = side_by_side([&mut lane], setting.effort.plan(RUNS))?;
    Ok(Row::new(
        "GET /alive, TCP, p50",
        Quantity::time(samples.p50()),
    ))
}

fn judged(command: &str, transport: &str, samples: &Samples, floor: &Samples) -> [Row; 2] {
    let row = |name: &str, value, floor, limit| {
        Row::new(
            format!("`{command}`, {transport}, {name}"),
            Quantity::time(value),
        )
        .goal(Goal::AtMost(Quantity::milliseconds(limit)))
        .beside(FLOOR, Quantity::time(floor))
    };
    [
        row("p50", samples.p50(), floor.p50(), 0.5),
        row("p99", samples.p99(), floor.p99(), 2.0),
    ]
}

fn beside_peer(setting: &Setting, command: &str, samples: &Samples) -> Vec<Row> {
    let name = |percentile: &str| format!("`{command}`, TCP, {percentile}, beside SWE-ReX");
    match setting.peer() {
        Err(why) => vec![Row::absent(name("p50"), why.clone())],
        Ok(peer) => {
            let (p50, p99) = if command == "true" {
                (peer.true_p50, peer.true_p99)
            } else {
                (peer.echo_p50, peer.echo_p99)
            };
            vec![
                Row::new(name("p50"), Quantity::time(samples.p50())).beside("SWE-ReX", p50),
                Row::new(name("p99"), Quantity::time(samples.p99())).beside("SWE-ReX", p99),
            ]
        }
    }
}
