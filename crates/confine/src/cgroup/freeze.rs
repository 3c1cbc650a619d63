//! Stopping all processes of a group where they are, and letting them go on.

use std::{
    io,
    time::{Duration, Instant},
};

use super::{
    CgroupError, Controller,
    directory::Directory,
    events::{EventsFile, Pauses},
    seats::Seats,
};

const UNIFIED: &str = "cgroup.freeze";
const LEGACY: &str = "freezer.state";

/// What processes are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Frozen,
    Thawed,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Thawed => "thawed",
        }
    }
}

pub(super) fn freeze(seats: &Seats, within: Duration) -> Result<(), CgroupError> {
    change(seats, Wanted::Frozen, within)
}

pub(super) fn thaw(seats: &Seats, within: Duration) -> Result<(), CgroupError> {
    change(seats, Wanted::Thawed, within)
}

/// Asks for a thaw and does not wait for it.
pub(super) fn begin_thaw(seats: &Seats) -> io::Result<()> {
    if let Some(seat) = seats.unified_with(UNIFIED) {
        seat.directory.write(UNIFIED, "0")?;
    }
    if let Some(seat) = seats.with(Controller::Freezer) {
        seat.directory.write(LEGACY, "THAWED")?;
    }
    Ok(())
}

fn change(seats: &Seats, wanted: Wanted, within: Duration) -> Result<(), CgroupError> {
    let deadline = Instant::now() + within;
    let deed = match wanted {
        Wanted::Frozen => "freeze",
        Wanted::Thawed => "thaw",
    };
    let (directory, changed) = if let Some(seat) = seats.unified_with(UNIFIED) {
        (
            &seat.directory,
            change_unified(&seat.directory, wanted, deadline),
        )
    } else if let Some(seat) = seats.with(Controller::Freezer) {
        (
            &seat.directory,
            change_legacy(&seat.directory, wanted, deadline),
        )
    } else {
        return Err(CgroupError::Unavailable { deed });
    };
    if changed.map_err(directory.failure(deed, ""))? {
        Ok(())
    } else {
        let path = directory.path().to_owned();
        Err(CgroupError::Stuck {
            path,
            state: wanted.name(),
            waited: within,
        })
    }
}

fn change_unified(directory: &Directory, wanted: Wanted, deadline: Instant) -> io::Result<bool> {
    let value = u64::from(wanted == Wanted::Frozen);
    let events = EventsFile::open(directory, "cgroup.events")?;
    directory.write(UNIFIED, &value.to_string())?;
    events.wait("frozen", value, deadline)
}

/// The first generation may stay at FREEZING as long as a process cannot be stopped, and wants
/// to be asked again.
fn change_legacy(directory: &Directory, wanted: Wanted, deadline: Instant) -> io::Result<bool> {
    let value = match wanted {
        Wanted::Frozen => "FROZEN",
        Wanted::Thawed => "THAWED",
    };
    let mut pauses = Pauses::until(deadline);
    loop {
        directory.write(LEGACY, value)?;
        if directory.read(LEGACY)? == value {
            return Ok(true);
        }
        if !pauses.pause() {
            return Ok(false);
        }
    }
}
