//! What `read`, `write` and the listing promise, row by row of their tables.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
    os::unix::net::UnixListener,
};

use rustix::fs::{CWD, FileType, Mode};
use zareba_protocol::{Observation, ObservationKind, ReadSource};

use super::{Reach, fixture::Fixture};
use crate::owner::Owner;

fn read_of(path: &str, content: &str) -> Observation {
    let kind = ObservationKind::Read {
        path: path.to_owned(),
        impl_source: ReadSource::Plain,
    };
    Observation {
        content: content.to_owned(),
        kind,
    }
}

fn write_of(path: &str) -> Observation {
    let kind = ObservationKind::Write {
        path: path.to_owned(),
    };
    Observation {
        content: String::new(),
        kind,
    }
}

#[test]
fn the_listed_kinds_are_read_as_data_urls() {
    let fixture = Fixture::new();
    let check = |name: &str, media_type: &str| {
        let path = fixture.put(name, b"\0\xff");
        let expected = read_of(&path, &format!("data:{media_type};base64,AP8="));
        assert_eq!(fixture.read(&path), expected);
        assert_eq!(fixture.read(name), expected);
    };
    check("a.png", "image/png");
    check("a.PNG", "image/png");
    check("a.jpg", "image/jpeg");
    check("a.jpeg", "image/jpeg");
    check("a.bmp", "image/bmp");
    check("a.gif", "image/gif");
    check("a.pdf", "application/pdf");
    check("a.mp4", "video/mp4");
    check("a.webm", "video/webm");
    check("a.ogg", "audio/ogg");
}

#[test]
fn text_is_read_with_plain_newlines_and_by_lines() {
    let fixture = Fixture::new();
    let path = fixture.put("f.txt", "a\r\nb\rc\nd");
    assert_eq!(fixture.read("f.txt"), read_of(&path, "a\nb\nc\nd"));
    assert_eq!(fixture.read_lines("f.txt", 1, 3), read_of(&path, "b\nc\n"));
    assert_eq!(fixture.read_lines("f.txt", 9, 10), read_of(&path, "c\nd"));
    assert_eq!(fixture.read_lines("f.txt", 2, -1), read_of(&path, "c\nd"));
    let empty = fixture.put("empty", "");
    assert_eq!(fixture.read("empty"), read_of(&empty, ""));
    assert_eq!(fixture.read_lines("empty", 3, 5), read_of(&empty, ""));
}

#[test]
fn paths_are_shown_absolute_and_not_resolved() {
    let fixture = Fixture::new();
    fixture.put("f.txt", "x");
    fs::create_dir(fixture.root().join("sub")).unwrap();
    assert_eq!(
        fixture.read("sub/../f.txt"),
        read_of(&fixture.path("sub/../f.txt"), "x")
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let fixture = Fixture::new();
    let root = fixture.path("");
    let root = root.trim_end_matches('/');
    let check = |path: &str, expected: &str| {
        let expected = expected.replace("{w}", root);
        assert_eq!(fixture.read(path), Observation::error(expected));
    };
    check(
        "none",
        "File not found: {w}/none. Your current working directory is {w}.",
    );
    check(".", "Path is a directory: {w}. You can only read files");
    fixture.put("latin1", b"caf\xe9");
    check("latin1", "File could not be decoded as utf-8: {w}/latin1.");
    fixture.put("program", b"\x7fELF\x02\0\0");
    check("program", "ERROR_BINARY_FILE");
    check(
        "latin1/below",
        "[Errno 20] Not a directory: '{w}/latin1/below'",
    );
    check("", "the path is empty");
    check("a\0b", "the path contains a NUL byte");
    symlink("loop", fixture.root().join("loop")).unwrap();
    check(
        "loop",
        "[Errno 40] Too many levels of symbolic links: '{w}/loop'",
    );
    rustix::fs::mknodat(
        CWD,
        fixture.root().join("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    check("pipe", "'{w}/pipe' is a named pipe, not a regular file");
    let _listener = UnixListener::bind(fixture.root().join("socket")).unwrap();
    check("socket", "'{w}/socket' is a socket, not a regular file");
    check("/dev/zero", "'/dev/zero' is a device, not a regular file");
}

#[test]
fn a_huge_file_is_refused_by_its_size() {
    let fixture = Fixture::new();
    let path = fixture.put("huge", "");
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    assert_eq!(
        fixture.read("huge"),
        Observation::error(format!(
            "'{path}' is larger than 64 MiB, the most that is read at once"
        ))
    );
}

#[test]
fn files_of_the_kernel_without_a_size_are_read() {
    let fixture = Fixture::new();
    let observation = fixture.read("/proc/self/comm");
    assert!(!observation.content.is_empty());
    assert_eq!(
        observation.kind,
        ObservationKind::Read {
            path: "/proc/self/comm".to_owned(),
            impl_source: ReadSource::Plain
        }
    );
}

#[test]
fn every_piece_is_written_with_a_newline() {
    let fixture = Fixture::new();
    let check = |content: &str, expected: &str| {
        assert_eq!(fixture.write("f", content), write_of(&fixture.path("f")));
        assert_eq!(fixture.get("f"), expected);
    };
    check("a", "a\n");
    check("a\n", "a\n\n");
    check("a\nb", "a\nb\n");
    check("", "\n");
}

#[test]
fn lines_are_spliced_into_an_existing_file() {
    let fixture = Fixture::new();
    let check = |old: &str, content: &str, start, end, expected: &str| {
        fixture.put("f", old);
        let observation = fixture.write_lines("f", content, start, end);
        assert_eq!(observation, write_of(&fixture.path("f")));
        assert_eq!(fixture.get("f"), expected, "{old:?} {start} {end}");
    };
    check("1\n2\n3\n4\n", "x\ny", 1, 3, "1\nx\ny\n4\n");
    check("1\n2\n3\n", "x", 1, 1, "1\nx\n2\n3\n");
    check("1\n2\n3\n", "x", 2, -1, "1\n2\nx\n");
    check("1\n2\n", "x", 9, 9, "1\n2\nx\n");
    check("1\n2\n", "x", 0, 1, "x\n2\n");
    check("1\n2", "x", 2, 2, "1\n2\nx\n");
    check("1\r\n2\r\n3\r\n", "x\ny", 1, 2, "1\r\nx\r\ny\r\n3\r\n");
    check("1\r\n2\r\n", "x", 0, -1, "x\n");
    check("1\n2\n3\n", "x", 2, 1, "1\n2\nx\n2\n3\n");
}

#[test]
fn new_files_get_their_mode_and_existing_ones_keep_theirs() {
    let fixture = Fixture::new();
    fixture.write("new", "x");
    assert_eq!(fixture.mode("new"), 0o664);
    let path = fixture.put("script", "old\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();
    fixture.write("script", "new");
    assert_eq!(
        (fixture.get("script").as_str(), fixture.mode("script")),
        ("new\n", 0o4750)
    );
}

#[test]
fn directories_above_a_new_file_are_made() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.write("a/b/c.txt", "x"),
        write_of(&fixture.path("a/b/c.txt"))
    );
    assert_eq!(fixture.get("a/b/c.txt"), "x\n");
}

#[test]
fn what_cannot_be_written_is_named_and_left_alone() {
    let fixture = Fixture::new();
    let root = fixture.path("");
    let root = root.trim_end_matches('/');
    let check = |path: &str, expected: &str| {
        let expected = expected.replace("{w}", root);
        assert_eq!(fixture.write(path, "x"), Observation::error(expected));
    };
    check(".", "Path is a directory: {w}. You can only write to files");
    fs::create_dir(fixture.root().join("sub")).unwrap();
    check(
        "sub/",
        "Path is a directory: {w}/sub. You can only write to files",
    );
    check(
        "sub/..",
        "Path is a directory: {w}/sub/... You can only write to files",
    );
    fixture.put("latin1", b"caf\xe9");
    check("latin1", "File could not be decoded as utf-8: {w}/latin1");
    check(
        "latin1/below",
        "[Errno 20] Not a directory: '{w}/latin1/below'",
    );
    symlink("nowhere/at/all", fixture.root().join("dangling")).unwrap();
    check("dangling", "File not found: {w}/dangling");
    check(
        &"n".repeat(256),
        "a component of the path is longer than 255 bytes",
    );
    check("/proc/none", "File not found: /proc/none");
    assert_eq!(fixture.names("."), ["dangling", "latin1", "sub"]);
}

#[test]
fn a_write_goes_through_links_to_their_target() {
    let fixture = Fixture::new();
    let target = fixture.put("target", "old\n");
    symlink(&target, fixture.root().join("absolute")).unwrap();
    symlink("absolute", fixture.root().join("chain")).unwrap();
    symlink("fresh", fixture.root().join("to-nothing")).unwrap();
    fixture.write("chain", "new");
    fixture.write("to-nothing", "made");
    assert_eq!(
        (
            fixture.get("target").as_str(),
            fixture.get("fresh").as_str()
        ),
        ("new\n", "made\n")
    );
    let kind = |name: &str| {
        fs::symlink_metadata(fixture.root().join(name))
            .unwrap()
            .file_type()
    };
    assert!(kind("chain").is_symlink() && kind("absolute").is_symlink());
    assert!(kind("to-nothing").is_symlink());
}

#[test]
fn another_name_of_a_file_keeps_the_old_content() {
    let fixture = Fixture::new();
    let path = fixture.put("one", "old\n");
    fs::hard_link(&path, fixture.root().join("two")).unwrap();
    fixture.write("one", "new");
    assert_eq!(
        (fixture.get("one").as_str(), fixture.get("two").as_str()),
        ("new\n", "old\n")
    );
}

#[test]
fn a_pipe_is_not_written_to() {
    let fixture = Fixture::new();
    let pipe = fixture.root().join("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let expected = format!("'{}' is a named pipe, not a regular file", pipe.display());
    assert_eq!(fixture.write("pipe", "x"), Observation::error(expected));
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_failed_write_leaves_no_temporary_file() {
    let fixture = Fixture::new();
    fixture.put("f", "old\n");
    let slot = {
        let path = super::FilePath::locate("f", &fixture.root()).unwrap();
        fixture.files.workspace.slot(&path).unwrap()
    };
    let stat = slot.stat().unwrap();
    fixture.put("f", "somebody else's\n");
    let failure = slot
        .replace(b"mine", super::Target::Present(&stat))
        .unwrap_err();
    assert_eq!(
        failure,
        super::Failure::Changed {
            path: fixture.path("f")
        }
    );
    assert_eq!(fixture.get("f"), "somebody else's\n");
    let failure = slot
        .replace(b"mine", super::Target::Absent(Owner::Ourselves))
        .unwrap_err();
    assert_eq!(
        failure,
        super::Failure::Changed {
            path: fixture.path("f")
        }
    );
    assert_eq!(fixture.names("."), ["f"]);
}

#[test]
fn writers_of_one_file_do_not_mix() {
    let fixture = Fixture::new();
    fixture.put("f", "");
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c", "d"] {
            let fixture = &fixture;
            scope.spawn(move || {
                for _ in 0..25 {
                    let observation = fixture.write_lines("f", letter, 0, 0);
                    assert_eq!(observation, write_of(&fixture.path("f")));
                }
            });
        }
    });
    let content = fixture.get("f");
    for letter in ["a", "b", "c", "d"] {
        assert_eq!(content.lines().filter(|line| *line == letter).count(), 25);
    }
    assert_eq!(fixture.names("."), ["f"]);
}

#[test]
fn listings_name_directories_first_and_ignore_case() {
    let fixture = Fixture::new();
    for directory in ["beta", "Alpha", ".git"] {
        fs::create_dir(fixture.root().join(directory)).unwrap();
    }
    for file in ["b.txt", "A.txt", ".env"] {
        fixture.put(file, "");
    }
    symlink("beta", fixture.root().join("link-to-dir")).unwrap();
    symlink("b.txt", fixture.root().join("link-to-file")).unwrap();
    symlink("none", fixture.root().join("dangling")).unwrap();
    let expected = [
        ".git/",
        "Alpha/",
        "beta/",
        "link-to-dir/",
        ".env",
        "A.txt",
        "b.txt",
        "link-to-file",
    ];
    assert_eq!(fixture.files.list(None), expected);
    assert_eq!(fixture.files.list(Some(&fixture.path(""))), expected);
    assert_eq!(fixture.files.list(Some("beta")), Vec::<String>::new());
    assert_eq!(fixture.files.list(Some("none")), Vec::<String>::new());
    assert_eq!(fixture.files.list(Some("b.txt")), Vec::<String>::new());
}

/// Only root can give files away, so elsewhere this proves the other half: the text of a refusal.
#[test]
fn new_files_and_directories_belong_to_the_owner() {
    let owner = Owner::User {
        uid: 12345,
        gid: 54321,
    };
    let fixture = Fixture::with(|_| Reach::WholeFilesystem, owner);
    let ids = |name: &str| {
        let metadata = fs::metadata(fixture.root().join(name)).unwrap();
        (metadata.uid(), metadata.gid())
    };
    let observation = fixture.write("new", "x");
    if rustix::process::geteuid().is_root() {
        assert_eq!(observation, write_of(&fixture.path("new")));
        fixture.write("deep/er/file", "x");
        fixture.create(&fixture.path("made"), "x");
        for name in ["new", "deep", "deep/er", "deep/er/file", "made"] {
            assert_eq!(ids(name), (12345, 54321), "{name}");
        }
        fixture.put("foreign", "x");
        fixture.write("foreign", "y");
        fixture.insert(&fixture.path("foreign"), 0, "z");
        assert_eq!(ids("foreign"), (0, 0));
    } else {
        let path = fixture.path("new");
        let expected = format!(
            "File {path} written, but failed to change ownership and permissions: [Errno 1] Operation not permitted: '{path}'"
        );
        assert_eq!(observation, Observation::error(expected));
        assert_eq!(fixture.get("new"), "x\n");
    }
}
