//! An image from a base image and what is to be in it beside, with names by which parts of it are
//! found again.
//!
//! There are three names, as in OpenHands. The *source* name stands for all of it; the *lock* name
//! for base and dependencies, without any files; the *versioned* name for the base alone, with
//! whatever was installed on it first. Each stands for one kind of machine. A build begins at the
//! best of those that are there.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use super::{BuildError, dockerfile::is_image_name};

/// Where files lie in the context.
pub(super) const FILES: &str = "files";
/// Letters of a hash in a tag: more than a hundred bits.
const HASH_LETTERS: usize = 20;
/// Letters of the kind of machine and of the base image in a tag, which may have 128 in all.
const PLATFORM_LETTERS_MAX: usize = 24;
const BASE_LETTERS_MAX: usize = 80;
/// Changes with what the names stand for, so that images of an older meaning are not taken.
const MEANING: &str = "2";

/// What an image is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// What it is called, without a tag: tags come of the contents.
    pub repository: String,
    /// The image that it begins with.
    pub base: String,
    /// Packages that `apt-get` installs.
    pub packages: Vec<String>,
    /// Commands that are run after that, each by `/bin/sh`.
    pub commands: Vec<String>,
    /// Files that are put into it at the end.
    pub files: Option<RecipeFiles>,
}

/// Files of this machine, and where they are in the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeFiles {
    /// The directory whose contents are taken.
    pub directory: PathBuf,
    /// The directory of the image that they are put into.
    pub target: String,
}

/// What a build of a recipe begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltFrom {
    /// Nothing was built: the very image was there.
    Nothing,
    /// An image with the same base and dependencies: only files were added.
    Lock,
    /// An image with the same base: dependencies were installed on top of its own.
    Versioned,
    /// The base image.
    Base,
}

/// The names of a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeNames {
    /// Of all of it.
    pub source: String,
    /// Of the base with the dependencies.
    pub lock: String,
    /// Of the base.
    pub versioned: String,
}

impl Recipe {
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let repository = &self.repository;
        let last = repository.rsplit('/').next().unwrap_or_default();
        if !is_image_name(repository) || last.contains([':', '@']) {
            let reason = format!("`{repository}` is no name of an image without a tag");
            return Err(BuildError::invalid(reason));
        }
        if !is_image_name(&self.base) {
            let reason = format!("`{}` is no name of an image", self.base);
            return Err(BuildError::invalid(reason));
        }
        if let Some(wrong) = self.packages.iter().find(|it| !is_package(it)) {
            return Err(BuildError::invalid(format!(
                "`{wrong}` is no name of a package"
            )));
        }
        let target = self.files.as_ref().map(|files| files.target.as_str());
        if let Some(target) = target.filter(|it| !it.starts_with('/') || it.contains(['$', '\\'])) {
            let reason = format!("files cannot be put into `{target}`: name a path from the root");
            return Err(BuildError::invalid(reason));
        }
        Ok(())
    }

    /// Its names for a kind of machine, with the hash of its files.
    pub(super) fn names(&self, platform: &str, files: &[u8; 32]) -> RecipeNames {
        let version = concat!("zr_v", env!("CARGO_PKG_VERSION"));
        let mut lock = Sha256::new();
        lock.update(MEANING);
        let lists = [&self.packages, &self.commands];
        let lists = lists.into_iter().flat_map(|list| {
            let length = list.len().to_string();
            std::iter::once(length).chain(list.iter().cloned())
        });
        for part in [self.base.clone(), platform.to_owned()]
            .into_iter()
            .chain(lists)
        {
            lock.update((part.len() as u64).to_le_bytes());
            lock.update(part);
        }
        let lock: [u8; 32] = lock.finalize().into();
        let lock = format!("{version}_{}", letters(&lock));
        let mut source = Sha256::new();
        source.update(files);
        source.update(self.files.as_ref().map_or("", |files| &files.target));
        let source: [u8; 32] = source.finalize().into();
        let name = |tag: String| format!("{}:{tag}", self.repository);
        RecipeNames {
            source: name(format!("{lock}_{}", letters(&source))),
            versioned: name(format!(
                "{version}_{}_{}",
                in_tag(platform, PLATFORM_LETTERS_MAX),
                in_tag(&self.base, BASE_LETTERS_MAX)
            )),
            lock: name(lock),
        }
    }

    /// The Dockerfile of what is installed, on top of the base or of what was installed on it.
    pub(super) fn dependencies(&self, from: BuiltFrom, names: &RecipeNames) -> String {
        let base = match from {
            BuiltFrom::Versioned => &names.versioned,
            BuiltFrom::Nothing | BuiltFrom::Lock | BuiltFrom::Base => &self.base,
        };
        let mut lines = vec![format!("FROM {base}")];
        lines.extend(self.install().iter().map(|command| run(command)));
        lines.extend(self.commands.iter().map(|command| run(command)));
        lines.push(String::new());
        lines.join("\n")
    }

    /// The Dockerfile of all of it, on top of that.
    pub(super) fn with_files(&self, names: &RecipeNames) -> String {
        let mut lines = vec![format!("FROM {}", names.lock)];
        if let Some(files) = &self.files {
            let target = format!("{}/", files.target.trim_end_matches('/'));
            lines.push(format!("COPY {}", json(&[&format!("{FILES}/"), &target])));
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn install(&self) -> Option<String> {
        (!self.packages.is_empty()).then(|| {
            format!(
                "export DEBIAN_FRONTEND=noninteractive && apt-get update && \
                 apt-get install --yes --no-install-recommends {} && \
                 rm -rf /var/lib/apt/lists/*",
                self.packages.join(" ")
            )
        })
    }
}

/// In the form in which nothing of a command means anything to the Dockerfile.
fn run(command: &str) -> String {
    format!("RUN {}", json(&["/bin/sh", "-c", command]))
}

fn json(words: &[&str]) -> String {
    serde_json::Value::from(words).to_string()
}

/// As Debian has them, with a version or an architecture if need be. Never an option.
fn is_package(name: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "+.-:=~".contains(it);
    name.starts_with(|it: char| it.is_ascii_alphanumeric()) && name.chars().all(is_letter)
}

impl RecipeNames {
    /// Those that a build gives which begins there, the first one first.
    pub(super) fn given(&self, from: BuiltFrom) -> Vec<String> {
        let names = [&self.source, &self.lock, &self.versioned];
        let count = match from {
            BuiltFrom::Nothing | BuiltFrom::Lock => 1,
            BuiltFrom::Versioned => 2,
            BuiltFrom::Base => 3,
        };
        names.into_iter().take(count).cloned().collect()
    }
}

/// The end of a name, where images differ.
fn in_tag(name: &str, longest: usize) -> String {
    let name = name
        .replace('/', "_s_")
        .replace(':', "_t_")
        .replace('@', "_d_");
    let name = name.to_ascii_lowercase();
    let start = name.len().saturating_sub(longest);
    name.get(start..).unwrap_or(&name).to_owned()
}

/// The number in base 36, its lowest digit first, as far as it is needed.
fn letters(hash: &[u8; 32]) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number = hash.to_vec();
    let mut letters = String::new();
    while letters.len() < HASH_LETTERS {
        let mut rest = 0u32;
        for byte in &mut number {
            let value = rest * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 36).unwrap_or(u8::MAX);
            rest = value % 36;
        }
        let digit = DIGITS.get(rest as usize).copied().unwrap_or(b'0');
        letters.push(char::from(digit));
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = "linux/amd64";

    fn recipe() -> Recipe {
        Recipe {
            repository: "zareba/runtime".to_owned(),
            base: "ghcr.io/Team/Debian:12".to_owned(),
            packages: vec!["git".to_owned(), "jq=1.6-2".to_owned()],
            commands: vec!["echo \"$HOME\" \\\nFROM evil".to_owned()],
            files: Some(RecipeFiles {
                directory: PathBuf::from("/src"),
                target: "/opt/code".to_owned(),
            }),
        }
    }

    #[test]
    fn names_change_with_what_they_stand_for() {
        let one = recipe().names(MACHINE, &[1; 32]);
        assert_eq!(one, recipe().names(MACHINE, &[1; 32]));
        assert!(one.source.starts_with(&one.lock));
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            one.versioned,
            format!("zareba/runtime:zr_v{version}_linux_s_amd64_ghcr.io_s_team_s_debian_t_12")
        );

        let files = recipe().names(MACHINE, &[2; 32]);
        assert_eq!((&files.lock, &files.versioned), (&one.lock, &one.versioned));
        assert_ne!(files.source, one.source);

        let mut more = recipe();
        more.packages.push("curl".to_owned());
        let more = more.names(MACHINE, &[1; 32]);
        assert_eq!(more.versioned, one.versioned);
        assert_ne!(more.lock, one.lock);

        let mut moved = recipe();
        let command = moved.commands.remove(0);
        moved.packages.push(command);
        assert_ne!(moved.names(MACHINE, &[1; 32]).lock, one.lock);

        let elsewhere = recipe().names("linux/arm64", &[1; 32]);
        for (name, other) in elsewhere
            .given(BuiltFrom::Base)
            .iter()
            .zip(one.given(BuiltFrom::Base))
        {
            assert_ne!(*name, other);
        }
    }

    #[test]
    fn a_tag_is_never_too_long() {
        let mut long = recipe();
        long.base = format!("registry.example/{}:1", "a".repeat(400));
        let names = long.names(&"x/".repeat(100), &[0; 32]);
        for name in [&names.source, &names.lock, &names.versioned] {
            let (_, tag) = name.split_once(':').unwrap();
            assert!(tag.len() <= 128, "{tag}");
        }
        assert_eq!(letters(&[0; 32]), "0".repeat(HASH_LETTERS));
        let mut thirty_seven = [0; 32];
        thirty_seven[31] = 37;
        assert!(letters(&thirty_seven).starts_with("1100"));
    }

    #[test]
    fn a_dockerfile_has_what_its_beginning_lacks() {
        let recipe = recipe();
        let names = recipe.names(MACHINE, &[0; 32]);
        let base = recipe.dependencies(BuiltFrom::Base, &names);
        let lines: Vec<&str> = base.lines().collect();
        assert_eq!(lines[0], "FROM ghcr.io/Team/Debian:12");
        assert!(lines[1].contains("apt-get install --yes --no-install-recommends git jq=1.6-2"));
        assert_eq!(
            lines[2],
            r#"RUN ["/bin/sh","-c","echo \"$HOME\" \\\nFROM evil"]"#
        );
        assert_eq!(lines.len(), 3);
        let versioned = recipe.dependencies(BuiltFrom::Versioned, &names);
        assert_eq!(
            versioned,
            base.replace(lines[0], &format!("FROM {}", names.versioned))
        );
        let source = recipe.with_files(&names);
        let copy = r#"COPY ["files/","/opt/code/"]"#;
        assert_eq!(source, format!("FROM {}\n{copy}\n", names.lock));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(recipe().check().is_ok());
        type Change = fn(&mut Recipe);
        let wrong: [Change; 6] = [
            |it| it.repository = "a:b".to_owned(),
            |it| it.repository = String::new(),
            |it| it.base = "a b".to_owned(),
            |it| it.packages = vec!["--allow".to_owned()],
            |it| it.packages = vec!["a;b".to_owned()],
            |it| it.files.as_mut().unwrap().target = "code".to_owned(),
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            let mut recipe = recipe();
            change(&mut recipe);
            assert!(recipe.check().is_err(), "{number}");
        }
    }
}
