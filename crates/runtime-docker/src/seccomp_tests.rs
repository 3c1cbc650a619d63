//! The Engine's rules say what the file says.

use super::*;

const STRICT: Permissions = Permissions {
    debugging: false,
    set_id_files: false,
};

/// What the Engine would make of a call: `None` is allowed, otherwise the error.
fn judge(permissions: Permissions, call: &str, arguments: &[u64]) -> Option<u64> {
    let profile = profile(permissions).unwrap();
    let rules = profile["syscalls"].as_array().unwrap();
    let of_call = || rules.iter().filter(|rule| rule["names"] == json!([call]));
    let matches = |rule: &&Value| {
        let conditions = rule["args"].as_array().map(Vec::as_slice);
        conditions.unwrap_or_default().iter().all(|condition| {
            assert_eq!(condition["op"], "SCMP_CMP_MASKED_EQ");
            let number = |key: &str| condition[key].as_u64().unwrap();
            let index = usize::try_from(number("index")).unwrap();
            let given = arguments.get(index).copied().unwrap_or(0);
            given & number("value") == number("valueTwo")
        })
    };
    let allows = |rule: &&Value| rule["action"] == "SCMP_ACT_ALLOW";
    if of_call().filter(matches).any(|rule| allows(&rule)) {
        return None;
    }
    let refusal = of_call().filter(matches).find(|rule| !allows(rule));
    let default = &profile["defaultErrnoRet"];
    refusal.map_or(default, |rule| &rule["errnoRet"]).as_u64()
}

#[test]
fn plain_calls_are_allowed_and_dangerous_ones_are_not_dk_1() {
    for call in ["read", "execve", "openat", "futex", "getrandom", "ioctl"] {
        assert_eq!(judge(STRICT, call, &[]), None, "{call}");
    }
    for call in [
        "io_uring_setup",
        "mount",
        "unshare_of_the_future",
        "ptrace",
        "bpf",
        "keyctl",
        "setns",
        "init_module",
    ] {
        assert_eq!(judge(STRICT, call, &[]), Some(1), "{call}");
    }
    assert_eq!(judge(STRICT, "clone3", &[]), Some(38));
}

#[test]
fn arguments_decide_where_the_file_says_so() {
    let socket = |family, kind, protocol| judge(STRICT, "socket", &[family, kind, protocol]);
    assert_eq!(socket(1, 1, 0), None, "AF_UNIX");
    assert_eq!(socket(2, 1 | 0o4000 | 0o2_000_000, 6), None, "TCP");
    assert_eq!(socket(10, 2, 17), None, "UDP");
    assert_eq!(socket(16, 3, 0), None, "NETLINK_ROUTE");
    for (family, kind, protocol) in [(40, 1, 0), (17, 3, 3), (38, 5, 0), (2, 3, 1), (16, 3, 9)] {
        assert_eq!(socket(family, kind, protocol), Some(1), "{family}");
    }
    assert_eq!(judge(STRICT, "ioctl", &[0, 0x5413]), None);
    for request in [0x5412, 0x541c, 0x5423] {
        assert_eq!(
            judge(STRICT, "ioctl", &[0, request]),
            Some(1),
            "{request:#x}"
        );
    }
    assert_eq!(judge(STRICT, "clone", &[0x11]), None);
    assert_eq!(judge(STRICT, "clone", &[0x1000_0011]), Some(1));
    assert_eq!(judge(STRICT, "mknod", &[0, 0o010_644]), None, "a pipe");
    assert_eq!(judge(STRICT, "mknod", &[0, 0o020_644]), Some(1), "a device");
    assert_eq!(
        judge(STRICT, "mknod", &[0, 0o014_644]),
        Some(1),
        "set-user-ID"
    );
}

#[test]
fn the_limit_of_core_files_stays_and_can_be_asked_for_ns_7() {
    const CORE: u64 = 4;
    for pointer in [1, 1 << 32, 0x7fff_0000_0000] {
        assert_eq!(judge(STRICT, "prlimit64", &[0, CORE, pointer]), Some(0));
        assert_eq!(judge(STRICT, "prlimit64", &[0, 7, pointer]), None);
    }
    assert_eq!(judge(STRICT, "prlimit64", &[0, CORE, 0, 1]), None);
    assert_eq!(judge(STRICT, "setrlimit", &[CORE, 1]), Some(0));
    assert_eq!(judge(STRICT, "setrlimit", &[7, 1]), None);
    assert_eq!(judge(STRICT, "getrlimit", &[CORE, 1]), None);
}

#[test]
fn permissions_open_what_they_name() {
    let open = Permissions {
        debugging: true,
        set_id_files: true,
    };
    assert_eq!(judge(open, "ptrace", &[]), None);
    assert_eq!(judge(open, "chmod", &[0, 0o4755]), None);
    assert_eq!(judge(STRICT, "chmod", &[0, 0o4755]), Some(1));
    assert_eq!(judge(STRICT, "chmod", &[0, 0o755]), None);
    assert_eq!(judge(STRICT, "openat", &[0, 0, 0x40, 0o4755]), Some(1));
    assert_eq!(judge(STRICT, "openat", &[0, 0, 0, 0o4755]), None);
    assert_eq!(judge(STRICT, "openat2", &[]), Some(38));
    assert_eq!(judge(open, "openat2", &[]), None);
}

#[test]
fn the_same_profile_is_the_same_text() {
    let text = || profile(STRICT).unwrap().to_string();
    assert_eq!(text(), text());
    assert!(text().len() < 256 * 1024);
}
