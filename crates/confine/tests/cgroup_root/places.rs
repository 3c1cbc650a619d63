//! Where groups are: made side by side, found again, and gone without a trace.

use std::path::{Path, PathBuf};

use zareba_confine::cgroup::{CgroupError, Group, Host, Limits};

use crate::fixture::{
    Generations, NO_LIMITS, PATIENCE, PLAIN_LEAF, Scratch, Shell, machine, own_places, unique,
};

/// A place of its own in every hierarchy, so that what is left in it is this test's.
struct PrivatePlace {
    host: Host,
    directories: Vec<PathBuf>,
}

impl PrivatePlace {
    fn new() -> Self {
        let outer = machine(Generations::Both);
        let name = unique("place");
        let places: String = own_places(Generations::Both)
            .lines()
            .map(|line| format!("{}/{name}\n", line.trim_end_matches('/')))
            .collect();
        let writable = outer
            .hierarchies()
            .iter()
            .filter(|it| it.directory.is_absolute());
        let directories: Vec<PathBuf> = writable.map(|it| it.directory.join(&name)).collect();
        for directory in &directories {
            std::fs::create_dir(directory).unwrap();
        }
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        Self {
            host: Host::from_texts(&places, &mountinfo),
            directories,
        }
    }

    /// Everything that is below the place, in all hierarchies.
    fn census(&self) -> Vec<PathBuf> {
        let below = |directory: &PathBuf| {
            let entries = std::fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
        };
        self.directories.iter().flat_map(below).collect()
    }
}

impl Drop for PrivatePlace {
    fn drop(&mut self) {
        // Only a test that failed has left something.
        for id in self.host.find_all("").unwrap_or_default() {
            if let Ok(Some(group)) = Group::open(&self.host, &id) {
                let _ = group.kill(PATIENCE);
                let _ = group.remove(PATIENCE);
            }
        }
        for directory in &self.directories {
            let _ = std::fs::remove_dir(directory.join("zareba"));
            let _ = std::fs::remove_dir(directory);
        }
    }
}

fn limits() -> Limits {
    Limits {
        memory_bytes: Some(32 << 20),
        pids: Some(8),
        cpu_millis: Some(500),
        ..NO_LIMITS
    }
}

#[test]
#[ignore = "needs root"]
fn fifty_groups_come_and_go_at_once_and_leave_nothing() {
    let place = PrivatePlace::new();
    assert_eq!(place.census(), Vec::<PathBuf>::new());
    let host = &place.host;
    std::thread::scope(|scope| {
        for number in 0..50 {
            scope.spawn(move || {
                let group = Group::create(host, &format!("g{number}"), &limits()).unwrap();
                assert_eq!(group.report().missing().count(), 0, "{}", group.report());
                let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
                let mut shell = Shell::in_leaf(&leaf, "echo hello; read never");
                assert_eq!(shell.line(), "hello");
                group.kill(PATIENCE).unwrap();
                shell.wait();
                group.remove(PATIENCE).unwrap();
            });
        }
    });
    assert_eq!(place.census(), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "needs root"]
fn the_shared_directory_stays_as_long_as_one_group_is_in_it() {
    let place = PrivatePlace::new();
    let first = Group::create(&place.host, "first", &limits()).unwrap();
    let second = Group::create(&place.host, "second", &limits()).unwrap();
    first.remove(PATIENCE).unwrap();
    assert_eq!(place.host.find_all("").unwrap(), ["second"]);
    for directory in second.directories() {
        assert!(directory.is_dir());
    }
    // What is gone can be removed again, as after a crash between the two.
    first.remove(PATIENCE).unwrap();
    second.remove(PATIENCE).unwrap();
    assert_eq!(place.census(), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "needs root"]
fn groups_are_found_by_prefix_and_nothing_else_is() {
    let place = PrivatePlace::new();
    let ids = ["a-1", "a-2", "b-1"];
    let groups = ids.map(|id| Group::create(&place.host, id, &limits()).unwrap());
    let strangers: Vec<PathBuf> = groups[0]
        .directories()
        .iter()
        .flat_map(|path| {
            let home = path.parent().unwrap();
            [home.join("a.slice"), home.with_file_name("a-outside")]
        })
        .collect();
    for stranger in &strangers {
        std::fs::create_dir(stranger).unwrap();
    }
    assert_eq!(place.host.find_all("a").unwrap(), ["a-1", "a-2"]);
    assert_eq!(place.host.find_all("").unwrap(), ids);
    assert_eq!(place.host.find_all("c").unwrap(), Vec::<String>::new());
    for group in &groups {
        group.remove(PATIENCE).unwrap();
    }
    for stranger in strangers {
        assert!(stranger.is_dir(), "what is not ours stays");
        std::fs::remove_dir(stranger).unwrap();
    }
}

#[test]
#[ignore = "needs root"]
fn an_orphan_is_found_killed_and_removed_by_whoever_comes_next() {
    let place = PrivatePlace::new();
    let (recorded, mut shell) = {
        let group = Group::create(&place.host, "orphan", &limits()).unwrap();
        let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
        let shell = Shell::waiting("read never");
        leaf.attach(shell.pid()).unwrap();
        (group.directories(), shell)
    };
    assert_eq!(place.host.find_all("").unwrap(), ["orphan"]);
    // The next server starts somewhere else: it has the record, not the place.
    let elsewhere = machine(Generations::Both);
    let group = Group::open_at(&elsewhere, &recorded).unwrap().unwrap();
    assert_eq!(group.id(), "orphan");
    let leaf = group.open_leaf("workload").unwrap().unwrap();
    leaf.confirm(shell.pid()).unwrap();
    assert_eq!(
        group.processes().unwrap(),
        [shell.pid().as_raw_nonzero().get()]
    );
    group.kill(PATIENCE).unwrap();
    shell.go_if_alive();
    shell.wait();
    group.remove(PATIENCE).unwrap();
    assert!(Group::open_at(&elsewhere, &recorded).unwrap().is_none());
    assert!(Group::open(&place.host, "orphan").unwrap().is_none());
    assert_eq!(place.census(), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "needs root"]
fn a_record_that_names_something_else_is_refused() {
    let host = machine(Generations::Both);
    let first = Scratch::new(&host, "first", &NO_LIMITS);
    let second = Scratch::new(&host, "second", &NO_LIMITS);
    let place = host.unified().unwrap().directory.clone();
    let mixed = vec![
        first.directories()[0].clone(),
        second.directories()[1].clone(),
    ];
    let forged = [
        vec![place.clone()],
        vec![place.join("zareba")],
        vec![place.join("zareba/../zareba").join(first.id())],
        vec![place.join("zareba/self")],
        vec![Path::new("/tmp/zareba/a1").to_owned()],
        vec![Path::new("zareba/a1").to_owned()],
        mixed,
    ];
    for directories in forged {
        let refused = Group::open_at(&host, &directories);
        assert!(
            matches!(refused, Err(CgroupError::Foreign { .. })),
            "{refused:?}"
        );
    }
    first.end();
    second.end();
}

#[test]
#[ignore = "needs root"]
fn a_group_that_exists_is_not_taken_over() {
    let host = machine(Generations::Both);
    let group = Scratch::new(&host, "taken", &limits());
    let leaf = group.leaf("workload", &PLAIN_LEAF).unwrap();
    let shell = Shell::waiting("read never");
    leaf.attach(shell.pid()).unwrap();
    let again = Group::create(&host, group.id(), &NO_LIMITS);
    assert!(
        matches!(again, Err(CgroupError::Exists { .. })),
        "{again:?}"
    );
    leaf.confirm(shell.pid()).unwrap();
    let unchanged = Group::open(&host, group.id()).unwrap().unwrap();
    assert_eq!(unchanged.report(), group.report());
    group.end();
}

#[test]
#[ignore = "needs root"]
fn names_that_would_lead_elsewhere_make_no_group() {
    let place = PrivatePlace::new();
    for name in ["", "..", "../a", "a/b", "self", "A"] {
        let refused = Group::create(&place.host, name, &NO_LIMITS);
        assert!(
            matches!(refused, Err(CgroupError::Name { .. })),
            "{refused:?}"
        );
        let refused = Group::open(&place.host, name);
        assert!(
            matches!(refused, Err(CgroupError::Name { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(place.census(), Vec::<PathBuf>::new());
}
