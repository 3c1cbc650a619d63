//! The spawner's own side.

use std::{
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
};

use rustix::{
    io::{Errno, retry_on_intr},
    net::{SendFlags, send},
    stdio,
};
use zareba_confine::{fork_beside, handover, network::ReadyNetwork, reset_signals, show_arguments};

use super::{
    GO_AHEAD,
    ahead::Ahead,
    order::{ORDER_MAX_BYTES, SpawnOrder},
};
use crate::{RunCommand, native};

/// Starts a supervisor for every order that comes on standard input, until whoever has started us
/// is gone. The calling process must have a single thread, and nothing of its own.
///
/// An order is read by the copy that it is for, and wiped here: the next copy has all of our memory.
///
/// # Errors
/// When the channel cannot be used.
pub fn serve_spawner(supervise: RunCommand) -> io::Result<()> {
    reset_signals()?;
    native::find_out_for_all();
    let mut order = vec![0; ORDER_MAX_BYTES];
    let mut ahead = Ahead::new();
    loop {
        let channel = stdio::stdin();
        ahead.prepare_until_an_order_comes(channel)?;
        let (length, standard) = match handover::receive_with(channel, &mut order) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let order = order.get_mut(..length).unwrap_or_default();
        let started = match <[OwnedFd; 3]>::try_from(standard) {
            Ok(standard) => {
                let network = SpawnOrder::has_empty_network(order).then(|| ahead.take_network());
                start(order, standard, network.flatten(), supervise)
            }
            Err(_) => Err(io::ErrorKind::InvalidData.into()),
        };
        order.fill(0);
        let answer = started.unwrap_or_else(|error| {
            let errno = error.raw_os_error();
            -errno.unwrap_or(Errno::INVAL.raw_os_error())
        });
        send(channel, &answer.to_ne_bytes(), SendFlags::NOSIGNAL)?;
    }
}

/// A copy of this process that goes on as a supervisor.
fn start(
    order: &[u8],
    standard: [OwnedFd; 3],
    network: Option<ReadyNetwork>,
    supervise: RunCommand,
) -> io::Result<i32> {
    fork_beside(move || {
        let begun = take_over(standard).and_then(|()| {
            if let Some(network) = network {
                network.keep();
            }
            let order = SpawnOrder::decode(order).ok_or(io::ErrorKind::InvalidData)?;
            show_arguments(order.arguments.join("\0".as_ref()).as_bytes())?;
            await_word()?;
            Ok(order)
        });
        match begun {
            Ok(order) => supervise(order.arguments, order.environment),
            Err(error) => {
                let _ = writeln!(io::stderr(), "cannot begin as a supervisor: {error}");
                1
            }
        }
    })
}

/// Has the standard descriptors.
fn take_over([input, output, errors]: [OwnedFd; 3]) -> io::Result<()> {
    stdio::dup2_stdin(&input)?;
    stdio::dup2_stdout(&output)?;
    stdio::dup2_stderr(&errors)?;
    // Nobody else would see the end of these.
    drop((input, output, errors));
    Ok(())
}

/// Waits for the word to go ahead: without it whoever gave the order may have started another in our
/// place. Until then nothing has been done that anybody could notice.
fn await_word() -> io::Result<()> {
    let mut word = [0; GO_AHEAD.len()];
    retry_on_intr(|| rustix::io::read(stdio::stdin(), &mut word))?;
    if word == *GO_AHEAD {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
