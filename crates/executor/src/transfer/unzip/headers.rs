//! Whether a reader that goes from one entry to the next sees what the central directory lists.
//!
//! Each entry has a header of its own in front of its content. The directory's name and that header's must
//! be the same, and so must a name in an extra field that some readers prefer. The entries must follow one
//! another from the first byte to the directory: an entry between them that the directory does not list
//! would exist for some readers only.

use std::io::{self, Read, Seek, SeekFrom};

use zip::read::ZipFileEntry;

/// What stands in front of the name in an entry's own header, and in its directory's.
const LOCAL_BYTES: usize = 30;
const CENTRAL_BYTES: usize = 46;

/// The extra field of a name in UTF-8: a version, a checksum of the other name, the name.
const UNICODE_PATH: u16 = 0x7075;
const UNICODE_PATH_HEAD_BYTES: usize = 5;

/// The flag of an entry whose content is encrypted.
const ENCRYPTED: u16 = 1;

/// The flag of an entry that repeats its checksum and sizes behind its content, and the signature that
/// may stand in front of them.
const HAS_DESCRIPTOR: u16 = 1 << 3;
const DESCRIPTOR_SIGNATURE: &[u8] = b"PK\x07\x08";

/// Why an entry is refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// Its own header has another name.
    Name,
    /// Its own header tells something else of its content.
    Content,
    /// An extra field has another name.
    SecondName,
    Unreadable(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// Where the entries of an archive are.
#[derive(Debug, Default)]
pub(super) struct Headers {
    spans: Vec<Span>,
    directory: Option<u64>,
}

/// An entry's header and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u64,
    end: u64,
    /// The checksum that is repeated behind it.
    descriptor: Option<u32>,
}

/// A header as it is written.
#[derive(Debug)]
struct Header<const N: usize> {
    fixed: [u8; N],
    name: Vec<u8>,
    extra: Vec<u8>,
}

impl Headers {
    /// Notes the next entry of the directory, after a look at both of its headers.
    pub(super) fn add(
        &mut self,
        entry: &ZipFileEntry<'_>,
        reader: &mut (impl Read + Seek),
    ) -> Result<(), Refused> {
        let start = entry.header_start();
        let local = Header::<LOCAL_BYTES>::read(reader, start, 26)?;
        let central = Header::<CENTRAL_BYTES>::read(reader, entry.central_header_start(), 28)?;
        if local.name != central.name || local.name != entry.name_raw() {
            return Err(Refused::Name);
        }
        for extra in [&local.extra, &central.extra] {
            let mut others = unicode_paths(extra);
            if others.any(|other| skeleton(other) != skeleton(&local.name)) {
                return Err(Refused::SecondName);
            }
        }
        let flags = u16::from_le_bytes([local.fixed[6], local.fixed[7]]);
        // Readers of streams go by the local header alone. One that waits for a descriptor may leave the size out,
        // and one of more than 4 GiB has it elsewhere.
        let size = u32::from_le_bytes([18, 19, 20, 21].map(|at| local.fixed[at]));
        let is_told = size != u32::MAX && (flags & HAS_DESCRIPTOR == 0 || size != 0);
        let others = u16::from_le_bytes([central.fixed[8], central.fixed[9]]);
        let is_read_alike = (flags ^ others) & (ENCRYPTED | HAS_DESCRIPTOR) == 0
            && local.fixed[8..10] == central.fixed[10..12];
        if !is_read_alike || is_told && u64::from(size) != entry.compressed_size() {
            return Err(Refused::Content);
        }
        let length = LOCAL_BYTES + local.name.len() + local.extra.len();
        self.directory.get_or_insert(entry.central_header_start());
        self.spans.push(Span {
            start,
            end: (start + length as u64).saturating_add(entry.compressed_size()),
            descriptor: (flags & HAS_DESCRIPTOR != 0).then(|| entry.crc32()),
        });
        Ok(())
    }

    /// Refuses an archive in which anything stands before, between or behind its entries.
    pub(super) fn leave_nothing_out(mut self, reader: &mut (impl Read + Seek)) -> io::Result<()> {
        self.spans.sort_unstable();
        let mut reached = 0;
        let directory = self.directory.unwrap_or(0);
        let starts = self.spans.iter().map(|span| span.start).skip(1);
        for (span, next) in self.spans.iter().zip(starts.chain([directory])) {
            if span.start != reached {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let gap = next.checked_sub(span.end);
            let gap = gap.ok_or(io::ErrorKind::InvalidData)?;
            if gap > 0 {
                span.check_descriptor(gap, reader)?;
            }
            reached = next;
        }
        Ok(())
    }
}

impl Span {
    /// Refuses what follows unless it is the entry's checksum and sizes, with or without a signature, and
    /// of four or eight bytes for each size.
    fn check_descriptor(&self, length: u64, reader: &mut (impl Read + Seek)) -> io::Result<()> {
        let mut bytes = [0; 24];
        let is_signed = matches!(length, 16 | 24);
        let found = match length {
            12 | 16 | 20 | 24 => bytes.get_mut(..usize::try_from(length).unwrap_or(0)),
            _ => None,
        };
        let found = found.ok_or(io::ErrorKind::InvalidData)?;
        reader.seek(SeekFrom::Start(self.end))?;
        reader.read_exact(found)?;
        let unsigned = match is_signed {
            true => found.strip_prefix(DESCRIPTOR_SIGNATURE),
            false => Some(&*found),
        };
        let checksum = self.descriptor.map(u32::to_le_bytes);
        match unsigned.zip(checksum) {
            Some((rest, checksum)) if rest.starts_with(&checksum) => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl<const N: usize> Header<N> {
    /// Reads one whose lengths of name and extra fields are at this place in it.
    fn read(reader: &mut (impl Read + Seek), start: u64, lengths: usize) -> io::Result<Self> {
        reader.seek(SeekFrom::Start(start))?;
        let mut fixed = [0; N];
        reader.read_exact(&mut fixed)?;
        let length = |at: usize| usize::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
        let mut name = vec![0; length(lengths)];
        reader.read_exact(&mut name)?;
        let mut extra = vec![0; length(lengths + 2)];
        reader.read_exact(&mut extra)?;
        Ok(Self { fixed, name, extra })
    }
}

/// The names among the extra fields.
fn unicode_paths(mut fields: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        while let [kind, also_kind, length, also_length, rest @ ..] = fields {
            let length = usize::from(u16::from_le_bytes([*length, *also_length]));
            let (field, rest) = rest.split_at_checked(length)?;
            fields = rest;
            if u16::from_le_bytes([*kind, *also_kind]) == UNICODE_PATH {
                return Some(field.get(UNICODE_PATH_HEAD_BYTES..).unwrap_or_default());
            }
        }
        None
    })
}

/// A name with one mark for each run of letters beyond ASCII, which the two names write differently.
fn skeleton(name: &[u8]) -> Vec<u8> {
    let mut skeleton: Vec<u8> = name.iter().map(|byte| (*byte).min(0x80)).collect();
    skeleton.dedup_by(|next, before| (*next, *before) == (0x80, 0x80));
    skeleton
}
