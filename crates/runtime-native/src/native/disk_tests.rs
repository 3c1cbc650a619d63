//! What the watch over a sandbox's files tells, and when.

use std::{cell::Cell, ops::Range, rc::Rc};

use zareba_confine::{Access, Ownership};

use super::*;

const LIMIT: DiskLimit = DiskLimit {
    bytes: 1024 * 1024,
    inodes: 10,
};

fn watch(place: &Path) -> DiskWatch {
    let layers = Layers {
        directory: place.join("layer"),
        overlays: Vec::new(),
        bound: 0,
    };
    fs::create_dir(&layers.directory).unwrap();
    DiskWatch::begin(place, &layers, LIMIT).unwrap()
}

/// A look now, whatever the file system as a whole does.
fn look(watch: &mut DiskWatch) -> bool {
    watch.next = Instant::now();
    watch.free = None;
    watch.look()
}

fn file(place: &Path, number: u32) -> PathBuf {
    place.join(format!("layer/{number}"))
}

fn make_files(place: &Path, mut numbers: Range<u32>) {
    numbers
        .try_for_each(|number| fs::write(file(place, number), ""))
        .unwrap();
}

/// A look that has no time for anything.
fn begin_to_look(watch: &mut DiskWatch) -> bool {
    watch.next = Instant::now();
    watch.free = None;
    let is_exceeded = watch.look_for(Duration::ZERO);
    assert!(watch.walk.is_some());
    is_exceeded
}

#[test]
fn bytes_up_to_the_limit_are_fine_and_past_it_are_told_while_they_grow_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let file = place.path().join("layer/file");
    fs::write(&file, vec![1; 1024 * 1024 - 64 * 1024]).unwrap();
    assert!(!look(&mut watch));
    fs::write(place.path().join("layer/more"), vec![1; 256 * 1024]).unwrap();
    assert!(look(&mut watch));
    // Whoever cleans up is left alone, also before there is enough room again.
    assert!(!look(&mut watch));
    fs::write(&file, vec![1; 1024 * 1024 - 128 * 1024]).unwrap();
    assert!(!look(&mut watch));
}

#[test]
fn nobody_is_killed_for_what_was_written_before_somebody_else_was_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let make = |range| make_files(place.path(), range);
    make(0..20);
    assert!(look(&mut watch));
    // Until it was killed, and what starts the next shell.
    make(20..1000);
    assert!(watch.due_in().is_zero());
    // Also when everybody else only removes.
    watch.free = Some(Free {
        bytes: 0,
        inodes: 0,
    });
    assert!(!watch.look());
    assert_eq!(watch.held.inodes, 1000);
    make(1000..1010);
    assert!(!look(&mut watch));
    // What was removed cannot be made again.
    (0..500).for_each(|number| fs::remove_file(file(place.path(), number)).unwrap());
    assert!(!look(&mut watch));
    make(0..100);
    assert!(look(&mut watch));
    assert!(!look(&mut watch));
    // Nor can little by little what was not there.
    make(2000..2060);
    assert!(!look(&mut watch));
    make(2060..2120);
    assert!(look(&mut watch));
    // With room again, the limit is what it was.
    fs::remove_dir_all(place.path().join("layer")).unwrap();
    fs::create_dir(place.path().join("layer")).unwrap();
    assert!(!look(&mut watch));
    assert!(!look(&mut watch));
    make(0..11);
    assert!(look(&mut watch));
}

/// As by commands of which each has ended before anybody looks.
#[test]
fn growing_on_past_the_limit_ends_at_a_ceiling_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let make = |range| make_files(place.path(), range);
    let more = u32::try_from(MORE_MIN.inodes).unwrap();
    make(0..20);
    assert!(look(&mut watch));
    assert!(!look(&mut watch));
    make(20..20 + more);
    assert!(look(&mut watch));
    assert!(!watch.is_helpless());
    // With room again, it begins anew.
    fs::remove_dir_all(place.path().join("layer")).unwrap();
    fs::create_dir(place.path().join("layer")).unwrap();
    assert!(!look(&mut watch));
    assert!(!look(&mut watch));
    make(0..more + 40);
    assert!(look(&mut watch));
    assert!(!look(&mut watch));
    assert!(!watch.is_helpless());
    make(more + 40..2 * more + 40);
    assert!(look(&mut watch));
    assert!(!watch.is_helpless());
    assert!(!look(&mut watch));
    make(2 * more + 40..2 * more + 200);
    assert!(look(&mut watch));
    assert!(watch.is_helpless());
    assert!(!has_ended(place.path()));
    watch.note();
    assert!(has_ended(place.path()));
}

/// The look is over before the walk is.
#[test]
fn growing_on_past_the_limit_ends_also_where_it_cannot_be_walked_through_in_time_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    watch.is_settling = false;
    for number in 0..=KILLS_MAX {
        assert!(!watch.is_helpless());
        let held = Held {
            bytes: LIMIT.bytes * u64::from(number + 2),
            ..Held::default()
        };
        watch.judge(held, Progress::Interrupted);
    }
    assert!(watch.is_helpless());
}

#[test]
fn only_the_look_that_follows_lets_anybody_write_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let make = |range| make_files(place.path(), range);
    make(0..20);
    assert!(look(&mut watch));
    make(20..200);
    // It comes to its end in time, and another does not.
    assert!(!look(&mut watch));
    assert!(!begin_to_look(&mut watch));
    make(200..400);
    assert!(look(&mut watch));
    // Nor is anybody left alone in the rest of one that began after somebody was killed.
    assert!(!begin_to_look(&mut watch));
    make(400..600);
    assert!(look(&mut watch));
}

#[test]
fn files_are_counted_with_directories_and_hard_links_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    for number in 0..9 {
        fs::create_dir(place.path().join(format!("layer/{number}"))).unwrap();
    }
    fs::write(place.path().join("layer/0/file"), "").unwrap();
    assert!(!look(&mut watch));
    fs::hard_link(
        place.path().join("layer/0/file"),
        place.path().join("layer/1/link"),
    )
    .unwrap();
    assert!(look(&mut watch));
    assert_eq!(measure(&place.path().join("layer")).inodes, 11);
}

#[test]
fn the_counter_tells_how_often() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let told = || fs::read_to_string(place.path().join(COUNTER)).unwrap();
    assert_eq!(told(), "0");
    for _ in 0..11 {
        watch.note();
    }
    assert_eq!(told(), "11");
}

#[test]
fn a_look_that_is_not_due_costs_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    assert!(!watch.look());
    assert_eq!(watch.glances, 0);
    assert!(watch.due_in() > Duration::ZERO);
}

#[test]
fn what_cannot_be_seen_counts_as_what_the_file_system_lost_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let look = |watch: &mut DiskWatch| {
        watch.next = Instant::now();
        // It shrank since the last glance, whatever others do there.
        watch.free = None;
        watch.look()
    };
    let now = free(place.path()).unwrap();
    watch.free_at_first = Some(Free {
        bytes: now.bytes + 1024 * LIMIT.bytes,
        inodes: now.inodes,
    });
    // As long as everything can be seen, others may have taken it.
    assert!(!look(&mut watch));
    // Something that cannot be looked into, also not by root.
    fs::remove_dir(place.path().join("layer")).unwrap();
    fs::write(place.path().join("layer"), "").unwrap();
    assert!(look(&mut watch));
    watch.free_at_first = Some(Free {
        bytes: 0,
        inodes: 0,
    });
    assert!(!look(&mut watch));
    assert!(!look(&mut watch));
}

#[test]
fn the_closer_the_limit_the_shorter_the_pauses_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let watch = watch(place.path());
    let held = |bytes, inodes| Held {
        bytes: watch.base.bytes + bytes,
        inodes: watch.base.inodes + inodes,
        unseen: 0,
    };
    let half = LIMIT.bytes / 2;
    assert_eq!(watch.pause_max(held(half, 5)), PAUSE_MAX);
    assert_eq!(watch.pause_max(held(half + 1, 0)), PAUSE_MAX_WHEN_CLOSE);
    assert_eq!(watch.pause_max(held(0, 6)), PAUSE_MAX_WHEN_CLOSE);
}

#[test]
fn nothing_is_walked_while_nothing_has_run_and_everything_once_something_has_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let clock = Rc::new(Cell::new(Some(1)));
    let told = Rc::clone(&clock);
    watch.watch_activity(move || told.get());
    // What has run before anybody looked may have written.
    assert!(!look(&mut watch));
    // Whoever writes this is outside, and so nobody runs inside.
    fs::write(place.path().join("layer/file"), vec![1; 2 * 1024 * 1024]).unwrap();
    assert!(!look(&mut watch));
    assert_eq!(watch.held.inodes, 0);
    assert!(watch.due_in() > OFTEN);
    clock.set(Some(2));
    assert!(look(&mut watch));
    assert!(!look(&mut watch));
    // A clock that cannot be read says nothing.
    clock.set(None);
    fs::write(place.path().join("layer/more"), vec![1; 2 * 1024 * 1024]).unwrap();
    assert!(look(&mut watch));
}

#[test]
fn the_next_look_comes_before_the_limit_can_be_used_up_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let held = |bytes, inodes| Held {
        bytes,
        inodes,
        unseen: 0,
    };
    watch.base = held(0, 0);
    assert_eq!(watch.often(held(0, 0)), OFTEN);
    watch.limit = DiskLimit {
        bytes: 4 << 30,
        inodes: 200_000,
    };
    assert_eq!(watch.often(held(0, 0)), Duration::from_millis(1024));
    assert_eq!(watch.often(held(2 << 30, 0)), Duration::from_millis(512));
    assert_eq!(watch.often(held(0, 170_000)), Duration::from_millis(300));
    assert_eq!(watch.often(held(5 << 30, 0)), OFTEN);
    watch.limit.bytes = u64::MAX;
    watch.limit.inodes = u64::MAX;
    assert_eq!(watch.often(held(0, 0)), SELDOM);
}

#[test]
fn a_walk_that_takes_long_is_continued_also_when_nothing_is_written_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    fs::create_dir(place.path().join("layer/a")).unwrap();
    assert!(!begin_to_look(&mut watch));
    watch.next = Instant::now();
    // Everybody else only removes.
    watch.free = Some(Free {
        bytes: 0,
        inodes: 0,
    });
    assert!(!watch.look());
    assert!(watch.walk.is_none());
    assert_eq!(watch.held.inodes, 1);
}

#[test]
fn what_new_layers_hold_is_known_without_a_look_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("layer");
    let overlay = directory.join("usr");
    let overlaid = |layer| {
        EntryKind::Overlay(Overlay {
            lower: Vec::new(),
            layer: Some(layer),
            own: Vec::new(),
        })
    };
    let bound = |source| EntryKind::Bind {
        source,
        access: Access::ReadWrite,
        owner: Ownership::AsItIs,
        is_direct: false,
    };
    let kinds = [
        overlaid(Layer::Directory(overlay.clone())),
        overlaid(Layer::Memory),
        bound(directory.join("state")),
        bound("/elsewhere".into()),
    ];
    let entries = kinds.map(|kind| Entry {
        inside: "/inside".into(),
        kind,
    });
    let layers = Layers::of(&Root::Memory, &entries, directory);
    assert_eq!(layers.overlays, [overlay]);
    // As the kernel leaves them.
    for path in ["usr/upper", "usr/work/work/incompat/volatile", "state"] {
        fs::create_dir_all(place.path().join("layer").join(path)).unwrap();
    }
    let dirty = "layer/usr/work/work/incompat/volatile/dirty";
    fs::write(place.path().join(dirty), "").unwrap();
    assert_eq!(layers.held_at_first(), measure(&place.path().join("layer")));
    let watch = DiskWatch::begin(place.path(), &layers, LIMIT).unwrap();
    let work = identify(&place.path().join("layer/usr/work"));
    assert_eq!(watch.closed, Vec::from_iter(work));
}

#[test]
fn a_deleted_file_counts_once_as_long_as_it_is_held_ns_16() {
    let place = tempfile::tempdir().unwrap();
    let mut watch = watch(place.path());
    let own = std::process::id().cast_signed();
    watch.watch_processes(own, own);
    fs::write(file(place.path(), 0), vec![1; 2 * 1024 * 1024]).unwrap();
    let held = File::open(file(place.path(), 0)).unwrap();
    let again = held.try_clone().unwrap();
    fs::remove_file(file(place.path(), 0)).unwrap();
    assert!(look(&mut watch));
    assert_eq!(watch.held.bytes, 2 * 1024 * 1024 + watch.base.bytes);
    drop((held, again));
    assert!(!look(&mut watch));
    assert_eq!(watch.held.bytes, watch.base.bytes);
}
