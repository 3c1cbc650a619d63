//! The human sentence that the wire carries beside an action; it is derived and never parsed.

use std::{borrow::Cow, fmt::Write as _};

use super::{Action, Condensation, Finish, Reject, TrackTasks};
use crate::python_repr;

/// How many characters of a recall's query its message repeats.
const QUERY_CHARS_MAX: usize = 50;

/// How many event numbers a message lists. The original lists all of them, however many a
/// range names; a range comes from outside, so we stop.
const FORGOTTEN_MAX: usize = 1_000;

impl Action {
    /// The sentence that describes the action to a person; empty for some types.
    pub fn message(&self) -> Cow<'_, str> {
        match self {
            Self::Null => "No action".into(),
            Self::Run(run) => format!("Running command: {}", run.command).into(),
            Self::RunIpython(cell) => {
                format!("Running Python code interactively: {}", cell.code).into()
            }
            Self::Read(read) => format!("Reading file: {}", read.path).into(),
            Self::Write(write) => format!("Writing file: {}", write.path).into(),
            Self::Edit(_) | Self::LoopRecovery(_) => "".into(),
            Self::Browse(browse) => format!("I am browsing the URL: {}", browse.url).into(),
            Self::BrowseInteractive(browse) => {
                let calls = &browse.browser_actions;
                format!("I am interacting with the browser:\n```\n{calls}\n```").into()
            }
            Self::CallToolMcp(call) => {
                let arguments = python_repr::of_object(&call.arguments);
                format!(
                    "I am interacting with the MCP server with name:\n```\n{}\n```\nand arguments:\n```\n{arguments}\n```",
                    call.name
                )
                .into()
            }
            Self::Glob(find) => format!("Finding files: {}", find.pattern).into(),
            Self::Grep(search) => format!("Searching files: {}", search.pattern).into(),
            Self::CallTool(call) => format!("Calling tool: {}", call.name).into(),
            Self::Message(message) => message.content.as_str().into(),
            Self::System(message) => message.content.as_str().into(),
            Self::Think(think) => format!("I am thinking...: {}", think.thought).into(),
            Self::Finish(finish) => finish_message(finish),
            Self::Reject(reject) => reject_message(reject),
            Self::Delegate(delegate) => {
                format!("I'm asking {} for help with this task.", delegate.agent).into()
            }
            Self::Recall(recall) => {
                let query: String = recall.query.chars().take(QUERY_CHARS_MAX).collect();
                format!("Retrieving content for: {query}").into()
            }
            Self::ChangeAgentState(change) => {
                format!("Agent state changed to {}", change.agent_state.as_str()).into()
            }
            Self::Condensation(condensation) => condensation_message(condensation),
            Self::CondensationRequest => {
                "Requesting a condensation of the conversation history.".into()
            }
            Self::TaskTracking(tasks) => tasks_message(tasks),
        }
    }
}

fn finish_message(finish: &Finish) -> Cow<'_, str> {
    if finish.thought.is_empty() {
        "All done! What's next on the agenda?".into()
    } else {
        finish.thought.as_str().into()
    }
}

fn reject_message(reject: &Reject) -> Cow<'_, str> {
    match reject.outputs.get("reason") {
        None => "Task is rejected by the agent.".into(),
        Some(reason) => {
            let reason = reason
                .as_str()
                .map_or_else(|| python_repr::of(reason), str::to_owned);
            format!("Task is rejected by the agent. Reason: {reason}").into()
        }
    }
}

fn condensation_message(condensation: &Condensation) -> Cow<'_, str> {
    if let Some(summary) = condensation
        .summary
        .as_deref()
        .filter(|text| !text.is_empty())
    {
        return format!("Summary: {summary}").into();
    }
    let mut text = String::from("Condenser is dropping the events: [");
    let ids = condensation.forgotten_event_ids.as_deref();
    match (
        ids,
        condensation.forgotten_events_start_id,
        condensation.forgotten_events_end_id,
    ) {
        (Some(ids), ..) => list_numbers(&mut text, ids.iter().copied()),
        (None, Some(start), Some(end)) => list_numbers(&mut text, start..=end),
        (None, ..) => {}
    }
    text.push_str("].");
    text.into()
}

fn list_numbers(text: &mut String, numbers: impl Iterator<Item = i64>) {
    for (index, number) in numbers.enumerate() {
        if index == FORGOTTEN_MAX {
            text.push_str(", ...");
            break;
        }
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{number}");
    }
}

fn tasks_message(tasks: &TrackTasks) -> Cow<'_, str> {
    match tasks.task_list.len() {
        0 => "Clearing the task list.".into(),
        1 => "Managing 1 task item.".into(),
        count => format!("Managing {count} task items.").into(),
    }
}
