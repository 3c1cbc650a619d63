//! Which entries a search leaves out: the rules of ignore files, found along the walk.
//!
//! The rules are matched by ripgrep's library. The files are read here, through the directories
//! that the walk has open: the library would open them by path, which may lead elsewhere by then,
//! wait for ever when one is a pipe, and take one of any size into memory.

use std::{
    fs::File,
    io::Read,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::io::Errno;

use crate::files::{Links, READING, Reach, open_beneath};

/// What is read of one ignore file; further lines do not count.
const IGNORE_BYTES_MAX: u64 = 128 * 1024;

/// The rules that hold in one directory: its own and those of all directories above.
///
/// Of the same kind the deepest rule decides; `.ignore` comes before `.gitignore`, and that before
/// `.git/info/exclude`. Rules hold outside a git repository too.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Option<Arc<Level>>);

/// The rules of one directory that has some.
#[derive(Debug)]
struct Level {
    above: Rules,
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
}

impl Rules {
    /// The rules of the directories above this one, as far up as may be reached.
    pub(super) fn above(directory: &Path, reach: &Reach) -> Self {
        let mut reached = Vec::new();
        for above in directory.ancestors().skip(1) {
            match reach.open_directory(above) {
                Ok(opened) => reached.push((above, opened)),
                Err(Errno::XDEV) => break,
                // Nothing is known of this one, which says nothing of those above.
                Err(_) => {}
            }
        }
        let mut rules = Self::default();
        for (path, opened) in reached.into_iter().rev() {
            rules = rules.entering(opened, path);
        }
        rules
    }

    /// The rules inside an open directory of this name.
    pub(super) fn entering(&self, directory: impl AsFd, path: &Path) -> Self {
        let read = |name: &str| read(directory.as_fd(), Path::new(name));
        let texts = [".ignore", ".gitignore", ".git/info/exclude"].map(read);
        if texts.iter().all(Option::is_none) {
            return self.clone();
        }
        let [ignore, git, exclude] = texts.map(|text| compiled(path, text.as_deref()));
        Self(Some(Arc::new(Level {
            above: self.clone(),
            ignore,
            git,
            exclude,
        })))
    }

    /// Whether an entry is to be left out. What no rule speaks of is when it is hidden.
    pub(super) fn leave_out(&self, path: &Path, is_directory: bool) -> bool {
        let (mut ignore, mut git, mut exclude) = (Match::None, Match::None, Match::None);
        let mut next = self;
        while let Rules(Some(level)) = next {
            let rules = [
                (&mut ignore, &level.ignore),
                (&mut git, &level.git),
                (&mut exclude, &level.exclude),
            ];
            for (found, rules) in rules {
                if found.is_none() {
                    *found = rules.matched(path, is_directory);
                }
            }
            next = &level.above;
        }
        match ignore.or(git).or(exclude) {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b".")),
        }
    }
}

/// The text of an ignore file; links and special files are none, as git has it.
fn read(directory: impl AsFd, name: &Path) -> Option<String> {
    let file = File::from(open_beneath(directory, name, READING, Links::Refused).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(IGNORE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 == IGNORE_BYTES_MAX {
        // Half a line would be another rule.
        let end = memchr::memrchr(b'\n', &bytes).unwrap_or(0);
        bytes.truncate(end);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rules of a file; a line that is none is passed over.
fn compiled(directory: &Path, text: Option<&str>) -> Gitignore {
    let Some(text) = text else {
        return Gitignore::empty();
    };
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        if let Err(error) = builder.add_line(None::<PathBuf>, line) {
            tracing::debug!(%error, "a line of an ignore file is passed over");
        }
    }
    builder.build().unwrap_or_else(|error| {
        tracing::debug!(%error, "an ignore file is passed over");
        Gitignore::empty()
    })
}
