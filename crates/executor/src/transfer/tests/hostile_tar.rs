//! Tar archives that mean harm. Each is refused with a reason, and nothing of it stays.

use tar::EntryType;
use zareba_wire::{TransferError, Upload, UploadRoom, UploadTreatment::Unpack};

use super::support::{self, *};
use crate::{
    Owner,
    transfer::{Transfers, budget::ArchiveLimits, spool::Format},
};

async fn refused(archive: &[u8], reason: &str) {
    support::refused("x.tar", archive, reason).await;
}

/// A good file before the entry in question, so that there is something to clean up.
async fn refused_entry(entry: Vec<u8>, reason: &str) {
    let good = tar_entry(EntryType::Regular, b"good/file", b"", b"good");
    refused(&tar_of(&[good, entry]), reason).await;
}

#[tokio::test]
async fn what_is_no_tar_is_called_so() {
    for content in [&b""[..], b"not a tar", &[b'x'; 2048]] {
        refused(content, "DEST/x.tar is not a tar file").await;
    }
}

#[tokio::test]
async fn names_that_leave_the_destination_are_refused() {
    let entry = |name: &[u8]| tar_entry(EntryType::Regular, name, b"", b"bad");
    refused_entry(entry(b"../evil"), "entry '../evil' climbs with '..'").await;
    refused_entry(
        entry(b"a/../../evil"),
        "entry 'a/../../evil' climbs with '..'",
    )
    .await;
    refused_entry(
        entry(b"/etc/evil"),
        "entry '/etc/evil' has an absolute path",
    )
    .await;
    refused_entry(entry(b""), "entry '' has no name").await;
}

#[tokio::test]
async fn long_names_are_checked_like_short_ones() {
    let long = [b"../".repeat(60), b"evil\0".to_vec()].concat();
    let archive = [
        tar_entry(EntryType::GNULongName, b"././@LongLink", b"", &long),
        tar_entry(EntryType::Regular, b"short", b"", b"bad"),
    ]
    .concat();
    let shown = format!("entry '{}evil' climbs with '..'", "../".repeat(60));
    refused_entry(archive, &shown).await;
    let archive = [
        tar_entry(EntryType::XHeader, b"pax", b"", b"20 path=/etc/passwd\n"),
        tar_entry(EntryType::Regular, b"short", b"", b"bad"),
    ]
    .concat();
    refused_entry(archive, "entry '/etc/passwd' has an absolute path").await;
    let nul = [
        tar_entry(EntryType::GNULongName, b"././@LongLink", b"", b"a\0b\0"),
        tar_entry(EntryType::Regular, b"short", b"", b"bad"),
    ]
    .concat();
    refused_entry(nul, "entry 'a\\0b' has a null byte in its name").await;
}

#[tokio::test]
async fn links_that_lead_out_are_refused() {
    for target in [&b"/etc/passwd"[..], b"..", b"../../etc", b"good/../.."] {
        let entry = tar_entry(EntryType::Symlink, b"l", target, b"");
        refused_entry(
            entry,
            "entry 'l' is a link that may lead out of the destination",
        )
        .await;
    }
    let outside = tar_entry(EntryType::Link, b"l", b"/etc/passwd", b"");
    refused_entry(outside, "entry '/etc/passwd' has an absolute path").await;
    let climbing = tar_entry(EntryType::Link, b"l", b"../x", b"");
    refused_entry(climbing, "entry '../x' climbs with '..'").await;
    let missing = tar_entry(EntryType::Link, b"l", b"nothing", b"");
    let reason = "entry 'l' is a hard link to something that is not an earlier file of the archive";
    refused_entry(missing, reason).await;
    let directory = tar_entry(EntryType::Link, b"l", b"good", b"");
    refused_entry(directory, reason).await;
}

#[tokio::test]
async fn a_file_is_not_written_through_a_link_of_the_archive() {
    let entries = [
        tar_entry(EntryType::Symlink, b"l", b"good", b""),
        tar_entry(EntryType::Regular, b"l/x", b"", b"bad"),
    ];
    refused_entry(
        entries.concat(),
        "entry 'l' has a name that another entry has taken",
    )
    .await;
}

#[tokio::test]
async fn devices_pipes_and_unknown_kinds_are_refused() {
    for kind in [
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::new(b'Z'),
    ] {
        let entry = tar_entry(kind, b"d", b"", b"");
        refused_entry(entry, "entry 'd' is neither a file, a directory nor a link").await;
    }
}

#[tokio::test]
async fn a_name_that_comes_twice_is_refused() {
    let again = tar_entry(EntryType::Regular, b"./good//file", b"", b"2");
    refused_entry(
        again,
        "entry 'good/file' has a name that another entry has taken",
    )
    .await;
    let below = tar_entry(EntryType::Regular, b"good/file/x", b"", b"2");
    refused_entry(
        below,
        "entry 'good/file/x' has a name that another entry has taken",
    )
    .await;
}

#[tokio::test]
async fn two_sizes_that_differ_are_refused() {
    let entries = [
        tar_entry(EntryType::XHeader, b"pax", b"", b"10 size=0\n"),
        tar_entry(EntryType::Regular, b"f", b"", b"hidden from some"),
    ];
    refused_entry(entries.concat(), "entry 'f' has two sizes that differ").await;
}

/// Some programs apply these to every entry that follows, and others to none.
#[tokio::test]
async fn a_global_record_that_names_entries_is_refused() {
    for record in [
        &b"20 path=/etc/passwd\n"[..],
        b"17 linkpath=../x\n",
        b"10 size=0\n",
    ] {
        let entries = [
            tar_entry(EntryType::XGlobalHeader, b"pax", b"", record),
            tar_entry(EntryType::Regular, b"f", b"", b"content"),
        ];
        let reason = "archive gives all its entries one name or size by a global PAX record";
        refused_entry(entries.concat(), reason).await;
    }
    let root = tempfile::tempdir().unwrap();
    let comment = tar_of(&[
        tar_entry(EntryType::XGlobalHeader, b"pax", b"", b"13 comment=a\n"),
        tar_entry(EntryType::Regular, b"f", b"", b"content"),
    ]);
    upload(root.path(), "x.tar", Unpack, &comment)
        .await
        .unwrap();
    assert_eq!(snapshot(root.path()), tree([("f", file(b"content"))]));
}

/// A short entry can imply as many directories as its path has names.
#[tokio::test]
async fn directories_that_no_entry_names_take_room_ns_16() {
    let long = [b"a/".repeat(127), b"f\0".to_vec()].concat();
    let link = tar_entry(EntryType::GNULongName, b"././@LongLink", b"", &long);
    let kinds = [EntryType::Regular, EntryType::Directory, EntryType::Symlink];
    for kind in kinds {
        let entry = tar_entry(kind, b"short", b"target", b"");
        let archive = tar_of(&[link.clone(), entry]);
        let root = tempfile::tempdir().unwrap();
        let unpack = |files| {
            let destination = root.path().join(format!("{files}"));
            let request = Upload {
                room: Some(UploadRoom {
                    bytes: 16 << 20,
                    files,
                }),
                ..request(&destination, "x.tar", Unpack)
            };
            let body = body([Ok(archive.clone().into())]);
            async move { Transfers::new(Owner::Ourselves).upload(request, body).await }
        };
        let refused = unpack(100).await.unwrap_err();
        assert!(
            matches!(&refused, TransferError::Io { source, .. }
                if source.raw_os_error() == Some(rustix::io::Errno::DQUOT.raw_os_error())),
            "{refused:?}"
        );
        assert_eq!(snapshot(root.path()), Snapshot::new());
        // Two records and the directories above the entry.
        unpack(2 + 127).await.unwrap();
    }
}

#[test]
fn directories_that_no_entry_names_are_capped_as_entries_are() {
    let limits = ArchiveLimits {
        entries: 3,
        bytes: 10,
        ratio: 200,
        ratio_free_bytes: 1 << 20,
    };
    let root = tempfile::tempdir().unwrap();
    let unpack = |name: &[u8]| {
        let archive = tar_of(&[tar_entry(EntryType::Regular, name, b"", b"")]);
        words(unpack_within(&limits, root.path(), Format::Tar, archive))
    };
    assert_eq!(unpack(b"a/b/c/f"), Ok(()));
    let refused = "archive has more than 3 directories".to_owned();
    assert_eq!(unpack(b"d/e/f/g/h"), Err(refused));
}

#[tokio::test]
async fn an_extension_record_without_end_is_refused() {
    let endless = tar_entry(EntryType::GNULongName, b"L", b"", &vec![b'n'; 70_000]);
    refused_entry(
        endless,
        "DEST/x.tar has an extension record of more than 65536 bytes",
    )
    .await;
}

#[tokio::test]
async fn an_archive_that_was_cut_or_extended_is_refused() {
    let entries = [
        tar_entry(EntryType::Regular, b"a", b"", b"x"),
        tar_entry(EntryType::Regular, b"b", b"", b"y"),
    ];
    let whole = entries.concat();
    refused(&whole, "DEST/x.tar is corrupt: it is cut short").await;
    refused(&whole[..1024 + 512], "entry 'b' is cut short").await;
    refused(
        &whole[..1024 + 513],
        "DEST/x.tar is corrupt: it is cut short",
    )
    .await;
    refused(
        &whole[..1024 + 100],
        "DEST/x.tar is corrupt: it is cut short",
    )
    .await;
    let mut extended = tar_of(&entries);
    extended.extend_from_slice(b"garbage");
    refused(&extended, "DEST/x.tar has something after its end").await;
    let mut corrupt = tar_of(&entries);
    corrupt[1024] = b'X';
    refused(&corrupt, "DEST/x.tar has a corrupt header").await;
}

#[test]
fn the_caps_hold_at_their_limit_and_not_past_it() {
    let limits = ArchiveLimits {
        entries: 2,
        bytes: 10,
        ratio: 200,
        ratio_free_bytes: 1 << 20,
    };
    let root = tempfile::tempdir().unwrap();
    let unpack = |files: &[(&str, &[u8])]| {
        let entries: Vec<Vec<u8>> = files
            .iter()
            .map(|(name, content)| tar_entry(EntryType::Regular, name.as_bytes(), b"", content))
            .collect();
        unpack_within(&limits, root.path(), Format::Tar, tar_of(&entries))
    };
    unpack(&[("a", b"12345"), ("b", b"67890")]).unwrap();
    assert_eq!(
        words(unpack(&[("c", b""), ("d", b""), ("e", b"")])),
        Err("archive has more than 2 entries".to_owned())
    );
    assert_eq!(
        words(unpack(&[("c", b"12345"), ("d", b"678901")])),
        Err("archive unpacks to more than 10 bytes".to_owned())
    );
    assert_eq!(
        snapshot(root.path()),
        tree([("a", file(b"12345")), ("b", file(b"67890"))])
    );
}

#[tokio::test]
async fn no_single_changed_byte_does_harm() {
    let archive = tar_of(&[
        tar_entry(EntryType::Regular, b"d/file", b"", b"content"),
        tar_entry(EntryType::Symlink, b"link", b"d/file", b""),
    ]);
    for position in
        (0..archive.len()).filter(|position| archive[*position] != 0 || position % 16 == 0)
    {
        let mut changed = archive.clone();
        changed[position] ^= 0xff;
        let root = tempfile::tempdir().unwrap();
        let result = upload(&root.path().join("in"), "x.tar", Unpack, &changed).await;
        if result.is_err() {
            assert_eq!(snapshot(root.path()), Snapshot::new(), "byte {position}");
        }
    }
}
