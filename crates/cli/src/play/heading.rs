//! One action in a line or a few: what is asked for, and of what.

use zareba_protocol::{Action, ActionEvent, EditFile, RunCommand, SearchFiles};

/// Lines of a long text that are shown.
const LINES_MAX: usize = 12;

/// At least one line.
pub(super) fn of(event: &ActionEvent) -> Vec<String> {
    let mut lines = described(&event.action);
    let mut notes = Vec::new();
    if let Some(shell) = &event.shell {
        notes.push(format!("shell {shell}"));
    }
    if let Some(seconds) = event.timeout {
        notes.push(format!("timeout {seconds} s"));
    }
    if let (Some(first), false) = (lines.first_mut(), notes.is_empty()) {
        first.push_str(&format!("  ({})", notes.join(", ")));
    }
    lines
}

fn described(action: &Action) -> Vec<String> {
    match action {
        Action::Run(run) => command(run),
        Action::RunIpython(cell) => with_text("run_ipython", &cell.code),
        Action::Read(read) => vec![format!("read: {}", read.path)],
        Action::Write(write) => {
            let lines = write.content.lines().count();
            vec![format!("write: {} ({lines} {})", write.path, noun(lines))]
        }
        Action::Edit(edit) => vec![edited(edit)],
        Action::Browse(browse) => vec![format!("browse: {}", browse.url)],
        Action::Glob(glob) => vec![format!("glob: {}", glob.pattern)],
        Action::Grep(grep) => vec![searched(grep)],
        Action::CallToolMcp(tool) => vec![format!("call_tool_mcp: {}", tool.name)],
        Action::CallTool(tool) => vec![format!("call_tool: {}", tool.name)],
        other => vec![other.kind().to_owned()],
    }
}

fn command(run: &RunCommand) -> Vec<String> {
    match (run.command.as_str(), run.is_input) {
        ("", _) => vec!["run: (wait for more output)".to_owned()],
        (keys, true) => with_text("input", keys),
        (command, false) => with_text("run", command),
    }
}

fn edited(edit: &EditFile) -> String {
    let command = if edit.command.is_empty() {
        "draft"
    } else {
        &edit.command
    };
    format!("edit: {command} {}", edit.path)
}

fn searched(grep: &SearchFiles) -> String {
    let include = grep
        .include
        .as_ref()
        .map(|include| format!(" in {include}"));
    format!("grep: {}{}", grep.pattern, include.unwrap_or_default())
}

/// The kind and the text behind it; further lines stand below.
fn with_text(kind: &str, text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let mut shown = vec![format!("{kind}: {}", lines.next().unwrap_or_default())];
    shown.extend(lines.by_ref().take(LINES_MAX - 1).map(str::to_owned));
    let left = lines.count();
    if left > 0 {
        shown.push(format!("({left} more {})", noun(left)));
    }
    shown
}

fn noun(lines: usize) -> &'static str {
    if lines == 1 { "line" } else { "lines" }
}
