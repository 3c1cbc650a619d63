//! How the creation of sandboxes grows with the processors, beside bubblewrap, which shares nothing
//! between its sandboxes: what both lack at many processors is the kernel's own limit.

use std::time::Duration;

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
        rows.push(match peers::bubblewrap() {
            Err(_) => row,
            Ok(_) => {
                let wrapped = on_processors(processors, || {
                    rate(clients, duration, |_| {
                        let command = peers::bubblewrap().map_err(anyhow::Error::msg)?;
                        let mut echo = Echo::of(command);
                        Ok(move || echo.once().map(drop))
                    })
                })?;
                row.beside("bwrap", Quantity::PerSecond(wrapped))
            }
        });
    }
    Ok(rows)
}
