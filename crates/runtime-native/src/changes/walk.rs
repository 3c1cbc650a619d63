//! The comparison of a layer with the directory below it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use zareba_runtime::CHANGES_MAX;

use super::{
    Layers, renames,
    tree::{Directory, Node, are_equal},
};

/// Directories in one another that are looked through: the walk recurses.
const DEPTH_MAX: usize = 256;

/// Places that could not be compared and are named; after so many, the walk ends.
const UNREAD_MAX: usize = 1000;

/// Bytes that are compared to see whether files of equal length differ. A file that was only
/// touched is copied whole into a layer; beyond this it counts as modified.
const COMPARED_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// One path in both states. At least one is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    pub(super) before: Option<Node>,
    pub(super) after: Option<Node>,
    /// The earlier path of an added file.
    pub(super) from: Option<PathBuf>,
}

/// What a walk has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) changes: Vec<Change>,
    pub(super) unread: Vec<(PathBuf, String)>,
}

/// Compares everything below a path.
pub(super) fn compare(layers: &Layers, below: &Path) -> Found {
    let mut walk = Walk {
        layers,
        changes: BTreeMap::new(),
        unread: Vec::new(),
        compared: 0,
        is_full: false,
    };
    walk.start(below);
    let mut found = Found {
        changes: walk.changes.into_values().flatten().collect(),
        unread: walk.unread,
    };
    renames::join(layers, &mut found.changes);
    found
}

struct Walk<'a> {
    layers: &'a Layers,
    /// By path. One path may be deleted as one thing and added as another.
    changes: BTreeMap<OsString, Vec<Change>>,
    unread: Vec<(PathBuf, String)>,
    compared: u64,
    is_full: bool,
}

/// What of the directory below shows through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// There is no such directory.
    Missing,
    /// The layer hides it: what it holds is deleted, unless the layer has it too.
    Hidden,
    /// It shows where the layer has nothing.
    Shown,
}

impl Walk<'_> {
    /// Goes down to a path, and notes on the way what of the directory below shows through.
    fn start(&mut self, wanted: &Path) {
        let mut below = match self.layers.lower {
            Some(_) => Below::Shown,
            None => Below::Missing,
        };
        let Some(name) = wanted.file_name() else {
            return self.directory(wanted, below, 0);
        };
        let mut above: Vec<&Path> = wanted.ancestors().skip(1).collect();
        above.reverse();
        for path in above {
            match self.layers.upper.directory(path) {
                Ok(directory) if below == Below::Shown && directory.is_opaque() => {
                    below = Below::Hidden;
                }
                Ok(_) => {}
                Err(error) => return self.start_nowhere(wanted, below, &error),
            }
            match self.lower_node(path) {
                Ok(Some(Node::Directory)) => {}
                Ok(_) => below = Below::Missing,
                Err(error) => return self.note_unread(path, &error),
            }
        }
        let parent = wanted.parent().unwrap_or(Path::new(""));
        match self.layers.upper.directory(parent) {
            Ok(upper) => match upper.node(name) {
                Ok(None) if below == Below::Hidden => self.gone(wanted, 0),
                _ => self.entry(&upper, wanted, below, 0),
            },
            Err(error) => self.note_unread(parent, &error),
        }
    }

    /// The layer has no directory on the way to a path.
    fn start_nowhere(&mut self, wanted: &Path, below: Below, error: &io::Error) {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        // Through a name that the layer lacks, the directory below shows unless it is hidden. Any
        // other thing under the name, such as a whiteout or a link, stands in its place.
        let stands_in = error.kind() == io::ErrorKind::NotADirectory
            || error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
        match below {
            Below::Hidden if is_missing || stands_in => self.gone(wanted, 0),
            Below::Shown if stands_in => self.gone(wanted, 0),
            _ if is_missing || stands_in => {}
            _ => self.note_unread(wanted, error),
        }
    }

    /// Looks through a directory of the layer.
    fn directory(&mut self, path: &Path, below: Below, depth: usize) {
        if depth > DEPTH_MAX {
            let problem = format!("directories are nested more than {DEPTH_MAX} deep");
            return self.note_unread(path, &io::Error::other(problem));
        }
        let opened = self.layers.upper.directory(path);
        let read = opened.and_then(|upper| Ok((upper.names()?, upper)));
        let (names, upper) = match read {
            Ok(read) => read,
            Err(error) => return self.note_unread(path, &error),
        };
        let below = if below == Below::Shown && upper.is_opaque() {
            Below::Hidden
        } else {
            below
        };
        if below == Below::Hidden {
            for name in self.lower_names(path) {
                if !names.contains(&name) {
                    self.gone(&path.join(name), depth + 1);
                }
            }
        }
        for name in &names {
            if self.is_full {
                return;
            }
            self.entry(&upper, &path.join(name), below, depth);
        }
    }

    fn entry(&mut self, upper: &Directory, path: &Path, below: Below, depth: usize) {
        let name = path.file_name().unwrap_or_default();
        let nodes = upper.node(name).and_then(|after| {
            let before = match below {
                Below::Missing => None,
                Below::Hidden | Below::Shown => self.lower_node(path)?,
            };
            Ok((before, after))
        });
        let (before, after) = match nodes {
            Ok((before, Some(after))) => (before, after),
            // It has gone since its directory was read.
            Ok((_, None)) => return,
            Err(error) => return self.note_unread(path, &error),
        };
        match after {
            Node::Whiteout if self.layers.lower.is_some() => self.gone(path, depth + 1),
            Node::Directory => self.entered(path, before, below, depth),
            after => {
                if before == Some(Node::Directory) {
                    self.gone(path, depth + 1);
                    return self.add(path, None, Some(after));
                }
                match self.is_same(path, before.as_ref(), &after) {
                    Ok(true) => {}
                    Ok(false) => self.add(path, before, Some(after)),
                    Err(error) => self.note_unread(path, &error),
                }
            }
        }
    }

    fn entered(&mut self, path: &Path, before: Option<Node>, below: Below, depth: usize) {
        if before == Some(Node::Directory) {
            return self.directory(path, below, depth + 1);
        }
        if before.is_some() {
            self.add(path, before, None);
        }
        let is_empty = self.layers.upper.directory(path);
        let is_empty = is_empty.and_then(|directory| Ok(directory.names()?.is_empty()));
        if is_empty.unwrap_or(false) {
            return self.add(path, None, Some(Node::Directory));
        }
        self.directory(path, Below::Missing, depth + 1);
    }

    /// A file is copied into the layer also when only its times change.
    fn is_same(&mut self, path: &Path, before: Option<&Node>, after: &Node) -> io::Result<bool> {
        if before != Some(after) {
            return Ok(false);
        }
        let (Node::File { bytes, .. }, Some(lower)) = (after, &self.layers.lower) else {
            return Ok(true);
        };
        self.compared = self.compared.saturating_add(*bytes);
        if self.compared > COMPARED_BYTES_MAX {
            return Ok(false);
        }
        are_equal(lower.file(path)?, self.layers.upper.file(path)?)
    }

    /// What the directory below has under this path no longer exists.
    fn gone(&mut self, path: &Path, depth: usize) {
        if depth > DEPTH_MAX {
            let problem = format!("directories are nested more than {DEPTH_MAX} deep");
            return self.note_unread(path, &io::Error::other(problem));
        }
        if self.is_full {
            return;
        }
        match self.lower_node(path) {
            Ok(None) => {}
            Ok(Some(Node::Directory)) => {
                let names = self.lower_names(path);
                if names.is_empty() {
                    return self.add(path, Some(Node::Directory), None);
                }
                for name in names {
                    self.gone(&path.join(name), depth + 1);
                }
            }
            Ok(before) => self.add(path, before, None),
            Err(error) => self.note_unread(path, &error),
        }
    }

    fn lower_node(&self, path: &Path) -> io::Result<Option<Node>> {
        match &self.layers.lower {
            None => Ok(None),
            // A mark in a layer is a device in a directory.
            Some(lower) => Ok(lower.node(path)?.map(|node| match node {
                Node::Whiteout => Node::Special,
                node => node,
            })),
        }
    }

    fn lower_names(&mut self, path: &Path) -> BTreeSet<OsString> {
        let Some(lower) = &self.layers.lower else {
            return BTreeSet::new();
        };
        match lower.directory(path).and_then(|lower| lower.names()) {
            Ok(names) => names,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                BTreeSet::new()
            }
            Err(error) => {
                self.note_unread(path, &error);
                BTreeSet::new()
            }
        }
    }

    fn add(&mut self, path: &Path, before: Option<Node>, after: Option<Node>) {
        if self.is_full {
            return;
        }
        if self.changes.len() >= CHANGES_MAX {
            let problem = format!("more than {CHANGES_MAX} paths have changed");
            self.note_unread(path, &io::Error::other(problem));
            self.is_full = true;
            return;
        }
        let change = Change {
            path: path.to_owned(),
            before,
            after: after.map(|node| match node {
                // Where there is no layer it is a device like others.
                Node::Whiteout => Node::Special,
                node => node,
            }),
            from: None,
        };
        let key = path.as_os_str().to_owned();
        self.changes.entry(key).or_default().push(change);
    }

    fn note_unread(&mut self, path: &Path, error: &io::Error) {
        if self.unread.len() >= UNREAD_MAX {
            self.is_full = true;
            return;
        }
        self.unread.push((path.to_owned(), error.to_string()));
    }
}
