//! The README as an ordinary user types it, from the first sandbox to the end of the executor.
//!
//! Its commands run unchanged, in namespaces made for the walk: the user has no rights, and the ports
//! that the README names are free.

use std::{fs, os::unix::fs::symlink, process::Command};

use zareba_testkit::readme::Walk;

use crate::support::{Place, Told, ZAREBA};

/// Walks through the README on a machine where `prepare` was done as root of a namespace.
fn walk(prepare: &str) {
    let place = Place::new();
    let bin = place.path("bin");
    fs::create_dir(&bin).unwrap();
    symlink(ZAREBA, bin.join("zareba")).unwrap();
    let readme = Walk::read();
    // The next user is a number that the machine knows, so that it has a name.
    let inner = "set -e; ip link set lo up; eval \"$1\"; exec unshare --user --map-user=65534 --map-group=65534 bash -c \"$2\"";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            "bash",
            "-c",
        ])
        .args([inner, "bash", prepare, &readme.script()])
        .env_clear()
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin:/sbin", bin.display()),
        )
        .env("HOME", place.path("home"))
        .env("TMPDIR", place.path("tmp"))
        .env("LANG", "C.UTF-8")
        .current_dir(place.path("workspace"))
        .output()
        .unwrap();
    readme.check(&Told::from(output).stdout);
}

#[test]
fn an_ordinary_user_can_type_what_it_says() {
    walk("");
}

#[test]
fn it_holds_where_file_systems_are_mounted_in_system_directories() {
    walk("mount -t tmpfs none /usr/local/src; mount -t tmpfs none /opt");
}
