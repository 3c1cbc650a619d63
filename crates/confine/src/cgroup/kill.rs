//! Ending every process of a group.
//!
//! `cgroup.kill` does it in one step, also to frozen processes. Without it the group is frozen,
//! so that nobody can start another process meanwhile; each gets its signal, and the thaw lets
//! them die: a process that the first generation has frozen takes no signal before. Whatever is
//! only in one of the other hierarchies, as after a half-done attach, is found the second way.

use std::{
    collections::BTreeSet,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::{
    CgroupError,
    directory::is_gone,
    events::{EventsFile, Pauses, poll_until},
    freeze,
    seats::{Seat, Seats},
};

/// How many processes are held by descriptor at once, well below what a process may open.
const HELD_MAX: usize = 128;

/// How long a group may take to stand still before its processes are signalled as they run.
const STILL_WITHIN: Duration = Duration::from_millis(500);

/// How many survivors an error names.
const LEFTOVERS_MAX: usize = 32;

const KILL: &str = "cgroup.kill";

pub(super) fn kill(seats: &Seats, within: Duration) -> Result<(), CgroupError> {
    let deadline = Instant::now() + within;
    if seats.0.is_empty() {
        return Err(CgroupError::Unavailable { deed: "kill" });
    }
    if let Some(seat) = seats.unified_with(KILL) {
        kill_unified(seat, deadline)?;
    }
    let mut pauses = Pauses::until(deadline);
    loop {
        let members = seats.members()?;
        if members.is_empty() {
            break;
        }
        signal_all(seats, &members, deadline)?;
        // Their ends were waited for; the pause is for those that cannot be held, because they
        // are in another process namespace or already past the point of being opened.
        if !pauses.pause() {
            return leftover(&seats.members()?, within);
        }
    }
    // A group that was frozen would freeze whoever comes next.
    match freeze::begin_thaw(seats) {
        Err(error) if !is_gone(&error) => Err(CgroupError::Io {
            deed: "thaw",
            path: own_path(seats),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Ends all in the tree of the second generation, and waits for the word that it is empty.
fn kill_unified(seat: &Seat, deadline: Instant) -> Result<(), CgroupError> {
    let kill = || {
        let events = EventsFile::open(&seat.directory, "cgroup.events")?;
        seat.directory.write(KILL, "1")?;
        events.wait("populated", 0, deadline)
    };
    match kill() {
        // The deadline, too: the members that are left are told by the caller.
        Ok(_) => Ok(()),
        Err(error) if is_gone(&error) => Ok(()),
        Err(error) => Err(seat.directory.failure("kill", "")(error)),
    }
}

/// One round: stand still, signal everybody, go on, and wait for the ends of those held.
fn signal_all(
    seats: &Seats,
    members: &BTreeSet<i32>,
    deadline: Instant,
) -> Result<(), CgroupError> {
    let left = deadline.saturating_duration_since(Instant::now());
    // That it cannot stand still is no reason not to go on: a process that hangs in a device
    // must not save the others.
    let _ = freeze::freeze(seats, left.min(STILL_WITHIN));
    // Those that came while the others were being stopped are members, too.
    let mut targets: Vec<i32> = members.union(&seats.members()?).copied().collect();
    let mut held = Vec::new();
    while !targets.is_empty() {
        let rest = targets.split_off(targets.len().min(HELD_MAX));
        held = signal(seats, &targets)?;
        targets = rest;
    }
    let thawed = freeze::begin_thaw(seats);
    for process in &held {
        let ended = poll_until(&mut [PollFd::new(process, PollFlags::IN)], deadline);
        if !ended.unwrap_or(false) {
            break;
        }
    }
    match thawed {
        Err(error) if !is_gone(&error) => Err(CgroupError::Io {
            deed: "thaw",
            path: own_path(seats),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Signals those of `targets` that are members, and hands back what their ends can be awaited by.
///
/// A number may change hands between the list and the signal. So each is opened first and then
/// looked for in the list again: what is listed now and was opened before is one of ours, or
/// dead, and a signal to the dead is lost.
fn signal(seats: &Seats, targets: &[i32]) -> Result<Vec<OwnedFd>, CgroupError> {
    let open = |&number: &i32| {
        let pid = Pid::from_raw(number).filter(|pid| !pid.is_init())?;
        Some((number, pidfd_open(pid, PidfdFlags::empty()).ok()?))
    };
    let opened: Vec<(i32, OwnedFd)> = targets.iter().filter_map(open).collect();
    let members = seats.members()?;
    let mut held = Vec::with_capacity(opened.len());
    for (number, process) in opened {
        if !members.contains(&number) {
            continue;
        }
        match pidfd_send_signal(&process, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => held.push(process),
            Err(source) => {
                let (deed, path) = ("signal the processes of", own_path(seats));
                return Err(CgroupError::Io {
                    deed,
                    path,
                    source: source.into(),
                });
            }
        }
    }
    Ok(held)
}

fn leftover(members: &BTreeSet<i32>, waited: Duration) -> Result<(), CgroupError> {
    if members.is_empty() {
        return Ok(());
    }
    Err(CgroupError::Leftover {
        pids: members.iter().copied().take(LEFTOVERS_MAX).collect(),
        waited,
    })
}

fn own_path(seats: &Seats) -> std::path::PathBuf {
    seats
        .own()
        .next()
        .map(|seat| seat.directory.path().to_owned())
        .unwrap_or_default()
}
