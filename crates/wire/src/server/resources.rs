//! What this process uses, for `/server_info`: read from `/proc`, without waiting.
//!
//! The original sleeps to measure its CPU share; here it is the share since the last question.
//! A number that the system does not tell is 0, because clients expect every key.

use std::{
    fs,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use serde_json::{Value, json};

/// Remembers what the CPU share is counted from.
#[derive(Debug)]
pub(super) struct Meter {
    previous: Mutex<CpuReading>,
}

#[derive(Clone, Copy, Debug)]
struct CpuReading {
    taken: Instant,
    ticks: u64,
}

impl Meter {
    /// For a process that has only just begun, and used nothing worth to be read.
    pub(super) fn start() -> Self {
        Self {
            previous: Mutex::new(CpuReading {
                taken: Instant::now(),
                ticks: 0,
            }),
        }
    }

    pub(super) fn read(&self) -> Value {
        json!({
            "cpu_percent": self.cpu_percent(),
            "memory": memory(),
            "disk": disk(),
            "io": io_counters(),
        })
    }

    fn cpu_percent(&self) -> f64 {
        let now = CpuReading::take();
        let mut previous = self.previous.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *previous, now);
        let elapsed = now.taken.duration_since(before.taken).as_secs_f64();
        let ticks = now.ticks.saturating_sub(before.ticks) as f64;
        if elapsed == 0.0 {
            return 0.0;
        }
        let seconds = ticks / rustix::param::clock_ticks_per_second() as f64;
        (seconds / elapsed * 1000.0).round() / 10.0
    }
}

impl CpuReading {
    fn take() -> Self {
        let ticks = fs::read_to_string("/proc/self/stat")
            .ok()
            .and_then(|stat| cpu_ticks(&stat));
        Self {
            taken: Instant::now(),
            ticks: ticks.unwrap_or(0),
        }
    }
}

/// User and system time, the 14th and 15th field. The second one, the program's name, may hold
/// anything, so counting begins after its closing parenthesis.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    Some(user + system)
}

fn memory() -> Value {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm
        .split_ascii_whitespace()
        .map(|field| field.parse().unwrap_or(0_u64));
    let page = rustix::param::page_size() as u64;
    let virtual_size = pages.next().unwrap_or(0) * page;
    let resident = pages.next().unwrap_or(0) * page;
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = number_after(&meminfo, "MemTotal:") * 1024;
    json!({ "rss": resident, "vms": virtual_size, "percent": percentage(resident, total) })
}

/// Of the root file system. As `df` does, the percentage leaves out what only root may use.
fn disk() -> Value {
    let Ok(root) = rustix::fs::statvfs("/") else {
        return json!({ "total": 0, "used": 0, "free": 0, "percent": 0.0 });
    };
    let total = root.f_blocks * root.f_frsize;
    let used = root.f_blocks.saturating_sub(root.f_bfree) * root.f_frsize;
    let free = root.f_bavail * root.f_frsize;
    let percent = (percentage(used, used + free) * 10.0).round() / 10.0;
    json!({ "total": total, "used": used, "free": free, "percent": percent })
}

fn io_counters() -> Value {
    let counters = fs::read_to_string("/proc/self/io").unwrap_or_default();
    json!({
        "read_bytes": number_after(&counters, "\nread_bytes:"),
        "write_bytes": number_after(&counters, "\nwrite_bytes:"),
    })
}

/// The first number behind `label`, or 0.
fn number_after(text: &str, label: &str) -> u64 {
    text.split_once(label)
        .and_then(|(_, rest)| rest.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn percentage(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64 * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_program_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 30 12 0 0 20 0 1 0 5 0 0";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (cut"), None);
        assert_eq!(cpu_ticks("7 (cut) S 1"), None);
    }

    #[test]
    fn numbers_are_read_behind_their_label_and_missing_ones_are_zero() {
        let text = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 12\n";
        assert_eq!(number_after(text, "\nread_bytes:"), 4096);
        assert_eq!(number_after(text, "\nwrite_bytes:"), 12);
        assert_eq!(number_after(text, "cancelled:"), 0);
    }

    #[test]
    fn this_process_has_memory_and_the_root_has_a_size() {
        let reading = Meter::start().read();
        assert!(reading["memory"]["rss"].as_u64().unwrap() > 0, "{reading}");
        assert!(
            reading["memory"]["percent"].as_f64().unwrap() > 0.0,
            "{reading}"
        );
        assert!(reading["disk"]["total"].as_u64().unwrap() > 0, "{reading}");
    }
}
