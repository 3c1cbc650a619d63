//! The spawner's own side.

use std::{
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
};

use rustix::{
    io::Errno,
    net::{SendFlags, send},
    stdio,
};
use zareba_confine::{fork_beside, handover, show_arguments};

use super::order::{ORDER_MAX_BYTES, SpawnOrder};
use crate::{RunCommand, native};

/// Starts a supervisor for every order that comes on standard input, until whoever has started us
/// is gone. The calling process must have a single thread, and nothing of its own.
///
/// # Errors
/// When the channel cannot be used.
pub fn serve_spawner(supervise: RunCommand) -> io::Result<()> {
    native::find_out_for_all();
    let mut bytes = vec![0; ORDER_MAX_BYTES];
    loop {
        let channel = stdio::stdin();
        let (length, standard) = match handover::receive_with(channel, &mut bytes) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let order = bytes.get(..length).and_then(SpawnOrder::decode);
        let started = match (order, <[OwnedFd; 3]>::try_from(standard)) {
            (Some(order), Ok(standard)) => start(order, standard, supervise),
            _ => Err(io::ErrorKind::InvalidData.into()),
        };
        let answer = started.unwrap_or_else(|error| {
            let errno = error.raw_os_error();
            -errno.unwrap_or(Errno::INVAL.raw_os_error())
        });
        send(channel, &answer.to_ne_bytes(), SendFlags::NOSIGNAL)?;
    }
}

/// A copy of this process that goes on as a supervisor.
fn start(order: SpawnOrder, standard: [OwnedFd; 3], supervise: RunCommand) -> io::Result<i32> {
    fork_beside(move || {
        let shown = order.arguments.join("\0".as_ref());
        let begun = take_over(&standard).and_then(|()| show_arguments(shown.as_bytes()));
        drop(standard);
        match begun {
            Ok(()) => supervise(order.arguments, order.environment),
            Err(_) => 1,
        }
    })
}

fn take_over([input, output, errors]: &[OwnedFd; 3]) -> io::Result<()> {
    stdio::dup2_stdin(input.as_fd())?;
    stdio::dup2_stdout(output.as_fd())?;
    stdio::dup2_stderr(errors.as_fd())?;
    // Keys pressed at a terminal are not meant for it.
    rustix::process::setpgid(None, None)?;
    Ok(())
}
