//! The parts of an image, by name, from a directory or out of an archive.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    os::{fd::OwnedFd, unix::fs::FileExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

use crate::{
    error::{DocumentProblem, ImageError},
    limits::{Budget, DOCUMENT_BYTES_MAX},
    unpack::{Archive, EntryKind, Source, UnpackError},
};

/// How many links from name to name an archive may need. Old archives have one for a layer that
/// two images share.
const LINKS_MAX: usize = 8;

/// Where the parts of an image are.
#[derive(Debug)]
pub(crate) struct Blobs {
    path: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Directory(OwnedFd),
    Archive {
        file: File,
        index: HashMap<String, Located>,
    },
}

#[derive(Clone, Debug)]
enum Located {
    At { offset: u64, bytes: u64 },
    Link(String),
}

/// A stretch of a file. Readers of the same file do not disturb each other.
#[derive(Debug)]
pub(crate) struct Section {
    file: File,
    offset: u64,
    left: u64,
}

impl Section {
    /// All of a regular file.
    pub(crate) fn whole(file: File) -> io::Result<Self> {
        let left = file.metadata()?.len();
        let offset = 0;
        Ok(Self { file, offset, left })
    }

    /// Bytes that are left to read.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.left
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX);
        let wanted = wanted.min(buffer.len());
        let Some(buffer) = buffer.get_mut(..wanted) else {
            return Ok(0);
        };
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset = self.offset.saturating_add(read as u64);
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

impl Source for Section {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        self.offset = self.offset.saturating_add(bytes);
        Ok(())
    }
}

impl Blobs {
    pub(crate) fn in_directory(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, path, flags, Mode::empty())?;
        Ok(Self {
            path: path.to_owned(),
            place: Place::Directory(directory),
        })
    }

    /// Looks through an archive that is not compressed and notes where everything is.
    pub(crate) fn in_archive(
        path: &Path,
        file: File,
        budget: &Budget,
    ) -> Result<Self, UnpackError> {
        let section = file.try_clone().and_then(Section::whole);
        let section = section.map_err(|source| UnpackError::Read { source })?;
        let mut archive = Archive::new(section, budget);
        let mut index = HashMap::new();
        while let Some(entry) = archive.next()? {
            let Some(name) = normal(&entry.name) else {
                continue;
            };
            let located = match entry.kind {
                EntryKind::File => Some(Located::At {
                    offset: entry.offset,
                    bytes: entry.size,
                }),
                // A link that leads out of the archive leads nowhere.
                EntryKind::Symlink => link_target(&name, &entry.link).map(Located::Link),
                EntryKind::HardLink => normal(&entry.link).map(Located::Link),
                EntryKind::Directory | EntryKind::Special => None,
            };
            index.extend(located.map(|located| (name, located)));
        }
        let path = path.to_owned();
        let place = Place::Archive { file, index };
        Ok(Self { path, place })
    }

    /// Where the image comes from, for errors.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a part; nothing when there is none of that name.
    pub(crate) fn open(&self, name: &str) -> Result<Option<Section>, ImageError> {
        let opened = match &self.place {
            Place::Directory(directory) => open_beneath(directory, name),
            Place::Archive { file, index } => open_inside(file, index, name),
        };
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|source| ImageError::Read {
                path: self.path.join(name),
                source,
            }),
        }
    }

    /// Reads a part that is a small text; nothing when there is none of that name.
    pub(crate) fn read_document(
        &self,
        name: &str,
        document: &'static str,
    ) -> Result<Option<Vec<u8>>, ImageError> {
        let Some(section) = self.open(name)? else {
            return Ok(None);
        };
        if section.left_bytes() > DOCUMENT_BYTES_MAX {
            let max = DOCUMENT_BYTES_MAX;
            let source = DocumentProblem::TooLong { max };
            return Err(ImageError::BadDocument { document, source });
        }
        let mut text = Vec::new();
        let read = section.take(DOCUMENT_BYTES_MAX).read_to_end(&mut text);
        read.map_err(|source| ImageError::Read {
            path: self.path.join(name),
            source,
        })?;
        Ok(Some(text))
    }
}

/// Links are followed as long as they stay inside, and only files are opened (FA-3).
fn open_beneath(directory: &OwnedFd, name: &str) -> io::Result<Section> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(directory, name, flags, Mode::empty(), resolve)?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Section::whole(File::from(file))
}

fn open_inside(file: &File, index: &HashMap<String, Located>, name: &str) -> io::Result<Section> {
    let mut name = normal(name.as_bytes()).unwrap_or_default();
    for _ in 0..=LINKS_MAX {
        match index.get(&name).ok_or(io::ErrorKind::NotFound)? {
            Located::Link(target) => name.clone_from(target),
            Located::At { offset, bytes } => {
                return Ok(Section {
                    file: file.try_clone()?,
                    offset: *offset,
                    left: *bytes,
                });
            }
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// One spelling for a name in an archive; nothing for the root and for what no image needs.
fn normal(name: &[u8]) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in std::str::from_utf8(name).ok()?.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Where a relative link leads, by its text alone: in an archive there is nothing to follow.
fn link_target(name: &str, target: &[u8]) -> Option<String> {
    let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
    let target = std::str::from_utf8(target).ok()?;
    normal(format!("{directory}/{target}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_an_archive_leads_to_a_name_in_it() {
        let check = |name, target: &str, expected: Option<&str>| {
            assert_eq!(link_target(name, target.as_bytes()).as_deref(), expected);
        };
        check("a/layer.tar", "../b/layer.tar", Some("b/layer.tar"));
        check("a", "b", Some("b"));
        check("a/b", "../../c", None);
    }

    #[test]
    fn a_part_of_a_directory_is_not_read_from_outside_of_it_fa_1() {
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        std::fs::write(inside.join("part"), "p").unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("leads-out")).unwrap();
        std::os::unix::fs::symlink("part", inside.join("stays")).unwrap();
        let blobs = Blobs::in_directory(&inside).unwrap();
        let read = |name| blobs.read_document(name, "part").ok().flatten();
        assert_eq!(read("part").as_deref(), Some(&b"p"[..]));
        assert_eq!(read("stays").as_deref(), Some(&b"p"[..]));
        for name in ["leads-out", "../secret", "/etc/hostname", ".", "missing"] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
