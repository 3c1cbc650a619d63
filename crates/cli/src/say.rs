//! The two ways out: data to standard output, words to standard error.
//!
//! Words that nobody can read any more are lost without harm. Data that cannot be written is a
//! failure, except that a reader who went away has read enough.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Write as _},
};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Says something that the user should know.
pub(crate) fn note(words: impl Display) {
    let _ = writeln!(io::stderr().lock(), "zareba: {words}");
}

/// Says something that the user may want to change.
pub(crate) fn warning(words: impl Display) {
    let _ = writeln!(io::stderr().lock(), "warning: {words}");
}

/// Says why nothing came of it.
pub(crate) fn failure(failure: &Failure) {
    let _ = writeln!(io::stderr().lock(), "{failure}");
}

/// Says something as it is.
pub(crate) fn words(words: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{words}");
}

/// Writes data, and sees to it that it is out.
pub(crate) fn data(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.or_fail(Exit::Failure, "cannot write to standard output"),
    }
}

/// Writes a text, with an end to its last line.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let is_whole = text.is_empty() || text.ends_with('\n');
    data(format!("{text}{}", if is_whole { "" } else { "\n" }).as_bytes())
}

/// Writes one line of data.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    data(format!("{text}\n").as_bytes())
}
