//! Arguments and extras that older versions of the original wrote, turned into today's.

use serde_json::{Map, Value};

use crate::{SecurityRisk, python_literal};

/// Turns old arguments into today's; returns the timestamp that old events keep among them.
pub(super) fn modernise_args(args: &mut Map<String, Value>) -> Option<Value> {
    let timestamp = args.shift_remove("timestamp");
    rename(args, "is_confirmed", "confirmation_state");
    rename(args, "images_urls", "image_urls");
    if args
        .get("security_risk")
        .is_some_and(|risk| !risk.is_null() && !is_risk(risk))
    {
        args.shift_remove("security_risk");
    }
    args.shift_remove("keep_prompt");
    args.shift_remove("task_completed");
    if let Some(code) = args.shift_remove("translated_ipython_code") {
        merge_editor_call(args, &code);
    }
    timestamp
}

/// Turns old extras into today's: exit status and process number once stood beside `metadata`.
pub(super) fn modernise_extras(extras: &mut Map<String, Value>) {
    extras.shift_remove("formatted_output_and_error");
    for (old, new) in [("exit_code", "exit_code"), ("command_id", "pid")] {
        let Some(value) = extras.shift_remove(old) else {
            continue;
        };
        let metadata = extras
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(metadata) = metadata {
            metadata.insert(new.to_owned(), value);
        }
    }
}

fn rename(args: &mut Map<String, Value>, old: &str, new: &str) {
    if let Some(value) = args.shift_remove(old).filter(|value| !value.is_null()) {
        args.insert(new.to_owned(), value);
    }
}

fn is_risk(value: &Value) -> bool {
    let number = value.as_i64().and_then(|number| i8::try_from(number).ok());
    number.is_some_and(|number| SecurityRisk::try_from(number).is_ok())
}

/// Old file actions carry the editor call as Python source; what it says wins.
fn merge_editor_call(args: &mut Map<String, Value>, code: &Value) {
    let call = code
        .as_str()
        .and_then(|code| code.strip_prefix("print(file_editor(**"));
    let Some(literal) = call.and_then(|call| call.strip_suffix("))")) else {
        return;
    };
    if let Some(Value::Object(parameters)) = python_literal::parse(literal) {
        args.extend(parameters);
    }
    // A view is a `read` today, which takes no command.
    if args.get("command").is_some_and(|command| command == "view") {
        args.shift_remove("command");
    }
}
