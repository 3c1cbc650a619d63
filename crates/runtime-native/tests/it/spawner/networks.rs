//! Networks that a spawner makes before they are asked for.

use std::{collections::BTreeSet, fs, time::Duration};

use super::{COPIES_FROM, close, create, spawner};
use crate::fixture::{self, output};

/// Those that a process has descriptors of, apart from the machine's own.
fn held_by(process: i32) -> BTreeSet<String> {
    let own = fs::read_link("/proc/self/ns/net").unwrap();
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    descriptors
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .filter(|target| *target != own)
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.starts_with("net:"))
        .collect()
}

/// Waits until it has one. Nobody is told of that.
async fn until_ready(spawner: i32) -> BTreeSet<String> {
    let ready = async {
        loop {
            let held = held_by(spawner);
            if !held.is_empty() {
                return held;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let within = Duration::from_secs(20);
    tokio::time::timeout(within, ready).await.unwrap()
}

#[tokio::test]
async fn sandboxes_are_in_networks_that_were_made_ahead_each_in_its_own_ns_1() {
    if !rustix::process::geteuid().is_root() {
        return each_makes_its_own().await;
    }
    let fixture = fixture::native();
    let mut sandboxes = create(&fixture.runtime, COPIES_FROM).await;
    let spawner = spawner(&fixture).unwrap();
    let mut used = BTreeSet::new();
    for _ in 0..3 {
        let ready = until_ready(spawner).await;
        assert!(ready.is_disjoint(&used), "{ready:?} after {used:?}");
        let sandbox = create(&fixture.runtime, 1).await.remove(0);
        let network = output(&*sandbox, "readlink /proc/self/ns/net").await;
        assert!(ready.contains(&network), "{network} of {ready:?}");
        assert!(!held_by(spawner).contains(&network));
        used.insert(network);
        sandboxes.push(sandbox);
    }
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// As it is without root.
async fn each_makes_its_own() {
    let fixture = fixture::native();
    let sandboxes = create(&fixture.runtime, COPIES_FROM + 2).await;
    assert_eq!(held_by(spawner(&fixture).unwrap()), BTreeSet::new());
    close(sandboxes).await;
}
