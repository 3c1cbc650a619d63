//! Freezing and thawing, by either generation.

use std::process::Command;

use zareba_confine::cgroup::{CgroupError, FreezeMeans};

use crate::fixture::{
    Generations, NO_LIMITS, PATIENCE, PLAIN_LEAF, Scratch, Shell, crowd, machine,
};

/// Work that takes a while, and ends.
const WORK: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done";

/// A frozen process uses no time while others do, and goes on where it was.
fn check_standstill(generations: Generations, means: FreezeMeans) {
    let host = machine(generations);
    let group = Scratch::new(&host, "standstill", &NO_LIMITS);
    assert_eq!(group.report().freeze, means);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let mut worker = Shell::in_leaf(&leaf, WORK);
    group.freeze(PATIENCE).unwrap();
    let before = group.statistics().unwrap().cpu.unwrap().usage;
    // The same work outside of the group is what is waited for, not a time.
    assert!(
        Command::new("sh")
            .args(["-c", WORK])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(group.statistics().unwrap().cpu.unwrap().usage, before);
    group.thaw(PATIENCE).unwrap();
    assert_eq!(worker.line(), "done");
    assert!(worker.wait().success());
    group.end();
}

#[test]
#[ignore = "needs root"]
fn the_second_generation_stops_and_resumes_work() {
    check_standstill(Generations::Both, FreezeMeans::Unified);
}

#[test]
#[ignore = "needs root"]
fn the_second_generation_alone_stops_and_resumes_work() {
    check_standstill(Generations::SecondOnly, FreezeMeans::Unified);
}

#[test]
#[ignore = "needs root"]
fn the_first_generation_stops_and_resumes_work() {
    check_standstill(Generations::FirstOnly, FreezeMeans::Legacy);
}

#[test]
#[ignore = "needs root"]
fn two_hundred_processes_are_frozen_and_thawed_over_and_over() {
    for generations in [Generations::Both, Generations::FirstOnly] {
        let host = machine(generations);
        let group = Scratch::new(&host, "crowd", &NO_LIMITS);
        let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
        let mut shell = Shell::in_leaf(&leaf, &crowd(199));
        assert_eq!(shell.line(), "ready");
        for _ in 0..5 {
            group.freeze(PATIENCE).unwrap();
            group.thaw(PATIENCE).unwrap();
        }
        assert_eq!(group.processes().unwrap().len(), 200);
        group.end();
        shell.wait();
    }
}

#[test]
#[ignore = "needs root"]
fn freezing_twice_and_thawing_twice_changes_nothing() {
    for generations in [Generations::Both, Generations::FirstOnly] {
        let host = machine(generations);
        let group = Scratch::new(&host, "twice", &NO_LIMITS);
        let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
        let mut shell = Shell::in_leaf(&leaf, "read never; echo on");
        for _ in 0..2 {
            group.freeze(PATIENCE).unwrap();
        }
        for _ in 0..2 {
            group.thaw(PATIENCE).unwrap();
        }
        assert_eq!(shell.line(), "on");
        assert!(shell.wait().success());
        group.end();
    }
}

#[test]
#[ignore = "needs root"]
fn one_leaf_is_frozen_while_another_works() {
    for generations in [Generations::Both, Generations::FirstOnly] {
        let host = machine(generations);
        let group = Scratch::new(&host, "leaf", &NO_LIMITS);
        let executor = group.leaf("executor", &PLAIN_LEAF).unwrap();
        let workload = group.leaf("workload", &PLAIN_LEAF).unwrap();
        let mut frozen = Shell::in_leaf(&workload, WORK);
        workload.freeze(PATIENCE).unwrap();
        let mut free = Shell::in_leaf(&executor, "echo free");
        assert_eq!(free.line(), "free");
        assert!(free.wait().success());
        workload.thaw(PATIENCE).unwrap();
        assert_eq!(frozen.line(), "done");
        assert!(frozen.wait().success());
        group.end();
    }
}

#[test]
#[ignore = "needs root"]
fn an_empty_group_can_be_frozen_and_holds_whoever_comes() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "empty", &NO_LIMITS);
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    group.freeze(PATIENCE).unwrap();
    let mut shell = Shell::waiting("echo alive");
    leaf.attach(shell.pid()).unwrap();
    shell.go();
    group.freeze(PATIENCE).unwrap();
    group.thaw(PATIENCE).unwrap();
    assert_eq!(shell.line(), "alive");
    assert!(shell.wait().success());
    group.end();
}

#[test]
#[ignore = "needs root"]
fn a_group_that_is_gone_cannot_be_frozen() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "gone", &NO_LIMITS);
    group.remove(PATIENCE).unwrap();
    let refused = group.freeze(PATIENCE);
    assert!(
        matches!(refused, Err(CgroupError::Unavailable { deed: "freeze" })),
        "{refused:?}"
    );
}
