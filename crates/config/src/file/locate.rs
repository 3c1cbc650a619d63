//! Finds and reads the configuration file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use crate::configuration::{ConfigFile, LoadError};
use crate::environment::Environment;

/// Far more than any configuration needs; it keeps a wrong path from filling the memory.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Our own file, in the current directory or the user's configuration directory.
const OWN_NAME: &str = "zareba.toml";

/// OpenHands' file, in the current directory.
const OPENHANDS_NAME: &str = "config.toml";

/// Sections by which a `config.toml` is recognised as OpenHands' and not some other program's.
/// `[security]`, `[mcp]` and the like are not enough: others have them too.
const TELLING_SECTIONS: [&str; 4] = ["core", "sandbox", "llm", "agent"];

/// A configuration file with its content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Reads the file that applies.
pub(crate) fn locate(
    file: ConfigFile<'_>,
    environment: &Environment,
) -> Result<Option<SourceFile>, LoadError> {
    match file {
        ConfigFile::Search(directory) => search(directory, environment),
        ConfigFile::At(path) => read(path.to_path_buf()).map(Some),
        ConfigFile::Nothing => Ok(None),
    }
}

fn search(directory: &Path, environment: &Environment) -> Result<Option<SourceFile>, LoadError> {
    let in_variable = environment.get_os("ZAREBA_CONFIG");
    if let Some(path) = in_variable.filter(|path| !path.is_empty()) {
        return read(PathBuf::from(path)).map(Some);
    }
    let own = [
        Some(in_directory(directory, OWN_NAME)),
        user_directory(environment).map(|directory| directory.join("zareba").join(OWN_NAME)),
    ];
    for path in own.into_iter().flatten() {
        match read(path) {
            Err(LoadError::ReadFile { source, .. }) if is_absent(&source) => {}
            other => return other.map(Some),
        }
    }
    // A `config.toml` that cannot be read may be anybody's, so that is no error of ours.
    let openhands = read(in_directory(directory, OPENHANDS_NAME)).ok();
    Ok(openhands.filter(|file| is_openhands(&file.text)))
}

fn read(path: PathBuf) -> Result<SourceFile, LoadError> {
    let mut bytes = Vec::new();
    let result =
        File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    if let Err(source) = result {
        return Err(LoadError::ReadFile { path, source });
    }
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(LoadError::FileTooLarge {
            path,
            bytes_max: FILE_BYTES_MAX,
        });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile { path, text }),
        Err(_) => Err(LoadError::FileNotText { path }),
    }
}

/// The name alone for the current directory, as people write it.
fn in_directory(directory: &Path, name: &str) -> PathBuf {
    match directory.to_str() {
        Some("" | ".") => PathBuf::from(name),
        _ => directory.join(name),
    }
}

/// `$XDG_CONFIG_HOME`, or `~/.config`; a relative value is to be ignored by that specification.
fn user_directory(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name: &str| {
        environment
            .get_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn is_openhands(text: &str) -> bool {
    // A file with a syntax error still shows whose it is by the sections that can be read.
    let (document, _) = DeTable::parse_recoverable(text);
    TELLING_SECTIONS.iter().any(|section| {
        document
            .get_ref()
            .get(*section)
            .is_some_and(|value| value.get_ref().is_table())
    })
}
