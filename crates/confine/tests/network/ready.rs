//! Networks that were made before their sandboxes.

use std::{env, fs, io, path::PathBuf, process::Command};

use zareba_confine::{
    Network, close_inherited,
    network::{MakeNetworkError, ReadyNetwork},
};

use crate::{
    harness::Case,
    outward::{NO_RIGHT, UNREACHABLE},
    puppet::DONE,
    sandbox::{Sandbox, filtered, read_all, start},
};

/// The case that is run once more, as root of a user namespace.
const ELSEWHERE: &str = "whoever_could_not_return_to_a_network_does_not_leave_it";
const INSIDE: &str = "ZAREBA_TEST_ROOT_ELSEWHERE";

pub(crate) fn cases() -> Vec<Case> {
    let cases: [(&'static str, fn()); 4] = [
        (
            "a_network_made_ahead_is_for_one_sandbox_and_no_other_ns_1",
            one_sandbox_has_it,
        ),
        (ELSEWHERE, nobody_leaves_a_network_for_good),
        (
            "a_filtered_sandbox_leaves_a_network_made_ahead_alone",
            a_filtered_one_leaves_it,
        ),
        (
            "of_networks_made_ahead_only_one_is_kept_by_a_copy",
            only_one_is_kept,
        ),
    ];
    cases.map(|(name, run)| Case { name, run }).to_vec()
}

/// Only root makes one.
fn make() -> Option<ReadyNetwork> {
    if !rustix::process::geteuid().is_root() {
        refused();
        return None;
    }
    let home = network_of("self");
    let made = ReadyNetwork::make().unwrap();
    assert_eq!(network_of("self"), home);
    Some(made)
}

fn refused() {
    let home = network_of("self");
    let made = ReadyNetwork::make();
    assert_eq!(network_of("self"), home);
    let Err(MakeNetworkError::Refused(error)) = made else {
        panic!("{made:?}");
    };
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

fn network_of(process: &str) -> PathBuf {
    fs::read_link(format!("/proc/{process}/ns/net")).unwrap()
}

fn network_around(sandbox: &Sandbox) -> PathBuf {
    network_of(&sandbox.confined.pid.to_string())
}

/// Networks that this process holds descriptors of.
fn held() -> Vec<PathBuf> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let mut networks: Vec<_> = targets
        .filter(|target| target.to_string_lossy().starts_with("net:"))
        .collect();
    networks.sort();
    networks
}

fn one_sandbox_has_it() {
    let Some(made) = make() else { return };
    let [network] = <[PathBuf; 1]>::try_from(held()).unwrap();
    let home = network_of("self");
    assert_ne!(network, home);
    made.keep();
    let mut first = start(Network::None).unwrap();
    assert_eq!(network_around(&first), network);
    assert_eq!(network_of("self"), home);
    let second = start(Network::None).unwrap();
    assert!(![&network, &home].contains(&&network_around(&second)));
    // It is as any other.
    assert_eq!(first.ask("listen 127.0.0.1:8080"), DONE);
    let stream = first.doorway().connect(8080).unwrap();
    assert_eq!(first.ask("greet"), format!("{DONE} 127.0.0.1"));
    assert_eq!(read_all(stream), "from inside");
    for outside in ["8.8.8.8:53", "169.254.169.254:80", "[2001:db8::1]:80"] {
        assert_eq!(first.ask(&format!("connect {outside}")), UNREACHABLE);
    }
    assert_eq!(first.ask("delete-routes"), NO_RIGHT);
    assert!(!first.ask("descriptors").contains("net:"));
    drop(first);
    assert!(!held().contains(&network));
}

/// Root of a user namespace may make networks, and not come back to one that belongs to somebody else.
fn nobody_leaves_a_network_for_good() {
    if env::var_os(INSIDE).is_some() {
        assert!(rustix::process::geteuid().is_root());
        return refused();
    }
    let root_elsewhere = Command::new("unshare")
        .args(["--user", "--map-root-user"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", ELSEWHERE])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&root_elsewhere.stdout);
    assert!(told.contains("1 passed"), "{root_elsewhere:?}");
}

fn a_filtered_one_leaves_it() {
    let Some(made) = make() else { return };
    let network = held().remove(0);
    made.keep();
    assert_ne!(network_around(&filtered()), network);
    assert_eq!(network_around(&start(Network::None).unwrap()), network);
}

/// As in a copy of whoever has made them, which begins with that.
fn only_one_is_kept() {
    let mut made: Vec<_> = (0..3).filter_map(|_| make()).collect();
    assert_eq!(held().len(), made.len());
    let Some(kept) = made.pop() else { return };
    kept.keep();
    close_inherited().unwrap();
    // A copy never comes back to where it would drop them.
    std::mem::forget(made);
    let [network] = <[PathBuf; 1]>::try_from(held()).unwrap();
    assert_eq!(network_around(&start(Network::None).unwrap()), network);
}
