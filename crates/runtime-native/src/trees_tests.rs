//! Removal of trees that are made to be hard to remove.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use rustix::fs::mkdirat;

use super::*;

/// A tree to remove, with something beside it that must not change.
struct Place {
    outside: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    /// For what is large: in memory where possible, because a busy disk takes a minute for it.
    fn new_for_much() -> Self {
        let outside = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::at(outside.unwrap())
    }

    fn at(outside: tempfile::TempDir) -> Self {
        fs::create_dir(outside.path().join("tree")).unwrap();
        fs::create_dir(outside.path().join("victim")).unwrap();
        fs::write(outside.path().join("victim/file"), "untouched").unwrap();
        Self { outside }
    }

    fn tree(&self) -> PathBuf {
        self.outside.path().join("tree")
    }

    #[track_caller]
    fn check_removed(&self) {
        let victim = self.outside.path().join("victim");
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode();
        let before = (mode(&victim), mode(&victim.join("file")));
        remove_tree(&self.tree()).unwrap();
        let names = fs::read_dir(self.outside.path()).unwrap().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["victim"]);
        let text = fs::read_to_string(victim.join("file")).unwrap();
        assert_eq!(text, "untouched");
        assert_eq!(before, (mode(&victim), mode(&victim.join("file"))));
    }
}

fn open(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).unwrap()
}

/// Makes directories in each other, and returns the deepest.
fn dig(from: &Path, depth: u32) -> OwnedFd {
    let mut here = open(from);
    for _ in 0..depth {
        mkdirat(&here, "d", Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        here = openat(&here, "d", flags, Mode::empty()).unwrap();
    }
    here
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_tree_deeper_than_any_path_or_stack_is_removed_ns_20() {
    let place = Place::new_for_much();
    let deepest = dig(&place.tree(), 20_000);
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(&deepest, "file", flags, Mode::RUSR).unwrap();
    drop(deepest);
    place.check_removed();
}

#[test]
fn directories_that_forbid_everything_are_removed_ns_22() {
    let place = Place::new();
    let tree = place.tree();
    for mode in [0o000, 0o100, 0o200, 0o400, 0o500] {
        let closed = tree.join(format!("{mode:o}"));
        fs::create_dir_all(closed.join("a/b")).unwrap();
        fs::write(closed.join("a/file"), "x").unwrap();
        for path in ["a/b", "a", "."] {
            set_mode(&closed.join(path), mode);
        }
    }
    set_mode(&tree, 0o000);
    place.check_removed();
}

#[test]
fn links_are_removed_and_never_followed_ns_20() {
    let place = Place::new();
    let inner = place.tree().join("inner");
    fs::create_dir(&inner).unwrap();
    let victim = place.outside.path().join("victim");
    for directory in [place.tree(), inner] {
        symlink(&victim, directory.join("directory")).unwrap();
        symlink(victim.join("file"), directory.join("file")).unwrap();
        symlink("..", directory.join("above")).unwrap();
        symlink(".", directory.join("loop")).unwrap();
        symlink("nowhere", directory.join("nowhere")).unwrap();
        fs::hard_link(victim.join("file"), directory.join("hard")).unwrap();
    }
    place.check_removed();
}

#[test]
fn a_link_in_the_place_of_the_tree_is_refused_ns_20() {
    let place = Place::new();
    let link = place.outside.path().join("link");
    symlink("victim", &link).unwrap();
    remove_tree(&link).unwrap_err();
    assert!(link.is_symlink());
    fs::remove_file(link).unwrap();
    place.check_removed();
}

#[test]
fn a_wide_tree_is_removed() {
    let place = Place::new_for_much();
    for number in 0..10_000 {
        fs::write(place.tree().join(format!("{number}")), "").unwrap();
    }
    for number in 0..1_000 {
        let inner = place.tree().join(format!("wide/{number}/a"));
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("file"), "").unwrap();
    }
    place.check_removed();
}

#[test]
fn any_name_is_removed_also_those_that_the_removal_uses_itself() {
    let place = Place::new();
    let long = [b'x'; 255];
    let names: [&[u8]; 6] = [b"\xff\xfe", b"a\nb", b" ", b"...", b"-rf *", &long];
    for name in names {
        let inner = place.tree().join(OsStr::from_bytes(name));
        fs::create_dir_all(inner.join("a")).unwrap();
        fs::write(inner.join("a").join(OsStr::from_bytes(name)), "").unwrap();
    }
    fs::write(place.tree().join(moved_name(0)), "").unwrap();
    for number in 1..5 {
        fs::create_dir_all(place.tree().join(moved_name(number)).join("a/b")).unwrap();
        let below = place.tree().join("...").join(moved_name(number));
        fs::create_dir_all(below.join("c")).unwrap();
    }
    place.check_removed();
}

#[test]
fn what_is_not_there_needs_no_removal() {
    let place = Place::new();
    remove_tree(&place.tree().join("missing")).unwrap();
    remove_tree(&place.tree().join("missing/too")).unwrap();
    place.check_removed();
}
