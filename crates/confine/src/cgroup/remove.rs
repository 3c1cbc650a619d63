//! Taking directories away again, the inner ones first, with patience and an end to it.

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    CgroupError, Version,
    directory::is_gone,
    events::{EventsFile, Pauses},
    seats::{Seat, Seats},
};

/// What becomes of the directory that all sandboxes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// The last sandbox takes it along, so that nothing of ours stays on an unused machine.
    RemoveWhenEmpty,
    /// A leaf went; its group is still there.
    Keep,
}

pub(super) fn remove_seats(seats: &Seats, within: Duration, home: Home) -> Result<(), CgroupError> {
    let deadline = Instant::now() + within;
    let mut failures: Vec<(PathBuf, io::Error)> = Vec::new();
    for seat in seats.own() {
        match remove_seat(seat, deadline) {
            Ok(()) => {
                if let (Home::RemoveWhenEmpty, Some(home)) = (home, seat.directory.path().parent())
                {
                    // It stays when another sandbox is in it, and the kernel decides that.
                    let _ = std::fs::remove_dir(home);
                }
            }
            Err(error) => failures.push((seat.directory.path().to_owned(), error)),
        }
    }
    let mut failures = failures.into_iter();
    match failures.next() {
        None => Ok(()),
        Some((first, source)) => {
            let others = failures.map(|(path, _)| path).collect();
            Err(CgroupError::Busy {
                first,
                others,
                waited: within,
                source,
            })
        }
    }
}

fn remove_seat(seat: &Seat, deadline: Instant) -> io::Result<()> {
    let mut pauses = Pauses::until(deadline);
    loop {
        let removed = seat
            .directory
            .remove_children()
            .and_then(|()| std::fs::remove_dir(seat.directory.path()));
        match removed {
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                wait_until_empty(seat, deadline);
                if !pauses.pause() {
                    return Err(error);
                }
            }
            removed => return removed,
        }
    }
}

/// The second generation announces the end of the last process; the first does not.
fn wait_until_empty(seat: &Seat, deadline: Instant) {
    if seat.version == Version::V2
        && let Ok(events) = EventsFile::open(&seat.directory, "cgroup.events")
    {
        // Whatever comes of it, the removal is tried again.
        let _ = events.wait("populated", 0, deadline);
    }
}
