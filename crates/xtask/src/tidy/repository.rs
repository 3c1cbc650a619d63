//! The files that the checks look at: what git tracks or would track, as text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Every file of the checkout by its path from the root, with `/` between the parts.
#[derive(Debug)]
pub(crate) struct Repository {
    /// `None` for what is not UTF-8 text or not a regular file: it has a name to link to, no more.
    files: BTreeMap<String, Option<String>>,
}

impl Repository {
    /// Reads the checkout at `root`, asking git so that build output and ignored files stay out.
    pub(crate) fn load(root: &Path) -> anyhow::Result<Self> {
        let listing = Command::new("git")
            // A checkout owned by another user, as in a container, is still only read here.
            .args(["-c", "safe.directory=*"])
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("cannot run `git ls-files`")?;
        ensure!(
            listing.status.success(),
            "`git ls-files` failed: {}",
            String::from_utf8_lossy(&listing.stderr).trim()
        );
        let names = String::from_utf8(listing.stdout).context("a file name is not UTF-8")?;
        let mut files = BTreeMap::new();
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            let path = root.join(name);
            // Tracked but deleted in the work tree: nothing to check any more.
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let text = if metadata.is_file() {
                let bytes = fs::read(&path).with_context(|| format!("cannot read `{name}`"))?;
                String::from_utf8(bytes).ok()
            } else {
                None
            };
            files.insert(name.to_owned(), text);
        }
        Ok(Self { files })
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Path and text of every text file.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Path and text of our own Rust code; fixtures are somebody's input, not our code.
    pub(super) fn rust_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| {
            path.starts_with("crates/") && path.ends_with(".rs") && !is_fixture(path)
        })
    }

    /// Path and text of our own Markdown.
    pub(super) fn documents(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts()
            .filter(|(path, _)| path.ends_with(".md") && !is_fixture(path))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether `path` is a file or a directory with files in it.
    pub(super) fn contains(&self, path: &str) -> bool {
        let directory = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(directory.clone()..)
                .next()
                .is_some_and(|(next, _)| next.starts_with(&directory))
    }

    /// Folder name and manifest of every crate.
    pub(super) fn crates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter_map(|(path, text)| {
            let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some((name, text))
        })
    }
}

fn is_fixture(path: &str) -> bool {
    path.split('/').any(|part| part == "fixtures")
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Repository {
        /// A repository that holds just these files.
        pub(in crate::tidy) fn of(files: &[(&str, &str)]) -> Self {
            let files = files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned())))
                .collect();
            Self { files }
        }
    }

    #[test]
    fn directories_exist_when_a_file_is_in_them() {
        let repository = Repository::of(&[("docs/a.md", ""), ("docs-more/b.md", "")]);
        let found: Vec<bool> = ["docs", "docs/a.md", "doc", "docs/b.md", ""]
            .map(|path| repository.contains(path))
            .to_vec();
        assert_eq!(found, [true, true, false, false, true]);
    }

    #[test]
    fn loading_leaves_out_what_git_ignores() {
        let directory = tempfile::tempdir().unwrap();
        let initialised = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(&directory)
            .status()
            .unwrap();
        assert!(initialised.success());
        fs::write(directory.path().join(".gitignore"), "target\n").unwrap();
        fs::write(directory.path().join("binary"), [0xff, 0xfe]).unwrap();
        fs::create_dir(directory.path().join("target")).unwrap();
        fs::write(directory.path().join("target/built.rs"), "").unwrap();

        let repository = Repository::load(directory.path()).unwrap();

        let expected = BTreeMap::from([
            (".gitignore".to_owned(), Some("target\n".to_owned())),
            ("binary".to_owned(), None),
        ]);
        assert_eq!(repository.files, expected);
    }
}
