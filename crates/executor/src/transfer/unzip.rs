//! Reads an uploaded zip archive, entry by entry.
//!
//! The central directory decides, and it is read as it goes: memory takes a few bytes for each
//! entry. An archive that a reader of the headers in front of the entries would see differently is
//! refused (`unzip/headers.rs`), since that reader would unpack, or check, something else. The library
//! calls its reader unstable, which is why the workspace pins its exact version.

mod headers;

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use rustix::fs::FileType;
use zareba_wire::TransferError;
use zip::{
    read::{ArchiveOffset, Config, ZipFile, ZipFileEntry, ZipReadOptions},
    result::{ZipError, ZipResult},
    unstable::read::ZipIterable,
};

use self::headers::{Headers, Refused};
use super::{
    budget::Budget,
    entry_path::{EntryPath, PATH_BYTES_MAX},
    failure::{bad_archive, bad_entry},
    staging::Staging,
};

/// Mode of files for which the archive names none.
const FILE_MODE: u32 = 0o644;
/// Mode of directories for which the archive names none.
const DIRECTORY_MODE: u32 = 0o755;
/// The record that ends an archive: its signature and its length without the comment.
const END_SIGNATURE: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
/// The longest comment behind that record.
const COMMENT_BYTES_MAX: usize = 65_535;

/// Unpacks the archive into the staging. `label` is what it is called in the error.
pub(super) fn unzip(
    archive: &File,
    label: &Path,
    mut budget: Budget,
    staging: &mut Staging<'_>,
) -> Result<(), TransferError> {
    let not_a_zip = || bad_archive(format!("{} is not a zip file", label.display()));
    if !ends_as_zip(archive, budget.archive_bytes()).map_err(|_| not_a_zip())? {
        return Err(not_a_zip());
    }
    // The archive begins where the file begins: searching for it would let a hostile file
    // decide how long the search takes.
    let config = Config {
        archive_offset: ArchiveOffset::Known(0),
    };
    let mut archive =
        ZipIterable::try_new(BufReader::new(archive), config).map_err(|_| not_a_zip())?;
    budget.announce(archive.len() as u64)?;
    let entries = archive.files().map_err(|_| not_a_zip())?;
    let mut headers = Headers::default();
    while let Some(entry) = entries.next() {
        budget.charge_entry()?;
        let entry = entry
            .map_err(|error| bad_archive(format!("{} is corrupt: {error}", label.display())))?;
        let kind = Kind::of(&entry)?;
        budget.charge_packed(entry.compressed_size())?;
        check(&mut headers, &entry, entries.reader_mut())?;
        unpack(entry, kind, entries.reader_mut(), &mut budget, staging)?;
    }
    match headers.leave_nothing_out(entries.reader_mut()) {
        Ok(()) => Ok(()),
        Err(_) => Err(bad_archive(format!(
            "{} has something between its entries that its directory does not list",
            label.display()
        ))),
    }
}

/// Compares what the directory says of an entry with the entry's own header.
fn check(
    headers: &mut Headers,
    entry: &ZipFileEntry<'_>,
    reader: &mut BufReader<&File>,
) -> Result<(), TransferError> {
    let name = entry.name_raw();
    headers.add(entry, reader).map_err(|refused| match refused {
        Refused::Name => bad_entry(name, "has another name in its own header"),
        Refused::Content => bad_entry(name, "has another size or method in its own header"),
        Refused::SecondName => bad_entry(name, "has another name in an extra field"),
        Refused::Unreadable(error) => corrupt(name, &error.into()),
    })
}

/// The last end record's comment reaches exactly to the end of the file: nothing comes after.
fn ends_as_zip(mut archive: &File, length: u64) -> io::Result<bool> {
    let tail_bytes = length.min((END_BYTES + COMMENT_BYTES_MAX) as u64);
    archive.seek(SeekFrom::Start(length - tail_bytes))?;
    let mut tail = Vec::new();
    archive.take(tail_bytes).read_to_end(&mut tail)?;
    let last = tail
        .windows(END_SIGNATURE.len())
        .rposition(|window| window == END_SIGNATURE);
    Ok(last.is_some_and(
        |start| match tail.get(start + END_BYTES - 2..start + END_BYTES) {
            Some(&[low, high]) => {
                start + END_BYTES + usize::from(u16::from_le_bytes([low, high])) == tail.len()
            }
            _ => false,
        },
    ))
}

/// What an entry is, with its mode.
#[derive(Debug)]
enum Kind {
    File(u32),
    Directory(u32),
    Link,
}

impl Kind {
    fn of(entry: &ZipFileEntry<'_>) -> Result<Self, TransferError> {
        let name = entry.name_raw();
        if entry.encrypted() {
            return Err(bad_entry(name, "is encrypted"));
        }
        let mode = entry.unix_mode().unwrap_or(0);
        let kind = FileType::from_raw_mode(mode);
        if name.ends_with(b"/") || kind == FileType::Directory {
            let permissions = if mode & 0o777 == 0 {
                DIRECTORY_MODE
            } else {
                mode
            };
            return Ok(Self::Directory(permissions));
        }
        match kind {
            FileType::Symlink => Ok(Self::Link),
            FileType::RegularFile => {
                Ok(Self::File(if mode & 0o777 == 0 { FILE_MODE } else { mode }))
            }
            // No type bits at all: written by a tool that knows only the permissions, if that.
            FileType::Unknown if mode & 0o170_000 == 0 => {
                Ok(Self::File(if mode & 0o777 == 0 { FILE_MODE } else { mode }))
            }
            _ => Err(bad_entry(name, "is neither a file, a directory nor a link")),
        }
    }
}

fn unpack(
    entry: ZipFileEntry<'static>,
    kind: Kind,
    reader: &mut BufReader<&File>,
    budget: &mut Budget,
    staging: &mut Staging<'_>,
) -> Result<(), TransferError> {
    let name = entry.name_raw().to_vec();
    let path = EntryPath::parse(&name)?;
    match kind {
        Kind::Directory(mode) => staging.add_directory(&path, mode, budget),
        Kind::File(mode) => {
            let mut content = content_of(entry, reader).map_err(|error| corrupt(&name, &error))?;
            staging.add_file(&path, mode, &mut content, budget)
        }
        Kind::Link => {
            let content = content_of(entry, reader).map_err(|error| corrupt(&name, &error))?;
            let mut target = Vec::new();
            content
                .take(PATH_BYTES_MAX as u64 + 1)
                .read_to_end(&mut target)
                .map_err(|error| corrupt(&name, &error.into()))?;
            staging.add_link(path, &target, budget)
        }
    }
}

fn content_of<'a, 'f>(
    entry: ZipFileEntry<'a>,
    reader: &'a mut BufReader<&'f File>,
) -> ZipResult<ZipFile<'a, BufReader<&'f File>>> {
    entry.with_reader(reader, ZipReadOptions::new())
}

fn corrupt(name: &[u8], error: &ZipError) -> TransferError {
    bad_entry(name, format!("is corrupt: {error}"))
}
