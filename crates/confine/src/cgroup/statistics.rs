//! What a group has used, and how often it met its limits.

use std::{io, time::Duration};

use super::{
    CgroupError, Controller, Version,
    directory::{Directory, is_gone, keyed},
    seats::{Seat, Seats},
};

/// What was used; a part is `None` where no hierarchy accounts for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Memory.
    pub memory: Option<MemoryStatistics>,
    /// Processes and threads.
    pub pids: Option<PidsStatistics>,
    /// Processor time.
    pub cpu: Option<CpuStatistics>,
    /// Block devices.
    pub io: Option<IoStatistics>,
}

/// Memory, with the page cache that was charged to the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStatistics {
    /// Bytes in use now.
    pub current_bytes: u64,
    /// The most there ever were; kernels of the second generation before 5.19 do not say.
    pub peak_bytes: Option<u64>,
    /// How often the limit was met; most of these end well, as something can be given back.
    /// In the first generation newer kernels, 6.18 among them, no longer count.
    pub limit_hits: u64,
    /// How many processes were killed because nothing could.
    pub oom_kills: u64,
}

/// Processes and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PidsStatistics {
    /// How many there are; those that nobody reaped yet are counted.
    pub current: u64,
    /// How often one more was refused.
    pub limit_hits: u64,
}

/// Processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuStatistics {
    /// Time used, on all processors together.
    pub usage: Duration,
    /// What the quota did; `None` without a quota of this group's own.
    pub throttling: Option<Throttling>,
}

/// What a quota of processor time did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which something ran.
    pub periods: u64,
    /// Those in which the quota was used up.
    pub throttled_periods: u64,
    /// How long processes were held back.
    pub throttled: Duration,
}

/// What went to and from block devices. The first generation does not see what goes through the
/// page cache on its way to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoStatistics {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Read operations.
    pub reads: u64,
    /// Write operations.
    pub writes: u64,
}

pub(super) fn of(seats: &Seats) -> Result<Statistics, CgroupError> {
    let part = |controller| seats.with(controller);
    Ok(Statistics {
        memory: read_with(part(Controller::Memory), memory)?,
        pids: read_with(part(Controller::Pids), pids)?,
        cpu: cpu(seats)?,
        io: read_with(part(Controller::Io), disks)?,
    })
}

/// Reads a part of the statistics from the seat that accounts for it, when there is one.
fn read_with<T>(
    seat: Option<&Seat>,
    read: impl FnOnce(&Seat) -> io::Result<T>,
) -> Result<Option<T>, CgroupError> {
    let Some(seat) = seat else { return Ok(None) };
    let failure = seat.directory.failure("read the statistics of", "");
    read(seat).map(Some).map_err(failure)
}

fn memory(seat: &Seat) -> io::Result<MemoryStatistics> {
    let directory = &seat.directory;
    match seat.version {
        Version::V1 => Ok(MemoryStatistics {
            current_bytes: number(directory, "memory.usage_in_bytes")?,
            peak_bytes: Some(number(directory, "memory.max_usage_in_bytes")?),
            limit_hits: hits(directory)? + below(directory, hits)?,
            // Counted where the killed process was, so the leaves have to be asked.
            oom_kills: kills(directory)? + below(directory, kills)?,
        }),
        Version::V2 => {
            let events = directory.read("memory.events")?;
            Ok(MemoryStatistics {
                current_bytes: number(directory, "memory.current")?,
                peak_bytes: number(directory, "memory.peak").ok(),
                limit_hits: keyed(&events, "max").unwrap_or(0),
                oom_kills: keyed(&events, "oom_kill").unwrap_or(0),
            })
        }
    }
}

/// How often the first generation met the limit of memory, or of memory and swap together:
/// where both are the same, as we set them, the second is asked first and is all that counts.
fn hits(directory: &Directory) -> io::Result<u64> {
    let of_both = match number(directory, "memory.memsw.failcnt") {
        // A kernel that does not account for swap.
        Err(error) if is_gone(&error) => 0,
        number => number?,
    };
    Ok(number(directory, "memory.failcnt")?.saturating_add(of_both))
}

fn kills(directory: &Directory) -> io::Result<u64> {
    // Kernels before 4.13 do not count.
    Ok(keyed(&directory.read("memory.oom_control")?, "oom_kill").unwrap_or(0))
}

fn pids(seat: &Seat) -> io::Result<PidsStatistics> {
    let hits =
        |directory: &Directory| Ok(keyed(&directory.read("pids.events")?, "max").unwrap_or(0));
    let own = hits(&seat.directory)?;
    let in_leaves = below(&seat.directory, hits)?;
    let limit_hits = match seat.version {
        Version::V1 => own + in_leaves,
        // From 6.11 on a group counts what happens inside it; before, only the leaf does.
        Version::V2 => own.max(in_leaves),
    };
    Ok(PidsStatistics {
        current: number(&seat.directory, "pids.current")?,
        limit_hits,
    })
}

fn cpu(seats: &Seats) -> Result<Option<CpuStatistics>, CgroupError> {
    let unified = read_with(seats.unified(), |seat| {
        let used = keyed(&seat.directory.read("cpu.stat")?, "usage_usec").unwrap_or(0);
        Ok(Duration::from_micros(used))
    })?;
    let legacy = || {
        read_with(seats.with(Controller::CpuAccounting), |seat| {
            Ok(Duration::from_nanos(number(
                &seat.directory,
                "cpuacct.usage",
            )?))
        })
    };
    let Some(usage) = unified.map_or_else(legacy, |usage| Ok(Some(usage)))? else {
        return Ok(None);
    };
    let throttling = read_with(seats.with(Controller::Cpu), |seat| {
        let text = seat.directory.read("cpu.stat")?;
        let value = |key| keyed(&text, key).unwrap_or(0);
        Ok(Throttling {
            periods: value("nr_periods"),
            throttled_periods: value("nr_throttled"),
            throttled: match seat.version {
                Version::V1 => Duration::from_nanos(value("throttled_time")),
                Version::V2 => Duration::from_micros(value("throttled_usec")),
            },
        })
    })?;
    Ok(Some(CpuStatistics { usage, throttling }))
}

fn disks(seat: &Seat) -> io::Result<IoStatistics> {
    match seat.version {
        Version::V1 => {
            let bytes = seat
                .directory
                .read("blkio.throttle.io_service_bytes_recursive")?;
            let operations = seat
                .directory
                .read("blkio.throttle.io_serviced_recursive")?;
            Ok(IoStatistics {
                read_bytes: legacy_total(&bytes, "Read"),
                written_bytes: legacy_total(&bytes, "Write"),
                reads: legacy_total(&operations, "Read"),
                writes: legacy_total(&operations, "Write"),
            })
        }
        Version::V2 => {
            let text = seat.directory.read("io.stat")?;
            let total = |key: &str| -> u64 {
                let values = text.split_ascii_whitespace();
                values
                    .filter_map(|word| {
                        word.strip_prefix(key)?
                            .strip_prefix('=')?
                            .parse::<u64>()
                            .ok()
                    })
                    .fold(0, u64::saturating_add)
            };
            Ok(IoStatistics {
                read_bytes: total("rbytes"),
                written_bytes: total("wbytes"),
                reads: total("rios"),
                writes: total("wios"),
            })
        }
    }
}

/// The sum over all devices of lines such as `8:0 Read 4096`.
fn legacy_total(text: &str, kind: &str) -> u64 {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            (words.next()? == kind)
                .then(|| words.next()?.parse::<u64>().ok())
                .flatten()
        })
        .fold(0, u64::saturating_add)
}

fn number(directory: &Directory, file: &str) -> io::Result<u64> {
    let text = directory.read(file)?;
    text.parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The sum of something over the leaves; one that is removed meanwhile counts for nothing.
fn below(directory: &Directory, read: impl Fn(&Directory) -> io::Result<u64>) -> io::Result<u64> {
    let mut sum: u64 = 0;
    for name in directory.children()? {
        match directory.child(&name).and_then(|leaf| read(&leaf)) {
            Ok(value) => sum = sum.saturating_add(value),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum)
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod statistics_tests;
