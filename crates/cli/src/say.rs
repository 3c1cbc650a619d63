//! The two ways out: data to standard output, words to standard error.
//!
//! Words that nobody can read any more are lost without harm. Data that cannot be written is a
//! failure, except that a reader who went away has read enough. Words may quote what others wrote,
//! so nothing in them reaches the terminal that it would obey.

mod printable;

use std::{
    fmt::Display,
    io::{self, ErrorKind, IsTerminal as _, Write as _},
};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

pub(crate) use printable::{printable, printable_line};

/// Says something that the user should know.
pub(crate) fn note(note: impl Display) {
    words(format_args!("zareba: {note}"));
}

/// Says something that the user may want to change.
pub(crate) fn warning(warning: impl Display) {
    words(format_args!("warning: {warning}"));
}

/// Says why nothing came of it.
pub(crate) fn failure(failure: &Failure) {
    words(failure);
}

/// Says something as it is.
pub(crate) fn words(words: impl Display) {
    let words = words.to_string();
    let _ = writeln!(io::stderr().lock(), "{}", printable(&words));
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

/// Writes a text of others: to a program as it is, to a person without what their terminal would
/// obey.
pub(crate) fn text_of_others(theirs: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() {
        text(&printable(theirs))
    } else {
        text(theirs)
    }
}

/// Writes one line of data.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    data(format!("{text}\n").as_bytes())
}
