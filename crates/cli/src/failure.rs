//! A failure on its way to the user: what was attempted, why it failed, what to do next.
//!
//! Every command returns one, and it is printed once, at the edge, as a chain.

use std::{error::Error, fmt};

use crate::exit::Exit;

/// Causes that are printed; a longer chain is no help to anybody.
const CAUSES_MAX: usize = 16;

/// Why a command could not do what it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    /// The deed first, then each cause.
    chain: Vec<String>,
    hints: Vec<String>,
}

impl Failure {
    /// A failure that has no cause but itself.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            chain: vec![message.into()],
            hints: Vec::new(),
        }
    }

    /// A failure with everything that the error knows of its causes.
    pub(crate) fn of(exit: Exit, error: &(dyn Error + 'static)) -> Self {
        let causes = std::iter::successors(Some(error), |error| (*error).source());
        Self {
            exit,
            chain: causes.take(CAUSES_MAX).map(ToString::to_string).collect(),
            hints: Vec::new(),
        }
    }

    /// The same as the cause of `deed`.
    pub(crate) fn while_doing(mut self, deed: impl Into<String>) -> Self {
        self.chain.insert(0, deed.into());
        self
    }

    /// The same with something that the user can do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same with another end of the program.
    pub(crate) fn ending_with(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The failure that another process of this program has printed last, if it printed any.
    pub(crate) fn printed(exit: Exit, words: &str) -> Option<Self> {
        let (_, last) = words.rsplit_once("error: ")?;
        let mut failure = Self::new(exit, "");
        let mut is_hint = false;
        for (number, line) in last.lines().enumerate() {
            let (cause, hint) = (
                line.strip_prefix("  caused by: "),
                line.strip_prefix("  hint: "),
            );
            match (cause, hint) {
                (Some(cause), _) => failure.chain.push(cause.to_owned()),
                (None, Some(hint)) => failure.hints.push(hint.to_owned()),
                (None, None) => {
                    let texts = if is_hint {
                        &mut failure.hints
                    } else {
                        &mut failure.chain
                    };
                    if let Some(text) = texts.last_mut() {
                        text.push_str(if number == 0 { "" } else { "\n" });
                        text.push_str(line.trim_start());
                    }
                    continue;
                }
            }
            is_hint = hint.is_some();
        }
        Some(failure)
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Why, and what to do, in one line for those who know what was attempted.
    pub(crate) fn why(&self) -> String {
        let is_deed = usize::from(self.chain.len() > 1);
        let reasons = self.chain.iter().skip(is_deed).chain(&self.hints);
        let lines = reasons.flat_map(|reason| reason.lines()).map(str::trim);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        lines.join("; ")
    }
}

/// Attaches a deed to whatever error a call can give.
pub(crate) trait OrFail<T> {
    /// Turns an error into a failure that ends the program with `exit`.
    fn or_fail(self, exit: Exit, deed: impl Into<String>) -> Result<T, Failure>;
}

impl<T, E: Error + 'static> OrFail<T> for Result<T, E> {
    fn or_fail(self, exit: Exit, deed: impl Into<String>) -> Result<T, Failure> {
        self.map_err(|error| Failure::of(exit, &error).while_doing(deed))
    }
}

/// `error: …`, then one `  caused by: …` for each cause and one `  hint: …` for each way on.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chain = self.chain.iter();
        let deed = chain.next().map_or("", String::as_str);
        write!(formatter, "error: {}", indented(deed))?;
        for cause in chain {
            write!(formatter, "\n  caused by: {}", indented(cause))?;
        }
        for hint in &self.hints {
            write!(formatter, "\n  hint: {}", indented(hint))?;
        }
        Ok(())
    }
}

/// Further lines of a text stand below its first, so that the chain can still be seen.
fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_printed_as_a_chain_with_hints() {
        let cause = std::io::Error::other("first\nsecond\n");
        let failure = Failure::of(Exit::Start, &cause)
            .while_doing("cannot begin")
            .hint("try again");
        let expected = "error: cannot begin\n  caused by: first\n    second\n  hint: try again";
        assert_eq!(failure.to_string(), expected);
        assert_eq!(failure.exit(), Exit::Start);
        assert_eq!(failure.why(), "first; second; try again");
        assert_eq!(Failure::new(Exit::Start, "no room").why(), "no room");
    }

    #[test]
    fn a_failure_is_read_as_it_was_printed() {
        let failure = Failure::of(Exit::Lost, &std::io::Error::other("first\nsecond"))
            .while_doing("cannot begin")
            .hint("try again\nlater");
        let words = format!("error: of before\nzareba: listening\n{failure}\n");
        assert_eq!(Failure::printed(Exit::Lost, &words), Some(failure));
        assert_eq!(Failure::printed(Exit::Lost, "zareba: listening\n"), None);
    }
}
