//! What the filters decide, asked of a simulated kernel; `tests/restrict` asks the real one.

use std::collections::BTreeSet;

use super::{
    calls::{self, Meaning},
    error::SeccompError,
    install::CompiledFilter,
    profile::{Permissions, SeccompProfile},
    program::Verdict,
    simulator::{self, Call},
};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const DEBUGGING: Permissions = Permissions {
    debugging: true,
    user_namespaces: false,
    set_id_files: false,
};
const USER_NAMESPACES: Permissions = Permissions {
    debugging: false,
    user_namespaces: true,
    set_id_files: false,
};

fn number(name: &str) -> u32 {
    match calls::meaning(name) {
        Some(Meaning::Number(number)) => number,
        other => panic!("`{name}` is {other:?}"),
    }
}

fn ask(filter: &CompiledFilter, name: &str, arguments: &[u64]) -> Verdict {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let call = Call {
        architecture: ARCHITECTURE,
        number: number(name),
        arguments: all,
    };
    simulator::run(filter, call).0
}

fn check(permissions: Permissions, name: &str, arguments: &[u64], expected: Verdict) {
    let filter = SeccompProfile::builtin(permissions).unwrap();
    assert_eq!(
        ask(&filter, name, arguments),
        expected,
        "{name}{arguments:x?}"
    );
}

fn refuses(text: &str) -> SeccompError {
    SeccompProfile::parse(text)
        .and_then(|profile| profile.compile(Permissions::NONE))
        .unwrap_err()
}

#[test]
fn the_profile_decides_about_every_call_that_has_a_name() {
    let text = include_str!("profile.toml");
    let profile = SeccompProfile::parse(text).unwrap();
    let allowed = profile.allow.iter().flat_map(|entry| &entry.calls);
    let denied = profile.deny.iter().flat_map(|entry| &entry.calls);
    let decided: BTreeSet<&str> = allowed.chain(denied).map(String::as_str).collect();
    let named: BTreeSet<&str> = calls::names().collect();
    assert_eq!(decided, named);
}

/// NS-10, one by one: none of these depends on an argument.
#[test]
fn what_the_requirements_deny_is_denied_whatever_the_arguments() {
    let denied = [
        "mount",
        "umount2",
        "pivot_root",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsconfig",
        "fsmount",
        "fspick",
        "mount_setattr",
        "setns",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "keyctl",
        "add_key",
        "request_key",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "delete_module",
        "open_by_handle_at",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "pidfd_getfd",
        "kcmp",
        "swapon",
        "swapoff",
        "reboot",
        "clock_settime",
        "settimeofday",
        "clock_adjtime",
        "adjtimex",
        "acct",
        "quotactl",
        "syslog",
        "chroot",
        "fanotify_init",
    ];
    for arguments in [[0; 6], [u64::MAX; 6]] {
        for name in denied {
            check(Permissions::NONE, name, &arguments, Verdict::NOT_PERMITTED);
        }
        check(Permissions::NONE, "clone3", &arguments, Verdict::NOT_THERE);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn port_access_of_x86_is_denied() {
    check(Permissions::NONE, "iopl", &[3], Verdict::NOT_PERMITTED);
    check(
        Permissions::NONE,
        "ioperm",
        &[0, 1, 1],
        Verdict::NOT_PERMITTED,
    );
}

#[test]
fn numbers_without_a_name_are_not_there() {
    let filter = SeccompProfile::builtin(Permissions::NONE).unwrap();
    let named: BTreeSet<u32> = calls::names()
        .filter_map(|name| match calls::meaning(name)? {
            Meaning::Number(number) => Some(number),
            Meaning::Elsewhere => None,
        })
        .collect();
    let unnamed = (0..1024)
        .chain([0x3fff_ffff, u32::MAX])
        .filter(|number| !named.contains(number));
    for number in unnamed {
        let call = Call {
            architecture: ARCHITECTURE,
            number,
            arguments: [0; 6],
        };
        assert_eq!(
            simulator::run(&filter, call).0,
            Verdict::NOT_THERE,
            "{number}"
        );
    }
}

#[test]
fn numbers_with_the_x32_bit_are_not_there() {
    let filter = SeccompProfile::builtin(Permissions::NONE).unwrap();
    for number in 0..1024 {
        let number = 0x4000_0000 | number;
        let call = Call {
            architecture: ARCHITECTURE,
            number,
            arguments: [0; 6],
        };
        assert_eq!(
            simulator::run(&filter, call).0,
            Verdict::NOT_THERE,
            "{number:#x}"
        );
    }
}

#[test]
fn a_call_of_another_architecture_ends_the_process() {
    let filter = SeccompProfile::builtin(Permissions::NONE).unwrap();
    // i386, arm, and the same machine with the other byte order.
    for architecture in [0x4000_0003, 0x4000_0028, ARCHITECTURE & !0x4000_0000] {
        let call = Call {
            architecture,
            number: number("read"),
            arguments: [0; 6],
        };
        assert_eq!(
            simulator::run(&filter, call).0,
            Verdict::KILL,
            "{architecture:#x}"
        );
    }
}

#[test]
fn a_number_is_found_in_few_steps() {
    let filter = SeccompProfile::builtin(Permissions::NONE).unwrap();
    let steps = (0..512).map(|number| {
        let call = Call {
            architecture: ARCHITECTURE,
            number,
            arguments: [0; 6],
        };
        simulator::run(&filter, call).1
    });
    // Twelve for the search, the rest for the conditions on `socket`, the longest.
    let longest = steps.max().unwrap();
    assert!(longest < 100, "{longest} steps");
}

#[test]
fn the_limit_of_core_files_stays_and_can_be_asked_for_ns_7() {
    const CORE: u64 = 4;
    let checked = |name, arguments: &[u64], expected| {
        check(Permissions::NONE, name, arguments, expected);
    };
    for upper in [0, 0xffff_ffff_0000_0000] {
        for pointer in [1, 1 << 32, 0x7fff_0000_0000] {
            checked("prlimit64", &[0, upper | CORE, pointer], Verdict::PRETENDED);
            checked("prlimit64", &[0, upper | 7, pointer], Verdict::ALLOW);
        }
        checked("prlimit64", &[0, upper | CORE, 0, 1], Verdict::ALLOW);
        checked("setrlimit", &[upper | CORE, 1], Verdict::PRETENDED);
        checked("setrlimit", &[upper | 7, 1], Verdict::ALLOW);
    }
    checked("getrlimit", &[CORE, 1], Verdict::ALLOW);
}

#[test]
fn new_namespaces_are_refused_one_by_one() {
    let namespaces: [u64; 7] = [
        0x0002_0000,
        0x0200_0000,
        0x0400_0000,
        0x0800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ];
    for namespace in namespaces {
        for other_flags in [0, 17, 0x8000_0f00, 0xffff_ffff_0000_0000] {
            check(
                Permissions::NONE,
                "clone",
                &[namespace | other_flags],
                Verdict::NOT_PERMITTED,
            );
            check(
                Permissions::NONE,
                "unshare",
                &[namespace | other_flags],
                Verdict::NOT_PERMITTED,
            );
        }
    }
    check(
        Permissions::NONE,
        "unshare",
        &[0x80],
        Verdict::NOT_PERMITTED,
    );
    // A thread of the C library, and a descriptor table of one's own.
    check(Permissions::NONE, "clone", &[0x003d_0f00], Verdict::ALLOW);
    check(Permissions::NONE, "unshare", &[0x400], Verdict::ALLOW);
}

#[test]
fn a_permission_opens_user_namespaces_and_no_others() {
    let browser = 0x1000_0000 | 0x2000_0000 | 0x4000_0000;
    check(USER_NAMESPACES, "clone", &[browser | 17], Verdict::ALLOW);
    check(USER_NAMESPACES, "unshare", &[browser], Verdict::ALLOW);
    check(USER_NAMESPACES, "chroot", &[], Verdict::ALLOW);
    for still_refused in [0x0002_0000, 0x0200_0000, 0x0400_0000] {
        check(
            USER_NAMESPACES,
            "clone",
            &[browser | still_refused],
            Verdict::NOT_PERMITTED,
        );
        check(
            USER_NAMESPACES,
            "unshare",
            &[browser | still_refused],
            Verdict::NOT_PERMITTED,
        );
    }
    check(USER_NAMESPACES, "clone3", &[], Verdict::NOT_THERE);
    check(USER_NAMESPACES, "setns", &[], Verdict::NOT_PERMITTED);
    check(USER_NAMESPACES, "ptrace", &[], Verdict::NOT_PERMITTED);
}

#[test]
fn a_permission_opens_debugging_and_nothing_else() {
    for name in ["ptrace", "process_vm_readv", "process_vm_writev"] {
        check(DEBUGGING, name, &[], Verdict::ALLOW);
    }
    check(DEBUGGING, "pidfd_getfd", &[], Verdict::NOT_PERMITTED);
    check(DEBUGGING, "chroot", &[], Verdict::NOT_PERMITTED);
    check(DEBUGGING, "clone", &[0x1000_0000], Verdict::NOT_PERMITTED);
}

#[test]
fn only_the_listed_kinds_of_socket_can_be_made() {
    let filter = SeccompProfile::builtin(Permissions::NONE).unwrap();
    let mut made = Vec::new();
    for family in 0..64 {
        for kind in [1, 2, 3, 5, 6, 10, 1 | 0x80800] {
            for protocol in [0, 1, 4, 6, 9, 15, 17, 58, 132, 136, 262] {
                let verdict = ask(&filter, "socket", &[family, kind, protocol]);
                if verdict == Verdict::ALLOW && !matches!(family, 1 | 16) {
                    made.push((family, kind & 0xf, protocol));
                } else if matches!(family, 1 | 16) {
                    let is_route_or_unix = family == 1 || protocol == 0;
                    assert_eq!(
                        verdict == Verdict::ALLOW,
                        is_route_or_unix,
                        "{family} {kind} {protocol}"
                    );
                } else {
                    assert_eq!(verdict, Verdict::NOT_PERMITTED);
                }
            }
        }
    }
    let mut expected = Vec::new();
    for family in [2, 10] {
        expected.extend([(family, 1, 0), (family, 1, 6)]);
        expected.extend([0, 1, 17, 58].map(|protocol| (family, 2, protocol)));
        expected.extend([(family, 1, 0), (family, 1, 6)]);
    }
    assert_eq!(made, expected);
    assert_eq!(ask(&filter, "socketpair", &[1, 1, 0]), Verdict::ALLOW);
    assert_eq!(
        ask(&filter, "socketpair", &[30, 1, 0]),
        Verdict::NOT_PERMITTED
    );
}

#[test]
fn typing_into_terminals_is_refused_whatever_the_upper_half_says() {
    for upper_half in [0, 1 << 32, 0xffff_ffff_0000_0000] {
        for request in [0x5412, 0x541c, 0x5423] {
            check(
                Permissions::NONE,
                "ioctl",
                &[0, upper_half | request],
                Verdict::NOT_PERMITTED,
            );
        }
        check(
            Permissions::NONE,
            "ioctl",
            &[0, upper_half | 0x5413],
            Verdict::ALLOW,
        );
    }
}

#[test]
fn devices_cannot_be_made_and_pipes_can() {
    for (kind, expected) in [
        (0x1000, Verdict::ALLOW),
        (0x2000, Verdict::NOT_PERMITTED),
        (0x6000, Verdict::NOT_PERMITTED),
        (0x8000, Verdict::ALLOW),
        (0xc000, Verdict::ALLOW),
        (0, Verdict::ALLOW),
    ] {
        check(
            Permissions::NONE,
            "mknodat",
            &[0, 0, kind | 0o644, 0],
            expected,
        );
        #[cfg(target_arch = "x86_64")]
        check(Permissions::NONE, "mknod", &[0, kind | 0o644, 0], expected);
    }
}

#[test]
fn personalities_that_weaken_memory_protection_are_refused() {
    for harmless in [0, 0xffff_ffff, 0x0004_0000] {
        check(
            Permissions::NONE,
            "personality",
            &[harmless],
            Verdict::ALLOW,
        );
    }
    for harmful in [0x0010_0000, 0x0040_0000, 0x0044_0000, 8] {
        check(
            Permissions::NONE,
            "personality",
            &[harmful],
            Verdict::NOT_PERMITTED,
        );
    }
}

#[test]
fn a_condition_beats_a_plain_entry_and_a_denial_beats_both() {
    let text = "
        [[deny]]
        calls = ['ioctl']
        when = [{ argument = 1, is = [7] }]
        errno = 'ENOSYS'
        reason = 'a'
        [[allow]]
        calls = ['ioctl']
        when = [{ argument = 1, is = [7, 8] }]
        reason = 'b'
        [[deny]]
        calls = ['ioctl']
        reason = 'c'
    ";
    let filter = SeccompProfile::parse(text)
        .unwrap()
        .compile(Permissions::NONE)
        .unwrap();
    let verdicts = [7, 8, 9].map(|request| ask(&filter, "ioctl", &[0, request]));
    assert_eq!(
        verdicts,
        [Verdict::NOT_THERE, Verdict::ALLOW, Verdict::NOT_PERMITTED]
    );
    assert_eq!(ask(&filter, "read", &[]), Verdict::NOT_THERE);
}

#[test]
fn a_profile_that_makes_no_sense_is_refused() {
    let entry = |rest: &str| format!("deny = []\n[[allow]]\n{rest}");
    let without_reason = refuses(&entry("calls = ['read']\nreason = ' '"));
    assert!(matches!(
        without_reason,
        SeccompError::IncompleteEntry {
            lacks: "reason",
            ..
        }
    ));
    let without_calls = refuses(&entry("calls = []\nreason = 'a'"));
    assert!(matches!(
        without_calls,
        SeccompError::IncompleteEntry { lacks: "calls", .. }
    ));
    let unknown = refuses(&entry("calls = ['raed']\nreason = 'a'"));
    assert!(matches!(unknown, SeccompError::UnknownCall { name } if name == "raed"));
    let misspelt_field = refuses(&entry("calls = ['read']\nreason = 'a'\nwhne = []"));
    assert!(matches!(misspelt_field, SeccompError::Parse { .. }));
    let twice = refuses(&entry("calls = ['read', 'read']\nreason = 'a'"));
    assert!(matches!(twice, SeccompError::Contradiction { name } if name == "read"));
    let both =
        refuses("[[allow]]\ncalls=['read']\nreason='a'\n[[deny]]\ncalls=['read']\nreason='b'");
    assert!(matches!(both, SeccompError::Contradiction { name } if name == "read"));
    for condition in [
        "argument = 6, is = [1]",
        "argument = 0, is = []",
        "argument = 0, mask = 1, is = [2]",
        "argument = 0, mask = 1, is_null = true",
        "argument = 0, is = [1], is_null = true",
    ] {
        let text = entry(&format!(
            "calls = ['read']\nreason = 'a'\nwhen = [{{ {condition} }}]"
        ));
        assert!(
            matches!(refuses(&text), SeccompError::BadCondition { .. }),
            "{condition}"
        );
    }
}

#[test]
fn what_the_kernel_would_not_take_is_refused_before() {
    use super::program::{self, Decision, Run};
    let run = |first| {
        let verdict = if first % 2 == 0 {
            Verdict::ALLOW
        } else {
            Verdict::NOT_THERE
        };
        Run {
            first,
            decision: Decision::plain(verdict),
        }
    };
    let fits: Vec<Run> = (0..1500).map(run).collect();
    let filter = CompiledFilter::new(program::write(ARCHITECTURE, &fits).unwrap());
    // Long enough for plain jumps: each number still finds its own verdict.
    for number in 0..1500 {
        let call = Call {
            architecture: ARCHITECTURE,
            number,
            arguments: [0; 6],
        };
        assert_eq!(
            simulator::run(&filter, call).0,
            run(number).decision.otherwise,
            "{number}"
        );
    }
    let too_long: Vec<Run> = (0..5000).map(run).collect();
    let refused = program::write(ARCHITECTURE, &too_long).unwrap_err();
    assert!(matches!(refused, SeccompError::TooLong { instructions } if instructions > 4096));
}

#[test]
fn a_filter_survives_being_handed_over() {
    let filter = SeccompProfile::builtin(Permissions::NONE).unwrap();
    let bytes = filter.to_bytes();
    assert_eq!(CompiledFilter::from_bytes(&bytes).unwrap(), filter);
    for cut in [0, 1, bytes.len() - 1] {
        let error = CompiledFilter::from_bytes(&bytes[..cut]).unwrap_err();
        assert!(matches!(error, SeccompError::NotAFilter { bytes } if bytes == cut));
    }
    assert!(CompiledFilter::from_bytes(&vec![0; 8 * 4096]).is_ok());
    assert!(CompiledFilter::from_bytes(&vec![0; 8 * 4097]).is_err());
}
