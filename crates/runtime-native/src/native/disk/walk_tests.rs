//! Trees that are made to hide something.

use std::{
    fs,
    os::{
        fd::AsFd as _,
        unix::fs::{PermissionsExt as _, symlink},
    },
    time::Duration,
};

use rustix::fs::{mkdirat, renameat};

use super::*;

/// More than a directory takes on any file system.
const HIDDEN: usize = 1024 * 1024;

fn walk(root: &Path) -> Held {
    let mut walk = Walk::begin(root, Vec::new());
    assert_eq!(walk.proceed(None), Progress::Finished);
    walk.held()
}

/// Makes directories in each other and a file in the deepest.
fn hide(root: &Path, name: &str, depth: u32) {
    let mut here = open(CWD, root).unwrap();
    for _ in 0..depth {
        mkdirat(&here, name, Mode::RWXU).unwrap();
        here = open(&here, name).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&here, "file", flags, Mode::RUSR).unwrap();
    let mut file = fs::File::from(file);
    std::io::Write::write_all(&mut file, &vec![1; HIDDEN]).unwrap();
    file.sync_all().unwrap();
}

#[track_caller]
fn check_found(name: &str, depth: u32) {
    let place = tempfile::tempdir().unwrap();
    hide(place.path(), name, depth);
    // The way back up goes on to what is beside it at each level that is still open or not.
    fs::create_dir_all(place.path().join(name).join("z/y/x")).unwrap();
    let held = walk(place.path());
    assert_eq!(held.inodes, u64::from(depth) + 1 + 3);
    assert!(held.bytes >= HIDDEN as u64, "{held:?}");
    assert_eq!(held.unseen, 0);
    crate::trees::remove_tree(place.path()).unwrap();
}

#[test]
fn no_depth_hides_anything_ns_16() {
    check_found("d", 300);
    check_found("d", 3_000);
}

#[test]
fn no_path_is_too_long_ns_16() {
    check_found(&"n".repeat(250), 20);
}

#[test]
fn every_level_has_all_its_neighbours_counted_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut here = place.path().to_owned();
    for _ in 0..OPEN_MAX + 20 {
        for name in ["a", "m", "z"] {
            fs::create_dir(here.join(name)).unwrap();
            fs::write(here.join(name).join("file"), "").unwrap();
        }
        here.push("m");
    }
    let names = (0..1_000).map(|number| place.path().join(format!("wide/{number}/in")));
    names.for_each(|name| fs::create_dir_all(name).unwrap());
    let held = walk(place.path());
    assert_eq!(held.inodes, (OPEN_MAX as u64 + 20) * 6 + 1 + 2_000);
    assert_eq!(held.unseen, 0);
}

#[test]
fn links_lead_nowhere_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(place.path().join("file"), vec![1; HIDDEN]).unwrap();
    symlink(place.path(), tree.join("up")).unwrap();
    symlink("../file", tree.join("file")).unwrap();
    symlink(".", tree.join("loop")).unwrap();
    let held = walk(&tree);
    assert_eq!((held.inodes, held.unseen), (3, 0));
    assert!(held.bytes < HIDDEN as u64);
}

#[test]
fn what_cannot_be_looked_into_is_told_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let missing = walk(&place.path().join("missing"));
    assert_eq!((missing.inodes, missing.unseen), (0, 1));
    // Nothing is closed to root.
    if rustix::process::geteuid().is_root() {
        return;
    }
    for (name, mode) in [("closed", 0o000), ("unlisted", 0o100), ("locked", 0o400)] {
        let inner = place.path().join(name);
        fs::create_dir_all(inner.join("in")).unwrap();
        fs::set_permissions(inner, fs::Permissions::from_mode(mode)).unwrap();
    }
    assert_eq!(walk(place.path()).unseen, 3);
    let expected = identify(place.path()).into_iter().collect();
    let mut walk = Walk::begin(place.path(), expected);
    walk.proceed(None);
    // Only what is directly in the directory that was named.
    assert_eq!(walk.held().unseen, 1);
    crate::trees::remove_tree(place.path()).unwrap();
}

#[test]
fn a_walk_goes_on_where_it_was_interrupted_ns_16() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("a/b/c")).unwrap();
    let mut walk = Walk::begin(place.path(), Vec::new());
    assert_eq!(walk.proceed(Some(Instant::now())), Progress::Interrupted);
    assert_eq!(walk.held(), Held::default());
    let later = Instant::now() + Duration::from_secs(600);
    assert_eq!(walk.proceed(Some(later)), Progress::Finished);
    assert_eq!(walk.held().inodes, 3);
}

#[test]
fn a_directory_that_is_moved_under_the_walk_does_not_lead_it_out_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    hide(&tree, "d", OPEN_MAX as u32 + 10);
    fs::create_dir(place.path().join("elsewhere")).unwrap();
    let mut walk = Walk::begin(&tree, Vec::new());
    while walk.way.len() < OPEN_MAX + 6 {
        let station = walk.way.last_mut().unwrap();
        let Next::Below(below) = station.look_through(&mut walk.held, &[], None) else {
            panic!("the way down ended early");
        };
        walk.enter(below);
    }
    let above = open(walk.way.last().unwrap().directory.as_ref().unwrap(), "..").unwrap();
    renameat(above.as_fd(), "d", CWD, place.path().join("elsewhere/d")).unwrap();
    assert_eq!(walk.proceed(None), Progress::Finished);
    assert!(walk.held().unseen > 0);
    // Neither `elsewhere` nor `tree` itself.
    assert_eq!(walk.held().inodes, OPEN_MAX as u64 + 11);
}
