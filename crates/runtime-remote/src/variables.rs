//! Commands that set variables in an executor that has no request for it, as those of OpenHands.
//!
//! Values are data. They are quoted so that a shell takes them as they are: no `$`, backtick or
//! quote in them means anything.

use zareba_protocol::RunCommand;
use zareba_wire::variables::VariableChanges;

/// Sets and removes variables in the shell that runs it, and for the programs that it starts.
pub(crate) fn export_command(changes: &VariableChanges) -> RunCommand {
    let commands = changes.iter().map(|(name, value)| match value {
        Some(value) => format!("export {name}={}", quoted(value)),
        None => format!("unset -v {name}"),
    });
    RunCommand {
        hidden: true,
        ..RunCommand::new(commands.collect::<Vec<_>>().join(" && "))
    }
}

/// Writes them to `~/.bashrc`, which shells to come read; an older line for the same name
/// is replaced. It runs in a shell of its own, so that no state of another is in the way.
pub(crate) fn start_up_command(changes: &VariableChanges) -> RunCommand {
    let mut others = String::new();
    let mut lines = String::new();
    for (name, value) in changes.iter() {
        others.push_str(&format!(" -e '^export {name}=' -e '^unset -v {name}$'"));
        let line = match value {
            Some(value) => format!("export {name}={}", quoted_on_one_line(value)),
            None => format!("unset -v {name}"),
        };
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
    use super::*;

    fn changes(pairs: &[(&str, Option<&str>)]) -> VariableChanges {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
        VariableChanges::new(pairs).unwrap()
    }

    #[test]
    fn values_are_quoted_so_that_nothing_in_them_is_expanded() {
        let set = changes(&[
            ("A", Some("$HOME `id` \"x\"")),
            ("B", None),
            ("_b2", Some("it's\ntwo")),
        ]);
        assert_eq!(
            export_command(&set).command,
            "export A='$HOME `id` \"x\"' && unset -v B && export _b2='it'\\''s\ntwo'"
        );
    }

    #[test]
    fn a_line_of_the_start_up_file_never_breaks() {
        let command = start_up_command(&changes(&[("A", Some("one\ntwo's \\"))])).command;
        assert_eq!(command.lines().count(), 1);
        assert!(
            command.contains(r"'export A=$'\''one\ntwo\'\''s \\'\'''"),
            "{command}"
        );
    }
}
