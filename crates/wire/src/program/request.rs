//! What a program is started with.

use super::{StartFailure, StartProgramError};

/// What a connection is upgraded to.
pub const UPGRADE_NAME: &str = "zareba-program";

/// All words and variables of a request together. The kernel takes about twice as much, with the
/// environment that a program has anyway.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// A program to start, with streams of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRequest {
    /// What to run.
    pub program: ProgramLine,
    /// Where it starts; `None` is the executor's working directory, from where a relative one
    /// is meant too.
    pub directory: Option<String>,
    /// Variables beside those that every shell of the executor has; these win.
    pub environment: Vec<(String, String)>,
    /// The size of its terminal; `None` gives it pipes, with errors apart from output.
    pub terminal: Option<TerminalSize>,
    /// What it reads.
    pub stdin: ProgramStdin,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramLine {
    /// A program and its arguments, passed on as they are. A name without a slash is looked for
    /// in `PATH`.
    Argv(Vec<String>),
    /// Text for the executor's shell.
    Shell(String),
}

/// What a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramStdin {
    /// Nothing.
    Closed,
    /// What the client sends.
    Open,
}

/// The size of a terminal. Neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl TerminalSize {
    /// `None` when one of them is 0, which is no size.
    pub fn new(rows: u16, columns: u16) -> Option<Self> {
        (rows > 0 && columns > 0).then_some(Self { rows, columns })
    }
}

impl ProgramRequest {
    /// A program on pipes, with nothing to read.
    pub fn new(program: ProgramLine) -> Self {
        Self {
            program,
            directory: None,
            environment: Vec::new(),
            terminal: None,
            stdin: ProgramStdin::Closed,
        }
    }

    /// Looks for what no system could start.
    ///
    /// # Errors
    /// No words at all, NUL characters, names of variables that are none, or too much of it.
    pub fn check(&self) -> Result<(), StartProgramError> {
        let words = match &self.program {
            ProgramLine::Argv(words) => words.as_slice(),
            ProgramLine::Shell(text) => std::slice::from_ref(text),
        };
        if words.first().is_none_or(String::is_empty) {
            return Err(invalid("there is no program to start; name one"));
        }
        for (name, _) in &self.environment {
            if name.is_empty() || name.contains('=') {
                return Err(invalid(format!("`{name}` is no name for a variable")));
            }
        }
        let variables = self
            .environment
            .iter()
            .flat_map(|(name, value)| [name, value]);
        let mut bytes = 0;
        for text in words.iter().chain(variables).chain(&self.directory) {
            if text.contains('\0') {
                return Err(invalid(
                    "a program, variable or directory has a NUL character",
                ));
            }
            bytes += text.len() + 1;
        }
        if bytes > REQUEST_BYTES_MAX {
            return Err(invalid(format!(
                "the program's words and variables have {bytes} bytes; the limit is \
                 {REQUEST_BYTES_MAX}. Write them to a file or to its standard input"
            )));
        }
        Ok(())
    }
}

fn invalid(message: impl Into<String>) -> StartProgramError {
    StartProgramError::new(StartFailure::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> ProgramRequest {
        let words = words.iter().map(|&word| word.to_owned());
        ProgramRequest::new(ProgramLine::Argv(words.collect()))
    }

    #[test]
    fn what_no_system_could_start_is_refused_before_it_is_tried() {
        argv(&["true", "", "ä b"]).check().unwrap();
        let mut with_variables = argv(&["true"]);
        with_variables.environment = vec![("A=B".to_owned(), "1".to_owned())];
        let text = ProgramRequest::new(ProgramLine::Shell(String::new()));
        for request in [
            argv(&[]),
            argv(&[""]),
            argv(&["a\0b"]),
            with_variables,
            text,
        ] {
            let error = request.check().unwrap_err();
            assert_eq!(error.reason, StartFailure::Invalid, "{error}");
        }
    }

    #[test]
    fn words_and_variables_count_together() {
        let mut request = argv(&["true", &"a".repeat(REQUEST_BYTES_MAX / 2)]);
        request.check().unwrap();
        let value = "b".repeat(REQUEST_BYTES_MAX / 2);
        request.environment = vec![("B".to_owned(), value)];
        let error = request.check().unwrap_err();
        assert_eq!(error.reason, StartFailure::Invalid);
        assert!(error.message.contains("limit"), "{error}");
    }
}
