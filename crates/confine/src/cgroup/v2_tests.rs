//! Limits of the second generation over plain files: the machines that run these tests have its
//! controllers in the first generation, so what the kernel makes of the values is not seen here.

use std::fs;

use tempfile::TempDir;

use super::{
    super::{Demand, Group, Host, Report, report::Reason},
    *,
};

const DISK: IoLimit = IoLimit {
    device: (254, 0),
    read_bytes_per_second: Some(1_000_000),
    written_bytes_per_second: None,
    reads_per_second: None,
    writes_per_second: Some(100),
};

fn limits() -> Limits {
    Limits {
        memory_bytes: Some((64 << 20) + 17),
        pids: Some(512),
        cpu_millis: Some(1500),
        io: vec![DISK],
        demand: Demand::BestEffort,
    }
}

/// A directory with files as the kernel makes them in a new group.
fn group(files: &[(&str, &str)]) -> (TempDir, Directory) {
    let root = TempDir::new().unwrap();
    for (file, contents) in files {
        fs::write(root.path().join(file), contents).unwrap();
    }
    let directory = Directory::open(root.path()).unwrap();
    (root, directory)
}

fn enforced(file: &'static str, value: &str) -> Outcome {
    Outcome::Enforced {
        version: Version::V2,
        file,
        value: value.to_owned(),
    }
}

#[test]
fn every_limit_is_written_in_the_kernels_words_and_read_back_ns_13() {
    let fresh = [
        ("memory.max", "max\n"),
        ("memory.swap.max", "max\n"),
        ("pids.max", "max\n"),
        ("cpu.max", "max 100000\n"),
    ];
    let (_root, directory) = group(&fresh);
    let outcomes = [Limit::Memory, Limit::Swap, Limit::Pids, Limit::Cpu]
        .map(|limit| apply(&directory, limit, &limits()));
    let expected = [
        enforced("memory.max", "67108864"),
        enforced("memory.swap.max", "0"),
        enforced("pids.max", "512"),
        enforced("cpu.max", "150000 100000"),
    ];
    assert_eq!(outcomes, expected);
}

#[test]
fn disk_rates_are_one_line_per_device() {
    let (root, directory) = group(&[("io.max", "")]);
    let line = "254:0 rbps=1000000 wiops=100";
    assert_eq!(
        apply(&directory, Limit::Io, &limits()),
        enforced("io.max", line)
    );
    assert_eq!(
        fs::read_to_string(root.path().join("io.max")).unwrap(),
        line
    );
}

#[test]
fn what_nobody_asked_for_is_not_written() {
    let none = Limits {
        memory_bytes: None,
        pids: None,
        cpu_millis: None,
        io: vec![],
        demand: Demand::Enforced,
    };
    let (root, directory) = group(&[("memory.max", "max\n"), ("pids.max", "max\n")]);
    for limit in Limit::ALL {
        assert_eq!(apply(&directory, limit, &none), Outcome::NotRequested);
    }
    assert_eq!(
        fs::read_to_string(root.path().join("memory.max")).unwrap(),
        "max\n"
    );
}

#[test]
fn a_file_that_the_kernel_does_not_have_is_named() {
    let (_root, directory) = group(&[("memory.max", "max\n")]);
    let reason = Reason::Unsupported {
        file: "memory.swap.max",
    };
    assert!(reason.remedy().contains("swapaccount=1"));
    assert_eq!(
        apply(&directory, Limit::Swap, &limits()),
        Outcome::NotEnforced(reason)
    );
}

#[test]
fn a_value_that_does_not_stick_is_not_called_enforced() {
    let (_root, directory) = group(&[]);
    std::os::unix::fs::symlink("/dev/null", directory.path().join("pids.max")).unwrap();
    // A link is not followed, so even this cannot be written somewhere else.
    let refused = Reason::Refused {
        file: "pids.max",
        errno: Some(libc::ELOOP),
    };
    assert_eq!(
        apply(&directory, Limit::Pids, &limits()),
        Outcome::NotEnforced(refused)
    );

    let outcome = settle_if(
        Version::V2,
        &group(&[("cpu.max", "")]).1,
        "cpu.max",
        "1 2",
        |_| false,
    );
    let reason = Reason::ReadBack {
        file: "cpu.max",
        wanted: "1 2".to_owned(),
        found: "1 2".to_owned(),
    };
    assert_eq!(outcome, Outcome::NotEnforced(reason));
}

#[test]
fn controllers_are_asked_for_together() {
    let (root, directory) = group(&[("cgroup.subtree_control", "memory\n")]);
    hand_down(
        &directory,
        &[Controller::Memory, Controller::Pids, Controller::Io],
    );
    let written = fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap();
    assert_eq!(written, "+memory +pids +io");
}

#[test]
fn controllers_that_are_there_are_not_asked_for_again() {
    let (root, directory) = group(&[("cgroup.subtree_control", "cpu io memory pids\n")]);
    hand_down(&directory, &[Controller::Memory, Controller::Pids]);
    let written = fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap();
    assert_eq!(written, "cpu io memory pids\n");
}

#[test]
fn who_dies_with_whom_is_written_to_the_leaf_ns_17() {
    let (_root, directory) = group(&[("memory.oom.group", "0\n")]);
    assert_eq!(
        set_oom_group(&directory, "1"),
        enforced("memory.oom.group", "1")
    );
}

/// A machine of the second generation whose place has only this process in it and is ours.
fn lonely_container(root: &TempDir) -> Host {
    let files = [
        ("cgroup.controllers", "cpu io memory pids\n".to_owned()),
        ("cgroup.subtree_control", String::new()),
        ("cgroup.type", "domain\n".to_owned()),
        ("cgroup.procs", format!("{}\n", std::process::id())),
    ];
    for (file, contents) in files {
        fs::write(root.path().join(file), contents).unwrap();
    }
    let own = root.path().join("zareba/self");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join(PROCESSES), "").unwrap();
    fs::write(root.path().join("zareba/cgroup.subtree_control"), "").unwrap();
    let mountinfo = format!(
        "35 24 0:30 / {} rw - cgroup2 none rw\n",
        root.path().display()
    );
    Host::from_texts("0::/\n", &mountinfo)
}

#[test]
fn this_process_steps_aside_before_controllers_are_handed_down() {
    let root = TempDir::new().unwrap();
    let host = lonely_container(&root);
    let group = Group::create(&host, "a1", &limits()).unwrap();
    let read = |file: &str| fs::read_to_string(root.path().join(file)).unwrap();
    assert_eq!(read("zareba/self/cgroup.procs"), "0");
    let everything = "+memory +pids +cpu +io";
    assert_eq!(read("cgroup.subtree_control"), everything);
    assert_eq!(read("zareba/cgroup.subtree_control"), everything);
    assert_eq!(group.directories(), [root.path().join("zareba/a1")]);
    // Nobody plays the kernel here, so the new group has no controllers and says so.
    let missing: Vec<_> = group.report().missing().collect();
    assert_eq!(
        missing,
        Limit::ALL.map(|limit| (limit, &Reason::NotDelegated))
    );
    group.remove(std::time::Duration::ZERO).unwrap();
    assert!(!root.path().join("zareba/a1").exists());
    assert!(root.path().join("zareba/self").exists());
}

#[test]
fn a_group_whose_limits_are_demanded_and_missing_is_not_left_behind() {
    let root = TempDir::new().unwrap();
    let host = lonely_container(&root);
    let demanded = Limits {
        demand: Demand::Enforced,
        ..limits()
    };
    let report: Report = match Group::create(&host, "a1", &demanded) {
        Err(super::super::CgroupError::NotEnforced { report }) => *report,
        other => panic!("{other:?}"),
    };
    assert_eq!(report.missing().count(), 5);
    assert!(!root.path().join("zareba/a1").exists());
}
