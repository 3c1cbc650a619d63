//! Checks of an edited file that a parser can do, told to the agent with the edit.
//!
//! Only mistakes that the edit brought in are told. Languages: Python (flake8's fatal codes when
//! it is installed, otherwise what the interpreter's compiler says), shell scripts (`bash -n`) and
//! JSON. A checker that is missing, fails or takes too long means no report, never a failed edit.

mod checker;
mod program;

use std::path::Path;

use checker::{Issue, Language};
use program::Runner;

use crate::owner::Owner;

/// Whether edits are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linting {
    /// As the original server does.
    Off,
    /// After every `str_replace` and `insert`.
    On,
}

/// Checks edited files when it is asked to.
#[derive(Debug)]
pub(crate) struct Linter {
    linting: Linting,
    runner: Runner,
}

impl Linter {
    /// Programs run as `owner`, since they read what an agent wrote.
    pub(crate) fn new(linting: Linting, owner: Owner) -> Self {
        Self {
            linting,
            runner: Runner::new(owner),
        }
    }

    /// The block that stands before "Review the changes"; none when there is nothing to check
    /// this file with.
    pub(crate) fn report(&self, path: &Path, before: &str, after: &str) -> Option<String> {
        match self.linting {
            Linting::Off => return None,
            Linting::On => {}
        }
        let language = Language::of(path)?;
        let mut issues = language.check(&self.runner, after)?;
        if !issues.is_empty() {
            let known = language.check(&self.runner, before).unwrap_or_default();
            issues = introduced(issues, after, &known, before);
        }
        Some(block(&issues))
    }
}

fn block(issues: &[Issue]) -> String {
    if issues.is_empty() {
        return "\nNo linting issues found in the changes.\n".to_owned();
    }
    let lines: Vec<String> = issues
        .iter()
        .map(|issue| {
            format!(
                "- Line {}, Column {}: {}",
                issue.line, issue.column, issue.message
            )
        })
        .collect();
    format!(
        "\nLinting issues found in the changes:\n{}\n\n",
        lines.join("\n")
    )
}

/// The issues that the text did not have before. An edit moves lines, so an old issue is known
/// again by its message and the text of its line.
fn introduced(issues: Vec<Issue>, after: &str, known: &[Issue], before: &str) -> Vec<Issue> {
    let mark = |text: &str, issue: &Issue| {
        let line = text
            .split('\n')
            .nth(issue.line.saturating_sub(1))
            .unwrap_or_default();
        (issue.message.clone(), line.trim().to_owned())
    };
    let mut known: Vec<_> = known.iter().map(|issue| mark(before, issue)).collect();
    issues
        .into_iter()
        .filter(
            |issue| match known.iter().position(|old| *old == mark(after, issue)) {
                Some(old) => {
                    known.swap_remove(old);
                    false
                }
                None => true,
            },
        )
        .collect()
}

#[cfg(test)]
mod lint_tests;
