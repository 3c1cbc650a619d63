//! The wire's rules per action type: its names, which arguments it takes, how they are read.
//!
//! One row per type and no other list of them, so a new action is a variant, a struct and a row.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::{
    Action, BrowseInteractive, BrowseUrl, CallTool, ChangeAgentState, Condensation, Delegate,
    EditFile, FindFiles, Finish, LoopRecovery, ReadFile, Recall, Reject, RunCell, RunCommand,
    SearchFiles, SendMessage, SystemMessage, Think, TrackTasks, UseTool, WriteFile,
};
use crate::{
    decode::{FieldError, parse_fields},
    no_fields::NoArgs,
};

/// What the wire says of one action type.
pub(crate) struct ActionContract {
    /// The type string.
    pub(crate) kind: &'static str,
    /// The original's class, which its error texts name; those of ours have names of ours.
    pub(crate) class: &'static str,
    /// Arguments that must be there, in the original's order.
    pub(crate) required: &'static [&'static str],
    /// Arguments that may be there.
    pub(crate) optional: &'static [&'static str],
    /// Reads arguments whose names were checked.
    pub(crate) parse: fn(Map<String, Value>) -> Result<Action, FieldError>,
    /// Describes the arguments.
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The contract of the type that the wire calls `kind`.
pub(crate) fn find(kind: &str) -> Option<&'static ActionContract> {
    ALL.iter().find(|contract| contract.kind == kind)
}

macro_rules! contracts {
    ($($kind:literal $class:literal [$($required:literal)*] [$($optional:literal)*] $parse:expr, $args:ty;)+) => {
        &[$(ActionContract {
            kind: $kind,
            class: $class,
            required: &[$($required),*],
            optional: &[$($optional),*],
            parse: $parse,
            schema: |generator| generator.subschema_for::<$args>(),
        }),+]
    };
}

/// All types, in the order in which the original lists them; ours come last.
#[rustfmt::skip]
pub(crate) static ALL: &[ActionContract] = contracts! {
    "null" "NullAction" [] [] |_| Ok(Action::Null), NoArgs;
    "run" "CmdRunAction" ["command"]
        ["is_input" "thought" "blocking" "is_static" "cwd" "hidden" "confirmation_state" "security_risk"]
        |args| parse_fields(args).map(Action::Run), RunCommand;
    "run_ipython" "IPythonRunCellAction" ["code"]
        ["thought" "include_extra" "confirmation_state" "security_risk" "kernel_init_code"]
        |args| parse_fields(args).map(Action::RunIpython), RunCell;
    "browse" "BrowseURLAction" ["url"] ["thought" "security_risk" "return_axtree"]
        |args| parse_fields(args).map(Action::Browse), BrowseUrl;
    "browse_interactive" "BrowseInteractiveAction" ["browser_actions"]
        ["thought" "browsergym_send_msg_to_user" "security_risk" "return_axtree"]
        |args| parse_fields(args).map(Action::BrowseInteractive), BrowseInteractive;
    "read" "FileReadAction" ["path"]
        ["start" "end" "thought" "security_risk" "impl_source" "view_range"]
        |args| parse_fields(args).map(Action::Read), ReadFile;
    "write" "FileWriteAction" ["path" "content"] ["start" "end" "thought" "security_risk"]
        |args| parse_fields(args).map(Action::Write), WriteFile;
    "edit" "FileEditAction" ["path"]
        ["command" "file_text" "old_str" "new_str" "insert_line" "content" "start" "end" "thought"
         "security_risk" "impl_source"]
        |args| parse_fields(args).map(Action::Edit), EditFile;
    "think" "AgentThinkAction" [] ["thought"] |args| parse_fields(args).map(Action::Think), Think;
    "finish" "AgentFinishAction" [] ["final_thought" "outputs" "thought"]
        |args| parse_fields(args).map(Action::Finish), Finish;
    "reject" "AgentRejectAction" [] ["outputs" "thought"]
        |args| parse_fields(args).map(Action::Reject), Reject;
    "delegate" "AgentDelegateAction" ["agent" "inputs"] ["thought"]
        |args| parse_fields(args).map(Action::Delegate), Delegate;
    "recall" "RecallAction" ["recall_type"] ["query" "thought"]
        |args| parse_fields(args).map(Action::Recall), Recall;
    "change_agent_state" "ChangeAgentStateAction" ["agent_state"] ["thought"]
        |args| parse_fields(args).map(Action::ChangeAgentState), ChangeAgentState;
    "message" "MessageAction" ["content"] ["file_urls" "image_urls" "wait_for_response" "security_risk"]
        |args| parse_fields(args).map(Action::Message), SendMessage;
    "system" "SystemMessageAction" ["content"] ["tools" "openhands_version" "agent_class"]
        |args| parse_fields(args).map(Action::System), SystemMessage;
    "condensation" "CondensationAction" []
        ["forgotten_event_ids" "forgotten_events_start_id" "forgotten_events_end_id" "summary"
         "summary_offset"]
        parse_condensation, Condensation;
    "condensation_request" "CondensationRequestAction" [] [] |_| Ok(Action::CondensationRequest), NoArgs;
    "call_tool_mcp" "MCPAction" ["name"] ["arguments" "thought" "security_risk"]
        |args| parse_fields(args).map(Action::CallToolMcp), CallTool;
    "task_tracking" "TaskTrackingAction" [] ["command" "task_list" "thought"]
        |args| parse_fields(args).map(Action::TaskTracking), TrackTasks;
    "loop_recovery" "LoopRecoveryAction" [] ["option"]
        |args| parse_fields(args).map(Action::LoopRecovery), LoopRecovery;
    "glob" "GlobAction" ["pattern"] ["path" "include_ignored" "limit" "thought" "security_risk"]
        |args| parse_fields(args).map(Action::Glob), FindFiles;
    "grep" "GrepAction" ["pattern"]
        ["path" "include" "include_ignored" "ignore_case" "limit" "thought" "security_risk"]
        |args| parse_fields(args).map(Action::Grep), SearchFiles;
    "call_tool" "ToolCallAction" ["name"]
        ["arguments" "positional" "unchecked" "thought" "security_risk"]
        |args| parse_fields(args).map(Action::CallTool), UseTool;
};

/// Its fields are the one case where each may be right and the whole wrong.
fn parse_condensation(args: Map<String, Value>) -> Result<Action, FieldError> {
    let parsed: Condensation = parse_fields(args)?;
    let range = (
        parsed.forgotten_events_start_id,
        parsed.forgotten_events_end_id,
    );
    let names_events = matches!(
        (&parsed.forgotten_event_ids, range),
        (Some(_), (None, None)) | (None, (Some(_), Some(_)))
    );
    if !names_events {
        return Err(FieldError::new(
            "forgotten_event_ids",
            "give either this list, or forgotten_events_start_id and forgotten_events_end_id",
        ));
    }
    if parsed.summary.is_some() != parsed.summary_offset.is_some() {
        return Err(FieldError::new(
            "summary",
            "give it together with summary_offset, or neither",
        ));
    }
    Ok(Action::Condensation(parsed))
}

#[cfg(test)]
mod tests {
    use schemars::generate::SchemaSettings;

    use super::*;

    fn sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_row_names_exactly_the_fields_of_its_struct() {
        let settings = SchemaSettings::draft2020_12()
            .for_deserialize()
            .with(|settings| settings.inline_subschemas = true);
        for contract in ALL {
            let schema = (contract.schema)(&mut settings.clone().into_generator());
            let fields = schema.get("properties").and_then(Value::as_object);
            let fields = fields.into_iter().flatten().map(|(name, _)| name.as_str());
            let required = schema.get("required").and_then(Value::as_array);
            let required = required.into_iter().flatten().filter_map(Value::as_str);
            let all = contract.required.iter().chain(contract.optional).copied();
            assert_eq!(sorted(all), sorted(fields), "{}", contract.kind);
            assert_eq!(
                sorted(contract.required.iter().copied()),
                sorted(required),
                "{}",
                contract.kind
            );
        }
    }
}
