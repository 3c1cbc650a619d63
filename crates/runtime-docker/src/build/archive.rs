//! An archive from somebody else as a build context. It is packed anew entry by entry, and
//! nothing of it is written to this machine under a name of its own.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, BufReader, Read, Seek as _, SeekFrom},
    path::{Component, Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::{
    BuildError, ContextLimits,
    pack::{Attributes, Packer, dockerfile_text},
};

/// Entries that only say something about the next one hold a name or a few numbers.
const EXTENSION_BYTES_MAX: u64 = 64 * 1024;
/// What an archive may have beside the contents of its files, for each entry.
const HEADERS_BYTES_MAX: u64 = 4096;
/// What a compressed file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Packs what a file holds, and returns the text of its Dockerfile.
pub(super) fn pack(
    file: &mut File,
    dockerfile: &Path,
    limits: ContextLimits,
    packer: &mut Packer,
) -> Result<Option<String>, BuildError> {
    check_extensions(open(file, limits)?)?;
    let mut taking = Taking {
        dockerfile,
        found: None,
        seen: HashMap::new(),
        links: HashSet::new(),
        packer,
    };
    let mut archive = Archive::new(open(file, limits)?);
    for entry in archive.entries().map_err(broken)? {
        taking.entry(entry.map_err(broken)?)?;
    }
    Ok(taking.found)
}

/// From the beginning, uncompressed, and no more than the limits allow.
fn open(file: &mut File, limits: ContextLimits) -> Result<Box<dyn Read + '_>, BuildError> {
    let mut first = [0; 2];
    let sniffed = file.seek(SeekFrom::Start(0)).and_then(|_| {
        let count = file.read(&mut first)?;
        file.seek(SeekFrom::Start(0)).map(|_| count)
    });
    sniffed.map_err(BuildError::Keep)?;
    let headers = (limits.entries as u64).saturating_mul(HEADERS_BYTES_MAX);
    let bytes_max = limits.bytes.saturating_add(headers);
    let file = BufReader::new(file);
    Ok(if first == GZIP {
        Box::new(MultiGzDecoder::new(file).take(bytes_max))
    } else {
        Box::new(file.take(bytes_max))
    })
}

/// The reader of archives keeps what such an entry holds in memory, however long that is.
fn check_extensions(content: Box<dyn Read + '_>) -> Result<(), BuildError> {
    let mut archive = Archive::new(content);
    for entry in archive.entries().map_err(broken)?.raw(true) {
        let entry = entry.map_err(broken)?;
        let is_file = matches!(
            entry.header().entry_type(),
            EntryType::Regular | EntryType::Continuous
        );
        if !is_file && entry.size() > EXTENSION_BYTES_MAX {
            return Err(BuildError::context("a name in it is too long"));
        }
    }
    Ok(())
}

struct Taking<'a> {
    dockerfile: &'a Path,
    found: Option<String>,
    /// Names that there were, and whether each is a directory.
    seen: HashMap<PathBuf, bool>,
    links: HashSet<PathBuf>,
    packer: &'a mut Packer,
}

impl Taking<'_> {
    fn entry(&mut self, mut entry: tar::Entry<'_, impl Read>) -> Result<(), BuildError> {
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader) {
            return Ok(());
        }
        let named = entry.path().map_err(broken)?.into_owned();
        let Some(path) = inside(&named)? else {
            // The context itself.
            return Ok(());
        };
        let is_directory = kind == EntryType::Directory;
        self.check(&path, is_directory)?;
        let attributes = Attributes {
            mode: entry.header().mode().map_err(broken)?,
            modified: entry.header().mtime().map_err(broken)?,
        };
        match kind {
            EntryType::Directory => self.packer.directory(&path, attributes),
            EntryType::Regular | EntryType::Continuous if path == self.dockerfile => {
                let text = dockerfile_text(&path, entry)?;
                let length = text.len() as u64;
                self.packer
                    .file(&path, attributes, length, text.as_bytes())?;
                self.found = Some(text);
                Ok(())
            }
            EntryType::Regular | EntryType::Continuous => {
                let length = entry.size();
                self.packer.file(&path, attributes, length, &mut entry)
            }
            EntryType::Symlink if path == self.dockerfile => {
                Err(BuildError::dockerfile("it is a link"))
            }
            EntryType::Symlink => {
                let target = entry.link_name().map_err(broken)?.unwrap_or_default();
                self.packer.link(&path, &target, attributes)?;
                self.links.insert(path);
                Ok(())
            }
            EntryType::Link => {
                let target = entry.link_name().map_err(broken)?.unwrap_or_default();
                self.second_name(&path, &target, attributes)
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                self.packer.leave_out();
                Ok(())
            }
            _ => {
                let reason = format!("nobody knows what `{}` is", path.display());
                Err(BuildError::context(reason))
            }
        }
    }

    /// Of a file that is there already.
    fn second_name(
        &mut self,
        path: &Path,
        target: &Path,
        attributes: Attributes,
    ) -> Result<(), BuildError> {
        let target = inside(target)?.unwrap_or_default();
        let is_file = self.seen.get(&target) == Some(&false) && !self.links.contains(&target);
        if !is_file || path == self.dockerfile {
            let reason = format!("`{}` is a second name of no file", path.display());
            return Err(BuildError::context(reason));
        }
        self.packer.second_name(path, &target, attributes)
    }

    /// A name that comes twice, or that leads through a link, would mean something else to the
    /// Engine than to us.
    fn check(&mut self, path: &Path, is_directory: bool) -> Result<(), BuildError> {
        let known = self.seen.insert(path.to_owned(), is_directory);
        let is_twice = known.is_some_and(|was_directory| !(was_directory && is_directory));
        let mut above = path.ancestors().skip(1);
        let leads_through = above.any(|above| {
            self.links.contains(above)
                || self
                    .seen
                    .get(above)
                    .is_some_and(|is_directory| !is_directory)
        });
        if is_twice || leads_through {
            let what = if is_twice {
                "comes twice"
            } else {
                "leads through a link or a file"
            };
            return Err(BuildError::context(format!("`{}` {what}", path.display())));
        }
        Ok(())
    }
}

/// The path below the context; None is the context.
fn inside(named: &Path) -> Result<Option<PathBuf>, BuildError> {
    let mut path = PathBuf::new();
    for part in named.components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                let reason = format!("`{}` leads out of it", named.display());
                return Err(BuildError::context(reason));
            }
        }
    }
    Ok(Some(path).filter(|path| !path.as_os_str().is_empty()))
}

fn broken(error: io::Error) -> BuildError {
    BuildError::context(format!("the archive is broken: {error}"))
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
