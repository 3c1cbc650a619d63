//! The sentences of the shell contract. Clients and agents match them to the letter.

use std::time::Duration;

/// How to go on with a command that still runs.
const ADVICE: &str = "You may wait longer to see additional output by sending empty command '', \
    send other commands to interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") \
    to interrupt/kill the previous command before sending your new command, or use the timeout \
    parameter in execute_bash for future commands.";

pub(super) const NOTHING_TO_SHOW: &str =
    "ERROR: No previous running command to retrieve logs from.";
pub(super) const NOTHING_TO_ANSWER: &str = "ERROR: No previous running command to interact with.";
/// The `error_id` of an action that was stopped before its turn.
pub(super) const STOPPED_ID: &str = "stopped";
pub(super) const WITHDRAWN: &str =
    "ERROR: The command was NOT run: the action was stopped before its turn came.";

pub(super) const PASSED_ON: &str = "[The input was sent to the running command. The action that \
    waits for that command tells what comes of it.]";
pub(super) const BELOW_IS_PREVIOUS: &str = "[Below is the output of the previous command.]\n";
pub(super) const INPUT_TOO_LATE: &str =
    "[The previous command had already completed, so your input was NOT sent.]\n";
pub(super) const REPLACED_BEFORE: &str = "[The shell had ended and was replaced by a new one: variables, functions and aliases are gone.]\n";

pub(super) fn completed(status: i64, control: Option<char>) -> String {
    match control {
        Some(letter) => {
            format!("\n[The command completed with exit code {status}. CTRL+{letter} was sent.]")
        }
        None => format!("\n[The command completed with exit code {status}.]"),
    }
}

pub(super) fn shell_replaced(signal: Option<i32>) -> String {
    let by = signal.map_or(String::new(), |signal| {
        format!(", killed by {}", signal_name(signal))
    });
    format!(
        "\n[The shell ended with this command{by} and was replaced by a new one: variables, \
         functions and aliases are gone, the working directory is kept.]"
    )
}

pub(super) fn silent(silence: Duration) -> String {
    format!(
        "\n[The command has no new output after {} seconds. {ADVICE}]",
        silence.as_secs()
    )
}

/// The number is written as Python writes a float: `1.0`, `2.5`.
pub(super) fn timed_out(total: Duration) -> String {
    format!(
        "\n[The command timed out after {:?} seconds. {ADVICE}]",
        total.as_secs_f64()
    )
}

pub(super) fn time_limit(total: Duration) -> String {
    format!(
        "the answer was due after {:?} s and the command goes on",
        total.as_secs_f64()
    )
}

/// Of a command with a shell of its own, which ends when the command is answered.
pub(super) fn ended_at_limit(total: Duration) -> String {
    format!(
        "the command did not end within {:?} s and was ended with its shell",
        total.as_secs_f64()
    )
}

pub(super) fn output_limit(shown: usize, written: u64) -> String {
    format!("{shown} of {written} bytes of the output are shown")
}

pub(super) fn not_executed(command: &str) -> String {
    format!(
        "\n[Your command \"{command}\" is NOT executed. The previous command is still running - You \
         CANNOT send new commands until the previous command is completed. By setting `is_input` \
         to `true`, you can interact with the current process: {ADVICE}]"
    )
}

pub(super) fn lines_dropped(kept: usize) -> String {
    format!(
        "[Previous command outputs are truncated. Showing the last {kept} lines of the output below.]\n"
    )
}

pub(super) fn previous_ended(status: i64, output: &str) -> String {
    let output = output.trim();
    if output.is_empty() {
        return format!("[The previous command completed with exit code {status}.]\n");
    }
    format!(
        "[The previous command completed with exit code {status}. Its remaining output:]\n{output}\n\
         [Below is the output of your command.]\n"
    )
}

pub(super) fn several_commands(parts: &[String]) -> String {
    let list: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(index, part)| format!("({}) {part}", index + 1))
        .collect();
    format!(
        "ERROR: Cannot execute multiple commands at once.\nPlease run each command separately OR \
         chain them into a single command via && or ;\nProvided commands:\n{}",
        list.join("\n")
    )
}

/// The name of a signal, for those that end programs.
pub(super) fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
