//! Variables of a sandbox's shells: which names there may be, and the commands that set them.
//!
//! Values are data. They are quoted so that a shell takes them as they are: no `$`, backtick or
//! quote in them means anything. Every backend sets variables by these commands, so that they
//! are written once.

use std::fmt;

use zareba_protocol::RunCommand;

use crate::RuntimeError;

/// Variables whose names a shell can have and whose values a process can be given.
#[derive(Clone, PartialEq, Eq)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// Checks names and values. Of equal names the last one counts.
    ///
    /// # Errors
    /// [`RuntimeError::Invalid`] for a name that is not made of letters, digits and `_` or that
    /// begins with a digit, and for a value with a NUL character.
    pub fn new(pairs: Vec<(String, String)>) -> Result<Self, RuntimeError> {
        let mut checked: Vec<(String, String)> = Vec::with_capacity(pairs.len());
        for (name, value) in pairs {
            check(&name, &value)?;
            checked.retain(|(other, _)| *other != name);
            checked.push((name, value));
        }
        Ok(Self(checked))
    }

    /// Names and values, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets them in the shell that runs it, and for the programs that it starts.
    pub fn export_command(&self) -> RunCommand {
        let mut command = "export".to_owned();
        for (name, value) in self.iter() {
            command.push_str(&format!(" {name}={}", quoted(value)));
        }
        RunCommand {
            hidden: true,
            ..RunCommand::new(command)
        }
    }

    /// Writes them to `~/.bashrc`, which shells to come read; an older line for the same name
    /// is replaced. It runs in a shell of its own, so that no state of another is in the way.
    pub fn start_up_command(&self) -> RunCommand {
        let mut others = String::new();
        let mut lines = String::new();
        for (name, value) in self.iter() {
            others.push_str(&format!(" -e '^export {name}='"));
            let line = format!("export {name}={}", quoted_on_one_line(value));
            lines.push_str(&format!(" {}", quoted(&line)));
        }
        // Written through, not renamed over: the file may be a link.
        let command = format!(
            "(new=$(mktemp) || exit; grep -v{others} ~/.bashrc >\"$new\" 2>/dev/null; \
             printf '%s\\n'{lines} >>\"$new\" && cat \"$new\" >~/.bashrc; \
             status=$?; rm -f \"$new\"; exit \"$status\")"
        );
        RunCommand {
            hidden: true,
            is_static: true,
            ..RunCommand::new(command)
        }
    }
}

/// Names only: values are where people keep their secrets.
impl fmt::Debug for Variables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

fn check(name: &str, value: &str) -> Result<(), RuntimeError> {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let begins_well = name.bytes().next().is_some_and(is_letter);
    let goes_on_well = name
        .bytes()
        .all(|byte| is_letter(byte) || byte.is_ascii_digit());
    if !(begins_well && goes_on_well) {
        let name = name.escape_debug();
        return Err(RuntimeError::Invalid {
            message: format!(
                "`{name}` cannot name a variable: use letters, digits and `_`, no digit first"
            ),
        });
    }
    if value.contains('\0') {
        return Err(RuntimeError::Invalid {
            message: format!("the value of `{name}` has a NUL character, which no process can get"),
        });
    }
    Ok(())
}

/// A text as one word of any POSIX shell, with nothing in it expanded.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The same for bash, without a line break, so that a line of a file can be found and replaced.
fn quoted_on_one_line(text: &str) -> String {
    if !text.contains(['\n', '\r']) {
        return quoted(text);
    }
    let escaped = text
        .replace('\\', r"\\")
        .replace('\'', r"\'")
        .replace('\n', r"\n")
        .replace('\r', r"\r");
    format!("$'{escaped}'")
}

#[cfg(test)]
mod tests {
    use zareba_protocol::ErrorClass;

    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Result<Variables, RuntimeError> {
        let pairs = pairs.iter();
        Variables::new(
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn values_are_quoted_so_that_nothing_in_them_is_expanded() {
        let set = variables(&[("A", "$HOME `id` \"x\""), ("_b2", "it's\ntwo")]).unwrap();
        assert_eq!(
            set.export_command().command,
            "export A='$HOME `id` \"x\"' _b2='it'\\''s\ntwo'"
        );
    }

    #[test]
    fn a_line_of_the_start_up_file_never_breaks() {
        let set = variables(&[("A", "one\ntwo's \\")]).unwrap();
        let command = set.start_up_command().command;
        assert_eq!(command.lines().count(), 1);
        assert!(
            command.contains(r"'export A=$'\''one\ntwo\'\''s \\'\'''"),
            "{command}"
        );
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        let set = variables(&[("A", "1"), ("B", "2"), ("A", "3")]).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [("B", "2"), ("A", "3")]);
    }

    #[test]
    fn names_that_would_be_code_are_refused() {
        for name in ["", "1A", "A B", "A;id", "A$(id)", "é", "A-B", "A\n"] {
            let error = variables(&[(name, "x")]).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Invalid, "{name:?}");
        }
        let error = variables(&[("A", "x\0y")]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Invalid);
    }

    #[test]
    fn values_do_not_show_up_in_logs() {
        let set = variables(&[("TOKEN", "secret")]).unwrap();
        assert_eq!(format!("{set:?}"), r#"{"TOKEN"}"#);
    }
}
