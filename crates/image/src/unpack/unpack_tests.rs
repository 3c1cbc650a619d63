//! One hostile archive for each promise, and random ones for those that nobody thought of.

use std::{
    collections::BTreeMap,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt},
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use tar::EntryType;
use tempfile::TempDir;

use super::*;
use crate::{
    Digest,
    fixture::{Tar, gzip, zstd},
    limits::{Budget, LimitExceeded, Limits},
};

/// A directory to unpack into, with something beside it that must not change.
struct Place {
    outside: TempDir,
}

impl Place {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(outside.path().join("into")).unwrap();
        std::fs::write(outside.path().join("victim"), "untouched").unwrap();
        Self { outside }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.outside.path().join("into").join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        let found = self.path(name).symlink_metadata().unwrap();
        found.permissions().mode() & 0o7777
    }

    fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    fn is_whiteout(&self, name: &str) -> bool {
        let found = self.path(name).symlink_metadata().unwrap();
        found.file_type().is_char_device() && found.rdev() == 0
    }

    fn is_opaque(&self, name: &str) -> bool {
        is_opaque_root(&self.path(name)).unwrap()
    }

    fn unpack(&self, archive: &[u8]) -> Result<Unpacked, UnpackError> {
        self.unpack_within(archive, Limits::STANDARD)
    }

    fn unpack_within(&self, archive: &[u8], limits: Limits) -> Result<Unpacked, UnpackError> {
        let budget = Budget::new(limits);
        unpack_layer(archive, &self.path(""), &budget, &mut |_| {})
    }

    /// Only the directory itself may have changed.
    fn assert_outside_is_untouched(&self) {
        let outside = self.outside.path();
        let mut names: Vec<_> = std::fs::read_dir(outside)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["into", "victim"]);
        let victim = outside.join("victim");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
        let found = victim.symlink_metadata().unwrap();
        assert_eq!((found.nlink(), found.is_file()), (1, true));
    }
}

#[track_caller]
fn check_refused(tar: &Tar, expected: Refusal) {
    let place = Place::new();
    match place.unpack(&tar.finish()) {
        Err(UnpackError::Refused { why, .. }) => assert_eq!(why, expected),
        other => panic!("{other:?}"),
    }
    place.assert_outside_is_untouched();
}

#[test]
fn an_honest_layer_is_unpacked_as_it_is_packed() {
    let tar = Tar::default()
        .directory("./")
        .directory("bin")
        .entry(EntryType::Regular, b"bin/tool", b"", 0o755, b"#!")
        .symlink("bin/alias", "/bin/tool")
        .hard_link("bin/second", "bin/tool")
        .file("deep/down/file", "text")
        .finish();
    for packed in [tar.clone(), gzip(&tar), zstd(&tar)] {
        let place = Place::new();
        let unpacked = place.unpack(&packed).unwrap();
        assert_eq!(unpacked.diff_id, Digest::of(&tar));
        assert_eq!(unpacked.blob, Digest::of(&packed));
        let expected = Contents {
            // Six of the archive, and `deep` and `deep/down`.
            entries: 8,
            file_bytes: 6,
            skipped: 0,
        };
        assert_eq!(unpacked.contents, expected);
        assert_eq!(place.read("deep/down/file"), "text");
        assert_eq!(place.mode("bin/tool"), 0o755);
        assert_eq!(place.mode("deep"), 0o755);
        let alias = std::fs::read_link(place.path("bin/alias")).unwrap();
        assert_eq!(alias, Path::new("/bin/tool"));
        let tool = place.path("bin/tool").symlink_metadata().unwrap();
        let second = place.path("bin/second").symlink_metadata().unwrap();
        assert_eq!(tool.ino(), second.ino());
        assert_eq!(tool.mtime(), 1_000_000_000);
        assert_eq!(tool.uid(), rustix::process::geteuid().as_raw());
    }
}

#[test]
fn names_that_climb_are_refused_fa_9() {
    check_refused(&Tar::default().file("../victim", "x"), Refusal::Climbs);
    check_refused(&Tar::default().file("a/../../victim", "x"), Refusal::Climbs);
    check_refused(&Tar::default().directory(".."), Refusal::Climbs);
    check_refused(&Tar::default().hard_link("a", "../victim"), Refusal::Climbs);
    check_refused(&Tar::default().file("../.wh.victim", ""), Refusal::Climbs);
    check_refused(&Tar::default().file(".wh...", ""), Refusal::BadName);
    check_refused(&Tar::default().file(".wh..", ""), Refusal::BadName);
    check_refused(&Tar::default().file(".wh.", ""), Refusal::BadName);
}

#[test]
fn an_absolute_name_stays_below_the_root_of_the_image_fa_9() {
    let place = Place::new();
    let victim = place.outside.path().join("victim");
    let name = victim.to_str().unwrap();
    let tar = Tar::default().file(name, "inside").hard_link("/link", name);
    place.unpack(&tar.finish()).unwrap();
    assert_eq!(place.read(name.trim_start_matches('/')), "inside");
    assert_eq!(place.read("link"), "inside");
    place.assert_outside_is_untouched();
}

#[test]
fn nothing_is_written_through_a_link_fa_9() {
    for target in ["..", "/", "../../..", ".", "dir"] {
        let linked = Tar::default().directory("dir").symlink("link", target);
        let through = linked.clone().file("link/victim", "x");
        check_refused(&through, Refusal::ThroughLink);
        let through = linked.clone().directory("link/new");
        check_refused(&through, Refusal::ThroughLink);
        let through = linked.clone().file("link/.wh.victim", "");
        check_refused(&through, Refusal::ThroughLink);
        let through = linked.clone().file("link/.wh..wh..opq", "");
        check_refused(&through, Refusal::ThroughLink);
        let through = linked.hard_link("a", "link/victim");
        check_refused(&through, Refusal::ThroughLink);
    }
}

#[test]
fn what_is_in_the_way_is_replaced_and_never_written_into_fa_9() {
    let place = Place::new();
    let tar = Tar::default()
        .symlink("victim", "../victim")
        .file("victim", "new")
        .file("first", "kept")
        .hard_link("second", "first")
        .file("second", "other")
        .file("dir/inner/file", "gone")
        .file("dir", "a file now")
        .file("file", "gone")
        .entry(EntryType::Directory, b"file", b"", 0o700, b"")
        .symlink("was-a-link", "..")
        .directory("was-a-link")
        .file("was-a-link/a", "inside");
    place.unpack(&tar.finish()).unwrap();
    assert_eq!(place.read("victim"), "new");
    assert_eq!(place.read("first"), "kept");
    assert_eq!(place.read("second"), "other");
    assert_eq!(place.read("dir"), "a file now");
    assert!(place.path("file").is_dir());
    assert_eq!(place.read("was-a-link/a"), "inside");
    place.assert_outside_is_untouched();
}

#[test]
fn the_root_cannot_be_replaced_fa_9() {
    check_refused(
        &Tar::default().file("./", "").symlink(".", "/"),
        Refusal::ReplacesRoot,
    );
    check_refused(&Tar::default().symlink("/", "/etc"), Refusal::ReplacesRoot);
    check_refused(&Tar::default().hard_link("a", "."), Refusal::BadTarget);
}

#[test]
fn a_hard_link_needs_a_file_that_was_unpacked_before_fa_9() {
    check_refused(&Tar::default().hard_link("a", "missing"), Refusal::NoTarget);
    check_refused(&Tar::default().hard_link("a", "no/such"), Refusal::NoTarget);
    check_refused(
        &Tar::default().hard_link("a", "/etc/passwd"),
        Refusal::NoTarget,
    );
    let directory = Tar::default().directory("d").hard_link("a", "d");
    check_refused(&directory, Refusal::BadTarget);
    let deletion = Tar::default().file(".wh.gone", "").hard_link("a", "gone");
    check_refused(&deletion, Refusal::BadTarget);
    let own_way = Tar::default().file("d/f", "x").hard_link("d", "d/f");
    check_refused(&own_way, Refusal::NoTarget);
}

#[test]
fn a_hard_link_to_a_link_is_that_link_and_not_its_target_fa_9() {
    let place = Place::new();
    let tar = Tar::default()
        .symlink("link", "../victim")
        .hard_link("again", "link")
        .hard_link("link", "link");
    place.unpack(&tar.finish()).unwrap();
    let again = std::fs::read_link(place.path("again")).unwrap();
    assert_eq!(again, Path::new("../victim"));
    place.assert_outside_is_untouched();
}

#[test]
fn devices_and_pipes_are_left_out_and_counted_fa_9() {
    let place = Place::new();
    let tar = Tar::default()
        .entry(EntryType::Char, b"dev/null", b"", 0o666, b"")
        .entry(EntryType::Block, b"dev/sda", b"", 0o666, b"")
        .entry(EntryType::Fifo, b"pipe", b"", 0o666, b"")
        .file("file", "x");
    let unpacked = place.unpack(&tar.finish()).unwrap();
    assert_eq!(unpacked.contents.skipped, 3);
    assert!(!place.exists("dev/null") && !place.exists("dev/sda") && !place.exists("pipe"));
    assert_eq!(place.read("file"), "x");
}

#[test]
fn no_mode_lends_rights_or_locks_us_out_fa_9() {
    let place = Place::new();
    let tar = Tar::default()
        .entry(EntryType::Regular, b"setuid", b"", 0o6755, b"")
        .entry(EntryType::Regular, b"closed", b"", 0o000, b"")
        .entry(EntryType::Directory, b"shut", b"", 0o000, b"")
        .file("shut/file", "x")
        .entry(EntryType::Directory, b"tmp", b"", 0o7777, b"");
    place.unpack(&tar.finish()).unwrap();
    assert_eq!(place.mode("setuid"), 0o755);
    assert_eq!(place.mode("closed"), 0o400);
    assert_eq!(place.mode("shut"), 0o700);
    assert_eq!(place.mode("tmp"), 0o1777);
    assert_eq!(place.read("shut/file"), "x");
}

#[test]
fn sparse_files_and_unknown_kinds_are_refused() {
    let sparse = Tar::default().entry(EntryType::GNUSparse, b"a", b"", 0o644, b"");
    check_refused(&sparse, Refusal::Sparse);
    let records = b"22 GNU.sparse.major=1\n";
    let sparse = Tar::default().entry(EntryType::XHeader, b"p", b"", 0, records);
    check_refused(&sparse.file("a", ""), Refusal::Sparse);
    let unknown = Tar::default().entry(EntryType::new(b'V'), b"a", b"", 0o644, b"");
    check_refused(&unknown, Refusal::UnknownKind);
}

#[test]
fn deletions_become_what_overlays_understand() {
    let place = Place::new();
    let tar = Tar::default()
        .file("etc/.wh.gone", "")
        .file("fresh/.wh..wh..opq", "")
        .file("fresh/new", "x")
        .file(".wh.replaced", "")
        .file("replaced/new", "x")
        .directory("later")
        .file(".wh.later", "")
        .file("stays", "x")
        .file(".wh.stays", "")
        .file(".wh.back", "")
        .file("back", "x")
        .file(".wh..wh.aufs", "")
        .file(".wh..wh.plnk/1", "");
    place.unpack(&tar.finish()).unwrap();
    assert!(place.is_whiteout("etc/gone"));
    assert!(place.is_opaque("fresh") && !place.is_opaque("etc"));
    assert!(place.is_opaque("replaced") && place.is_opaque("later"));
    assert_eq!(place.read("stays"), "x");
    assert_eq!(place.read("back"), "x");
    assert!(!place.is_opaque(""));
    let mut names: Vec<_> = std::fs::read_dir(place.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    let expected = ["back", "etc", "fresh", "later", "replaced", "stays"];
    assert_eq!(names, expected);
}

#[test]
fn a_layer_can_hide_everything_below_it() {
    let place = Place::new();
    let tar = Tar::default().file(".wh..wh..opq", "").file("a", "x");
    place.unpack(&tar.finish()).unwrap();
    assert!(place.is_opaque(""));
}

#[test]
fn limits_hold_at_the_limit_and_past_it_g_5() {
    let tar = Tar::default().file("a", "12345").file("b", "").finish();
    let exact = Limits {
        entries_max: 2,
        unpacked_bytes_max: tar.len() as u64,
        ..Limits::STANDARD
    };
    assert!(Place::new().unpack_within(&tar, exact).is_ok());
    let entries_max = 1;
    let fewer = Limits {
        entries_max,
        ..exact
    };
    let passed = |limits| match Place::new().unpack_within(&gzip(&tar), limits) {
        Err(UnpackError::Limit(limit)) => Some(limit),
        _ => None,
    };
    let expected = LimitExceeded::Entries { max: 1 };
    assert_eq!(passed(fewer), Some(expected));
    let smaller = Limits {
        unpacked_bytes_max: tar.len() as u64 - 1,
        ..exact
    };
    let max = smaller.unpacked_bytes_max;
    assert_eq!(passed(smaller), Some(LimitExceeded::UnpackedBytes { max }));
}

#[track_caller]
fn check_charged(tar: &Tar, expected: u64) {
    let tar = tar.finish();
    let within = |entries_max| {
        let limits = Limits {
            entries_max,
            ..Limits::STANDARD
        };
        Place::new().unpack_within(&tar, limits)
    };
    assert_eq!(within(expected).unwrap().contents.entries, expected);
    let max = expected - 1;
    match within(max) {
        Err(UnpackError::Limit(limit)) => assert_eq!(limit, LimitExceeded::Entries { max }),
        other => panic!("{other:?}"),
    }
}

#[test]
fn directories_that_names_imply_and_deletions_are_charged_once_fa_9() {
    check_charged(&Tar::default().directory("a").file("a/b", ""), 2);
    check_charged(&Tar::default().file("a/b/c", "").file("a/b/d", ""), 4);
    check_charged(&Tar::default().file("a/b/.wh.c", ""), 3);
    check_charged(&Tar::default().file("a/b/.wh..wh..opq", ""), 3);
    // A deletion, and the directory that comes in its place.
    check_charged(&Tar::default().file(".wh.a", "").file("a/b", ""), 3);
    let deep = |tar: Tar, number: u32| tar.file(&format!("{number}{}", "/d".repeat(40)), "");
    check_charged(&(0..30).fold(Tar::default(), deep), 30 * 41);
}

#[test]
fn a_bomb_is_stopped_by_its_ratio_g_5() {
    let zeros = vec![0; 100 * 1024 * 1024];
    let tar = Tar::default().blob("zeros", &zeros).finish();
    let place = Place::new();
    let stopped = place.unpack(&zstd(&tar));
    assert!(matches!(
        stopped,
        Err(UnpackError::Limit(LimitExceeded::Ratio))
    ));
}

#[test]
fn a_directory_is_copied_by_the_same_rules() {
    let place = Place::new();
    let source = tempfile::tempdir().unwrap();
    let path = |name: &str| source.path().join(name);
    std::fs::create_dir_all(path("bin")).unwrap();
    std::fs::create_dir_all(path("store/inner")).unwrap();
    std::fs::write(path("bin/tool"), "tool").unwrap();
    std::fs::hard_link(path("bin/tool"), path("bin/second")).unwrap();
    std::fs::set_permissions(path("bin/tool"), PermissionsExt::from_mode(0o4755)).unwrap();
    let victim = place.outside.path().join("victim");
    std::os::unix::fs::symlink(victim, path("link")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let copy = |into: &Path| {
        let budget = Budget::new(Limits::STANDARD);
        copy_directory(source.path(), into, &path("store"), &budget, &mut |_| {}).unwrap()
    };
    let (contents, digest) = copy(&place.path(""));
    let expected = Contents {
        entries: 6,
        file_bytes: 4,
        skipped: 1,
    };
    assert_eq!(contents, expected);
    assert_eq!(place.read("bin/second"), "tool");
    assert_eq!(place.mode("bin/tool"), 0o755);
    let tool = place.path("bin/tool").symlink_metadata().unwrap();
    assert_eq!(tool.nlink(), 2);
    assert!(place.path("link").is_symlink() && !place.exists("store/inner"));
    place.assert_outside_is_untouched();
    let again = Place::new();
    assert_eq!(copy(&again.path("")), (expected, digest.clone()));
    drop(socket);
    std::fs::write(path("bin/tool"), "took").unwrap();
    let changed = Place::new();
    assert_ne!(copy(&changed.path("")).1, digest);
}

fn any_name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "..",
        ".",
        "",
        ".wh.a",
        ".wh.b",
        ".wh..wh..opq",
        ".wh..wh.x",
        ".wh...",
        "victim",
        "into",
    ]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn any_kind() -> impl Strategy<Value = EntryType> {
    prop::sample::select(vec![
        EntryType::Regular,
        EntryType::Regular,
        EntryType::Directory,
        EntryType::Symlink,
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Fifo,
    ])
}

/// What is there, with its kind, so that two unpackings can be compared.
fn census(root: &Path, below: &Path, into: &mut BTreeMap<PathBuf, (u32, u64)>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        let key = path.strip_prefix(root).unwrap().to_owned();
        into.insert(key, (found.mode(), found.rdev()));
        if found.is_dir() {
            census(root, &path, into);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An entry that is refused is left out again, so that the ones after it have their turn.
    #[test]
    fn no_sequence_of_entries_reaches_outside(
        entries in prop::collection::vec((any_kind(), any_name(), any_name(), 0_u32..0o10000), 1..10)
    ) {
        let place = Place::new();
        let mut tar = Tar::default();
        for (kind, name, link, mode) in entries {
            let content: &[u8] = if kind == EntryType::Regular { b"content" } else { b"" };
            let link = if kind == EntryType::Symlink { format!("../{link}") } else { link };
            let longer = tar
                .clone()
                .entry(kind, name.as_bytes(), link.as_bytes(), mode, content);
            let trial = Place::new();
            if trial.unpack(&longer.finish()).is_ok() {
                tar = longer;
            }
            trial.assert_outside_is_untouched();
        }
        let whole = place.unpack(&tar.finish());
        prop_assert!(whole.is_ok());
        place.assert_outside_is_untouched();
        let (mut found, root) = (BTreeMap::new(), place.path(""));
        census(&root, &root, &mut found);
        for (path, (mode, device)) in found {
            let is_directory = mode & 0o170_000 == 0o040_000;
            prop_assert!(mode & 0o6000 == 0, "{path:?}");
            prop_assert!(!is_directory || mode & 0o700 == 0o700, "{path:?}");
            prop_assert_eq!(device, 0);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..2000), place in 0_usize..3000, flip in any::<u8>()
    ) {
        let _ = Place::new().unpack(&bytes);
        let mut tar = Tar::default()
            .file("a/b", "12345")
            .symlink("l", "a")
            .entry(EntryType::XHeader, b"p", b"", 0, b"10 path=p\n")
            .hard_link("h", "a/b")
            .finish();
        if let Some(byte) = tar.get_mut(place) {
            *byte = flip;
        }
        let place = Place::new();
        let _ = place.unpack(&tar);
        place.assert_outside_is_untouched();
    }
}
