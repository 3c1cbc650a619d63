//! What is read from archives, and where reading ends.

use super::*;
use crate::{fixture::Tar, limits::Limits};

impl Source for &[u8] {}

fn pax(records: &[u8]) -> Option<Extensions> {
    let mut extensions = Extensions::default();
    extensions.read_pax(records).ok()?;
    Some(extensions)
}

fn names(archive: &[u8]) -> Result<Vec<Vec<u8>>, UnpackError> {
    let budget = Budget::new(Limits::STANDARD);
    let mut archive = Archive::new(archive, &budget);
    let mut names = Vec::new();
    while let Some(entry) = archive.next()? {
        names.push(entry.name);
    }
    archive.finish()?;
    Ok(names)
}

#[test]
fn pax_records_are_read_by_their_length() {
    let expected = Extensions {
        name: Some(b"a\nb=c".to_vec()),
        link: Some(b"t".to_vec()),
        size: Some(12),
        is_sparse: false,
    };
    let read = pax(b"14 path=a\nb=c\n14 linkpath=t\n11 size=12\n9 mtime=\n");
    assert_eq!(read, Some(expected));
}

#[test]
fn malformed_pax_records_are_refused() {
    let records: [&[u8]; 7] = [
        b"path=a",
        b"99 path=a\n",
        b"8 path=a\n",
        b"0 path=a\n",
        b"1 path=a\n",
        b"11 nothing\n",
        b"11 size=-1\n",
    ];
    for record in records {
        assert_eq!(pax(record), None, "{record:?}");
    }
}

#[test]
fn long_names_and_pax_names_win_over_the_header() {
    let long = "d/".repeat(80) + "f";
    let tar = Tar::default()
        .file(&long, "x")
        .entry(EntryType::XHeader, b"pax", b"", 0, b"10 path=p\n")
        .file("ignored", "y")
        .file("plain", "z");
    let expected = vec![long.into_bytes(), b"p".to_vec(), b"plain".to_vec()];
    assert_eq!(names(&tar.finish()).unwrap(), expected);
}

#[test]
fn content_begins_where_the_entry_says() {
    let tar = Tar::default()
        .file("a", "12345")
        .file("b", "needle")
        .finish();
    let budget = Budget::new(Limits::STANDARD);
    let mut archive = Archive::new(&tar[..], &budget);
    archive.next().unwrap();
    let entry = archive.next().unwrap().unwrap();
    let offset = usize::try_from(entry.offset).unwrap();
    assert_eq!(&tar[offset..offset + 6], b"needle");
    assert_eq!(
        (entry.size, entry.mode, entry.modified),
        (6, 0o644, 1_000_000_000)
    );
}

#[test]
fn an_archive_may_end_without_its_marker_but_not_within_an_entry() {
    let whole = Tar::default().file("a", "12345").finish();
    assert!(names(&whole[..1024]).is_ok());
    for length in [1, 511, 513, 516, 1023] {
        let cut = names(&whole[..length]);
        assert!(matches!(cut, Err(UnpackError::Damaged { .. })), "{length}");
    }
}

#[test]
fn what_other_tools_might_see_differently_is_refused_fa_9() {
    let hidden = Tar::default().file("a", "").finish();
    let hidden = Tar::default().raw(&hidden).file("b", "").finish();
    assert!(matches!(names(&hidden), Err(UnpackError::Damaged { .. })));
    let two_sizes = Tar::default()
        .entry(EntryType::XHeader, b"pax", b"", 0, b"10 size=1\n")
        .file("a", "12345");
    let why = match names(&two_sizes.finish()) {
        Err(UnpackError::Refused { why, .. }) => Some(why),
        _ => None,
    };
    assert_eq!(why, Some(Refusal::TwoSizes));
}

#[test]
fn a_header_with_a_wrong_checksum_is_damage() {
    let mut tar = Tar::default().file("a", "12345").finish();
    tar[0] = b'b';
    assert!(matches!(names(&tar), Err(UnpackError::Damaged { .. })));
}

#[test]
fn extension_records_are_bounded_and_counted_g_5() {
    let long = vec![b'a'; usize::try_from(EXTENSION_BYTES_MAX).unwrap() + 1];
    let tar = Tar::default().entry(EntryType::GNULongName, b"l", b"", 0, &long);
    assert!(matches!(
        names(&tar.finish()),
        Err(UnpackError::Damaged { .. })
    ));
    let budget = Budget::new(Limits {
        entries_max: 3,
        ..Limits::STANDARD
    });
    let record = |tar: Tar| tar.entry(EntryType::XGlobalHeader, b"g", b"", 0, b"");
    let tar = record(record(record(record(Tar::default())))).finish();
    let result = Archive::new(&tar[..], &budget).next();
    assert!(matches!(result, Err(UnpackError::Limit(_))));
}
