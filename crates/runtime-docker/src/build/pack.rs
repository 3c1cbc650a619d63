//! The archive that the Engine gets: kept in a file without a name while its parts are checked
//! and counted, so that nothing is sent before all of it is known, and what is sent is what was
//! looked at.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::BuildError;

/// What a build context may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// Bytes in all files together.
    pub bytes: u64,
    /// Files, directories and links.
    pub entries: usize,
}

impl ContextLimits {
    /// Enough for the largest source trees; a context with more is a mistake or an attack.
    pub const fn usual() -> Self {
        Self {
            bytes: 4 * 1024 * 1024 * 1024,
            entries: 500_000,
        }
    }
}

/// The largest Dockerfile that is read.
pub(super) const DOCKERFILE_BYTES_MAX: u64 = 1024 * 1024;

/// What all entries have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    /// In seconds of the clock.
    pub(super) modified: u64,
}

/// An archive that is being filled.
pub(super) struct Packer {
    archive: tar::Builder<BufWriter<File>>,
    limits: ContextLimits,
    entries: usize,
    bytes: u64,
    left_out: usize,
    hash: Sha256,
}

/// A whole archive.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) file: File,
    /// The length of the archive.
    pub(super) length: u64,
    /// Devices, pipes and sockets, which no image can get from a context.
    pub(super) left_out: usize,
}

impl Packer {
    /// The archive lies in `directory`, which must be on a disk with room for it.
    pub(super) fn new(directory: &Path, limits: ContextLimits) -> Result<Self, BuildError> {
        let file = tempfile::tempfile_in(directory).map_err(BuildError::Keep)?;
        Ok(Self {
            archive: tar::Builder::new(BufWriter::new(file)),
            limits,
            entries: 0,
            bytes: 0,
            left_out: 0,
            hash: Sha256::new(),
        })
    }

    pub(super) fn directory(
        &mut self,
        path: &Path,
        attributes: Attributes,
    ) -> Result<(), BuildError> {
        self.count(path, b'd', attributes)?;
        let mut header = header(tar::EntryType::Directory, attributes, 0);
        let added = self.archive.append_data(&mut header, path, io::empty());
        added.map_err(BuildError::Keep)
    }

    /// A link is kept as it is. Where it leads is found out by the Engine, which takes the
    /// context for the whole world.
    pub(super) fn link(
        &mut self,
        path: &Path,
        target: &Path,
        attributes: Attributes,
    ) -> Result<(), BuildError> {
        self.count(path, b'l', attributes)?;
        self.measured(target.as_os_str().as_encoded_bytes());
        let mut header = header(tar::EntryType::Symlink, attributes, 0);
        let added = self.archive.append_link(&mut header, path, target);
        added.map_err(BuildError::Keep)
    }

    /// Another name of a file that is in the archive already.
    pub(super) fn second_name(
        &mut self,
        path: &Path,
        target: &Path,
        attributes: Attributes,
    ) -> Result<(), BuildError> {
        self.count(path, b'h', attributes)?;
        self.measured(target.as_os_str().as_encoded_bytes());
        let mut header = header(tar::EntryType::Link, attributes, 0);
        let added = self.archive.append_link(&mut header, path, target);
        added.map_err(BuildError::Keep)
    }

    /// Takes exactly `length` bytes; a file that became shorter meanwhile is an error.
    pub(super) fn file(
        &mut self,
        path: &Path,
        attributes: Attributes,
        length: u64,
        content: impl Read,
    ) -> Result<(), BuildError> {
        self.count(path, b'f', attributes)?;
        self.bytes = self.bytes.saturating_add(length);
        if self.bytes > self.limits.bytes {
            let limit = self.limits.bytes;
            return Err(BuildError::context(format!(
                "it has more than {limit} bytes"
            )));
        }
        self.hash.update(length.to_le_bytes());
        let read = Hashing {
            content: content.take(length),
            hash: &mut self.hash,
            left: length,
        };
        let mut header = header(tar::EntryType::Regular, attributes, length);
        let added = self.archive.append_data(&mut header, path, read);
        added.map_err(|source| BuildError::Read {
            path: path.to_owned(),
            source,
        })
    }

    /// A text of our own.
    pub(super) fn text(&mut self, path: &Path, text: &str) -> Result<(), BuildError> {
        let attributes = Attributes {
            mode: 0o644,
            modified: 0,
        };
        self.file(path, attributes, text.len() as u64, text.as_bytes())
    }

    /// The hash of what is in it now: of names, kinds, rights and contents, and of nothing else.
    pub(super) fn hash_so_far(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }

    /// Counts something that cannot be in an image.
    pub(super) fn leave_out(&mut self) {
        self.left_out += 1;
    }

    pub(super) fn finish(self) -> Result<Packed, BuildError> {
        let finished = self.archive.into_inner().and_then(|mut buffered| {
            buffered.flush()?;
            buffered
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
        });
        let measured = finished.and_then(|mut file| {
            let length = file.stream_position()?;
            file.seek(SeekFrom::Start(0))?;
            Ok((file, length))
        });
        let (file, length) = measured.map_err(BuildError::Keep)?;
        Ok(Packed {
            file,
            length,
            left_out: self.left_out,
        })
    }

    fn count(&mut self, path: &Path, kind: u8, attributes: Attributes) -> Result<(), BuildError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            let limit = self.limits.entries;
            return Err(BuildError::context(format!(
                "it has more than {limit} entries"
            )));
        }
        self.hash.update([kind]);
        self.measured(path.as_os_str().as_encoded_bytes());
        self.hash.update((attributes.mode & 0o777).to_le_bytes());
        Ok(())
    }

    /// Two lists of parts never have the same hash because one ends where the other goes on.
    fn measured(&mut self, bytes: &[u8]) {
        self.hash.update((bytes.len() as u64).to_le_bytes());
        self.hash.update(bytes);
    }
}

/// Reads along for the hash, and insists on all that was announced.
struct Hashing<'a, R> {
    content: R,
    hash: &'a mut Sha256,
    left: u64,
}

impl<R: Read> Read for Hashing<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        if count == 0 && self.left > 0 && !buffer.is_empty() {
            let reason = "it became shorter while it was read";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        self.left = self.left.saturating_sub(count as u64);
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// All belongs to root, as in every context that the docker command sends.
fn header(kind: tar::EntryType, attributes: Attributes, length: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(attributes.mode & 0o7777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(attributes.modified);
    header.set_size(length);
    header
}

/// The text of a Dockerfile, of which no more than a bound is read.
pub(super) fn dockerfile_text(path: &Path, content: impl Read) -> Result<String, BuildError> {
    let mut bytes = Vec::new();
    let read = content
        .take(DOCKERFILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes);
    read.map_err(|source| BuildError::Read {
        path: PathBuf::from(path),
        source,
    })?;
    if bytes.len() as u64 > DOCKERFILE_BYTES_MAX {
        let reason = format!("it has more than {DOCKERFILE_BYTES_MAX} bytes");
        return Err(BuildError::dockerfile(reason));
    }
    String::from_utf8(bytes).map_err(|_| BuildError::dockerfile("it is not a text"))
}
