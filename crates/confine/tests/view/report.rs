//! The kernel's word on a running sandbox.

use std::{fs::File, os::fd::AsFd as _, path::Path};

use zareba_confine::{
    Access, Enforcement, EnforcementReport, Entry, EntryKind, Evidence, LandlockReport, MountFault,
    Network, Policy, ProcessDirectory, ReadBackError,
    cgroup::{FreezeMeans, KillMeans, Report},
    check_mounts,
};

use crate::{
    harness::Case,
    sandbox::{Ground, Running, bind, start},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "a_running_sandbox_is_what_its_policy_says_ns_3",
            run: a_running_sandbox_is_what_its_policy_says_ns_3,
        },
        Case {
            name: "a_policy_that_is_not_in_force_is_noticed_ns_3",
            run: a_policy_that_is_not_in_force_is_noticed_ns_3,
        },
        Case {
            name: "a_process_without_confinement_has_no_report_ns_8",
            run: a_process_without_confinement_has_no_report_ns_8,
        },
    ]
}

const LANDLOCK: LandlockReport = LandlockReport {
    abi: 7,
    enforcement: Enforcement::Partial,
    missing: Vec::new(),
};

fn groups() -> Report {
    Report {
        limits: Vec::new(),
        freeze: FreezeMeans::None,
        kill: KillMeans::None,
    }
}

fn read(running: &Running, policy: &Policy) -> Result<EnforcementReport, ReadBackError> {
    let groups = groups();
    let evidence = Evidence {
        policy,
        landlock: &LANDLOCK,
        control_groups: &groups,
        others: &[],
    };
    EnforcementReport::read(running.program(), evidence)
}

fn waiting(policy: &Policy) -> Running {
    let script = ["sh", "-c", "echo ready; read line"];
    let mut running = start(policy, Path::new("/bin/sh"), &script).unwrap();
    running.hear();
    running
}

fn workspace(ground: &Ground, access: Access) -> Policy {
    ground.policy(vec![bind("/workspace", &ground.ours("workspace"), access)])
}

fn a_running_sandbox_is_what_its_policy_says_ns_3() {
    let ground = Ground::new(1000);
    let policy = workspace(&ground, Access::ReadWrite);
    let running = waiting(&policy);
    let report = read(&running, &policy).unwrap();
    assert_eq!(report.namespaces.len(), 7);
    assert!(report.namespaces.iter().all(|namespace| namespace.is_own));
    assert!(report.no_new_privileges);
    assert_eq!(report.seccomp_filters, Some(1));
    assert_eq!(report.users.len(), 1);
    let mount = |point: &str| {
        let found = report
            .mounts
            .mounts
            .iter()
            .find(|mount| mount.point == point);
        found.unwrap().clone()
    };
    assert!(mount("/").read_only && mount("/proc/sys").read_only);
    assert!(mount("/workspace").no_set_id && !mount("/workspace").read_only);
    assert!(mount("/proc").no_execution);
    let open_files = report
        .process_limits
        .iter()
        .find(|limit| limit.name == "Max open files");
    assert_eq!(open_files.unwrap().hard, Some(256));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["capabilities"], 0);
    assert_eq!(json["landlock"]["abi"], 7);
}

fn a_policy_that_is_not_in_force_is_noticed_ns_3() {
    let ground = Ground::new(1000);
    let running = waiting(&workspace(&ground, Access::ReadWrite));
    let fault = |policy: &Policy| match read(&running, policy).unwrap_err() {
        ReadBackError::Mount { point, fault } => (point, fault),
        other => panic!("{other:?}"),
    };
    let missing = "ro".to_owned();
    assert_eq!(
        fault(&workspace(&ground, Access::ReadOnly)),
        ("/workspace".to_owned(), MountFault::Lax { missing })
    );
    assert_eq!(
        fault(&ground.policy(Vec::new())),
        ("/workspace".to_owned(), MountFault::Unexpected)
    );
    let mut more = workspace(&ground, Access::ReadWrite);
    more.entries.push(Entry {
        inside: "/more".into(),
        kind: EntryKind::Memory { mode: 0o755 },
    });
    assert_eq!(fault(&more), ("/more".to_owned(), MountFault::Missing));
    let mut open = workspace(&ground, Access::ReadWrite);
    open.network = Network::Host;
    let error = read(&running, &open).unwrap_err();
    assert!(
        matches!(error, ReadBackError::NotInForce { .. }),
        "{error:?}"
    );
}

fn a_process_without_confinement_has_no_report_ns_8() {
    let ground = Ground::new(1000);
    let policy = ground.policy(Vec::new());
    let groups = groups();
    let evidence = Evidence {
        policy: &policy,
        landlock: &LANDLOCK,
        control_groups: &groups,
        others: &[],
    };
    let error = EnforcementReport::read(rustix::process::getpid(), evidence).unwrap_err();
    assert!(
        matches!(error, ReadBackError::NotInForce { .. }),
        "{error:?}"
    );
    let proc = File::open("/proc").unwrap();
    let own = ProcessDirectory::open_self(proc.as_fd()).unwrap();
    assert!(check_mounts(&own, &policy).is_err());
}
