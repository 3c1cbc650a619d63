//! Starting our program with its three standard descriptors, whose other ends we have.

use std::{
    fs::{self, File},
    io::{self, PipeWriter},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    process::Command,
};

use super::{LOG, Order, StartServerError, Tether};
use crate::spawner::SpawnOrder;

/// Those of an executor or supervisor.
struct Standard {
    input: OwnedFd,
    output: OwnedFd,
    errors: OwnedFd,
}

/// Our own ends of them.
pub(super) struct Ours {
    pub(super) lifeline: Option<PipeWriter>,
    pub(super) output: OwnedFd,
    pub(super) errors: Option<OwnedFd>,
}

/// Starts our program, as a copy of one that stands ready when that can be. It is our child.
pub(super) fn start(order: &Order<'_>, start: SpawnOrder) -> Result<(i32, Ours), StartServerError> {
    let cannot_spawn = |source| StartServerError::Spawn {
        program: order.program.to_owned(),
        source,
    };
    let (mut standard, mut ours) = Standard::open(order).map_err(StartServerError::Channels)?;
    match standard.copy(order, &start, &ours) {
        Ok(Some(pid)) => return Ok((pid, ours)),
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(%error, "a spawner of sandboxes has failed");
            // What was written to a descriptor that another process had would be taken for a word
            // of the one that we start now, and what is written for that one may not reach it.
            drop((standard, ours));
            (standard, ours) = Standard::open_anew(order).map_err(StartServerError::Channels)?;
        }
    }
    let pid = standard.execute(order, start).map_err(cannot_spawn)?;
    Ok((pid, ours))
}

impl Standard {
    fn open(order: &Order<'_>) -> io::Result<(Self, Ours)> {
        let (output, output_inside) = io::pipe()?;
        let (input, lifeline) = match (order.tether, &order.walls) {
            (Tether::Free, None) => (File::open("/dev/null")?.into(), None),
            _ => {
                let (input, lifeline) = io::pipe()?;
                (OwnedFd::from(input), Some(lifeline))
            }
        };
        let (errors, errors_inside) = match order.tether {
            Tether::Lifeline => {
                let (errors, inside) = io::pipe()?;
                (Some(errors.into()), inside.into())
            }
            // A pipe would break when we go, so it gets a file to complain to.
            Tether::Free => (None, File::create_new(order.directory.join(LOG))?.into()),
        };
        let standard = Self {
            input,
            output: output_inside.into(),
            errors: errors_inside,
        };
        let ours = Ours {
            lifeline,
            output: output.into(),
            errors,
        };
        Ok((standard, ours))
    }

    /// The same after others of the order were given away in vain.
    fn open_anew(order: &Order<'_>) -> io::Result<(Self, Ours)> {
        match order.tether {
            Tether::Lifeline => {}
            Tether::Free => fs::remove_file(order.directory.join(LOG))?,
        }
        Self::open(order)
    }

    /// Has a copy made of a process that stands ready; nothing when none does.
    fn copy(&self, order: &Order<'_>, start: &SpawnOrder, ours: &Ours) -> io::Result<Option<i32>> {
        // Only supervisors are copied, and each of them has a lifeline.
        let (Some(_), Some(lifeline)) = (&order.walls, &ours.lifeline) else {
            return Ok(None);
        };
        let standard = [&self.input, &self.output, &self.errors].map(|own| own.as_fd());
        let spawner = order.spawner;
        spawner.spawn(order.program, start, standard, lifeline)
    }

    fn execute(self, order: &Order<'_>, start: SpawnOrder) -> io::Result<i32> {
        let mut command = Command::new(order.program);
        command
            .args(start.arguments.iter().skip(1))
            .env_clear()
            .envs(start.environment)
            .stdin(self.input)
            .stdout(self.output)
            .stderr(self.errors)
            // Keys pressed at our terminal are not meant for it.
            .process_group(0);
        if order.walls.is_none() {
            // It must not keep the place busy where we happened to be started. A supervisor leaves
            // it by itself: to be told where to go, a child of a static program would have to be a
            // copy of it first, and servers are large.
            command.current_dir("/");
        }
        i32::try_from(command.spawn()?.id()).map_err(io::Error::other)
    }
}
