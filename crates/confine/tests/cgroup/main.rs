//! Control groups for somebody to whom nothing was delegated: said, not failed.
#![expect(
    clippy::unwrap_used,
    reason = "what a test sets up must be there, and clippy exempts test functions only"
)]

use rustix::{
    process::{Gid, Uid, geteuid},
    thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use zareba_confine::cgroup::{
    CgroupError, Controller, Demand, Group, Host, LeafLimits, Limit, Limits, OomScope, Outcome,
    Reason, Report, Statistics,
};

const ASKED: [Limit; 4] = [Limit::Memory, Limit::Swap, Limit::Pids, Limit::Cpu];

fn limits(demand: Demand) -> Limits {
    Limits {
        memory_bytes: Some(64 << 20),
        pids: Some(16),
        cpu_millis: Some(500),
        io: vec![],
        demand,
    }
}

/// Runs `body` as uid 65534 without any right. Root becomes that user for one thread, which is
/// what the kernel asks about; anybody else runs it as they are.
fn as_nobody<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let become_nobody = || {
        let (user, group) = (Uid::from_raw(65534), Gid::from_raw(65534));
        set_thread_groups(&[]).unwrap();
        set_thread_res_gid(group, group, group).unwrap();
        set_thread_res_uid(user, user, user).unwrap();
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if geteuid().is_root() {
                become_nobody();
            }
            body()
        });
        thread.join().unwrap()
    })
}

/// What keeps this user from having a controller; nothing in a session that was delegated one.
fn reasons(host: &Host) -> Vec<(Limit, Reason)> {
    let missing = ASKED
        .iter()
        .filter(|limit| host.hierarchy_of(limit.controller()).is_none());
    missing
        .map(|limit| (*limit, host.reason_against(limit.controller())))
        .collect()
}

#[test]
fn somebody_without_delegation_is_told_how_to_get_it_ns_15() {
    let was_root = geteuid().is_root();
    let host = as_nobody(|| Host::detect().unwrap());
    if was_root {
        let expected = ASKED.map(|limit| (limit, Reason::NotPermitted));
        assert_eq!(reasons(&host), expected);
        assert_eq!(host.unified(), None);
        assert_eq!(host.hierarchy_of(Controller::Freezer), None);
    }
    assert!(Reason::NotPermitted.remedy().contains("Delegate=yes"));
    for (_, reason) in reasons(&host) {
        assert!(!reason.remedy().is_empty());
    }
}

#[test]
fn without_delegation_there_is_a_group_that_says_it_holds_nothing() {
    let was_root = geteuid().is_root();
    as_nobody(|| {
        let host = Host::detect().unwrap();
        let group = Group::create(&host, "nobody", &limits(Demand::BestEffort)).unwrap();
        let missing: Vec<(Limit, Reason)> = group
            .report()
            .missing()
            .map(|(limit, reason)| (limit, reason.clone()))
            .collect();
        assert_eq!(missing, reasons(&host));
        if was_root {
            assert!(!group.is_available());
            assert_eq!(group.directories(), Vec::<std::path::PathBuf>::new());
            holds_nothing(&group);
        }
        group.remove(std::time::Duration::from_secs(1)).unwrap();
    });
}

/// An unavailable group can be used like any other, up to what needs a real one.
fn holds_nothing(group: &Group) {
    let second = std::time::Duration::from_secs(1);
    let options = LeafLimits {
        memory_bytes: None,
        pids: None,
        oom: OomScope::OneProcess,
    };
    let leaf = group.leaf("workload", &options).unwrap();
    leaf.attach(rustix::process::getpid()).unwrap();
    assert_eq!(leaf.member_files(), vec![]);
    assert!(leaf.directory_fd().is_none());
    assert_eq!(group.statistics().unwrap(), Statistics::default());
    for refused in [group.freeze(second), group.thaw(second), group.kill(second)] {
        assert!(
            matches!(refused, Err(CgroupError::Unavailable { .. })),
            "{refused:?}"
        );
    }
    let watch = group.watch_oom();
    assert!(
        matches!(watch, Err(CgroupError::Unavailable { .. })),
        "{watch:?}"
    );
}

#[test]
fn limits_that_are_demanded_and_not_there_are_an_error_with_the_remedy() {
    as_nobody(|| {
        let host = Host::detect().unwrap();
        let missing = reasons(&host);
        match Group::create(&host, "demanding", &limits(Demand::Enforced)) {
            Err(CgroupError::NotEnforced { report }) => {
                assert_eq!(report.missing().count(), missing.len());
                for (_, reason) in &missing {
                    assert!(report.to_string().contains(reason.remedy()), "{report}");
                }
            }
            Ok(group) => {
                assert_eq!(missing, vec![]);
                group.remove(std::time::Duration::from_secs(1)).unwrap();
            }
            Err(error) => panic!("{error:?}"),
        }
        assert_eq!(host.find_all("demanding").unwrap(), Vec::<String>::new());
    });
}

#[test]
fn limits_below_what_anything_could_run_in_are_refused() {
    let host = Host::from_texts("", "");
    let base = limits(Demand::BestEffort);
    let small = [
        Limits {
            memory_bytes: Some((1 << 20) - 1),
            ..base.clone()
        },
        Limits {
            pids: Some(0),
            ..base.clone()
        },
        Limits {
            cpu_millis: Some(9),
            ..base.clone()
        },
    ];
    for limits in small {
        let refused = Group::create(&host, "small", &limits);
        assert!(
            matches!(refused, Err(CgroupError::TooSmall { .. })),
            "{refused:?}"
        );
    }
    let least = Limits {
        memory_bytes: Some(1 << 20),
        pids: Some(1),
        cpu_millis: Some(10),
        ..base
    };
    assert!(
        !Group::create(&host, "least", &least)
            .unwrap()
            .is_available()
    );
}

#[test]
fn a_machine_without_control_groups_is_reported_as_such() {
    let host = Host::from_texts("", "");
    let group = Group::create(&host, "none", &limits(Demand::BestEffort)).unwrap();
    let absent = |limit| (limit, Outcome::NotEnforced(Reason::Absent));
    let expected: Vec<(Limit, Outcome)> = ASKED
        .map(absent)
        .into_iter()
        .chain([(Limit::Io, Outcome::NotRequested)])
        .collect();
    let Report { limits, .. } = group.report().clone();
    assert_eq!(limits, expected);
}
