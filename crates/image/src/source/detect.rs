//! Finds out what a path holds.

use std::{
    cell::Cell,
    fs::File,
    io::{self, BufReader},
    path::Path,
};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::blobs::{Blobs, Section};
use crate::{
    decode::Decoder,
    error::ImageError,
    limits::{Budget, Counted, Limits, Metered},
    unpack::{Archive, Source, UnpackError},
};

/// What a path holds.
#[derive(Debug)]
pub(crate) enum Found {
    /// An image with its description.
    Image(Blobs),
    /// A bare root file system in an archive.
    RootArchive(Section),
    /// A bare root file system.
    RootDirectory,
}

/// What the entries of an archive that have been seen so far say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guess {
    Undecided,
    Image,
    Root,
}

/// Looks at a path. An image in a compressed archive is written to `spool` without compression,
/// because its parts are needed in another order than they come.
pub(crate) fn detect(path: &Path, spool: &Path, limits: Limits) -> Result<Found, ImageError> {
    let unreadable = |source: io::Error| ImageError::Read {
        path: path.to_owned(),
        source,
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened =
        openat(CWD, path, flags, Mode::empty()).map_err(|error| unreadable(error.into()))?;
    let found = fstat(&opened).map_err(|error| unreadable(error.into()))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => detect_directory(path).map_err(unreadable),
        FileType::RegularFile => detect_file(path, File::from(opened), spool, limits),
        _ => Err(ImageError::NotAnImage {
            path: path.to_owned(),
        }),
    }
}

fn detect_directory(path: &Path) -> io::Result<Found> {
    let has = |name: &str| path.join(name).symlink_metadata().is_ok();
    let is_layout = has("oci-layout") && has("index.json") && has("blobs");
    // A root file system has directories that an unpacked `docker save` does not.
    let is_saved = has("manifest.json") && !["etc", "usr", "bin"].into_iter().any(has);
    if is_layout || is_saved {
        Ok(Found::Image(Blobs::in_directory(path)?))
    } else {
        Ok(Found::RootDirectory)
    }
}

fn detect_file(path: &Path, file: File, spool: &Path, limits: Limits) -> Result<Found, ImageError> {
    let unreadable = |source: io::Error| ImageError::Read {
        path: path.to_owned(),
        source,
    };
    let failed = |error: UnpackError| match error {
        UnpackError::Damaged { .. } => ImageError::NotAnImage {
            path: path.to_owned(),
        },
        UnpackError::Limit(limit) => ImageError::Limit(limit),
        source => ImageError::Unpack {
            layer: path.display().to_string(),
            source,
        },
    };
    // Its own budget: looking is not unpacking.
    let budget = Budget::new(limits);
    let whole = || file.try_clone().and_then(Section::whole);
    let count = Cell::new(0);
    let is_plain = Decoder::new(whole().map_err(unreadable)?).map_err(unreadable)?;
    let is_plain = is_plain.is_plain();
    let guess = with_decoder(whole().map_err(unreadable)?, &budget, &count, |decoded| {
        guess_archive(Archive::new(decoded, &budget))
    });
    match guess.map_err(unreadable)?.map_err(failed)? {
        Guess::Undecided => Err(ImageError::NotAnImage {
            path: path.to_owned(),
        }),
        Guess::Root => Ok(Found::RootArchive(whole().map_err(unreadable)?)),
        Guess::Image => {
            let budget = Budget::new(limits);
            let plain = if is_plain {
                file
            } else {
                let section = Section::whole(file).map_err(unreadable)?;
                write_plain(section, spool, &budget).map_err(|error| {
                    match crate::limits::LimitExceeded::behind(&error) {
                        Some(limit) => ImageError::Limit(limit),
                        None => unreadable(error),
                    }
                })?
            };
            let blobs = Blobs::in_archive(path, plain, &budget).map_err(failed)?;
            Ok(Found::Image(blobs))
        }
    }
}

/// A compressed stream, metered and without compression.
fn with_decoder<T>(
    section: Section,
    budget: &Budget,
    count: &Cell<u64>,
    work: impl FnOnce(&mut BufReader<Metered<'_, Decoder<Counted<'_, Section>>>>) -> T,
) -> io::Result<T> {
    let counted = Counted {
        inner: section,
        count,
        tell: &mut |_| {},
    };
    let metered = Metered::new(Decoder::new(counted)?, budget, count);
    Ok(work(&mut BufReader::new(metered)))
}

fn write_plain(section: Section, spool: &Path, budget: &Budget) -> io::Result<File> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(spool)?;
    let count = Cell::new(0);
    with_decoder(section, budget, &count, |decoded| {
        io::copy(decoded, &mut file)
    })??;
    Ok(file)
}

/// Reads only as far as it takes to be sure; for a root file system that is one entry or two.
fn guess_archive<R: Source>(mut archive: Archive<'_, R>) -> Result<Guess, UnpackError> {
    let mut guess = Guess::Undecided;
    while guess == Guess::Undecided {
        match archive.next()? {
            Some(entry) => guess = guess_entry(&entry.name),
            None => break,
        }
    }
    Ok(guess)
}

fn guess_entry(name: &[u8]) -> Guess {
    let parts = name.split(|byte| *byte == b'/');
    let mut parts = parts.filter(|part| !matches!(*part, b"" | b"."));
    let (first, is_top) = match (parts.next(), parts.next()) {
        (None, _) => return Guess::Undecided,
        (Some(first), second) => (first, second.is_none()),
    };
    match first {
        b"oci-layout" | b"manifest.json" | b"index.json" | b"repositories" if is_top => {
            Guess::Image
        }
        b"blobs" => Guess::Undecided,
        first if is_digest(first) => Guess::Undecided,
        _ => Guess::Root,
    }
}

/// 64 hexadecimal digits, alone or as the stem of a file that `docker save` writes.
fn is_digest(name: &[u8]) -> bool {
    let stem = [&b".json"[..], b".tar"]
        .into_iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    stem.len() == 64 && stem.iter().all(u8::is_ascii_hexdigit)
}
