//! The parsers, on what kernels write and on what they never would.

use std::fs::File;

use super::*;

const CONFINED: &str = "Name:\tbash\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t2\nPid:\t2\nPPid:\t1\n\
    Uid:\t1000\t1001\t1002\t1003\nGid:\t2000\t2001\t2002\t4294967295\nFDSize:\t64\nGroups:\t \n\
    CapInh:\t0000000000000000\nCapPrm:\t0000000000000001\nCapEff:\t0000000000000002\n\
    CapBnd:\t000001ffffffffff\nCapAmb:\t8000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n\
    Seccomp_filters:\t3\nSpeculation_Store_Bypass:\tthread vulnerable\n";

fn expected() -> Status {
    Status {
        user: Ids {
            real: 1000,
            effective: 1001,
            saved: 1002,
            filesystem: 1003,
        },
        group: Ids {
            real: 2000,
            effective: 2001,
            saved: 2002,
            filesystem: u32::MAX,
        },
        capabilities: Capabilities {
            inheritable: 0,
            permitted: 1,
            effective: 2,
            bounding: 0x1ff_ffff_ffff,
            ambient: 1 << 63,
        },
        no_new_privileges: true,
        seccomp: SeccompMode::Filter,
        seccomp_filters: Some(3),
    }
}

fn bad_field(text: &str) -> &'static str {
    match Status::parse(text).unwrap_err() {
        ReadBackError::BadValue { field, .. } => field,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_status_is_understood_whole() {
    assert_eq!(Status::parse(CONFINED).unwrap(), expected());
}

#[test]
fn an_old_kernel_does_not_count_its_filters() {
    let text = CONFINED.replace("Seccomp_filters:\t3\n", "");
    assert_eq!(
        Status::parse(&text).unwrap(),
        Status {
            seccomp_filters: None,
            ..expected()
        }
    );
}

#[test]
fn a_name_cannot_pose_as_a_field() {
    // The kernel writes a line break in a name as `\n`, so only the first line is the program's.
    let text = CONFINED.replace("Name:\tbash", "Name:\tNoNewPrivs:\t0");
    assert_eq!(Status::parse(&text).unwrap(), expected());
}

#[test]
fn every_field_is_required_but_one() {
    for field in [
        "Uid",
        "Gid",
        "CapInh",
        "CapPrm",
        "CapEff",
        "CapBnd",
        "CapAmb",
        "NoNewPrivs",
        "Seccomp",
    ] {
        let text = CONFINED.replace(&format!("\n{field}:\t"), "\nOther:\t");
        let error = Status::parse(&text).unwrap_err();
        assert!(
            matches!(error, ReadBackError::MissingField { file: "status", field: missing } if missing == field),
            "{field}: {error:?}"
        );
    }
}

#[test]
fn a_field_that_is_there_twice_is_refused() {
    let error = Status::parse(&format!("{CONFINED}NoNewPrivs:\t1\n")).unwrap_err();
    assert!(matches!(
        error,
        ReadBackError::RepeatedField {
            field: "NoNewPrivs",
            ..
        }
    ));
}

#[test]
fn values_that_the_kernel_never_writes_are_refused() {
    for (from, to, field) in [
        ("CapEff:\t0000000000000002", "CapEff:\t2", "CapEff"),
        (
            "CapEff:\t0000000000000002",
            "CapEff:\t+000000000000002",
            "CapEff",
        ),
        (
            "CapEff:\t0000000000000002",
            "CapEff:\t00000000000000020",
            "CapEff",
        ),
        (
            "CapBnd:\t000001ffffffffff",
            "CapBnd:\t000001FFFFFFFFFF",
            "CapBnd",
        ),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t2", "NoNewPrivs"),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t1 ", "NoNewPrivs"),
        ("Seccomp:\t2", "Seccomp:\t3", "Seccomp"),
        (
            "Seccomp_filters:\t3",
            "Seccomp_filters:\t-3",
            "Seccomp_filters",
        ),
        ("Uid:\t1000\t", "Uid:\t", "Uid"),
        ("Uid:\t1000\t", "Uid:\t1000\t1000\t", "Uid"),
        ("Uid:\t1000\t", "Uid:\t4294967296\t", "Uid"),
        ("Gid:\t2000\t", "Gid:\t\t", "Gid"),
    ] {
        assert!(CONFINED.contains(from), "{from}");
        assert_eq!(bad_field(&CONFINED.replace(from, to)), field, "{to}");
    }
}

#[test]
fn no_cut_of_a_status_is_taken_for_a_whole_one() {
    let without_the_last_line = CONFINED.rfind("Seccomp_filters").unwrap();
    for length in 0..without_the_last_line - 2 {
        assert!(Status::parse(&CONFINED[..length]).is_err(), "{length}");
    }
}

#[test]
fn capabilities_are_empty_only_when_all_five_sets_are() {
    let none = Capabilities {
        inheritable: 0,
        permitted: 0,
        effective: 0,
        bounding: 0,
        ambient: 0,
    };
    assert!(none.are_empty());
    for one in [
        Capabilities {
            inheritable: 1,
            ..none
        },
        Capabilities {
            permitted: 1,
            ..none
        },
        Capabilities {
            effective: 1,
            ..none
        },
        Capabilities {
            bounding: 1,
            ..none
        },
        Capabilities { ambient: 1, ..none },
    ] {
        assert!(!one.are_empty(), "{one:?}");
    }
}

#[test]
fn a_map_is_understood_as_the_kernel_writes_it() {
    let text = "         0     100000      65536\n     65536          0          1\n";
    let ranges = vec![
        IdRange {
            inside: 0,
            outside: 100_000,
            count: 65_536,
        },
        IdRange {
            inside: 65_536,
            outside: 0,
            count: 1,
        },
    ];
    assert_eq!(IdMap::parse("uid_map", text).unwrap(), IdMap { ranges });
    assert_eq!(
        IdMap::parse("uid_map", "").unwrap(),
        IdMap { ranges: vec![] }
    );
}

#[test]
fn a_map_of_another_form_is_refused() {
    let long = "0 0 1\n".repeat(341);
    for text in [
        "0 0",
        "0 0 1 1",
        "0 -1 1",
        "0 0 4294967296",
        "a b c",
        "\n",
        long.as_str(),
    ] {
        let error = IdMap::parse("gid_map", text).unwrap_err();
        assert!(
            matches!(
                error,
                ReadBackError::BadValue {
                    file: "gid_map",
                    ..
                }
            ),
            "{text:?}"
        );
    }
}

#[test]
fn this_process_can_be_read_and_shares_its_namespaces_with_itself() {
    let proc = File::open("/proc").unwrap();
    let by_name = ProcessDirectory::open_self(&proc).unwrap().facts().unwrap();
    let by_number = ProcessDirectory::open(&proc, rustix::process::getpid()).unwrap();
    assert_eq!(by_number.namespaces().unwrap(), by_name.namespaces);
    assert_eq!(
        by_name.namespaces.shared_with(&by_name.namespaces),
        NamespaceKind::ALL
    );
    assert_eq!(
        by_name.status.user.effective,
        rustix::process::geteuid().as_raw()
    );
}

#[test]
fn a_process_that_has_ended_is_an_error_and_not_another_process() {
    let proc = File::open("/proc").unwrap();
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let directory = ProcessDirectory::open(&proc, pid).unwrap();
    directory.status().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        directory.status().unwrap_err().raw_os_error(),
        Some(libc::ESRCH)
    );
    let gone = ProcessDirectory::open(&proc, pid).unwrap_err();
    assert!(matches!(gone, ReadBackError::OpenProcess { .. }));
}
