//! What is read from the two files of `/proc`, and what is left out.

use super::{Membership, *};

const MOUNTINFO: &str = "\
23 60 0:21 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
31 23 0:28 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
32 31 0:29 / /sys/fs/cgroup/unified rw,nosuid,relatime shared:10 master:3 - cgroup2 cgroup2 rw,nsdelegate
33 31 0:30 /docker/a\\040b /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /odd\\134place ro,relatime - cgroup cgroup rw,xattr,name=systemd
35 31 0:32 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup ro,pids
";

fn mount(version: Version, root: &str, point: &str, options: &[&str]) -> CgroupMount {
    CgroupMount {
        version,
        root: root.to_owned(),
        mount_point: PathBuf::from(point),
        is_writable: true,
        options: options.iter().map(|&option| option.to_owned()).collect(),
    }
}

fn legacy(names: &[&str]) -> HierarchyName {
    HierarchyName::Legacy(names.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn every_line_of_the_membership_file_is_understood() {
    let text = "9:name=systemd:/user.slice\n5:cpu,cpuacct:/a:b\n0::/user.slice/session-1.scope\n";
    let expected = vec![
        Membership {
            hierarchy: legacy(&["name=systemd"]),
            path: "/user.slice".to_owned(),
        },
        Membership {
            hierarchy: legacy(&["cpu", "cpuacct"]),
            path: "/a:b".to_owned(),
        },
        Membership {
            hierarchy: HierarchyName::Unified,
            path: "/user.slice/session-1.scope".to_owned(),
        },
    ];
    assert_eq!(memberships(text), expected);
}

#[test]
fn lines_that_make_no_sense_are_left_out() {
    assert_eq!(
        memberships("\n:\n::\n0:\n0::relative\n7::/no/controller\nfoo\n"),
        vec![]
    );
    assert_eq!(
        cgroup_mounts("\n - \n1 2 3 / / rw - cgroup\n1 2 3 / / rw - cgroup2 x\n"),
        vec![]
    );
}

#[test]
fn control_group_mounts_are_found_among_the_others() {
    let unified = "/sys/fs/cgroup/unified";
    let cpu = "/sys/fs/cgroup/cpu,cpuacct";
    let expected = vec![
        mount(Version::V2, "/", unified, &["rw", "nsdelegate"]),
        mount(Version::V1, "/docker/a b", cpu, &["rw", "cpu", "cpuacct"]),
        CgroupMount {
            is_writable: false,
            ..mount(
                Version::V1,
                "/",
                "/odd\\place",
                &["rw", "xattr", "name=systemd"],
            )
        },
        CgroupMount {
            is_writable: false,
            ..mount(Version::V1, "/", "/sys/fs/cgroup/pids", &["ro", "pids"])
        },
    ];
    assert_eq!(cgroup_mounts(MOUNTINFO), expected);
}

#[test]
fn a_mount_shows_what_lies_below_its_root_and_nothing_else() {
    let mount = mount(Version::V1, "/docker/a", "/mnt", &["rw", "pids"]);
    assert_eq!(mount.directory_of("/docker/a"), Some(PathBuf::from("/mnt")));
    assert_eq!(
        mount.directory_of("/docker/a/b"),
        Some(PathBuf::from("/mnt/b"))
    );
    assert_eq!(mount.directory_of("/docker/ab"), None);
    assert_eq!(mount.directory_of("/"), None);
    assert_eq!(mount.directory_of("/docker/a/../b"), None);
    assert_eq!(
        mount.path_of(Path::new("/mnt")),
        Some("/docker/a".to_owned())
    );
    assert_eq!(
        mount.path_of(Path::new("/mnt/b/c")),
        Some("/docker/a/b/c".to_owned())
    );
    assert_eq!(mount.path_of(Path::new("/elsewhere")), None);
}

#[test]
fn a_place_outside_of_the_namespace_is_not_shown() {
    let outside = mount(Version::V2, "/..", "/mnt", &["rw"]);
    assert_eq!(outside.directory_of("/"), None);
    let whole = mount(Version::V2, "/", "/mnt", &["rw"]);
    assert_eq!(whole.directory_of("/../other"), None);
    assert_eq!(whole.directory_of("/"), Some(PathBuf::from("/mnt")));
}

#[test]
fn a_mount_is_known_by_all_its_controllers() {
    let mount = mount(Version::V1, "/", "/mnt", &["rw", "cpu", "cpuacct"]);
    assert!(mount.shows(&legacy(&["cpuacct", "cpu"])));
    assert!(mount.shows(&legacy(&["cpu"])));
    assert!(!mount.shows(&legacy(&["cpu", "cpuset"])));
    assert!(!mount.shows(&HierarchyName::Unified));
}

#[test]
fn text_that_is_cut_anywhere_is_read_without_harm() {
    for length in 0..MOUNTINFO.len() {
        let cut = MOUNTINFO.get(..length).unwrap();
        assert!(cgroup_mounts(cut).len() <= 4);
        assert!(memberships(cut).len() <= cut.lines().count());
    }
}

#[test]
fn escapes_that_are_none_stay_as_they_are() {
    assert_eq!(unescape("a\\040b\\134c"), Some("a b\\c".to_owned()));
    assert_eq!(unescape("\\9x\\"), Some("\\9x\\".to_owned()));
    assert_eq!(unescape("\\377"), None);
}

#[test]
fn paths_are_joined_as_the_kernel_writes_them() {
    assert_eq!(join("/", ""), "/");
    assert_eq!(join("/", "a"), "/a");
    assert_eq!(join("/a", "b/c"), "/a/b/c");
    assert_eq!(join("/a", ""), "/a");
}
