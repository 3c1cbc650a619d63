//! Colours, where they can be shown.

use std::io::{self, IsTerminal as _};

use zareba_config::Environment;

/// How text is set off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// By nothing: for files, pipes and people who do not want colours.
    Plain,
    /// By the colours of the terminal.
    Coloured,
}

impl Style {
    /// What standard output can show.
    pub(crate) fn for_stdout(environment: &Environment) -> Self {
        Self::of(io::stdout().is_terminal(), environment)
    }

    /// What standard error can show.
    pub(crate) fn for_stderr(environment: &Environment) -> Self {
        Self::of(io::stderr().is_terminal(), environment)
    }

    /// `NO_COLOR` is the common way to say no.
    fn of(is_terminal: bool, environment: &Environment) -> Self {
        let refused = environment
            .get_os("NO_COLOR")
            .is_some_and(|value| !value.is_empty())
            || environment
                .get("TERM")
                .is_none_or(|terminal| terminal == "dumb");
        if is_terminal && !refused {
            Self::Coloured
        } else {
            Self::Plain
        }
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn accent(self, text: &str) -> String {
        self.with("36", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
