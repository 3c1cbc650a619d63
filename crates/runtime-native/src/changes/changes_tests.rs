//! Layers as overlays make them, and as a sandbox could try to make them.

use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, fs::symlink},
    process::{Command, Stdio},
};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use tempfile::TempDir;

use super::*;

/// A workspace, and the layer of a sandbox over it.
struct Bench {
    root: TempDir,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let bench = Self { root };
        for place in ["lower", "sandbox/layer/workspace/upper"] {
            fs::create_dir_all(bench.path(place)).unwrap();
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(base: &Path, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = base.join(Path::new(&name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn lower(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        Self::write(&self.path("lower"), name, content);
    }

    fn upper_path(&self, name: &str) -> PathBuf {
        self.path("sandbox/layer/workspace/upper").join(name)
    }

    fn upper(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        Self::write(&self.upper_path(""), name, content);
    }

    /// What an overlay leaves of a deleted name. Every user may make it.
    fn whiteout(&self, name: &str) {
        let path = self.upper_path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    fn opaque(&self, name: &str) {
        let path = self.upper_path(name);
        fs::create_dir_all(&path).unwrap();
        setxattr(&path, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    }

    fn layers(&self) -> Layers {
        let place = ChangesPlace::Layer {
            lower: self.path("lower"),
        };
        let layers = Layers::open(&place, &self.path("sandbox")).unwrap();
        layers.unwrap()
    }

    fn listed(&self, below: &str) -> Vec<String> {
        lines(&self.layers().changes(Path::new(below)))
    }

    /// Applies the patch to a copy of the workspace.
    fn applied(&self, program: &str, arguments: &[&str]) -> PathBuf {
        let copy = self.path("copy");
        let mut copying = Command::new("cp");
        let copied = copying.arg("-a").args([self.path("lower"), copy.clone()]);
        assert!(copied.status().unwrap().success());
        let patch = self.path("patch");
        fs::write(&patch, self.layers().patch(Path::new("")).bytes).unwrap();
        let done = Command::new(program)
            .args(arguments)
            .stdin(fs::File::open(&patch).unwrap())
            .stdout(Stdio::piped())
            .current_dir(&copy)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&fs::read(&patch).unwrap()).into_owned();
        assert!(done.status.success(), "{done:?}\n{text}");
        copy
    }
}

fn lines(changes: &WorkspaceChanges) -> Vec<String> {
    let changed = changes.changes.iter().map(|change| {
        let from = match &change.kind {
            ChangeKind::Renamed { from } => format!("{from} -> "),
            _ => String::new(),
        };
        format!("{} {from}{}", change.kind.letter(), change.path)
    });
    let unread = changes
        .unread
        .iter()
        .map(|place| format!("? {}: {}", place.path, place.reason));
    changed.chain(unread).collect()
}

#[test]
fn every_kind_of_change_is_listed_once() {
    let bench = Bench::new();
    for name in [
        "changed",
        "touched",
        "gone",
        "moved",
        "kept",
        "dir/gone/x",
        "dir/kept",
        "file",
    ] {
        bench.lower(name, format!("{name}\n"));
    }
    fs::create_dir(bench.path("lower/emptied")).unwrap();
    bench.upper("changed", "new\n");
    bench.upper("touched", "touched\n");
    bench.whiteout("gone");
    bench.whiteout("moved");
    bench.upper("sub/moved", "moved\n");
    bench.whiteout("dir/gone");
    bench.upper("dir/added", "");
    bench.whiteout("emptied");
    fs::create_dir(bench.upper_path("empty")).unwrap();
    bench.whiteout("file_");
    bench.upper("file/inside", "a");
    let expected = [
        "M changed",
        "A dir/added",
        "D dir/gone/x",
        "D emptied",
        "A empty",
        "D file",
        "A file/inside",
        "D gone",
        "R moved -> sub/moved",
    ];
    assert_eq!(bench.listed(""), expected);
    assert_eq!(bench.listed("dir"), ["A dir/added", "D dir/gone/x"]);
    assert_eq!(bench.listed("dir/gone/x"), ["D dir/gone/x"]);
    assert_eq!(bench.listed("changed"), ["M changed"]);
    assert_eq!(bench.listed("kept"), [""; 0]);
    assert_eq!(bench.listed("not/there"), [""; 0]);
}

#[test]
fn an_opaque_directory_hides_all_that_is_below_it() {
    let bench = Bench::new();
    for name in ["d/a", "d/b", "d/sub/c", "d/sub/e", "d/other/f"] {
        bench.lower(name, name);
    }
    bench.opaque("d");
    bench.upper("d/a", "d/a");
    bench.upper("d/sub/c", "new");
    let expected = ["D d/b", "D d/other/f", "M d/sub/c", "D d/sub/e"];
    assert_eq!(bench.listed(""), expected);
    assert_eq!(bench.listed("d/sub"), ["M d/sub/c", "D d/sub/e"]);
    assert_eq!(bench.listed("d/sub/e"), ["D d/sub/e"]);
    assert_eq!(bench.listed("d/other/f"), ["D d/other/f"]);
    assert_eq!(bench.listed("d/b"), ["D d/b"]);
}

#[test]
fn nothing_outside_of_the_layer_is_read_through_links() {
    let bench = Bench::new();
    bench.lower("dir/secret", "theirs");
    let outside = bench.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret\n").unwrap();
    symlink(&outside, bench.upper_path("dir")).unwrap();
    symlink(outside.join("secret"), bench.upper_path("file")).unwrap();
    symlink(&outside, bench.path("lower/out")).unwrap();
    bench.upper("out/secret", "mine\n");
    let expected = ["A dir", "D dir/secret", "A file", "D out", "A out/secret"];
    assert_eq!(bench.listed(""), expected);
    assert_eq!(bench.listed("dir/secret"), ["D dir/secret"]);
    let patch = bench.layers().patch(Path::new("")).bytes;
    let patch = String::from_utf8(patch).unwrap();
    assert!(
        !patch.contains("secret\n-") && !patch.contains("+secret\n"),
        "{patch}"
    );
    assert!(patch.contains("new file mode 120000"), "{patch}");
}

#[test]
fn names_and_things_that_no_tool_expects_are_told_and_block_nothing() {
    let bench = Bench::new();
    bench.upper("new\nline", "a");
    bench.upper(OsStr::from_bytes(b"not \xff utf"), "b");
    mknodat(CWD, bench.upper_path("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    bench.lower("was a file", "text\n");
    mknodat(
        CWD,
        bench.upper_path("was a file"),
        FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    bench.upper("binary", b"a\0b");
    let listed = bench.listed("");
    let expected = [
        "A binary",
        "A new\nline",
        "A not \\xff utf",
        "A pipe",
        "M was a file",
    ];
    assert_eq!(listed, expected);
    let patch = bench.layers().patch(Path::new(""));
    let left_out: Vec<String> = patch.left_out().collect();
    let expected = [
        "binary: a binary file",
        "pipe: a pipe, a socket or a device",
        "was a file: a pipe, a socket or a device",
    ];
    assert_eq!(left_out, expected);
}

#[test]
fn what_cannot_be_compared_is_named() {
    let bench = Bench::new();
    let deep = "d/".repeat(300) + "file";
    bench.upper(&deep, "x");
    bench.upper("seen", "x");
    let listed = bench.listed("");
    assert_eq!(listed.first().map(String::as_str), Some("A seen"));
    let last = listed.last().unwrap();
    assert!(
        last.ends_with("directories are nested more than 256 deep"),
        "{last}"
    );
    assert_eq!(listed.len(), 2);
}

#[test]
fn a_workspace_that_began_empty_is_all_additions() {
    let bench = Bench::new();
    bench.whiteout("no_mark");
    bench.upper("file", "x");
    let place = ChangesPlace::Own;
    fs::rename(bench.upper_path(""), bench.path("moved")).unwrap();
    fs::remove_dir_all(bench.path("sandbox/layer/workspace")).unwrap();
    fs::rename(bench.path("moved"), bench.path("sandbox/layer/workspace")).unwrap();
    let layers = Layers::open(&place, &bench.path("sandbox"))
        .unwrap()
        .unwrap();
    assert_eq!(
        lines(&layers.changes(Path::new(""))),
        ["A file", "A no_mark"]
    );
    let direct = Layers::open(&ChangesPlace::Direct, &bench.path("sandbox"));
    assert!(direct.unwrap().is_none());
}

/// A change of every kind that a patch can hold.
fn patched() -> Bench {
    let bench = Bench::new();
    let long: String = (0..40).map(|line| format!("line {line}\n")).collect();
    bench.lower("long name", &long);
    bench.lower("no end", "a\nb");
    bench.lower("gone/file", "x\n");
    bench.lower("moved", "the same\n");
    bench.lower("program", "#!/bin/sh\n");
    bench.lower("empty gone", "");
    bench.upper("long name", long.replace("line 3\n", "three\n") + "last");
    bench.upper("no end", "a\nb\n");
    bench.whiteout("gone");
    bench.whiteout("moved");
    bench.whiteout("empty gone");
    bench.upper("to/moved", "the same\n");
    bench.upper("program", "#!/bin/sh\n");
    let executable = Permissions::from_mode(0o755);
    fs::set_permissions(bench.upper_path("program"), executable).unwrap();
    bench.upper("added/é", "é\n");
    bench.upper("quo\"ted", "q\n");
    bench.upper("empty", "");
    bench.upper("latin", b"caf\xe9\n");
    bench
}

fn check_applied(copy: &Path) {
    let read = |name: &str| fs::read(copy.join(name)).ok();
    let long: String = (0..40).map(|line| format!("line {line}\n")).collect();
    let long = long.replace("line 3\n", "three\n") + "last";
    assert_eq!(read("long name"), Some(long.into_bytes()));
    assert_eq!(read("no end").as_deref(), Some(&b"a\nb\n"[..]));
    assert_eq!(read("to/moved").as_deref(), Some(&b"the same\n"[..]));
    assert_eq!(read("added/é").as_deref(), Some("é\n".as_bytes()));
    assert_eq!(read("quo\"ted").as_deref(), Some(&b"q\n"[..]));
    assert_eq!(read("empty").as_deref(), Some(&b""[..]));
    assert_eq!(read("latin").as_deref(), Some(&b"caf\xe9\n"[..]));
    for gone in ["gone/file", "moved", "empty gone"] {
        assert_eq!(read(gone), None, "{gone}");
    }
    let program = fs::metadata(copy.join("program")).unwrap();
    assert_eq!(program.permissions().mode() & 0o111, 0o111);
}

#[test]
fn git_applies_a_patch_to_what_the_sandbox_started_from() {
    check_applied(&patched().applied("git", &["apply", "-"]));
}

#[test]
fn links_and_changed_kinds_are_in_a_patch_for_git() {
    let bench = Bench::new();
    bench.lower("was link", "file\n");
    symlink("elsewhere", bench.upper_path("was link")).unwrap();
    symlink("a", bench.path("lower/link")).unwrap();
    symlink("b", bench.upper_path("link")).unwrap();
    bench.lower("directory/file", "x\n");
    symlink("c", bench.upper_path("directory")).unwrap();
    symlink("nowhere", bench.path("lower/filled")).unwrap();
    bench.upper("filled/file", "x\n");
    let copy = bench.applied("git", &["apply", "-"]);
    let target = |name: &str| fs::read_link(copy.join(name)).unwrap();
    assert_eq!(target("was link"), Path::new("elsewhere"));
    assert_eq!(target("link"), Path::new("b"));
    assert_eq!(target("directory"), Path::new("c"));
    assert_eq!(fs::read(copy.join("filled/file")).unwrap(), b"x\n");
}

#[test]
fn paths_of_requests_stay_in_the_workspace() {
    let workspace = Path::new("/workspace");
    let meant = |asked| below(workspace, asked);
    assert_eq!(meant(None), Some(PathBuf::new()));
    assert_eq!(meant(Some("/workspace/a/./b")), Some("a/b".into()));
    assert_eq!(meant(Some("a")), Some("a".into()));
    for outside in ["/etc", "..", "a/../../b", "/workspace/../x"] {
        assert_eq!(meant(Some(outside)), None, "{outside}");
    }
}
