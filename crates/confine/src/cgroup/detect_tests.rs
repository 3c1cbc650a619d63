//! Machines of every kind, as texts of `/proc` over a tree of plain files.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use rustix::{fs::XattrFlags, process::geteuid};
use tempfile::TempDir;

use super::{
    super::{directory::PROCESSES, place::Vacancy},
    *,
};

const ALL: &str = "cpuset cpu io memory hugetlb pids rdma misc\n";
const LIMITING: [Controller; 4] = [
    Controller::Memory,
    Controller::Pids,
    Controller::Cpu,
    Controller::Io,
];

/// A directory that stands in for `/sys/fs/cgroup`.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self(root)
    }

    fn path(&self, below: &str) -> PathBuf {
        if below.is_empty() {
            self.0.path().to_owned()
        } else {
            self.0.path().join(below)
        }
    }

    /// A group of the second generation; the root has no type.
    fn unified(&self, below: &str, offered: &str, handed_down: &str, processes: &[u32]) {
        let directory = self.legacy(below, processes);
        fs::write(directory.join("cgroup.controllers"), offered).unwrap();
        fs::write(directory.join("cgroup.subtree_control"), handed_down).unwrap();
        if !below.is_empty() {
            fs::write(directory.join("cgroup.type"), "domain\n").unwrap();
        }
    }

    fn legacy(&self, below: &str, processes: &[u32]) -> PathBuf {
        let directory = self.path(below);
        fs::create_dir_all(&directory).unwrap();
        let processes: Vec<String> = processes.iter().map(|pid| format!("{pid}\n")).collect();
        fs::write(directory.join(PROCESSES), processes.concat()).unwrap();
        directory
    }

    /// The machine as seen with these texts, in which `@` stands for the root of the tree.
    fn host(&self, cgroup: &str, mountinfo: &str) -> Host {
        let root = self.0.path().to_str().unwrap();
        Host::from_texts(cgroup, &mountinfo.replace('@', root))
    }
}

/// Hands a place over as systemd does it: to a user by ownership, to root by a mark.
fn delegate(directory: &Path) {
    let user = geteuid();
    if user.is_root() {
        rustix::fs::setxattr(directory, "trusted.delegate", b"1", XattrFlags::empty()).unwrap();
    } else {
        chown(directory, Some(user.as_raw()), None).unwrap();
    }
}

const UNIFIED_MOUNT: &str =
    "35 24 0:30 / @ rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const SCOPE: &str = "user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope";

fn expected_unified(tree: &Tree, below: &str) -> Hierarchy {
    let mounts = cgroup_mounts(&UNIFIED_MOUNT.replace('@', tree.0.path().to_str().unwrap()));
    Hierarchy {
        version: Version::V2,
        controllers: LIMITING.to_vec(),
        directory: tree.path(below),
        access: Access::Writable,
        withheld: vec![],
        name: super::super::proc_files::HierarchyName::Unified,
        path: format!("/{below}"),
        mount: mounts.into_iter().next(),
        vacancy: Vacancy::Free,
    }
}

#[test]
fn a_delegated_scope_with_only_us_in_it_can_be_used() {
    let tree = Tree::new();
    // Not to be used: as ordinary users find it.
    tree.unified("user.slice", ALL, "", &[]);
    tree.unified(SCOPE, "cpu memory pids\n", "", &[std::process::id()]);
    delegate(&tree.path(SCOPE));
    let host = tree.host(&format!("0::/{SCOPE}\n"), UNIFIED_MOUNT);
    let expected = Hierarchy {
        controllers: vec![Controller::Memory, Controller::Pids, Controller::Cpu],
        withheld: vec![(Controller::Io, Reason::NotDelegated)],
        vacancy: Vacancy::OnlyThisProcess,
        ..expected_unified(&tree, SCOPE)
    };
    assert_eq!(host.hierarchies(), [expected]);
    assert_eq!(host.mode(), Mode::Unified);
    assert_eq!(host.reason_against(Controller::Io), Reason::NotDelegated);
    assert!(
        Reason::NotDelegated
            .remedy()
            .contains("Delegate=memory pids cpu io")
    );
}

#[test]
fn after_it_has_stepped_aside_the_place_is_still_the_same() {
    let tree = Tree::new();
    tree.unified(SCOPE, ALL, ALL, &[]);
    tree.unified(
        &format!("{SCOPE}/zareba/self"),
        ALL,
        "",
        &[std::process::id()],
    );
    let host = tree.host(&format!("0::/{SCOPE}/zareba/self\n"), UNIFIED_MOUNT);
    assert_eq!(host.hierarchies(), [expected_unified(&tree, SCOPE)]);
}

#[test]
fn a_scope_shared_with_a_shell_keeps_its_controllers_to_itself() {
    let tree = Tree::new();
    tree.unified(SCOPE, ALL, "memory\n", &[1, std::process::id()]);
    delegate(&tree.path(SCOPE));
    let host = tree.host(&format!("0::/{SCOPE}\n"), UNIFIED_MOUNT);
    let occupied = |controller| (controller, Reason::Occupied);
    let expected = Hierarchy {
        controllers: vec![Controller::Memory],
        withheld: [Controller::Pids, Controller::Cpu, Controller::Io]
            .map(occupied)
            .into(),
        vacancy: Vacancy::Occupied,
        ..expected_unified(&tree, SCOPE)
    };
    assert_eq!(host.hierarchies(), [expected]);
    assert_eq!(host.reason_against(Controller::Pids), Reason::Occupied);
    assert!(
        Reason::Occupied
            .remedy()
            .contains("systemd-run --user --scope")
    );
}

#[test]
fn a_place_that_is_not_marked_as_ours_is_not_rearranged() {
    let tree = Tree::new();
    let service = "system.slice/other.service";
    tree.unified(service, ALL, "", &[std::process::id()]);
    let host = tree.host(&format!("0::/{service}\n"), UNIFIED_MOUNT);
    // What an ordinary user owns is theirs; root owns much that is not.
    let (vacancy, usable) = if geteuid().is_root() {
        (Vacancy::Occupied, None)
    } else {
        (Vacancy::OnlyThisProcess, host.unified())
    };
    assert_eq!(host.hierarchies().first().unwrap().vacancy, vacancy);
    assert_eq!(host.hierarchy_of(Controller::Memory), usable);
}

#[test]
fn whoever_may_write_to_the_root_falls_back_to_it() {
    let tree = Tree::new();
    tree.unified("", ALL, "memory pids\n", &[1, 2]);
    tree.unified("user.slice/session-1.scope", "memory pids\n", "", &[1, 2]);
    let host = tree.host("0::/user.slice/session-1.scope\n", UNIFIED_MOUNT);
    assert_eq!(host.hierarchies(), [expected_unified(&tree, "")]);
}

#[test]
fn a_container_with_a_namespace_of_its_own_is_all_ours() {
    let tree = Tree::new();
    tree.unified("", ALL, "", &[std::process::id()]);
    fs::write(tree.path("cgroup.type"), "domain\n").unwrap();
    let host = tree.host("0::/\n", UNIFIED_MOUNT);
    let expected = Hierarchy {
        vacancy: Vacancy::OnlyThisProcess,
        ..expected_unified(&tree, "")
    };
    assert_eq!(host.hierarchies(), [expected]);
}

#[test]
fn a_container_with_a_read_only_mount_offers_nothing() {
    let tree = Tree::new();
    tree.unified("", ALL, "", &[std::process::id()]);
    let mountinfo = UNIFIED_MOUNT.replace("@ rw", "@ ro");
    let host = tree.host("0::/\n", &mountinfo);
    assert_eq!(host.hierarchies().first().unwrap().access, Access::ReadOnly);
    assert_eq!(host.unified(), None);
    assert_eq!(host.reason_against(Controller::Memory), Reason::ReadOnly);
}

const LEGACY_MOUNTS: &str = "\
31 23 0:28 / @ ro,nosuid - tmpfs tmpfs ro,mode=755
33 31 0:30 / @/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / @/memory rw,relatime - cgroup cgroup rw,memory
35 31 0:32 / @/pids rw,relatime - cgroup cgroup rw,pids
36 31 0:33 / @/freezer rw,relatime - cgroup cgroup rw,freezer
37 31 0:34 / @/blkio rw,relatime - cgroup cgroup rw,blkio
38 31 0:35 / @/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
";
const LEGACY_PLACES: &str = "\
7:name=systemd:/user.slice/session-1.scope
6:blkio:/user.slice
5:freezer:/
4:pids:/user.slice/session-1.scope
3:memory:/user.slice
2:cpu,cpuacct:/
1:perf_event:/
";

fn legacy_tree() -> Tree {
    let tree = Tree::new();
    for place in [
        "blkio/user.slice",
        "freezer",
        "pids/user.slice/session-1.scope",
    ] {
        tree.legacy(place, &[]);
    }
    for place in [
        "memory/user.slice",
        "cpu,cpuacct",
        "systemd/user.slice/session-1.scope",
    ] {
        tree.legacy(place, &[]);
    }
    tree
}

fn places(host: &Host) -> Vec<(Vec<Controller>, PathBuf, Access)> {
    let place = |h: &Hierarchy| (h.controllers.clone(), h.directory.clone(), h.access);
    host.hierarchies().iter().map(place).collect()
}

#[test]
fn every_controller_of_the_first_generation_is_found_where_it_is_mounted() {
    let tree = legacy_tree();
    let host = tree.host(LEGACY_PLACES, LEGACY_MOUNTS);
    let writable = |controllers: &[Controller], below: &str| {
        (controllers.to_vec(), tree.path(below), Access::Writable)
    };
    let expected = vec![
        writable(&[], "systemd/user.slice/session-1.scope"),
        writable(&[Controller::Io], "blkio/user.slice"),
        writable(&[Controller::Freezer], "freezer"),
        writable(&[Controller::Pids], "pids/user.slice/session-1.scope"),
        writable(&[Controller::Memory], "memory/user.slice"),
        writable(&[Controller::Cpu, Controller::CpuAccounting], "cpu,cpuacct"),
        (vec![], PathBuf::new(), Access::NotVisible),
    ];
    assert_eq!(places(&host), expected);
    assert_eq!(host.mode(), Mode::Legacy);
    assert_eq!(host.unified(), None);
}

#[test]
fn a_hybrid_machine_has_controllers_in_one_tree_and_members_in_the_other() {
    let tree = legacy_tree();
    tree.unified(
        "unified/user.slice/session-1.scope",
        "hugetlb\n",
        "",
        &[1, 2, 3],
    );
    let cgroup = format!("{LEGACY_PLACES}0::/user.slice/session-1.scope\n");
    let unified = "39 31 0:36 / @/unified rw,relatime - cgroup2 cgroup2 rw\n";
    let host = tree.host(&cgroup, &format!("{LEGACY_MOUNTS}{unified}"));
    assert_eq!(host.mode(), Mode::Hybrid);
    let found = host.unified().unwrap();
    assert_eq!(
        found.directory,
        tree.path("unified/user.slice/session-1.scope")
    );
    assert_eq!((&found.controllers, &found.withheld), (&vec![], &vec![]));
    let memory = host.hierarchy_of(Controller::Memory).unwrap();
    assert_eq!(memory.directory, tree.path("memory/user.slice"));
}

#[test]
fn a_container_of_the_first_generation_sees_its_own_part() {
    let tree = Tree::new();
    tree.legacy("pids", &[]);
    let mountinfo = "35 31 0:32 /docker/abc @/pids rw - cgroup cgroup rw,pids\n";
    let inside = tree.host("4:pids:/docker/abc\n", mountinfo);
    assert_eq!(
        places(&inside),
        [(vec![Controller::Pids], tree.path("pids"), Access::Writable)]
    );
    let elsewhere = tree.host("4:pids:/docker/other\n", mountinfo);
    let hidden = (vec![Controller::Pids], PathBuf::new(), Access::NotVisible);
    assert_eq!(places(&elsewhere), [hidden]);
    assert_eq!(
        elsewhere.reason_against(Controller::Pids),
        Reason::NotVisible
    );
}

#[test]
fn of_two_mounts_the_writable_one_is_used() {
    let tree = Tree::new();
    tree.legacy("one", &[]);
    tree.legacy("two", &[]);
    let mountinfo = "35 31 0:32 / @/one rw - cgroup cgroup rw,pids\n\
                     36 31 0:32 / @/two ro - cgroup cgroup rw,pids\n";
    let host = tree.host("4:pids:/\n", mountinfo);
    assert_eq!(
        places(&host),
        [(vec![Controller::Pids], tree.path("one"), Access::Writable)]
    );
}

#[test]
fn a_machine_without_control_groups_has_none() {
    let tree = Tree::new();
    let host = tree.host("", "31 23 0:28 / / rw - ext4 /dev/vda rw\n");
    assert_eq!(host.hierarchies(), []);
    assert_eq!(host.mode(), Mode::None);
    assert_eq!(host.reason_against(Controller::Memory), Reason::Absent);
}

#[test]
fn a_place_that_was_removed_under_us_is_not_visible() {
    let tree = Tree::new();
    tree.unified("", ALL, "", &[]);
    fs::write(tree.path("cgroup.type"), "domain\n").unwrap();
    let host = tree.host("0::/gone (deleted)\n", UNIFIED_MOUNT);
    assert_eq!(
        host.hierarchies().first().unwrap().access,
        Access::NotVisible
    );
}

#[test]
fn this_machine_is_described_without_error() {
    let host = Host::detect().unwrap();
    for hierarchy in host.writable() {
        assert!(
            hierarchy.directory.join(PROCESSES).exists(),
            "{hierarchy:?}"
        );
    }
}
