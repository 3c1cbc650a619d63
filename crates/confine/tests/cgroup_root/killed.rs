//! Killing is total, whatever state the processes are in and whichever generation does it.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use zareba_confine::cgroup::{CgroupError, Host, KillMeans, Limits};

use crate::fixture::{
    Generations, NO_LIMITS, PATIENCE, PLAIN_LEAF, Scratch, Shell, crowd, is_busy, machine,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Frozen,
}

/// Kills a crowd of 200 and says how.
fn kill_crowd(host: &Host, state: State) -> KillMeans {
    let group = Scratch::new(host, "crowd", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let mut shell = Shell::in_leaf(&leaf, &crowd(199));
    assert_eq!(shell.line(), "ready");
    assert_eq!(group.processes().unwrap().len(), 200);
    if state == State::Frozen {
        group.freeze(PATIENCE).unwrap();
    }
    group.kill(PATIENCE).unwrap();
    assert_eq!(group.processes().unwrap(), Vec::<i32>::new());
    assert_eq!(shell.wait().signal(), Some(libc::SIGKILL));
    let means = group.report().kill;
    group.end();
    means
}

#[test]
#[ignore = "needs root"]
fn two_hundred_processes_are_killed_by_the_second_generation_ns_20() {
    let host = machine(Generations::Both);
    assert_eq!(kill_crowd(&host, State::Running), KillMeans::Unified);
    assert_eq!(kill_crowd(&host, State::Frozen), KillMeans::Unified);
}

#[test]
#[ignore = "needs root"]
fn two_hundred_processes_are_killed_by_the_first_generation_ns_20() {
    let host = machine(Generations::FirstOnly);
    assert_eq!(
        kill_crowd(&host, State::Running),
        KillMeans::FreezeAndSignal
    );
    assert_eq!(kill_crowd(&host, State::Frozen), KillMeans::FreezeAndSignal);
}

#[test]
#[ignore = "needs root"]
fn two_hundred_processes_are_killed_where_there_are_only_members() {
    let host = machine(Generations::SecondOnly);
    assert_eq!(kill_crowd(&host, State::Running), KillMeans::Unified);
    assert_eq!(kill_crowd(&host, State::Frozen), KillMeans::Unified);
}

#[test]
#[ignore = "needs root"]
fn processes_that_multiply_are_all_killed() {
    for generations in [Generations::Both, Generations::FirstOnly] {
        let host = machine(generations);
        let limits = Limits {
            pids: Some(100),
            ..NO_LIMITS
        };
        let group = Scratch::new(&host, "bomb", &limits);
        let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
        // Every process starts two more and ends, so that none is ever the same for long.
        let bomb = "bomb() { bomb & bomb & }; echo lit; exec 1>/dev/null; bomb; sleep 1000";
        let mut shell = Shell::in_leaf(&leaf, bomb);
        assert_eq!(shell.line(), "lit");
        group.kill(PATIENCE).unwrap();
        assert_eq!(group.processes().unwrap(), Vec::<i32>::new());
        shell.wait();
        group.end();
    }
}

#[test]
#[ignore = "needs root"]
fn a_process_in_only_one_hierarchy_does_not_escape() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "half", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let mut shell = Shell::waiting("read never");
    let Some(legacy) = leaf.member_files().into_iter().find(|file| {
        file.path.exists()
            && file.version == zareba_confine::cgroup::Version::V1
            && file
                .path
                .components()
                .any(|part| part.as_os_str() == "workload")
    }) else {
        panic!("a machine without the first generation has no second place to hide in");
    };
    std::fs::write(&legacy.path, shell.pid().as_raw_nonzero().to_string()).unwrap();
    assert!(matches!(
        leaf.confirm(shell.pid()),
        Err(CgroupError::NotMember { .. })
    ));
    group.kill(PATIENCE).unwrap();
    shell.go_if_alive();
    assert_eq!(shell.wait().signal(), Some(libc::SIGKILL));
    group.end();
}

#[test]
#[ignore = "needs root"]
fn killing_one_leaf_leaves_the_other_alone() {
    for generations in [Generations::Both, Generations::FirstOnly] {
        let host = machine(generations);
        let group = Scratch::new(&host, "one", &NO_LIMITS);
        let executor = group.leaf("executor", &PLAIN_LEAF).unwrap();
        let action = group.leaf("action-1", &PLAIN_LEAF).unwrap();
        let mut helper = Shell::waiting("echo still here");
        executor.attach(helper.pid()).unwrap();
        let mut doomed = Shell::in_leaf(&action, &crowd(20));
        assert_eq!(doomed.line(), "ready");
        action.freeze(PATIENCE).unwrap();
        action.kill(PATIENCE).unwrap();
        assert_eq!(doomed.wait().signal(), Some(libc::SIGKILL));
        helper.go();
        assert_eq!(helper.line(), "still here");
        assert!(helper.wait().success());
        // The leaf is as good as new: not frozen, and its directory can be used again.
        let mut next = Shell::in_leaf(&action, "echo next");
        assert_eq!(next.line(), "next");
        assert!(next.wait().success());
        action.remove(PATIENCE).unwrap();
        assert!(group.open_leaf("action-1").unwrap().is_none());
        assert!(group.open_leaf("executor").unwrap().is_some());
        group.end();
    }
}

#[test]
#[ignore = "needs root"]
fn a_group_without_processes_is_killed_at_once() {
    for generations in [Generations::Both, Generations::FirstOnly] {
        let host = machine(generations);
        let group = Scratch::new(&host, "nobody", &NO_LIMITS);
        group.kill(Duration::ZERO).unwrap();
        group.end();
    }
}

#[test]
#[ignore = "needs root"]
fn a_group_with_a_process_in_it_is_not_removed() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "busy", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let mut shell = Shell::waiting("echo alive");
    leaf.attach(shell.pid()).unwrap();
    let refused = group.remove(Duration::from_millis(20));
    assert!(is_busy(&refused), "{refused:?}");
    // Still held, in every hierarchy, and still running.
    leaf.confirm(shell.pid()).unwrap();
    shell.go();
    assert_eq!(shell.line(), "alive");
    assert!(shell.wait().success());
    group.end();
}
