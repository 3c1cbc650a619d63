//! The two ways out: data to standard output, words to standard error.
//!
//! Words that nobody can read any more are lost without harm. Data that cannot be written is a
//! failure, except that a reader who went away has read enough. Words may quote what others wrote,
//! so nothing in them reaches the terminal that it would obey.

mod printable;

use std::{
    fmt::Display,
    io::{self, ErrorKind, IsTerminal as _, Write as _},
    sync::OnceLock,
};

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
    play::Style,
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

/// Whether words may be coloured. Said once, when the program starts.
static STYLE: OnceLock<Style> = OnceLock::new();

/// From now on words are set off like this.
pub(crate) fn set_style(style: Style) {
    // A copy of this process that goes on as another command keeps the first.
    let _ = STYLE.set(style);
}

/// A way to set words off.
type SetOff = fn(Style, &str) -> String;

/// Sets off the words that a line begins with and that say what kind of line it is.
fn coloured(text: &str, style: Style) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let kinds: [(&str, SetOff); 4] = [
            ("error:", Style::bad),
            ("warning:", Style::warn),
            ("  caused by:", Style::faint),
            ("  hint:", Style::accent),
        ];
        let found = kinds.iter().find_map(|(kind, set_off)| {
            let rest = line.strip_prefix(kind)?;
            Some(format!("{}{rest}", set_off(style, kind)))
        });
        found.unwrap_or_else(|| line.to_owned())
    });
    lines.collect()
}

/// Whether words are read by a person, and not by a file or a program.
pub(crate) fn to_a_person() -> bool {
    io::stderr().is_terminal()
}

/// Says something as it is.
pub(crate) fn words(words: impl Display) {
    let words = words.to_string();
    let style = STYLE.get().copied().unwrap_or(Style::Plain);
    // First what others wrote is made harmless, then colours of ours are added.
    let words = coloured(&printable(&words), style);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kind_of_a_line_is_coloured() {
        let text = "error: no room\n  caused by: error: full\n  hint: try\n    again";
        assert_eq!(coloured(text, Style::Plain), text);
        let expected = "\u{1b}[31merror:\u{1b}[0m no room\n\u{1b}[2m  caused by:\u{1b}[0m error: full\n\
                        \u{1b}[36m  hint:\u{1b}[0m try\n    again";
        assert_eq!(coloured(text, Style::Coloured), expected);
    }
}
