//! Reads a tar archive entry by entry: ustar, GNU and PAX.
//!
//! The loop over the blocks is our own because the library's reads long names and PAX records
//! into memory whatever their size; the fields of a header are read by the library.

use std::io::{self, Read};

use tar::{EntryType, Header};

use super::failure::{Refusal, UnpackError};
use crate::limits::Budget;

/// Everything in a tar archive comes in blocks of this size.
const BLOCK_BYTES: u64 = 512;
/// Longest extension record: a long name, or the PAX records of one entry. Attributes of files
/// travel in them as well, and those may be 64 KiB each.
const EXTENSION_BYTES_MAX: u64 = 1024 * 1024;
/// The largest size that a plain header can say; only beyond it may PAX say another one.
const PLAIN_SIZE_MAX: u64 = 0o77_777_777_777;

/// Where an archive comes from.
pub(crate) trait Source: Read {
    /// Leaves bytes out, all of them or with an error.
    fn skip(&mut self, bytes: u64) -> io::Result<()>
    where
        Self: Sized,
    {
        let skipped = io::copy(&mut self.by_ref().take(bytes), &mut io::sink())?;
        if skipped == bytes {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// One entry, without what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: EntryKind,
    /// The target of a link.
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    /// Seconds since 1970.
    pub(crate) modified: u64,
    pub(crate) size: u64,
    /// Where in the archive its content begins.
    pub(crate) offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// A device or a pipe.
    Special,
}

/// An archive that is read from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Archive<'a, R> {
    source: R,
    budget: &'a Budget,
    position: u64,
    /// What is left of the content of the present entry.
    content: u64,
    padding: u64,
}

impl<'a, R: Source> Archive<'a, R> {
    pub(crate) fn new(source: R, budget: &'a Budget) -> Self {
        Self {
            source,
            budget,
            position: 0,
            content: 0,
            padding: 0,
        }
    }

    /// The next entry; nothing at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, UnpackError> {
        let mut extensions = Extensions::default();
        loop {
            self.leave()?;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            // Extension records count as entries too, or an archive could consist of them.
            self.budget.charge_entries(1)?;
            match header.entry_type() {
                EntryType::GNULongName => extensions.name = Some(self.long_name(&header)?),
                EntryType::GNULongLink => extensions.link = Some(self.long_name(&header)?),
                EntryType::XHeader => {
                    let records = self.extension(&header)?;
                    extensions.read_pax(&records)?;
                }
                EntryType::XGlobalHeader => drop(self.extension(&header)?),
                _ => return self.entry(&header, extensions).map(Some),
            }
        }
    }

    /// What is in the present entry.
    pub(crate) fn content(&mut self) -> Content<'_, 'a, R> {
        Content(self)
    }

    /// Reads what follows the end marker. There may only be padding: anything else would be
    /// seen by other tools and not by us.
    pub(crate) fn finish(mut self) -> Result<(), UnpackError> {
        let mut block = [0; 4096];
        loop {
            match self.source.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(read) if block.iter().take(read).all(|byte| *byte == 0) => {}
                Ok(_) => return Err(damaged("it goes on after its end")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(UnpackError::reading(error)),
            }
        }
    }

    /// Passes what was not read of the present entry.
    fn leave(&mut self) -> Result<(), UnpackError> {
        let left = self.content.saturating_add(self.padding);
        self.source.skip(left).map_err(cut_short)?;
        self.position = self.position.saturating_add(left);
        (self.content, self.padding) = (0, 0);
        Ok(())
    }

    /// The next header; nothing at the end marker, and also nothing where the archive just ends,
    /// as some tools leave the marker out.
    fn header(&mut self) -> Result<Option<Header>, UnpackError> {
        let mut header = Header::new_old();
        let is_there = self.fill(header.as_mut_bytes())?;
        let bytes = header.as_bytes();
        if !is_there || bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        // The checksum counts its own eight bytes as spaces.
        let sum = |range: &[u8]| range.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let (head, rest) = bytes.split_at(148);
        let (_, tail) = rest.split_at(8);
        match header.cksum() {
            Ok(expected) if expected == sum(head) + 8 * 32 + sum(tail) => Ok(Some(header)),
            _ => Err(damaged("a header does not match its checksum")),
        }
    }

    /// Fills a block; false when there is nothing at all any more.
    fn fill(&mut self, block: &mut [u8]) -> Result<bool, UnpackError> {
        let mut filled = 0;
        while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.source.read(rest) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(damaged("it is cut short")),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(UnpackError::reading(error)),
            }
        }
        self.position = self.position.saturating_add(filled as u64);
        Ok(true)
    }

    fn entry(&mut self, header: &Header, extensions: Extensions) -> Result<Entry, UnpackError> {
        let name = extensions.name;
        let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
        let refuse = |why| Err(UnpackError::refused(&name, why));
        let kind = match header.entry_type() {
            // Before there were directories in headers, a slash told them.
            EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => {
                EntryKind::Directory
            }
            EntryType::Regular | EntryType::Continuous => EntryKind::File,
            EntryType::Directory => EntryKind::Directory,
            EntryType::Symlink => EntryKind::Symlink,
            EntryType::Link => EntryKind::HardLink,
            EntryType::Char | EntryType::Block | EntryType::Fifo => EntryKind::Special,
            EntryType::GNUSparse => return refuse(Refusal::Sparse),
            _ => return refuse(Refusal::UnknownKind),
        };
        if extensions.is_sparse {
            return refuse(Refusal::Sparse);
        }
        let plain_size = header.entry_size().map_err(|_| bad_number())?;
        let size = extensions.size.unwrap_or(plain_size);
        if size != plain_size && size <= PLAIN_SIZE_MAX {
            return refuse(Refusal::TwoSizes);
        }
        let link = extensions.link;
        let link = link.or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
        self.enter(size)?;
        Ok(Entry {
            name,
            kind,
            link: link.unwrap_or_default(),
            mode: header.mode().map_err(|_| bad_number())?,
            modified: header.mtime().unwrap_or(0),
            size,
            offset: self.position,
        })
    }

    fn enter(&mut self, size: u64) -> Result<(), UnpackError> {
        let whole = size.checked_next_multiple_of(BLOCK_BYTES);
        self.padding = whole.ok_or_else(bad_number)? - size;
        self.content = size;
        Ok(())
    }

    /// The content of an extension record, which is small.
    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, UnpackError> {
        let size = header.entry_size().map_err(|_| bad_number())?;
        if size > EXTENSION_BYTES_MAX {
            return Err(damaged("an extension record is too long"));
        }
        self.enter(size)?;
        let mut content = Vec::new();
        let read = self.content().read_to_end(&mut content);
        read.map_err(cut_short)?;
        Ok(content)
    }

    /// A GNU long name, which is closed by a null byte.
    fn long_name(&mut self, header: &Header) -> Result<Vec<u8>, UnpackError> {
        let mut name = self.extension(header)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }
}

/// What is in one entry; an archive that ends before it does is an error.
pub(crate) struct Content<'b, 'a, R>(&'b mut Archive<'a, R>);

impl<R: Source> Read for Content<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let archive = &mut *self.0;
        let wanted = usize::try_from(archive.content).unwrap_or(usize::MAX);
        let wanted = wanted.min(buffer.len());
        let Some(buffer) = buffer.get_mut(..wanted).filter(|buffer| !buffer.is_empty()) else {
            return Ok(0);
        };
        match archive.source.read(buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                archive.content = archive.content.saturating_sub(read as u64);
                archive.position = archive.position.saturating_add(read as u64);
                Ok(read)
            }
        }
    }
}

/// What extension records say about the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
struct Extensions {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
}

impl Extensions {
    /// Reads records of the form `LENGTH KEY=VALUE\n`, where the length counts all of it.
    fn read_pax(&mut self, mut records: &[u8]) -> Result<(), UnpackError> {
        while !records.is_empty() {
            let (key, value, rest) = pax_record(records).ok_or(damaged("a PAX record is wrong"))?;
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => self.size = Some(decimal(value).ok_or_else(bad_number)?),
                _ if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
            records = rest;
        }
        Ok(())
    }
}

/// The key and the value of the first record, and what follows it.
fn pax_record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().position(|byte| *byte == b' ')?;
    let length = decimal(records.get(..space)?)?;
    let (record, rest) = records.split_at_checked(usize::try_from(length).ok()?)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    Some((record.get(..equals)?, record.get(equals + 1..)?, rest))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn damaged(problem: &'static str) -> UnpackError {
    UnpackError::Damaged { problem }
}

fn bad_number() -> UnpackError {
    damaged("a header has a number that is none")
}

/// An end where content should be is the archive's fault, anything else the disk's.
pub(super) fn cut_short(error: io::Error) -> UnpackError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it is cut short"),
        _ => UnpackError::reading(error),
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
