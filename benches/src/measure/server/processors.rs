//! How the actions of a server grow with the processors. The clients run on the same ones.

use std::time::Duration;

use crate::{
    lane::Subject as _,
    processors::{CLIENTS_PER_PROCESSOR, on_processors, rate, steps},
    quantity::Quantity,
    server::Server,
    setting::{Effort, Setting},
    table::{Goal, Row},
};

/// The share of a growth in proportion that must be left.
const SHARE: f64 = 0.6;

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let duration = match setting.effort {
        Effort::Full => Duration::from_secs(5),
        Effort::Quick => Duration::from_millis(300),
    };
    let mut rows = Vec::new();
    let mut on_one = None;
    for processors in steps()? {
        let clients = processors * CLIENTS_PER_PROCESSOR;
        let program = &setting.program;
        let actions = on_processors(processors, || {
            let server = Server::start(program, &[])?;
            server.make_sessions(clients, || false)?;
            let measured = rate(clients, duration, |session| {
                let mut lane = server.lane(session)?;
                Ok(move || lane.once().map(drop))
            });
            server.close_sessions()?;
            measured
        })?;
        let name =
            format!("`true` through the server by {clients} clients on {processors} processors");
        let row = Row::new(name, Quantity::PerSecond(actions));
        let one = *on_one.get_or_insert(actions);
        let in_proportion = one * f64::from(u32::try_from(processors)?);
        rows.push(match processors {
            1 => row,
            _ => row
                .beside("in proportion to one", Quantity::PerSecond(in_proportion))
                .goal(Goal::RatioAtLeast(SHARE)),
        });
    }
    Ok(rows)
}
