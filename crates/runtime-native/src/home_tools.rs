//! Programs in the home of the user who starts sandboxes, as far as sandboxes may be shown them.
//!
//! Installers such as rustup, uv, pyenv and nvm put programs below the home, and the home is where a user
//! keeps secrets. So what is shown is a fixed list of places (`places`), of which each is a directory
//! that an installer fills with programs and libraries. Configuration, credentials and caches beside
//! them are not on the list. A place is left out if it is a link, lies behind one, or belongs to another
//! user. Links between places are made anew inside and lead to the same path there, so one that leads
//! elsewhere leads to nothing.
//!
//! A workspace is hostile: of the link to the interpreter of its virtual environment (`venv`), only an
//! installation of Python is shown.

mod places;
mod venv;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::Read as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use zareba_confine::is_root_of_machine;

use self::places::{PLACES, PROGRAMS_BY_NAME, Searched};

/// Each is a mount. A home with more has versions of languages that are not in use.
const SHOWN_MAX: usize = 128;

/// Of one directory; what comes after is left out.
const NAMES_MAX: usize = 256;

/// Directories that sandboxes have of their own, or see anyway. A home below them is not shown.
const NO_HOMES: [&str; 12] = [
    "/tmp",
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/workspace",
    "/usr",
    "/etc",
    "/opt",
    "/bin",
    "/sbin",
    "/boot",
];

/// What a sandbox sees of programs in the home of the user who starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeAccess {
    /// Nothing.
    Hidden,
    /// Those of well-known installers, which cannot be changed.
    ReadOnly,
}

/// Programs in a home that sandboxes can be shown, at the same paths as outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeTools {
    /// The home, without links on the way.
    pub home: PathBuf,
    /// Directories and files, without links on the way, and none below another.
    pub shown: BTreeSet<PathBuf>,
    /// Links between them, with where they lead in the end.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Directories with programs, in the order in which they are searched.
    pub search: Vec<PathBuf>,
}

impl HomeTools {
    /// Looks into a home. `search_path` is the user's own `PATH`, which decides the order. None when the home
    /// is none that can be shown.
    #[must_use]
    pub fn find(home: &Path, search_path: &OsStr, workspace: Option<&Path>) -> Option<Self> {
        let home = fs::canonicalize(home).ok()?;
        let is_of_machine = NO_HOMES.iter().any(|other| home.starts_with(other));
        let owners = [rustix::process::geteuid().as_raw(), 0];
        let found = fs::symlink_metadata(&home).ok()?;
        let is_usable = home.parent().is_some() && is_plain(&home) && owners.contains(&found.uid());
        if is_of_machine || !is_usable {
            return None;
        }
        let mut scan = Scan {
            owners,
            is_for_others: is_root_of_machine(),
            tools: Self {
                home: home.clone(),
                shown: BTreeSet::new(),
                links: Vec::new(),
                search: Vec::new(),
            },
            links: BTreeSet::new(),
            searched: Vec::new(),
        };
        for place in &PLACES {
            let names: Vec<&str> = place.path.split('/').collect();
            scan.look(&home, &names, place);
        }
        scan.programs(&home.join(PROGRAMS_BY_NAME));
        scan.virtual_environments(workspace);
        Some(scan.finish(search_path))
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// The program of a name, where a shell inside would find it.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let is_link = |path: &Path| self.links.iter().any(|(link, _)| link == path);
        let paths = self.search.iter().map(|directory| directory.join(name));
        let mut shown = paths.filter(|path| self.shows(path) || is_link(path));
        shown.find(|path| is_program(path))
    }

    /// Whether a path without links exists inside.
    #[must_use]
    pub fn shows(&self, path: &Path) -> bool {
        self.shown.iter().any(|shown| path.starts_with(shown))
    }

    /// Variables that tell programs where they are, because the home inside is another.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, PathBuf)> + '_ {
        let roots = [("PYENV_ROOT", ".pyenv")];
        roots.into_iter().filter_map(|(name, root)| {
            let root = self.home.join(root);
            let is_shown = self.shown.iter().any(|shown| shown.starts_with(&root));
            is_shown.then_some((name, root))
        })
    }
}

/// A home that is being looked into.
struct Scan {
    owners: [u32; 2],
    /// Whether programs inside are those of another user, as they are for root.
    is_for_others: bool,
    tools: HomeTools,
    /// Links that count if they lead to what is shown.
    links: BTreeSet<PathBuf>,
    /// Directories with programs, by the place that they were found at.
    searched: Vec<(&'static str, Searched, PathBuf)>,
}

impl Scan {
    /// Looks for what is left of a place below a directory that was found.
    fn look(&mut self, at: &Path, names: &[&str], place: &'static places::Place) {
        let Some((first, rest)) = names.split_first() else {
            self.found(at, place);
            return;
        };
        let candidates = match *first {
            "*" => listed(at),
            name => vec![at.join(name)],
        };
        for path in candidates {
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => _ = self.links.insert(path),
                Ok(found) if self.is_ours(&found) => self.look(&path, rest, place),
                _ => {}
            }
        }
    }

    /// Shows what a place has at a path, or its parts.
    fn found(&mut self, at: &Path, place: &'static places::Place) {
        if place.parts.is_empty() {
            if self.show(at) && place.searched != Searched::Never {
                let directory = at.to_owned();
                self.searched.push((place.path, place.searched, directory));
            }
            return;
        }
        for part in place.parts {
            let path = at.join(part);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => _ = self.links.insert(path),
                Ok(_) if self.show(&path) && *part == "bin" => {
                    self.searched.push((place.path, place.searched, path));
                }
                _ => {}
            }
        }
    }

    /// Shows a directory or file, and says whether it does.
    fn show(&mut self, path: &Path) -> bool {
        let Ok(found) = fs::symlink_metadata(path) else {
            return false;
        };
        let bits = if found.is_dir() { 0o005 } else { 0o004 };
        let is_open = !self.is_for_others || found.mode() & bits == bits;
        let is_kind = found.is_dir() || found.is_file();
        let shown = &mut self.tools.shown;
        // Nothing is mounted on, or below, what is shown already.
        let is_apart = !shown
            .iter()
            .any(|other| path.starts_with(other) || other.starts_with(path));
        let is_shown = is_kind
            && is_open
            && is_apart
            && is_plain(path)
            && self.owners.contains(&found.uid())
            && shown.len() < SHOWN_MAX;
        if is_shown {
            shown.insert(path.to_owned());
        }
        is_shown
    }

    /// Shows the programs of a directory one by one, because users put scripts of their own there. Those
    /// may hold secrets; what a compiler made, and links to what is shown, do not.
    fn programs(&mut self, directory: &Path) {
        if !self.is_real(directory) {
            return;
        }
        let before = self.tools.shown.len() + self.links.len();
        for path in listed(directory) {
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => _ = self.links.insert(path),
                Ok(found) if found.is_file() && is_program(&path) && is_compiled(&path) => {
                    self.show(&path);
                }
                _ => {}
            }
        }
        if self.tools.shown.len() + self.links.len() > before {
            let directory = directory.to_owned();
            let place = PROGRAMS_BY_NAME;
            self.searched.push((place, Searched::Always, directory));
        }
    }

    /// Whether a path below the home is a directory, and all that it is in, without links.
    fn is_real(&self, path: &Path) -> bool {
        let home = self.tools.home.as_path();
        let mut above = path.ancestors().take_while(|above| *above != home);
        path.starts_with(home)
            && above.all(|above| {
                fs::symlink_metadata(above)
                    .is_ok_and(|found| found.is_dir() && self.is_ours(&found))
            })
    }

    fn is_ours(&self, found: &Metadata) -> bool {
        self.owners.contains(&found.uid())
    }

    fn finish(mut self, search_path: &OsStr) -> HomeTools {
        for link in std::mem::take(&mut self.links) {
            let Ok(target) = fs::canonicalize(&link) else {
                continue;
            };
            let shown = &self.tools.shown;
            let leads_to_shown = shown
                .iter()
                .any(|shown| target.starts_with(shown) || shown.starts_with(&target));
            if leads_to_shown && is_plain(&link) && !self.tools.shows(&link) {
                self.tools.links.push((link, target));
            }
        }
        self.order(search_path);
        self.tools
    }

    /// Programs are found in the order of the user's own `PATH`, and then in what it lacks.
    fn order(&mut self, search_path: &OsStr) {
        let is_searched = |path: &Path| {
            let is_by_name = path == self.tools.home.join(PROGRAMS_BY_NAME);
            path.is_dir() && (self.tools.shows(path) || is_by_name)
        };
        let mut search: Vec<PathBuf> = Vec::new();
        for entry in std::env::split_paths(search_path) {
            let Ok(entry) = fs::canonicalize(entry) else {
                continue;
            };
            if is_searched(&entry) && is_plain(&entry) && !search.contains(&entry) {
                search.push(entry);
            }
        }
        for place in PLACES
            .iter()
            .map(|place| place.path)
            .chain([PROGRAMS_BY_NAME])
        {
            let of_place = || self.searched.iter().filter(|(of, ..)| *of == place);
            if of_place().any(|(.., directory)| search.contains(directory)) {
                continue;
            }
            let newest = of_place().max_by_key(|(.., directory)| version(directory));
            search.extend(newest.and_then(|(_, searched, directory)| match searched {
                Searched::Never => None,
                Searched::Always | Searched::Newest => Some(directory.clone()),
            }));
        }
        self.tools.search = search;
    }
}

/// What is in a directory, in order.
fn listed(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.truncate(NAMES_MAX);
    paths
}

/// The numbers in a path, as of a version.
fn version(path: &Path) -> Vec<u64> {
    let text = path.to_string_lossy();
    let numbers = text.split(|character: char| !character.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Whether a path can stand in `PATH`, in a shell's quotes and on a command line.
fn is_plain(path: &Path) -> bool {
    let is_plain = |character: char| !character.is_control() && !matches!(character, ':' | '\'');
    path.to_str().is_some_and(|path| path.chars().all(is_plain))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether a file is of the form that compilers write.
fn is_compiled(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

#[cfg(test)]
#[path = "home_tools/home_tools_tests.rs"]
mod tests;
