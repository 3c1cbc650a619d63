//! What a `.dockerignore` leaves out of a build context.
//!
//! The last line that fits a path, or a directory above it, decides. A line that begins with `!`
//! takes back in what lines before it have left out.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::BuildError;

/// More lines than anybody writes; each is tried on each path.
const LINES_MAX: usize = 1000;

/// The lines of a `.dockerignore`.
#[derive(Debug, Default)]
pub(super) struct Ignore {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    pattern: GlobMatcher,
    takes_back: bool,
}

impl Ignore {
    pub(super) fn parse(text: &str) -> Result<Self, BuildError> {
        let mut lines = Vec::new();
        // Editors of some systems put a mark in front.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for text in text.lines() {
            if text.starts_with('#') || text.trim().is_empty() {
                continue;
            }
            if lines.len() == LINES_MAX {
                let reason = format!("its .dockerignore has more than {LINES_MAX} lines");
                return Err(BuildError::context(reason));
            }
            lines.extend(Line::parse(text.trim())?);
        }
        Ok(Self { lines })
    }

    /// Whether a path below the context is left out.
    pub(super) fn leaves_out(&self, path: &Path) -> bool {
        let mut is_out = false;
        for line in &self.lines {
            let mut steps = path.ancestors().filter(|step| !step.as_os_str().is_empty());
            if line.takes_back == is_out && steps.any(|step| line.pattern.is_match(step)) {
                is_out = !line.takes_back;
            }
        }
        is_out
    }

    /// Whether something below a directory that is left out may be in again.
    pub(super) fn takes_back(&self) -> bool {
        self.lines.iter().any(|line| line.takes_back)
    }
}

impl Line {
    /// None for a line that fits nothing.
    fn parse(text: &str) -> Result<Option<Self>, BuildError> {
        let (takes_back, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
        let text: Vec<&str> = parts.collect();
        if text.is_empty() {
            return Ok(None);
        }
        // Braces mean themselves there.
        let text = text.join("/").replace('{', "[{]").replace('}', "[}]");
        let pattern = GlobBuilder::new(&text)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| {
                BuildError::context(format!("its .dockerignore has a wrong line: {error}"))
            })?;
        Ok(Some(Self {
            pattern: pattern.compile_matcher(),
            takes_back,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, out: &[&str], inside: &[&str]) {
        let ignore = Ignore::parse(text).unwrap();
        for path in out {
            assert!(ignore.leaves_out(Path::new(path)), "{text:?}: {path}");
        }
        for path in inside {
            assert!(!ignore.leaves_out(Path::new(path)), "{text:?}: {path}");
        }
    }

    #[test]
    fn names_fit_from_the_top_and_take_what_is_below() {
        check(
            "target",
            &["target", "target/a/b"],
            &["a/target", "targets"],
        );
        check("/target/", &["target/a"], &["a/target"]);
        check("*.log", &["a.log"], &["d/a.log", "log"]);
        check("**/*.log", &["a.log", "d/e/a.log"], &["a.logs"]);
        check("a/*/c", &["a/b/c", "a/b/c/d"], &["a/c", "a/b/x/c"]);
        check(
            "**/node_modules",
            &["node_modules/x", "a/b/node_modules/x"],
            &["modules"],
        );
        check("{a,b}", &["{a,b}"], &["a", "b"]);
    }

    #[test]
    fn the_last_line_that_fits_decides() {
        check(
            "*\n!keep\n!d/keep",
            &["x", "d/x"],
            &["keep", "keep/below", "d/keep"],
        );
        check("!a\na", &["a"], &[]);
        check(
            "d\n!d/in\nd/in/out",
            &["d/x", "d/in/out"],
            &["d/in", "d/in/x"],
        );
    }

    #[test]
    fn comments_and_empty_lines_say_nothing() {
        check("\u{feff}# a\n\n  \n.\n/\nb", &["b"], &["a", "# a"]);
        assert!(Ignore::parse("[a").is_err());
        assert!(Ignore::parse(&"a\n".repeat(LINES_MAX + 1)).is_err());
    }
}
