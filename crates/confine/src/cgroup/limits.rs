//! What a sandbox may use, as the policy says it.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{CgroupError, Limit};

/// The stretch of time over which processor time is counted: the kernel's default, long enough
/// that a short burst is not slowed and short enough that a pause is not felt.
pub(super) const CPU_PERIOD_MICROSECONDS: u64 = 100_000;

/// Less than this no program could be started in.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// The kernel takes no quota below a millisecond, which is a hundredth of the period.
const CPU_MILLIS_MIN: u32 = 10;

/// What a sandbox may use; `None` and an empty list mean that nothing is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Memory in bytes, rounded down to whole pages; swap is then forbidden altogether, since
    /// one sandbox that swaps slows every other.
    pub memory_bytes: Option<u64>,
    /// Processes and threads together.
    pub pids: Option<u32>,
    /// Processor time in thousandths of one processor: 2000 is two of them.
    pub cpu_millis: Option<u32>,
    /// Rates, one entry per disk.
    pub io: Vec<IoLimit>,
    /// What to do when the machine does not enforce one of the above.
    pub demand: Demand,
}

/// Whether limits are a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Without every limit asked for there is no group.
    Enforced,
    /// Whatever the machine offers; the report says what is missing.
    BestEffort,
}

/// Rates for one disk. The first generation applies them to reads and to writes past the page
/// cache only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoLimit {
    /// Major and minor number of a whole disk, as [`block_device_of`] finds it.
    pub device: (u32, u32),
    /// Bytes read in a second.
    pub read_bytes_per_second: Option<u64>,
    /// Bytes written in a second.
    pub written_bytes_per_second: Option<u64>,
    /// Read operations in a second.
    pub reads_per_second: Option<u64>,
    /// Write operations in a second.
    pub writes_per_second: Option<u64>,
}

impl Limits {
    pub(super) fn ask_for(&self, limit: Limit) -> bool {
        match limit {
            Limit::Memory | Limit::Swap => self.memory_bytes.is_some(),
            Limit::Pids => self.pids.is_some(),
            Limit::Cpu => self.cpu_millis.is_some(),
            Limit::Io => !self.io.is_empty(),
        }
    }

    /// Refuses limits that nothing could run under, which would only show as a start that fails.
    pub(super) fn check(&self) -> Result<(), CgroupError> {
        check_memory(self.memory_bytes)?;
        check_pids(self.pids)?;
        at_least(
            "processor time",
            self.cpu_millis.map(u64::from),
            u64::from(CPU_MILLIS_MIN),
        )?;
        for limit in &self.io {
            for rate in [
                limit.read_bytes_per_second,
                limit.written_bytes_per_second,
                limit.reads_per_second,
                limit.writes_per_second,
            ] {
                at_least("disk rate", rate, 1)?;
            }
        }
        Ok(())
    }
}

pub(super) fn check_memory(bytes: Option<u64>) -> Result<(), CgroupError> {
    at_least("memory", bytes, MEMORY_BYTES_MIN)
}

pub(super) fn check_pids(pids: Option<u32>) -> Result<(), CgroupError> {
    at_least("processes", pids.map(u64::from), 1)
}

fn at_least(limit: &'static str, value: Option<u64>, least: u64) -> Result<(), CgroupError> {
    match value {
        Some(value) if value < least => Err(CgroupError::TooSmall {
            limit,
            value,
            least,
        }),
        _ => Ok(()),
    }
}

/// The kernel counts memory in pages; asking for whole ones lets what it says be compared.
pub(super) fn whole_pages(bytes: u64) -> u64 {
    let page = rustix::param::page_size() as u64;
    // What the kernel itself means by "no limit" is no whole number of its own type.
    bytes.min(i64::MAX as u64) / page * page
}

/// The disk that holds `path`: limits take the whole disk, never a partition of it. `None` for
/// file systems without a device of their own, such as tmpfs, overlayfs and btrfs.
#[must_use]
pub fn block_device_of(path: &Path) -> Option<(u32, u32)> {
    let device = std::fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    if major == 0 {
        return None;
    }
    let described = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    if !described.join("partition").exists() {
        return Some((major, minor));
    }
    let whole = std::fs::canonicalize(described).ok()?.parent()?.join("dev");
    let (major, minor) = std::fs::read_to_string(whole)
        .ok()?
        .trim()
        .split_once(':')
        .map(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))??;
    Some((major, minor))
}
