//! How processes get into a leaf before they run anything, and how that is checked.

use std::os::fd::AsFd as _;

use zareba_confine::cgroup::{CgroupError, Limits, Version};

use crate::fixture::{Generations, NO_LIMITS, PLAIN_LEAF, Scratch, Shell, machine};

#[test]
#[ignore = "needs root"]
fn an_attached_process_is_where_the_kernel_says_ns_14() {
    let host = machine(Generations::Both);
    let limits = Limits {
        memory_bytes: Some(64 << 20),
        cpu_millis: Some(500),
        ..NO_LIMITS
    };
    let group = Scratch::new(&host, "attach", &limits);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let mut shell = Shell::waiting("grep -c zareba /proc/self/cgroup");
    let outside = leaf.confirm(shell.pid());
    assert!(
        matches!(outside, Err(CgroupError::NotMember { .. })),
        "{outside:?}"
    );
    leaf.attach(shell.pid()).unwrap();
    leaf.confirm(shell.pid()).unwrap();
    // What it starts is in the same places.
    shell.go();
    assert_eq!(shell.line(), group.directories().len().to_string());
    assert!(shell.wait().success());
    group.end();
}

#[test]
#[ignore = "needs root"]
fn a_process_can_put_itself_in_by_writing_to_every_member_file_ns_14() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "members", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let enter: String = leaf
        .member_files()
        .iter()
        .map(|file| format!("echo 0 >{}\n", file.path.display()))
        .collect();
    let mut shell = Shell::waiting(&format!("{enter}grep -c zareba /proc/self/cgroup"));
    shell.go();
    assert_eq!(shell.line(), leaf.member_files().len().to_string());
    assert!(shell.wait().success());
    group.end();
}

#[test]
#[ignore = "needs root"]
fn the_files_and_the_directory_can_be_handed_to_a_launcher() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "launcher", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let versions: Vec<Version> = leaf
        .member_files()
        .iter()
        .map(|file| file.version)
        .collect();
    let opened = leaf.open_member_files().unwrap();
    assert_eq!(
        opened
            .iter()
            .map(|(version, _)| *version)
            .collect::<Vec<_>>(),
        versions
    );

    let shell = Shell::waiting("read never");
    for (_, file) in &opened {
        let number = shell.pid().as_raw_nonzero().to_string();
        assert_eq!(
            rustix::io::write(file.as_fd(), number.as_bytes()).unwrap(),
            number.len()
        );
    }
    leaf.confirm(shell.pid()).unwrap();
    let directory = leaf.directory_fd().unwrap();
    let procs = rustix::fs::openat(
        directory,
        "cgroup.procs",
        rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
    );
    let mut buffer = [0; 64];
    let length = rustix::io::read(procs.unwrap(), &mut buffer[..]).unwrap();
    let listed = String::from_utf8_lossy(&buffer[..length]).into_owned();
    assert_eq!(listed, format!("{}\n", shell.pid().as_raw_nonzero()));
    group.end();
}

#[test]
#[ignore = "needs root"]
fn names_are_given_once_and_senseless_ones_never() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "names", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let shell = Shell::waiting("read never");
    leaf.attach(shell.pid()).unwrap();
    let again = group.leaf("workload", &PLAIN_LEAF);
    assert!(
        matches!(again, Err(CgroupError::Exists { .. })),
        "{again:?}"
    );
    // The one that exists has lost nothing by it.
    leaf.confirm(shell.pid()).unwrap();
    for name in ["..", "a/b", "self", ""] {
        let refused = group.leaf(name, &PLAIN_LEAF);
        assert!(
            matches!(refused, Err(CgroupError::Name { .. })),
            "{refused:?}"
        );
    }
    group.end();
}

#[test]
#[ignore = "needs root"]
fn an_opened_leaf_is_the_same_leaf() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "opened", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let shell = Shell::waiting("read never");
    leaf.attach(shell.pid()).unwrap();
    let opened = group.open_leaf("workload").unwrap().unwrap();
    opened.confirm(shell.pid()).unwrap();
    assert_eq!(opened.member_files(), leaf.member_files());
    assert_eq!(opened.name(), "workload");
    group.end();
}

#[test]
#[ignore = "needs root"]
fn an_only_leaf_needs_no_directory_where_processes_can_be_anywhere_and_holds_all_the_same_ns_14() {
    let host = machine(Generations::Both);
    let limits = Limits {
        pids: Some(2),
        ..NO_LIMITS
    };
    let (group, leaf) = Scratch::with_leaf(&host, "only", &limits);
    let counters = group.limit_counters().unwrap();
    let own = |version| {
        let files = leaf.member_files().into_iter();
        let is_own = |path: &std::path::Path| path.ends_with("all/cgroup.procs");
        files
            .filter(|file| file.version == version)
            .map(|file| is_own(&file.path))
            .collect::<Vec<_>>()
    };
    assert!(own(Version::V1).iter().all(|is_own| !is_own));
    let unified = host.unified();
    let controls = unified.is_some_and(|unified| !unified.controllers.is_empty());
    assert!(own(Version::V2).iter().all(|is_own| *is_own == controls));
    let mut shell = Shell::waiting("(sleep 0 | sleep 0 | sleep 0) 2>/dev/null; echo done");
    leaf.attach(shell.pid()).unwrap();
    leaf.confirm(shell.pid()).unwrap();
    assert_eq!(
        group.processes().unwrap(),
        [shell.pid().as_raw_nonzero().get()]
    );
    shell.go();
    let _ = shell.wait();
    assert!(counters.read().pids_refused > 0);
    group.end();
}
