//! How the creation of sandboxes grows with the processors, beside bubblewrap and bare namespaces,
//! which share nothing between their sandboxes: what these lack at many processors is the kernel's
//! own limit.

use std::{process::Command, time::Duration};

use crate::{
    floors::Echo,
    lane::Subject as _,
    peers,
    processors::{CLIENTS_PER_PROCESSOR, on_processors, rate, steps},
    quantity::Quantity,
    sandboxes::Sandboxes,
    setting::{Effort, Setting},
    table::Row,
};

type Peer = fn() -> Result<Command, String>;

const PEERS: [(&str, Peer); 2] = [
    ("bwrap", peers::bubblewrap),
    ("bare namespaces", peers::unshare),
];

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let duration = match setting.effort {
        Effort::Full => Duration::from_secs(5),
        Effort::Quick => Duration::from_millis(300),
    };
    let mut rows = Vec::new();
    for processors in steps()? {
        let clients = processors * CLIENTS_PER_PROCESSOR;
        let program = &setting.program;
        let ours = on_processors(processors, || {
            let sandboxes = Sandboxes::behind_walls(program, 0)?;
            sandboxes.wait(sandboxes.runtime().warm_up())?;
            rate(clients, duration, |_| {
                Ok(|| sandboxes.close(&*sandboxes.create_and_ask()?))
            })
        })?;
        let name = format!(
            "sandboxes created, asked and closed by {clients} clients on {processors} processors"
        );
        let row = Row::new(name, Quantity::PerSecond(ours));
        let there = PEERS.iter().filter(|(_, peer)| peer().is_ok());
        let beside = there.map(|(what, peer)| {
            let rate = floor(processors, duration, *peer)?;
            anyhow::Ok(row.clone().beside(what, Quantity::PerSecond(rate)))
        });
        let beside = beside.collect::<anyhow::Result<Vec<_>>>()?;
        rows.extend(if beside.is_empty() { vec![row] } else { beside });
    }
    Ok(rows)
}

fn floor(processors: usize, duration: Duration, peer: Peer) -> anyhow::Result<f64> {
    on_processors(processors, || {
        rate(processors * CLIENTS_PER_PROCESSOR, duration, |_| {
            let mut echo = Echo::of(peer().map_err(anyhow::Error::msg)?);
            Ok(move || echo.once().map(drop))
        })
    })
}
