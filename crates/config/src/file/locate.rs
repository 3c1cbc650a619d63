//! Finds and reads the configuration files.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use toml::de::DeTable;

use super::project::ProjectFile;
use crate::admission::{Speaker, Trust, Vocabulary};
use crate::configuration::{ConfigFile, LoadError, SearchPlaces};
use crate::environment::Environment;
use crate::trust::TrustedFiles;

/// Far more than any configuration needs; it keeps a wrong path from filling the memory.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Our own file, in the current directory or the user's configuration directory.
const OWN_NAME: &str = "zareba.toml";

/// OpenHands' file, in the current directory.
const OPENHANDS_NAME: &str = "config.toml";

/// Sections by which a `config.toml` is recognised as OpenHands' and not some other program's.
/// `[security]`, `[mcp]` and the like are not enough: others have them too.
const TELLING_SECTIONS: [&str; 4] = ["core", "sandbox", "llm", "agent"];

/// Permission to write for the group and for others.
const OTHERS_WRITE: u32 = 0o022;

/// Where a configuration file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePlace {
    /// The file of this machine.
    System,
    /// The file of this user.
    User,
    /// A file that `--config` or `ZAREBA_CONFIG` names.
    Named,
    /// The file in the current directory.
    Project,
}

/// A configuration file with its content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) place: FilePlace,
    pub(crate) speaker: Speaker,
    /// Device and inode: a file that is found twice counts once.
    identity: (u64, u64),
}

/// Reads the files that apply, the strongest last.
pub(crate) fn locate(
    file: ConfigFile<'_>,
    environment: &Environment,
) -> Result<Vec<SourceFile>, LoadError> {
    match file {
        ConfigFile::Search(places) => search(places, environment),
        ConfigFile::At(path) => Ok(vec![read(path.to_path_buf(), FilePlace::Named)?]),
        ConfigFile::Nothing => Ok(Vec::new()),
    }
}

fn search(
    places: SearchPlaces<'_>,
    environment: &Environment,
) -> Result<Vec<SourceFile>, LoadError> {
    let in_variable = environment.get_os("ZAREBA_CONFIG");
    if let Some(path) = in_variable.filter(|path| !path.is_empty()) {
        return Ok(vec![read(PathBuf::from(path), FilePlace::Named)?]);
    }
    let mut found = Vec::new();
    found.extend(read_if_there(
        places.system.to_path_buf(),
        FilePlace::System,
    )?);
    if let Some(directory) = user_directory(environment) {
        found.extend(read_if_there(directory.join(OWN_NAME), FilePlace::User)?);
    }
    if let Some(project) = find_project(places.project)? {
        // In the configuration directory itself the project file is the user file.
        let is_known = |known: &SourceFile| known.identity == project.identity;
        if !found.iter().any(is_known) {
            found.push(judged(project, environment)?);
        }
    }
    Ok(found)
}

/// The file of a project, as one that is not trusted.
pub(super) fn find_project(directory: &Path) -> Result<Option<SourceFile>, LoadError> {
    let own = in_directory(directory, OWN_NAME);
    if let Some(own) = read_if_there(own, FilePlace::Project)? {
        return Ok(Some(own));
    }
    // An unreadable `config.toml` may belong to another program, so it is no error.
    let openhands = read(in_directory(directory, OPENHANDS_NAME), FilePlace::Project).ok();
    Ok(openhands.filter(|file| file.speaker.vocabulary == Vocabulary::OpenHands))
}

/// The same file, trusted if the user has said so of these very bytes.
fn judged(project: SourceFile, environment: &Environment) -> Result<SourceFile, LoadError> {
    let file = ProjectFile::of(project);
    let is_trusted = TrustedFiles::load(environment)?.hold(&file);
    let mut project = file.into_source();
    if is_trusted {
        project.speaker.trust = Trust::Trusted;
    }
    Ok(project)
}

fn read_if_there(path: PathBuf, place: FilePlace) -> Result<Option<SourceFile>, LoadError> {
    match read(path, place) {
        Err(LoadError::ReadFile { source, .. }) if is_absent(&source) => Ok(None),
        other => other.map(Some),
    }
}

/// Reads a file from one descriptor, which is also what its owner is asked of.
pub(super) fn read(path: PathBuf, place: FilePlace) -> Result<SourceFile, LoadError> {
    let (bytes, metadata) = match open_and_read(&path, place) {
        Ok(found) => found,
        Err(source) => return Err(LoadError::ReadFile { path, source }),
    };
    if place != FilePlace::Project
        && let Some(reason) = why_not_ours(&metadata)
    {
        return Err(LoadError::NotOurs { path, reason });
    }
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(LoadError::FileTooLarge {
            path,
            bytes_max: FILE_BYTES_MAX,
        });
    }
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(LoadError::FileNotText { path });
    };
    let speaker = Speaker {
        vocabulary: vocabulary(&path, &text),
        trust: match place {
            FilePlace::Project => Trust::Untrusted,
            FilePlace::System | FilePlace::User | FilePlace::Named => Trust::Trusted,
        },
    };
    Ok(SourceFile {
        path,
        text,
        place,
        speaker,
        identity: (metadata.dev(), metadata.ino()),
    })
}

fn open_and_read(path: &Path, place: FilePlace) -> io::Result<(Vec<u8>, Metadata)> {
    // A named file may be a pipe of the shell; one that is found must not keep us waiting.
    let file = match place {
        FilePlace::Named => File::open(path)?,
        FilePlace::System | FilePlace::User | FilePlace::Project => OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path)?,
    };
    let metadata = file.metadata()?;
    if place != FilePlace::Named && !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok((bytes, metadata))
}

/// Why another user could have written the file, and the remedy. None if none could.
pub(crate) fn why_not_ours(metadata: &Metadata) -> Option<&'static str> {
    let ours = rustix::process::geteuid().as_raw();
    if metadata.uid() != ours && metadata.uid() != 0 {
        return Some("it belongs to another user; copy it, or make it yours with `chown`");
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Some("other users may write to it; take that away with `chmod go-w`");
    }
    None
}

/// The name alone for the current directory, as people write it.
fn in_directory(directory: &Path, name: &str) -> PathBuf {
    match directory.to_str() {
        Some("" | ".") => PathBuf::from(name),
        _ => directory.join(name),
    }
}

/// `zareba` in `$XDG_CONFIG_HOME`, or in `~/.config`; a relative value is to be ignored by that
/// specification.
pub(crate) fn user_directory(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name: &str| {
        environment
            .get_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    base.map(|base| base.join("zareba"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Whose file it is: OpenHands' has a name and sections by which it is known.
fn vocabulary(path: &Path, text: &str) -> Vocabulary {
    let is_named_so = path.file_name().is_some_and(|name| name == OPENHANDS_NAME);
    match is_named_so && has_openhands_sections(text) {
        true => Vocabulary::OpenHands,
        false => Vocabulary::Zareba,
    }
}

fn has_openhands_sections(text: &str) -> bool {
    // A file with a syntax error still shows whose it is by the sections that can be read.
    let (document, _) = DeTable::parse_recoverable(text);
    TELLING_SECTIONS.iter().any(|section| {
        document
            .get_ref()
            .get(*section)
            .is_some_and(|value| value.get_ref().is_table())
    })
}
