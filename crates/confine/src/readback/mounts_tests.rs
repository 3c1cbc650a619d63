//! The table of mounts, on what kernels write, on what they never would, and against a policy.

use std::{
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use proptest::prelude::*;

use super::{
    mount_table::{MountFlags, MountLine, parse_mounts},
    mounts::{Expected, compare, compare_again, expected},
    *,
};
use crate::policy::{
    Access, Entry, EntryKind, Identity, Lower, MemoryCap, Network, Overlay, Ownership, Policy, Root,
};

const CAP: MemoryCap = MemoryCap {
    bytes: 4096,
    inodes: 16,
};

fn policy(entries: Vec<Entry>) -> Policy {
    Policy {
        hostname: "sandbox".to_owned(),
        identity: Identity {
            uid_inside: 1000,
            gid_inside: 1000,
            uid_outside: 1000,
            gid_outside: 1000,
        },
        stage: "/sys".into(),
        root: Root::Memory,
        entries,
        memory: CAP,
        network: Network::None,
    }
}

fn bind(inside: &str, access: Access) -> Entry {
    Entry {
        inside: inside.into(),
        kind: EntryKind::Bind {
            source: "/somewhere".into(),
            access,
            owner: Ownership::AsItIs,
            is_direct: false,
        },
    }
}

/// What the kernel says when all is as the policy wants it; bound files are on ext4.
fn as_wanted(policy: &Policy) -> Vec<MountLine> {
    expected(policy, |_| true).iter().map(line).collect()
}

fn line(expected: &Expected) -> MountLine {
    MountLine {
        point: expected.point.clone(),
        flags: expected.flags,
        is_shared: false,
        file_system: expected.file_system.unwrap_or("ext4").to_owned(),
    }
}

fn judge(policy: &Policy, found: &[MountLine]) -> Option<(String, MountFault)> {
    match compare(found, &expected(policy, |_| true)) {
        Ok(()) => None,
        Err(ReadBackError::Mount { point, fault }) => Some((point, fault)),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn what_the_kernel_has_learnt_or_forgotten_since_it_was_asked_is_seen() {
    let policy = policy(Vec::new());
    let is_sound = |path: &str| path == "/proc/asound";
    let without: Vec<_> = expected(&policy, |path| !is_sound(path))
        .iter()
        .map(line)
        .collect();
    let with = as_wanted(&policy);
    let judge = |found: &[MountLine], before: bool, now: bool| {
        let there = |is_there: bool| move |path: &str| is_there || !is_sound(path);
        compare_again(found, &policy, there(before), there(now)).is_ok()
    };
    for (before, now) in [(false, false), (false, true), (true, false), (true, true)] {
        // What is there now is masked, and nothing else, whatever was there before.
        assert_eq!(judge(&with, before, now), now || before, "{before} {now}");
        assert_eq!(judge(&without, before, now), !now, "{before} {now}");
    }
}

#[test]
fn a_line_is_understood_whole() {
    let text = b"36 35 98:0 /mnt\\0401 /a\\134b\\012c rw,nosuid,nodev,noexec,relatime shared:1 x:2 - overlay /dev/root ro\n\
        37 36 0:5 / / ro,relatime,idmapped - tmpfs none rw,mode=755\n";
    let expected = [
        MountLine {
            point: "/a\\b\nc".into(),
            flags: MountFlags {
                read_only: false,
                no_set_id: true,
                no_devices: true,
                no_execution: true,
            },
            is_shared: true,
            file_system: "overlay".to_owned(),
        },
        MountLine {
            point: "/".into(),
            flags: MountFlags {
                read_only: true,
                ..MountFlags::default()
            },
            is_shared: false,
            file_system: "tmpfs".to_owned(),
        },
    ];
    assert_eq!(parse_mounts(text).unwrap(), expected);
}

#[test]
fn the_machines_own_table_is_understood() {
    let text = std::fs::read("/proc/self/mountinfo").unwrap();
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    let mounts = parse_mounts(&text).unwrap();
    assert_eq!(mounts.len(), lines);
    assert!(mounts.iter().any(|mount| mount.file_system == "proc"));
}

#[test]
fn what_the_kernel_would_not_write_is_refused() {
    for text in [
        "",
        "\n",
        "1 2 0:1 / / rw - tmpfs none rw",
        "x 2 0:1 / / rw - tmpfs none rw\n",
        "1 2 0:1 / / rw tmpfs none rw\n",
        "1 2 0:1 / / rw - tmpfs none\n",
        "1 2 0:1 / / rw - tmpfs none rw more\n",
        "1 2 0:1 / relative rw - tmpfs none rw\n",
        "1 2 0:1 / /a\\9 rw - tmpfs none rw\n",
        "1 2 0:1 / /a\\777 rw - tmpfs none rw\n",
        "1 2 0:1 / /a\\04 rw - tmpfs none rw\n",
    ] {
        let error = parse_mounts(text.as_bytes()).unwrap_err();
        assert!(
            matches!(error, ReadBackError::BadValue { .. }),
            "{text:?}: {error:?}"
        );
    }
}

/// As the kernel does it.
fn escape(path: &Path) -> Vec<u8> {
    let mut escaped = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => escaped.extend(format!("\\{byte:03o}").bytes()),
            other => escaped.push(other),
        }
    }
    escaped
}

proptest! {
    #[test]
    fn any_name_comes_back_as_it_was(name in proptest::collection::vec(1_u8..=255, 0..64)) {
        let mut bytes = b"/".to_vec();
        bytes.extend(name);
        let point = PathBuf::from(std::ffi::OsString::from_vec(bytes));
        let mut text = b"1 2 0:1 / ".to_vec();
        text.extend(escape(&point));
        text.extend(b" ro - tmpfs none rw\n");
        let mounts = parse_mounts(&text).unwrap();
        prop_assert_eq!(mounts.len(), 1);
        prop_assert_eq!(&mounts[0].point, &point);
    }

    #[test]
    fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..256)) {
        let _ = parse_mounts(&text);
    }
}

#[test]
fn ns_3_a_sandbox_as_the_policy_wants_it_passes() {
    let policy = policy(vec![bind("/workspace", Access::ReadWrite)]);
    assert_eq!(judge(&policy, &as_wanted(&policy)), None);
}

#[test]
fn ns_3_every_mount_must_be_there() {
    let policy = policy(vec![bind("/workspace", Access::ReadWrite)]);
    let whole = as_wanted(&policy);
    for missing in 0..whole.len() {
        let mut found = whole.clone();
        let point = found.remove(missing).point.display().to_string();
        assert_eq!(judge(&policy, &found), Some((point, MountFault::Missing)));
    }
}

#[test]
fn ns_3_every_flag_of_every_mount_must_be_set() {
    let policy = policy(vec![
        bind("/usr", Access::ReadOnly),
        bind("/workspace", Access::ReadWrite),
    ]);
    let whole = as_wanted(&policy);
    for (index, mount) in whole.iter().enumerate() {
        type Clear = fn(&mut MountFlags) -> &mut bool;
        let flags: [(&str, Clear); 4] = [
            ("ro", |flags| &mut flags.read_only),
            ("nosuid", |flags| &mut flags.no_set_id),
            ("nodev", |flags| &mut flags.no_devices),
            ("noexec", |flags| &mut flags.no_execution),
        ];
        for (name, flag) in flags {
            let mut found = whole.clone();
            let was = std::mem::replace(flag(&mut found[index].flags), false);
            let point = mount.point.display().to_string();
            let missing = name.to_owned();
            let fault = was.then_some((point, MountFault::Lax { missing }));
            assert_eq!(judge(&policy, &found), fault, "{name} of {mount:?}");
        }
    }
}

#[test]
fn ns_3_nothing_else_may_be_mounted_but_what_a_bind_brings_along() {
    let policy = policy(vec![
        bind("/usr", Access::ReadOnly),
        bind("/workspace", Access::ReadWrite),
    ]);
    let with = |point: &str, read_only| {
        let mut found = as_wanted(&policy);
        found.push(MountLine {
            point: point.into(),
            flags: MountFlags {
                read_only,
                no_set_id: true,
                no_devices: true,
                no_execution: false,
            },
            is_shared: false,
            file_system: "nfs".to_owned(),
        });
        judge(&policy, &found)
    };
    let unexpected = |point: &str| Some((point.to_owned(), MountFault::Unexpected));
    assert_eq!(with("/workspace/data", false), None);
    assert_eq!(with("/usr/local", true), None);
    let missing = "ro".to_owned();
    let lax = ("/usr/local".to_owned(), MountFault::Lax { missing });
    assert_eq!(with("/usr/local", false), Some(lax));
    for point in ["/mnt", "/proc/1", "/tmp/x", "/usr", "/workspaces", "/"] {
        assert_eq!(with(point, true), unexpected(point));
    }
}

#[test]
fn ns_3_a_shared_mount_and_one_of_another_type_are_refused() {
    let policy = policy(Vec::new());
    let mut shared = as_wanted(&policy);
    shared[0].is_shared = true;
    assert_eq!(
        judge(&policy, &shared),
        Some(("/".to_owned(), MountFault::Shared))
    );
    let mut other = as_wanted(&policy);
    other[0].file_system = "ext4".to_owned();
    let found = "ext4".to_owned();
    assert_eq!(
        judge(&policy, &other),
        Some(("/".to_owned(), MountFault::FileSystem { found }))
    );
}

#[test]
fn ns_3_an_overlay_without_a_layer_must_be_read_only() {
    let overlay = |layer: Option<&str>| Overlay {
        lower: vec![Lower {
            path: "/usr".into(),
            owner: Ownership::AsItIs,
            is_direct: false,
        }],
        layer: layer.map(|path| crate::Layer::Directory(path.into())),
        own: Vec::new(),
    };
    let writable = Policy {
        root: Root::Overlay(overlay(Some("/layer"))),
        ..policy(Vec::new())
    };
    let unwritable = Policy {
        root: Root::Overlay(overlay(None)),
        ..policy(Vec::new())
    };
    assert_eq!(judge(&writable, &as_wanted(&unwritable)), None);
    let missing = "ro".to_owned();
    assert_eq!(
        judge(&unwritable, &as_wanted(&writable)),
        Some(("/".to_owned(), MountFault::Lax { missing }))
    );
}

#[test]
fn limits_are_understood_whole() {
    let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
        Max core file size        0                    unlimited            bytes     \n\
        Max nice priority         0                    5                    \n";
    let limit = |name: &str, soft, hard| ProcessLimit {
        name: name.to_owned(),
        soft,
        hard,
    };
    assert_eq!(
        limits::parse(text).unwrap(),
        [
            limit("Max core file size", Some(0), None),
            limit("Max nice priority", Some(0), Some(5)),
        ]
    );
    for bad in [
        "",
        "Limit\n",
        "Limit  Soft Limit\nMax x  +1  2\n",
        "Limit  Soft Limit\nMax x  1\n",
    ] {
        assert!(limits::parse(bad).is_err(), "{bad:?}");
    }
}
