//! The numbers of both generations, from files with contents as kernels write them.

use std::{fs, path::Path, sync::Arc};

use tempfile::TempDir;

use super::{
    super::{proc_files::HierarchyName, seats::Holder},
    *,
};

fn write(directory: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(directory).unwrap();
    for (file, contents) in files {
        fs::write(directory.join(file), contents).unwrap();
    }
}

fn seats(root: &TempDir, version: Version, controllers: &[Controller]) -> Seats {
    Seats(vec![Seat {
        hierarchy: HierarchyName::Unified,
        version,
        controllers: controllers.to_vec(),
        directory: Arc::new(Directory::open(root.path()).unwrap()),
        path: "/zareba/a".to_owned(),
        holder: Holder::Own,
    }])
}

const ALL: [Controller; 5] = [
    Controller::Memory,
    Controller::Pids,
    Controller::Cpu,
    Controller::Io,
    Controller::CpuAccounting,
];

#[test]
fn the_second_generation_counts_for_the_whole_group() {
    let root = TempDir::new().unwrap();
    let files = [
        ("memory.current", "4096\n"),
        ("memory.peak", "8192\n"),
        (
            "memory.events",
            "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n",
        ),
        ("pids.current", "5\n"),
        ("pids.events", "max 4\n"),
        (
            "cpu.stat",
            "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n\
             nr_periods 20\nnr_throttled 10\nthrottled_usec 250000\n",
        ),
        (
            "io.stat",
            "254:0 rbytes=100 wbytes=200 rios=3 wios=4 dbytes=9 dios=9\n\
             7:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n",
        ),
    ];
    write(root.path(), &files);
    write(&root.path().join("leaf"), &[("pids.events", "max 6\n")]);
    let expected = Statistics {
        memory: Some(MemoryStatistics {
            current_bytes: 4096,
            peak_bytes: Some(8192),
            limit_hits: 7,
            oom_kills: 3,
        }),
        // What a kernel before 6.11 says, which counts only in the leaf.
        pids: Some(PidsStatistics {
            current: 5,
            limit_hits: 6,
        }),
        cpu: Some(CpuStatistics {
            usage: Duration::from_millis(1500),
            throttling: Some(Throttling {
                periods: 20,
                throttled_periods: 10,
                throttled: Duration::from_millis(250),
            }),
        }),
        io: Some(IoStatistics {
            read_bytes: 101,
            written_bytes: 202,
            reads: 4,
            writes: 5,
        }),
    };
    assert_eq!(of(&seats(&root, Version::V2, &ALL)).unwrap(), expected);
}

#[test]
fn the_first_generation_is_added_up_over_the_leaves() {
    let root = TempDir::new().unwrap();
    let files = [
        ("memory.usage_in_bytes", "4096\n"),
        ("memory.max_usage_in_bytes", "8192\n"),
        ("memory.failcnt", "0\n"),
        ("memory.memsw.failcnt", "2\n"),
        (
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
        ),
        ("pids.current", "5\n"),
        ("pids.events", "max 1\n"),
        (
            "cpu.stat",
            "nr_periods 20\nnr_throttled 10\nthrottled_time 250000000\n",
        ),
        ("cpuacct.usage", "1500000000\n"),
        (
            "blkio.throttle.io_service_bytes_recursive",
            "254:0 Read 100\n254:0 Write 200\n254:0 Total 300\n7:0 Read 1\nTotal 301\n",
        ),
        (
            "blkio.throttle.io_serviced_recursive",
            "254:0 Read 3\n254:0 Write 4\nTotal 7\n",
        ),
    ];
    write(root.path(), &files);
    let leaf = [
        ("memory.failcnt", "5\n"),
        (
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        ),
        ("pids.events", "max 6\n"),
    ];
    write(&root.path().join("workload"), &leaf);
    let expected = Statistics {
        memory: Some(MemoryStatistics {
            current_bytes: 4096,
            peak_bytes: Some(8192),
            limit_hits: 7,
            oom_kills: 3,
        }),
        pids: Some(PidsStatistics {
            current: 5,
            limit_hits: 7,
        }),
        cpu: Some(CpuStatistics {
            usage: Duration::from_millis(1500),
            throttling: Some(Throttling {
                periods: 20,
                throttled_periods: 10,
                throttled: Duration::from_millis(250),
            }),
        }),
        io: Some(IoStatistics {
            read_bytes: 101,
            written_bytes: 200,
            reads: 3,
            writes: 4,
        }),
    };
    assert_eq!(of(&seats(&root, Version::V1, &ALL)).unwrap(), expected);
}

#[test]
fn what_nobody_accounts_for_is_not_made_up() {
    let root = TempDir::new().unwrap();
    assert_eq!(
        of(&seats(&root, Version::V1, &[])).unwrap(),
        Statistics::default()
    );
}

#[test]
fn a_number_that_is_none_is_an_error() {
    let root = TempDir::new().unwrap();
    write(
        root.path(),
        &[("pids.current", "many\n"), ("pids.events", "max 0\n")],
    );
    let failed = of(&seats(&root, Version::V2, &[Controller::Pids]));
    assert!(matches!(failed, Err(CgroupError::Io { .. })), "{failed:?}");
}
