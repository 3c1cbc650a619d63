//! Glob patterns for paths, with the reading that agents expect.
//!
//! A pattern without a slash means the file's name at any depth, as in ignore files; one with a
//! slash means the path below the searched directory; one that begins with a slash means the
//! whole path. A trailing slash means everything below.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::root::StartSearch;

/// A compiled pattern and what it is compared with.
#[derive(Debug)]
pub(super) struct PathPattern {
    matcher: GlobMatcher,
    scope: Scope,
}

#[derive(Debug, PartialEq, Eq)]
enum Scope {
    Name,
    BelowRoot,
    WholePath,
}

impl PathPattern {
    /// Compiles a pattern.
    pub(super) fn new(pattern: &str) -> Result<Self, StartSearch> {
        if pattern.is_empty() {
            return Err(StartSearch::EmptyPattern);
        }
        let mut text = pattern.strip_prefix("./").unwrap_or(pattern).to_owned();
        if text.ends_with('/') {
            text.push_str("**");
        }
        let scope = if text.starts_with('/') {
            Scope::WholePath
        } else if text.contains('/') {
            Scope::BelowRoot
        } else {
            Scope::Name
        };
        let matcher = GlobBuilder::new(&text)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| StartSearch::Glob {
                pattern: pattern.to_owned(),
                reason: error.kind().to_string(),
            })?
            .compile_matcher();
        Ok(Self { matcher, scope })
    }

    /// The pattern means this path, found below (or at) this root.
    pub(super) fn matches(&self, root: &Path, path: &Path) -> bool {
        let name = || {
            path.file_name()
                .is_some_and(|name| self.matcher.is_match(name))
        };
        match self.scope {
            Scope::Name => name(),
            Scope::WholePath => self.matcher.is_match(path),
            Scope::BelowRoot => match path.strip_prefix(root) {
                // The root itself is the file: all there is to compare is its name.
                Ok(below) if below.as_os_str().is_empty() => name(),
                Ok(below) => self.matcher.is_match(below),
                Err(_) => false,
            },
        }
    }
}

/// The directory that an absolute pattern starts in: its leading part without wildcards.
pub(super) fn fixed_directory(pattern: &str) -> Option<&str> {
    if !pattern.starts_with('/') {
        return None;
    }
    let wild = pattern
        .find(['*', '?', '[', '{', '\\'])
        .unwrap_or(pattern.len());
    match pattern[..wild].rfind('/') {
        Some(0) | None => Some("/"),
        Some(slash) => Some(&pattern[..slash]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str, expected: bool) {
        let compiled = PathPattern::new(pattern).unwrap();
        assert_eq!(
            compiled.matches(Path::new("/w"), Path::new(path)),
            expected,
            "{pattern} on {path}"
        );
    }

    #[test]
    fn a_pattern_without_a_slash_means_the_name_at_any_depth() {
        check("*.rs", "/w/a.rs", true);
        check("*.rs", "/w/src/deep/a.rs", true);
        check("*.rs", "/w/a.rsx", false);
        check("*.{ts,tsx}", "/w/src/a.tsx", true);
    }

    #[test]
    fn a_pattern_with_a_slash_means_the_path_below_the_root() {
        check("src/*.rs", "/w/src/a.rs", true);
        check("src/*.rs", "/w/src/deep/a.rs", false);
        check("src/*.rs", "/w/other/src/a.rs", false);
        check("**/*.rs", "/w/a.rs", true);
        check("./src/**", "/w/src/deep/a.rs", true);
        check("src/", "/w/src/deep/a.rs", true);
    }

    #[test]
    fn a_pattern_that_begins_with_a_slash_means_the_whole_path() {
        check("/w/**/*.rs", "/w/src/a.rs", true);
        check("/v/**/*.rs", "/w/src/a.rs", false);
    }

    #[test]
    fn the_fixed_part_of_an_absolute_pattern_is_its_directory() {
        assert_eq!(fixed_directory("/w/src/**/*.rs"), Some("/w/src"));
        assert_eq!(fixed_directory("/w/src/a.rs"), Some("/w/src"));
        assert_eq!(fixed_directory("/*.rs"), Some("/"));
        assert_eq!(fixed_directory("src/*.rs"), None);
    }
}
