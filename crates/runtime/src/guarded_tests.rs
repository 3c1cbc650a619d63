//! Guarded names in directories of a test's own.

use std::{fs, os::unix::fs::symlink};

use tempfile::TempDir;

use super::*;

fn places() -> (TempDir, TempDir, PathBuf) {
    let (workspace, private) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = fs::canonicalize(workspace.path()).unwrap();
    (workspace, private, path)
}

fn guard_in(workspace: &Path, names: &[&str], private: &TempDir) -> io::Result<Guarded> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    guard(&Guarding {
        workspace,
        names: &names,
        private: private.path(),
        remedy: "do without",
    })
}

fn listed(directory: &Path) -> Vec<String> {
    let listed = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = listed
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn missing_names_and_what_git_acts_on_are_made_and_guarded_ns_6() {
    let (_workspace, private, path) = places();
    fs::create_dir(path.join(".git")).unwrap();
    fs::write(path.join(".envrc"), "").unwrap();
    let guarded = guard_in(&path, &[".envrc", ".vscode"], &private).unwrap();
    let expected = [
        (".envrc", GuardedAccess::ReadOnly),
        (".vscode", GuardedAccess::ReadOnly),
        (".git", GuardedAccess::ReadWrite),
        (".git/config", GuardedAccess::ReadOnly),
        (".git/hooks", GuardedAccess::ReadOnly),
    ];
    let expected = expected.map(|(below, access)| GuardedPath {
        below: below.into(),
        access,
    });
    assert_eq!(guarded.paths, expected);
    assert_eq!(listed(&path), [".envrc", ".git", ".vscode"]);
    assert_eq!(listed(&path.join(".git")), ["config", "hooks"]);
}

#[test]
fn stand_ins_go_when_no_sandbox_holds_the_workspace_and_come_back_with_one_ns_6() {
    let (_workspace, private, path) = places();
    let guarded = guard_in(&path, &[".envrc"], &private).unwrap();
    let executor = hold(&path).unwrap();
    drop(guarded.lock);
    remove(private.path());
    assert_eq!(listed(&path), [".envrc"]);
    drop(executor);
    remove(private.path());
    assert_eq!(listed(&path), [""; 0]);
    let again = guard_again(private.path(), "").unwrap().unwrap();
    assert_eq!(again.paths, guarded.paths);
    assert_eq!(listed(&path), [".envrc"]);
    // Nothing was ever guarded for this one.
    let other = TempDir::new().unwrap();
    assert!(guard_again(other.path(), "").unwrap().is_none());
}

#[test]
fn links_are_neither_guarded_nor_followed_ns_6() {
    let (_workspace, private, path) = places();
    let theirs = TempDir::new().unwrap();
    symlink(theirs.path(), path.join(".git")).unwrap();
    let error = guard_in(&path, &[], &private).unwrap_err().to_string();
    assert!(
        error.contains("`.git` in") && error.ends_with("do without"),
        "{error}"
    );
    // Nor one above it, with which another directory would be changed.
    fs::create_dir_all(theirs.path().join("project/.git")).unwrap();
    symlink(theirs.path(), path.join("above")).unwrap();
    let project = path.join("above/project");
    guard_in(&project, &[".envrc"], &private).unwrap_err();
    assert_eq!(listed(&theirs.path().join("project")), [".git"]);
    assert_eq!(listed(&theirs.path().join("project/.git")), [""; 0]);
}
