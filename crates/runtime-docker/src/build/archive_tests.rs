//! Tests of archives that somebody has made to be unpacked elsewhere.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;

use super::*;

const LIMITS: ContextLimits = ContextLimits {
    bytes: 10_000,
    entries: 100,
};

enum Kind<'a> {
    File(&'a str),
    Directory,
    Symlink(&'a str),
    Link(&'a str),
    Pipe,
}

use Kind::{Directory, File as Text, Link, Pipe, Symlink};

/// Written byte by byte, because no library writes what these hold.
fn archive(entries: &[(&str, Kind<'_>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind) in entries {
        let (kind, text, target) = match kind {
            Text(text) => (EntryType::Regular, *text, ""),
            Directory => (EntryType::Directory, "", ""),
            Symlink(target) => (EntryType::Symlink, "", *target),
            Link(target) => (EntryType::Link, "", *target),
            Pipe => (EntryType::Fifo, "", ""),
        };
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(7);
        header.set_gid(7);
        header.set_mtime(1);
        header.set_size(text.len() as u64);
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn packed(bytes: &[u8]) -> Result<(Vec<String>, Option<String>), BuildError> {
    let scratch = TempDir::new().unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let mut packer = Packer::new(scratch.path(), LIMITS)?;
    let text = pack(&mut file, Path::new("Dockerfile"), LIMITS, &mut packer)?;
    let mut archive = Archive::new(packer.finish()?.file);
    let entries = archive.entries().unwrap().map(|entry| {
        let entry = entry.unwrap();
        assert_eq!(entry.header().uid().unwrap(), 0);
        entry.path().unwrap().display().to_string()
    });
    Ok((entries.collect(), text))
}

fn refusal(entries: &[(&str, Kind<'_>)]) -> String {
    packed(&archive(entries)).unwrap_err().to_string()
}

#[test]
fn an_archive_is_taken_compressed_or_not() {
    let plain = archive(&[
        ("./", Directory),
        ("./Dockerfile", Text("FROM a")),
        ("./code/", Directory),
        ("./code/a", Text("x")),
        ("./code/b", Link("./code/a")),
        ("./code/c", Symlink("../../etc/passwd")),
        ("./code/p", Pipe),
    ]);
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    compressed.write_all(&plain).unwrap();
    for bytes in [plain, compressed.finish().unwrap()] {
        let (names, text) = packed(&bytes).unwrap();
        assert_eq!(names, ["Dockerfile", "code", "code/a", "code/b", "code/c"]);
        assert_eq!(text.as_deref(), Some("FROM a"));
    }
}

#[test]
fn nothing_leads_out() {
    for name in ["../a", "a/../../b", "/etc/passwd"] {
        let refused = refusal(&[(name, Text(""))]);
        assert!(refused.ends_with("leads out of it"), "{name}: {refused}");
    }
    let refused = refusal(&[("a", Link("../b"))]);
    assert!(refused.ends_with("leads out of it"), "{refused}");
}

#[test]
fn the_dockerfile_that_is_read_is_the_one_that_is_built() {
    let first = || ("Dockerfile", Text("FROM a"));
    let refused = refusal(&[first(), ("./Dockerfile", Text("FROM b"))]);
    assert!(refused.ends_with("comes twice"), "{refused}");
    let refused = refusal(&[
        first(),
        ("d", Symlink(".")),
        ("d/Dockerfile", Text("FROM b")),
    ]);
    assert!(
        refused.ends_with("leads through a link or a file"),
        "{refused}"
    );
    let refused = refusal(&[("x", Text("FROM b")), ("Dockerfile", Link("x"))]);
    assert!(refused.ends_with("second name of no file"), "{refused}");
    let refused = refusal(&[("Dockerfile", Symlink("x"))]);
    assert!(refused.ends_with("it is a link"), "{refused}");
    let (_, text) = packed(&archive(&[("d/Dockerfile", Text("FROM b"))])).unwrap();
    assert_eq!(text, None);
}

#[test]
fn what_is_too_much_is_refused() {
    let long = "x".repeat(10_001);
    let refused = refusal(&[("a", Text(&long))]);
    assert!(refused.ends_with("more than 10000 bytes"), "{refused}");
    let names: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let many: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), Directory))
        .collect();
    assert!(refusal(&many).ends_with("more than 100 entries"));
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(1 << 30);
    header.set_cksum();
    compressed.write_all(header.as_bytes()).unwrap();
    compressed.write_all(&vec![b'a'; 1 << 20]).unwrap();
    let refused = packed(&compressed.finish().unwrap())
        .unwrap_err()
        .to_string();
    assert!(refused.ends_with("a name in it is too long"), "{refused}");
}

#[test]
fn what_is_no_archive_is_told() {
    let whole = archive(&[("a", Text("x"))]);
    for wrong in [
        &b"nonsense of some length"[..],
        &[0x1f, 0x8b, 1],
        &whole[..513],
    ] {
        assert!(packed(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(packed(&[]).unwrap(), (vec![], None));
}
