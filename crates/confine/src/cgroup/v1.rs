//! The first generation: one directory per hierarchy, and its own names for every limit.

use std::io;

use super::{
    IoLimit, Limit, Limits, Outcome, Version,
    directory::Directory,
    limits::{CPU_PERIOD_MICROSECONDS, whole_pages},
    report::{ask, settle, settle_if},
};

/// Makes a new memory group count what the groups inside it use. Kernels before 5.11 leave that
/// to whoever makes the group, and only as long as nothing is inside.
pub(super) fn prepare_memory(directory: &Directory) -> io::Result<()> {
    match directory.read("memory.use_hierarchy") {
        Ok(value) if value == "0" => directory.write("memory.use_hierarchy", "1"),
        _ => Ok(()),
    }
}

/// Writes one limit and says what came of it.
pub(super) fn apply(directory: &Directory, limit: Limit, limits: &Limits) -> Outcome {
    let settle = |file, value: String| settle(Version::V1, directory, file, &value);
    match limit {
        Limit::Memory => ask(limits.memory_bytes, |bytes| {
            settle("memory.limit_in_bytes", whole_pages(bytes).to_string())
        }),
        // Memory and swap together may be as much as memory alone. It is written after the
        // limit of memory, which it cannot be below.
        Limit::Swap => ask(limits.memory_bytes, |bytes| {
            // Without accounting of swap this is all there is; it is not a limit.
            let _ = directory.write("memory.swappiness", "0");
            settle(
                "memory.memsw.limit_in_bytes",
                whole_pages(bytes).to_string(),
            )
        }),
        Limit::Pids => ask(limits.pids, |pids| settle("pids.max", pids.to_string())),
        Limit::Cpu => ask(limits.cpu_millis, |millis| {
            let quota = u64::from(millis) * CPU_PERIOD_MICROSECONDS / 1000;
            let period = CPU_PERIOD_MICROSECONDS.to_string();
            let quota = || settle("cpu.cfs_quota_us", quota.to_string());
            // It is what the kernel begins with, and a write has it look at every group there is.
            if directory.read("cpu.cfs_period_us").ok().as_ref() == Some(&period) {
                return quota();
            }
            match settle("cpu.cfs_period_us", period) {
                Outcome::Enforced { .. } => quota(),
                failed => failed,
            }
        }),
        Limit::Io => Outcome::all(limits.io.iter().map(|limit| apply_io(directory, limit))),
    }
}

fn apply_io(directory: &Directory, limit: &IoLimit) -> Outcome {
    let rates = [
        (
            "blkio.throttle.read_bps_device",
            limit.read_bytes_per_second,
        ),
        (
            "blkio.throttle.write_bps_device",
            limit.written_bytes_per_second,
        ),
        ("blkio.throttle.read_iops_device", limit.reads_per_second),
        ("blkio.throttle.write_iops_device", limit.writes_per_second),
    ];
    let (major, minor) = limit.device;
    let set = rates.into_iter().filter_map(|(file, rate)| {
        let value = format!("{major}:{minor} {}", rate?);
        Some(settle_if(Version::V1, directory, file, &value, |found| {
            found.lines().any(|line| line == value)
        }))
    });
    Outcome::all(set)
}
