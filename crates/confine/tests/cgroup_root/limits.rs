//! Each limit at it and past it, and what is said about it afterwards.

use std::{os::fd::AsFd as _, path::Path, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zareba_confine::cgroup::{
    CgroupError, Demand, Group, Host, IoLimit, LeafLimits, Limit, LimitCounts, Limits, OomScope,
    OomWatch, Outcome, Reason, Version, block_device_of,
};

use crate::fixture::{
    Generations, NO_LIMITS, PATIENCE, PLAIN_LEAF, Scratch, Shell, crowd, machine, unique,
};

const MIB: u64 = 1 << 20;

/// Holds `bytes` in memory, all of them: `tail` keeps a last line of any length.
fn hog(bytes: u64) -> String {
    format!("head -c {bytes} /dev/zero | tail -n 1 | wc -c")
}

/// Waits until the watch has something to say.
fn wait_for(watch: &OomWatch) {
    let limit = Timespec::try_from(PATIENCE).unwrap();
    let descriptor = watch.as_fd();
    let ready = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)).unwrap();
    assert_eq!(ready, 1, "no word of memory running out");
}

fn is_silent(watch: &OomWatch) -> bool {
    let descriptor = watch.as_fd();
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&now)).unwrap() == 0
}

#[test]
#[ignore = "needs root"]
fn every_limit_asked_for_is_reported_with_its_file_and_value_ns_13() {
    let host = machine(Generations::Both);
    let limits = Limits {
        memory_bytes: Some(64 * MIB + 1),
        pids: Some(16),
        cpu_millis: Some(250),
        io: vec![],
        demand: Demand::Enforced,
    };
    let group = Scratch::new(&host, "report", &limits);
    let enforced = |limit: Limit, (v1, v1_value): (&'static str, &str), (v2, v2_value)| {
        let version = host.hierarchy_of(limit.controller()).unwrap().version;
        let (file, value) = match version {
            Version::V1 => (v1, v1_value.to_owned()),
            Version::V2 => (v2, String::from(v2_value)),
        };
        (
            limit,
            Outcome::Enforced {
                version,
                file,
                value,
            },
        )
    };
    let bytes = "67108864";
    let expected = vec![
        enforced(
            Limit::Memory,
            ("memory.limit_in_bytes", bytes),
            ("memory.max", bytes),
        ),
        enforced(
            Limit::Swap,
            ("memory.memsw.limit_in_bytes", bytes),
            ("memory.swap.max", "0"),
        ),
        enforced(Limit::Pids, ("pids.max", "16"), ("pids.max", "16")),
        enforced(
            Limit::Cpu,
            ("cpu.cfs_quota_us", "25000"),
            ("cpu.max", "25000 100000"),
        ),
        (Limit::Io, Outcome::NotRequested),
    ];
    assert_eq!(group.report().limits, expected);
    let opened = Group::open(&host, group.id()).unwrap().unwrap();
    assert_eq!(opened.report(), group.report());
    group.end();
}

#[test]
#[ignore = "needs root"]
fn memory_up_to_the_limit_is_had_and_past_it_one_is_killed_and_counted() {
    let host = machine(Generations::Both);
    let limits = Limits {
        memory_bytes: Some(48 * MIB),
        ..NO_LIMITS
    };
    let group = Scratch::new(&host, "memory", &limits);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let mut watch = group.watch_oom().unwrap();
    let counters = group.limit_counters().unwrap();

    let mut modest = Shell::in_leaf(&leaf, &hog(16 * MIB));
    assert_eq!(modest.line(), (16 * MIB).to_string());
    assert!(modest.wait().success());
    assert_eq!(group.statistics().unwrap().memory.unwrap().oom_kills, 0);
    assert!(is_silent(&watch));
    assert!(!watch.acknowledge().unwrap());
    assert_eq!(counters.read(), LimitCounts::default());

    let mut greedy = Shell::in_leaf(&leaf, &hog(400 * MIB));
    assert_eq!(greedy.line(), "0", "the hog was to die");
    greedy.wait();
    wait_for(&watch);
    assert!(watch.acknowledge().unwrap());
    assert!(is_silent(&watch));
    let memory = group.statistics().unwrap().memory.unwrap();
    assert_eq!(memory.oom_kills, 1);
    assert_eq!(counters.read().oom_kills, 1);
    if version_of_memory(&host) == Version::V2 {
        assert!(memory.limit_hits > 0, "{memory:?}");
    }
    assert!(memory.peak_bytes.unwrap() <= 48 * MIB, "{memory:?}");
    assert_eq!(leaf.statistics().unwrap().memory.unwrap().oom_kills, 1);
    group.end();
    // The removal of the group is not a lack of memory.
    assert!(!watch.acknowledge().unwrap());
}

#[test]
#[ignore = "needs root"]
fn the_workload_runs_out_before_the_helper_ns_17() {
    let host = machine(Generations::Both);
    let limits = Limits {
        memory_bytes: Some(96 * MIB),
        pids: Some(32),
        ..NO_LIMITS
    };
    let group = Scratch::new(&host, "helper", &limits);
    let executor = group.leaf("executor", &PLAIN_LEAF).unwrap();
    let smaller = LeafLimits {
        memory_bytes: Some(48 * MIB),
        pids: Some(24),
        oom: OomScope::OneProcess,
    };
    let workload = group.leaf("workload", &smaller).unwrap();
    assert_eq!(workload.report().missing().count(), 0);
    let mut watch = workload.watch_oom().unwrap();

    let mut helper = Shell::in_leaf(&executor, "echo up; read never");
    // The helper holds its input open, so it stays until the group ends.
    assert_eq!(helper.line(), "up");
    let mut greedy = Shell::in_leaf(&workload, &hog(400 * MIB));
    assert_eq!(greedy.line(), "0");
    greedy.wait();
    wait_for(&watch);
    assert!(watch.acknowledge().unwrap());
    let mut bomb = Shell::in_leaf(&workload, &crowd(200));
    assert_ne!(bomb.line(), "ready");
    bomb.wait();

    assert_eq!(executor.statistics().unwrap().memory.unwrap().oom_kills, 0);
    assert_eq!(executor.statistics().unwrap().pids.unwrap().limit_hits, 0);
    let mut another = Shell::in_leaf(&executor, "true & wait; echo forked");
    assert_eq!(
        another.line(),
        "forked",
        "the helper must be able to start something"
    );
    assert!(another.wait().success());
    group.end();
}

#[test]
#[ignore = "needs root"]
fn processes_up_to_the_limit_start_and_the_next_is_refused_and_counted() {
    let host = machine(Generations::Both);
    let limits = Limits {
        pids: Some(12),
        ..NO_LIMITS
    };
    let group = Scratch::new(&host, "pids", &limits);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let mut full = Shell::in_leaf(&leaf, &crowd(11));
    assert_eq!(full.line(), "ready");
    let at_limit = group.statistics().unwrap().pids.unwrap();
    assert_eq!((at_limit.current, at_limit.limit_hits), (12, 0));
    leaf.kill(PATIENCE).unwrap();
    full.wait();

    let mut bomb = Shell::in_leaf(&leaf, &crowd(500));
    assert_eq!(bomb.line(), "", "the shell gives up at the first refusal");
    bomb.wait();
    let past_limit = group.statistics().unwrap().pids.unwrap();
    let counts = group.limit_counters().unwrap().read();
    assert_eq!(counts.pids_refused, past_limit.limit_hits);
    assert!(past_limit.limit_hits >= 1, "{past_limit:?}");
    assert!(past_limit.current <= 12, "{past_limit:?}");
    group.end();
}

#[test]
#[ignore = "needs root"]
fn used_time_grows_when_something_runs_and_only_then_ns_16() {
    for generations in [Generations::Both, Generations::FirstOnly] {
        let host = machine(generations);
        let group = Scratch::new(&host, "used", &NO_LIMITS);
        let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
        let used = group.used_time().unwrap();
        assert_eq!(used.read(), Some(0));
        let mut shell = Shell::waiting("n=0; while [ $n -lt 1000 ]; do n=$((n + 1)); done");
        leaf.attach(shell.pid()).unwrap();
        shell.go();
        let _ = shell.wait();
        let after = used.read();
        assert!(after > Some(0), "{after:?}");
        assert_eq!(used.read(), after);
        group.end();
    }
}

#[test]
#[ignore = "needs root"]
fn processor_time_stays_within_the_quota() {
    let host = machine(Generations::Both);
    let limits = Limits {
        cpu_millis: Some(200),
        ..NO_LIMITS
    };
    let group = Scratch::new(&host, "cpu", &limits);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let work = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    // Two at once, so that the quota is not what one processor has anyway.
    let both = format!("( {work} ) & ( {work} ) & wait");
    assert!(Shell::in_leaf(&leaf, &both).wait().success());
    let cpu = group.statistics().unwrap().cpu.unwrap();
    let throttling = cpu.throttling.unwrap();
    assert!(throttling.throttled_periods >= 3, "{cpu:?}");
    assert!(throttling.throttled > Duration::ZERO, "{cpu:?}");
    // Two periods more than were counted, for those that were cut at either end, and half as
    // much again for what the kernel charges late.
    let periods = u32::try_from(throttling.periods + 2).unwrap();
    let allowed = Duration::from_millis(20) * periods * 3 / 2;
    assert!(cpu.usage <= allowed, "{cpu:?} against {allowed:?}");
    assert!(
        leaf.statistics().unwrap().cpu.unwrap().usage >= Duration::from_millis(50),
        "{cpu:?}"
    );
    group.end();
}

/// A limit for the disk under the build directory, when that has one.
fn disk_limit() -> Option<IoLimit> {
    Some(IoLimit {
        device: block_device_of(Path::new(env!("CARGO_TARGET_TMPDIR")))?,
        read_bytes_per_second: Some(64 * MIB),
        written_bytes_per_second: Some(64 * MIB),
        reads_per_second: None,
        writes_per_second: Some(10_000),
    })
}

#[test]
#[ignore = "needs root"]
fn disk_rates_are_set_and_what_was_written_is_counted() {
    let host = machine(Generations::Both);
    let disk = disk_limit().expect("the build directory is on no block device");
    let limits = Limits {
        io: vec![disk],
        demand: Demand::Enforced,
        ..NO_LIMITS
    };
    let group = Scratch::new(&host, "io", &limits);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = file.path().display();
    let write = format!("dd if=/dev/zero of={path} bs=64k count=16 oflag=direct");
    assert!(Shell::in_leaf(&leaf, &write).wait().success());
    let io = group.statistics().unwrap().io.unwrap();
    assert!(io.written_bytes >= MIB && io.writes >= 1, "{io:?}");
    assert!(io.written_bytes < 2 * MIB, "{io:?}");
    group.end();
}

fn impossible() -> IoLimit {
    IoLimit {
        device: (4000, 4000),
        read_bytes_per_second: Some(MIB),
        written_bytes_per_second: None,
        reads_per_second: None,
        writes_per_second: None,
    }
}

#[test]
#[ignore = "needs root"]
fn a_limit_that_the_kernel_refuses_is_reported_and_the_rest_holds() {
    let host = machine(Generations::Both);
    let limits = Limits {
        io: vec![impossible()],
        pids: Some(5),
        ..NO_LIMITS
    };
    let group = Scratch::new(&host, "refused", &limits);
    let missing: Vec<(Limit, &Reason)> = group.report().missing().collect();
    let file = match host.hierarchy_of(Limit::Io.controller()).unwrap().version {
        Version::V1 => "blkio.throttle.read_bps_device",
        Version::V2 => "io.max",
    };
    assert_eq!(
        missing,
        [(
            Limit::Io,
            &Reason::Refused {
                file,
                errno: Some(libc::ENODEV)
            }
        )]
    );
    assert!(matches!(
        group.report().outcome(Limit::Pids),
        Outcome::Enforced { .. }
    ));
    group.end();
}

#[test]
#[ignore = "needs root"]
fn a_demanded_limit_that_the_kernel_refuses_leaves_nothing_behind() {
    let host = machine(Generations::Both);
    let limits = Limits {
        io: vec![impossible()],
        demand: Demand::Enforced,
        ..NO_LIMITS
    };
    let id = unique("demanded");
    let refused = Group::create(&host, &id, &limits);
    assert!(
        matches!(refused, Err(CgroupError::NotEnforced { .. })),
        "{refused:?}"
    );
    assert_eq!(host.find_all(&id).unwrap(), Vec::<String>::new());
    assert!(Group::open(&host, &id).unwrap().is_none());
}

#[test]
#[ignore = "needs root"]
fn all_dying_together_is_enforced_or_said_to_be_missing() {
    let host = machine(Generations::Both);
    let group = Scratch::new(
        &host,
        "together",
        &Limits {
            memory_bytes: Some(MIB),
            ..NO_LIMITS
        },
    );
    let together = LeafLimits {
        oom: OomScope::WholeLeaf,
        ..PLAIN_LEAF
    };
    let leaf = group.leaf("workload", &together).unwrap();
    let file = "memory.oom.group";
    let expected = match version_of_memory(&host) {
        Version::V1 => Outcome::NotEnforced(Reason::Unsupported { file }),
        Version::V2 => Outcome::Enforced {
            version: Version::V2,
            file,
            value: "1".to_owned(),
        },
    };
    assert_eq!(leaf.oom_scope(), &expected);
    group.end();
}

fn version_of_memory(host: &Host) -> Version {
    host.hierarchy_of(Limit::Memory.controller())
        .unwrap()
        .version
}
