//! Zip archives that mean harm. Each is refused with a reason, and nothing of it stays.

use std::{fs, io::Write, os::unix::fs::symlink, path::Path};

use zareba_wire::UploadTreatment::Unpack;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::support::{self, *};
use crate::transfer::{budget::ArchiveLimits, spool::Format};

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default()
}

async fn refused(archive: &[u8], reason: &str) {
    support::refused("x.zip", archive, reason).await;
}

/// Uploads an archive that would be unpacked through the link `l` of the destination, and
/// expects that it is refused and nothing changes.
async fn refused_at_the_link(root: &Path, archive: &[u8]) {
    let before = snapshot(root);
    let reason = format!(
        "'{}/l' is a link in the destination, and the archive would be unpacked through it",
        root.display()
    );
    let said = words(upload(root, "x.zip", Unpack, archive).await);
    assert_eq!(said, Err(reason));
    assert_eq!(snapshot(root), before);
}

/// An archive whose second entry has this raw name; the first is harmless.
fn named(name: &str) -> Vec<u8> {
    zip_of(&[("good", b"good"), (name, b"bad")])
}

#[tokio::test]
async fn what_is_no_zip_is_called_so_and_does_not_stay() {
    for content in [&b""[..], b"PK", b"this is not a zip", &[0; 100_000]] {
        refused(content, "DEST/x.zip is not a zip file").await;
    }
}

#[tokio::test]
async fn an_empty_archive_is_an_archive() {
    let root = tempfile::tempdir().unwrap();
    upload(root.path(), "x.zip", Unpack, &zip_of(&[]))
        .await
        .unwrap();
    assert_eq!(snapshot(root.path()), Snapshot::new());
}

#[tokio::test]
async fn names_that_leave_the_destination_are_refused() {
    refused(&named("../evil"), "entry '../evil' climbs with '..'").await;
    refused(
        &named("a/../../evil"),
        "entry 'a/../../evil' climbs with '..'",
    )
    .await;
    refused(
        &named("/etc/evil"),
        "entry '/etc/evil' has an absolute path",
    )
    .await;
    refused(&named("a\0b"), "entry 'a\\0b' has a null byte in its name").await;
    refused(&named(""), "entry '' has no name").await;
}

#[tokio::test]
async fn links_that_lead_out_are_refused() {
    for target in ["/etc/passwd", "..", "../../etc", "good/../.."] {
        let archive = zip_with(|archive| {
            archive.start_file("good", options()).unwrap();
            archive.add_symlink("l", target, options()).unwrap();
        });
        refused(
            &archive,
            "entry 'l' is a link that may lead out of the destination",
        )
        .await;
    }
}

#[tokio::test]
async fn a_file_is_not_written_through_a_link_of_the_archive() {
    let archive = zip_with(|archive| {
        archive.add_symlink("l", "sub", options()).unwrap();
        archive.start_file("l/x", options()).unwrap();
    });
    refused(
        &archive,
        "entry 'l' has a name that another entry has taken",
    )
    .await;
}

#[tokio::test]
async fn a_link_that_was_there_before_is_not_followed_out() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), root.path().join("l")).unwrap();
    let archive = zip_of(&[("good", b"good"), ("l/x", b"bad")]);
    refused_at_the_link(root.path(), &archive).await;
    assert_eq!(snapshot(outside.path()), Snapshot::new());
}

#[tokio::test]
async fn a_link_that_was_there_before_and_stays_inside_is_followed() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("real")).unwrap();
    symlink("real", root.path().join("l")).unwrap();
    upload(root.path(), "x.zip", Unpack, &zip_of(&[("l/x", b"x")]))
        .await
        .unwrap();
    assert_eq!(
        snapshot(root.path()),
        tree([
            (
                "l",
                Node::Link {
                    target: "real".to_owned()
                }
            ),
            ("real", Node::Directory),
            ("real/x", file(b"x")),
        ])
    );
}

/// Moved through a link of the destination, `../x` would start one level higher than checked.
#[tokio::test]
async fn an_archive_with_links_is_not_unpacked_through_a_link() {
    let root = tempfile::tempdir().unwrap();
    symlink(".", root.path().join("l")).unwrap();
    let archive = zip_with(|archive| archive.add_symlink("l/s", "../x", options()).unwrap());
    refused_at_the_link(root.path(), &archive).await;
}

#[tokio::test]
async fn devices_and_pipes_are_refused() {
    for kind in [0o020_000, 0o060_000, 0o010_000, 0o140_000] {
        let archive = zip_with(|archive| {
            archive
                .start_file("d", options().external_attributes((kind | 0o666) << 16))
                .unwrap();
        });
        refused(
            &archive,
            "entry 'd' is neither a file, a directory nor a link",
        )
        .await;
    }
}

#[tokio::test]
async fn a_name_that_comes_twice_is_refused() {
    // The writer refuses to write such an archive, so a name is changed afterwards.
    let mut archive = zip_of(&[("same", b"1"), ("sama", b"2")]);
    for start in 0..archive.len() - 4 {
        if &archive[start..start + 4] == b"sama" {
            archive[start + 3] = b'e';
        }
    }
    refused(
        &archive,
        "entry 'same' has a name that another entry has taken",
    )
    .await;
    let archive = zip_of(&[("a", b"1"), ("a/b", b"2")]);
    refused(
        &archive,
        "entry 'a/b' has a name that another entry has taken",
    )
    .await;
}

/// Readers that go by the headers in front of entries, as streaming ones must, would see these.
#[tokio::test]
async fn an_entry_with_another_name_in_its_own_header_is_refused() {
    for other in [&b"../../up"[..], b"evil.txt"] {
        let mut archive = zip_of(&[("harmless", b"1"), ("good.txt", b"2")]);
        let at = archive.windows(8).position(|name| name == b"good.txt");
        archive[at.unwrap()..][..8].copy_from_slice(other);
        refused(
            &archive,
            "entry 'good.txt' has another name in its own header",
        )
        .await;
    }
    // A shorter one.
    let mut archive = zip_of(&[("good.txt", b"2")]);
    archive[26] = 4;
    refused(
        &archive,
        "entry 'good.txt' has another name in its own header",
    )
    .await;
}

/// Readers that follow the entries one by one, as streaming ones must, would unpack it.
#[tokio::test]
async fn an_entry_that_the_directory_does_not_list_is_refused() {
    let stored = options().compression_method(zip::CompressionMethod::Stored);
    let archive = zip_with(|archive| {
        for name in ["first", "hidden", "last"] {
            archive.start_file(name, stored).unwrap();
            archive.write_all(b"content").unwrap();
        }
    });
    let count = archive.len() - 14;
    let directory = archive.windows(4).position(|at| at == b"PK\x01\x02");
    let listed = |name: &[u8]| {
        let mut places = archive.windows(name.len()).enumerate();
        places.rfind(|(_, at)| *at == name).unwrap().0 - 46
    };
    for (name, next) in [
        ("first", listed(b"hidden")),
        ("hidden", listed(b"last")),
        ("last", archive.len() - 22),
    ] {
        let start = listed(name.as_bytes());
        let mut archive = archive.clone();
        // Both counts of entries, and the size of the directory.
        archive[count..count + 4].copy_from_slice(&[2, 0, 2, 0]);
        let size = archive.len() - 22 - directory.unwrap() - (next - start);
        archive[count + 4..count + 8].copy_from_slice(&u32::try_from(size).unwrap().to_le_bytes());
        archive.drain(start..next);
        refused(
            &archive,
            "DEST/x.zip has something between its entries that its directory does not list",
        )
        .await;
    }
}

/// A reader of the stream would take what stands behind it for entries.
#[tokio::test]
async fn an_entry_whose_own_header_tells_less_of_its_content_is_refused() {
    let stored = options().compression_method(zip::CompressionMethod::Stored);
    let archive = zip_with(|archive| {
        archive.start_file("first", stored).unwrap();
        archive.write_all(b"content").unwrap();
    });
    // The size of the content, and the method.
    for (at, bytes) in [(18, &[0; 4][..]), (8, &[8, 0])] {
        let mut archive = archive.clone();
        archive[at..at + bytes.len()].copy_from_slice(bytes);
        refused(
            &archive,
            "entry 'first' has another size or method in its own header",
        )
        .await;
    }
}

/// Some readers prefer it to the name itself.
#[tokio::test]
async fn an_entry_with_another_name_in_an_extra_field_is_refused() {
    let field = |name: &[u8]| [&[1, 0, 0, 0, 0], name].concat();
    let archive = |name: &str, other: &[u8]| {
        let mut archive = zip_of(&[(name, b"1")]);
        let field = field(other);
        let length = u16::try_from(field.len()).unwrap().to_le_bytes();
        let field = [&[0x75, 0x70], &length[..], &field[..]].concat();
        let added = u32::try_from(field.len()).unwrap();
        // Behind the name in the entry's own header, whose length of extra fields grows.
        archive[28] = u8::try_from(added).unwrap();
        archive.splice(30 + name.len()..30 + name.len(), field);
        let place = archive.len() - 6;
        let start = archive[place..place + 4].try_into().unwrap();
        let start = u32::from_le_bytes(start) + added;
        archive[place..place + 4].copy_from_slice(&start.to_le_bytes());
        archive
    };
    refused(
        &archive("good", b"evil"),
        "entry 'good' has another name in an extra field",
    )
    .await;
    let root = tempfile::tempdir().unwrap();
    upload(root.path(), "x.zip", Unpack, &archive("good", b"good"))
        .await
        .unwrap();
    assert_eq!(snapshot(root.path()), tree([("good", file(b"1"))]));
}

/// Written by a program that does not know the sizes before it has written the content.
#[tokio::test]
async fn an_archive_that_was_streamed_is_unpacked() {
    let mut archive = ZipWriter::new_stream(Vec::new());
    for name in ["a", "b"] {
        archive.start_file(name, options()).unwrap();
        archive.write_all(b"content").unwrap();
    }
    let archive = archive.finish().unwrap().into_inner();
    let root = tempfile::tempdir().unwrap();
    upload(root.path(), "x.zip", Unpack, &archive)
        .await
        .unwrap();
    let unpacked = tree([("a", file(b"content")), ("b", file(b"content"))]);
    assert_eq!(snapshot(root.path()), unpacked);
}

#[tokio::test]
async fn an_archive_that_unpacks_to_too_much_is_refused() {
    let zeros = vec![0; 1 << 20];
    let bomb = zip_with(|archive| {
        archive.start_file("bomb", options()).unwrap();
        for _ in 0..40 {
            archive.write_all(&zeros).unwrap();
        }
    });
    assert!(bomb.len() < 64 << 10);
    refused(&bomb, "archive unpacks to more than 200 times its size").await;
}

#[tokio::test]
async fn entries_that_share_their_bytes_are_refused() {
    let content = vec![7; 4_000];
    let stored = options().compression_method(zip::CompressionMethod::Stored);
    let archive = zip_with(|archive| {
        archive.start_file("a", stored).unwrap();
        archive.write_all(&content).unwrap();
        for copy in 0..20 {
            archive.shallow_copy_file("a", &format!("b{copy}")).unwrap();
        }
    });
    refused(&archive, "archive has entries that overlap").await;
}

#[test]
fn the_caps_hold_at_their_limit_and_not_past_it() {
    let limits = ArchiveLimits {
        entries: 3,
        bytes: 10,
        ratio: 200,
        ratio_free_bytes: 1 << 20,
    };
    let unpack = |destination: &Path, archive: &[u8]| {
        unpack_within(&limits, destination, Format::Zip, archive.to_vec())
    };
    let root = tempfile::tempdir().unwrap();
    let at_the_limit = zip_of(&[("a", b"12345"), ("b", b"67890"), ("c", b"")]);
    unpack(root.path(), &at_the_limit).unwrap();
    let unpacked = tree([
        ("a", file(b"12345")),
        ("b", file(b"67890")),
        ("c", file(b"")),
    ]);
    assert_eq!(snapshot(root.path()), unpacked);
    let too_many = zip_of(&[("d", b""), ("e", b""), ("f", b""), ("g", b"")]);
    assert_eq!(
        words(unpack(root.path(), &too_many)),
        Err("archive has more than 3 entries".to_owned())
    );
    let too_much = zip_of(&[("d", b"12345"), ("e", b"678901")]);
    assert_eq!(
        words(unpack(root.path(), &too_much)),
        Err("archive unpacks to more than 10 bytes".to_owned())
    );
    assert_eq!(snapshot(root.path()), unpacked);
}

#[tokio::test]
async fn more_entries_than_allowed_are_refused_before_any_is_unpacked() {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for number in 0..=100_000 {
        archive
            .add_directory(format!("{number}/"), options())
            .unwrap();
    }
    let archive = archive.finish().unwrap().into_inner();
    refused(&archive, "archive has more than 100000 entries").await;
}

#[tokio::test]
async fn an_archive_that_was_cut_or_extended_is_refused() {
    let archive = zip_of(&[("a", b"some content"), ("b", b"more content")]);
    for kept in [archive.len() - 1, archive.len() / 2, 30] {
        refused(&archive[..kept], "DEST/x.zip is not a zip file").await;
    }
    let mut extended = archive.clone();
    extended.extend_from_slice(b"garbage");
    refused(&extended, "DEST/x.zip is not a zip file").await;
    let mut prefixed = b"garbage".to_vec();
    prefixed.extend_from_slice(&archive);
    refused(&prefixed, "DEST/x.zip is not a zip file").await;
}

#[tokio::test]
async fn content_that_does_not_fit_its_checksum_is_refused() {
    let stored = options().compression_method(zip::CompressionMethod::Stored);
    let mut archive = zip_with(|archive| {
        archive.start_file("good", stored).unwrap();
        archive.start_file("bad", stored).unwrap();
        archive.write_all(b"precious").unwrap();
    });
    let at = archive
        .windows(8)
        .position(|window| window == b"precious")
        .unwrap();
    archive[at] = b'P';
    refused(&archive, "entry 'bad' is corrupt: Invalid checksum").await;
}

/// Whatever one byte of an archive becomes, the answer is a refusal or a sound tree, never a
/// trace outside and never a panic.
#[tokio::test]
async fn no_single_changed_byte_does_harm() {
    let archive = zip_with(|archive| {
        archive.start_file("d/file", options()).unwrap();
        archive.write_all(b"content").unwrap();
        archive.add_symlink("link", "d/file", options()).unwrap();
        archive.add_directory("empty", options()).unwrap();
    });
    for position in 0..archive.len() {
        let mut changed = archive.clone();
        changed[position] ^= 0xff;
        let root = tempfile::tempdir().unwrap();
        let destination = root.path().join("in");
        let result = upload(&destination, "x.zip", Unpack, &changed).await;
        if result.is_err() {
            assert_eq!(snapshot(root.path()), Snapshot::new(), "byte {position}");
        } else {
            let names: Vec<String> = snapshot(root.path()).into_keys().collect();
            let inside = |name: &String| name == "in" || name.starts_with("in/");
            assert!(names.iter().all(inside), "byte {position}: {names:?}");
        }
    }
}
