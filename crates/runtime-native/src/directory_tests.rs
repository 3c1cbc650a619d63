//! Ownership and removal of private directories.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
};

use super::*;

fn id(name: &str) -> SandboxId {
    SandboxId::new(name).unwrap()
}

fn names(kind: &Path) -> Vec<String> {
    let entries = fs::read_dir(kind).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_directory_is_private_and_goes_with_its_owner() {
    let state = tempfile::tempdir().unwrap();
    let kind = state.path().join("cli");
    let directory = RunDirectory::create(&kind, &id("a")).unwrap();
    directory.make("workspace").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&kind), mode(directory.path())), (0o700, 0o700));
    drop(directory);
    assert_eq!(names(&kind), [".lock"]);
}

#[test]
fn only_a_directory_without_an_owner_is_abandoned() {
    let state = tempfile::tempdir().unwrap();
    let kind = state.path().join("cli");
    let owned = RunDirectory::create(&kind, &id("owned")).unwrap();
    RunDirectory::create(&kind, &id("left")).unwrap().leave();
    let found = RunDirectory::abandoned(&kind).unwrap();
    let sandboxes: Vec<_> = found.iter().filter_map(RunDirectory::sandbox).collect();
    assert_eq!(sandboxes, [id("left")]);
    drop(found);
    assert_eq!(names(&kind), [".lock", "owned"]);
    drop(owned);
}

#[test]
fn a_tree_that_forbids_its_removal_is_removed() {
    let state = tempfile::tempdir().unwrap();
    let kind = state.path().join("cli");
    let directory = RunDirectory::create(&kind, &id("a")).unwrap();
    let inner = directory.make("workspace").unwrap().join("a");
    fs::create_dir_all(inner.join("b")).unwrap();
    fs::write(inner.join("b/file"), "x").unwrap();
    fs::set_permissions(inner.join("b"), Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(&inner, Permissions::from_mode(0o000)).unwrap();
    drop(directory);
    assert_eq!(names(&kind), [".lock"]);
}
