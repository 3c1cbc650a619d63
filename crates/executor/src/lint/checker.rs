//! One check per language: text in, issues out.

use std::{ffi::OsStr, path::Path};

use super::program::Runner;

/// More issues than these say nothing new.
const ISSUES_MAX: usize = 20;

/// Codes that mean a program which cannot run or names what does not exist.
const FATAL_CODES: &str = "--select=F821,F822,F831,E112,E113,E999,E902";

/// Compiles standard input and prints the first syntax error as three lines.
const COMPILE: &str = r"
import sys
try:
    compile(sys.stdin.buffer.read(), '<edit>', 'exec', dont_inherit=True)
except SyntaxError as error:
    print(error.lineno or 1, error.offset or 1, type(error).__name__, error.msg)
except ValueError as error:
    print(1, 1, type(error).__name__, error)
";

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issue {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

/// A language that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Shell,
    Json,
}

impl Language {
    /// The language of a file, by its extension.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension().and_then(OsStr::to_str)? {
            "py" | "pyi" => Some(Self::Python),
            "sh" | "bash" => Some(Self::Shell),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// The mistakes in a text; `None` when there is nothing here to find them with.
    pub(super) fn check(self, runner: &Runner, text: &str) -> Option<Vec<Issue>> {
        let mut issues = match self {
            Self::Python => flake8(runner, text).or_else(|| compiled(runner, text))?,
            Self::Shell => shell(runner, text)?,
            Self::Json => json(text),
        };
        issues.truncate(ISSUES_MAX);
        Some(issues)
    }
}

fn flake8(runner: &Runner, text: &str) -> Option<Vec<Issue>> {
    let format = "--format=%(row)d %(col)d %(code)s %(text)s";
    let finished = runner.run("flake8", &["--isolated", FATAL_CODES, format, "-"], text)?;
    // 1 says that there are issues; others that it could not work.
    matches!(finished.exit_code, 0 | 1).then(|| located(&finished.output))
}

fn compiled(runner: &Runner, text: &str) -> Option<Vec<Issue>> {
    let finished = runner.run("python3", &["-I", "-c", COMPILE], text)?;
    if finished.exit_code != 0 {
        return None;
    }
    let mut issues = located(&finished.output);
    for issue in &mut issues {
        // As flake8 words it, so that the message does not depend on what is installed.
        issue.message = match issue.message.split_once(' ') {
            Some((kind, text)) => format!("E999 {kind}: {text}"),
            None => format!("E999 {}", issue.message),
        };
    }
    Some(issues)
}

/// Lines of the form `line column message`.
fn located(output: &str) -> Vec<Issue> {
    let parse = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        Some(Issue {
            line: parts.next()?.parse().ok()?,
            column: parts.next()?.parse().ok()?,
            message: parts.next()?.to_owned(),
        })
    };
    output.lines().filter_map(parse).collect()
}

fn shell(runner: &Runner, text: &str) -> Option<Vec<Issue>> {
    let finished = runner.run("bash", &["--norc", "--noprofile", "-n"], text)?;
    let parse = |line: &str| {
        let (line, message) = line.split_once(": line ")?.1.split_once(": ")?;
        // The second line of a complaint only repeats the source.
        let is_source = message.starts_with('`');
        (!is_source).then_some(Issue {
            line: line.parse().ok()?,
            column: 1,
            message: message.to_owned(),
        })
    };
    Some(finished.output.lines().filter_map(parse).collect())
}

fn json(text: &str) -> Vec<Issue> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(_) => Vec::new(),
        Err(error) => {
            let message = error.to_string();
            let end = message.find(" at line ").unwrap_or(message.len());
            vec![Issue {
                line: error.line(),
                column: error.column(),
                message: message[..end].to_owned(),
            }]
        }
    }
}
