//! The recorded traffic of the original server, replayed against the program.
//!
//! Observations are compared whole, but for what names the machine: process numbers, user, host
//! and the interpreter's path. `/workspace` stands for the executor's own directory.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::http_client::{Executor, exit_code, recorded};

/// Sends the recorded request and compares the answer with the recorded one.
fn replay(executor: &Executor, name: &str) -> Result<()> {
    let workspace = executor.workspace()?.display().to_string();
    let example: Value = serde_json::from_str(
        &recorded(name)?
            .to_string()
            .replace("/workspace", &workspace),
    )?;
    let found = executor.act(&example["request"]["json"]["action"])?;
    let (found, expected) = (neutral(found), neutral(example["response"]["json"].clone()));
    ensure!(
        found == expected,
        "{name}\nfound    {found}\nexpected {expected}"
    );
    Ok(())
}

/// Blanks what differs between machines.
fn neutral(mut observation: Value) -> Value {
    if let Some(metadata) = observation["extras"]["metadata"].as_object_mut() {
        for key in ["pid", "username", "hostname", "py_interpreter_path"] {
            let known = metadata.get(key).is_some_and(|value| !value.is_null());
            metadata.insert(key.to_owned(), json!(known));
        }
        // Ours, and ignored by the client that the recordings were made with.
        metadata.remove("limits");
    }
    let background = |content: &str| content.starts_with("[1] ") && !content.contains('\n');
    if observation["content"].as_str().is_some_and(background) {
        observation["content"] = json!("[1] PID");
    }
    observation
}

fn quick() -> Result<Executor> {
    Executor::start(&[("NO_CHANGE_TIMEOUT_SECONDS", "10")], &[])
}

#[test]
fn commands_answer_as_recorded() -> Result<()> {
    let executor = quick()?;
    for name in [
        "run_simple",
        "run_exit_127",
        "run_unicode",
        "run_heredoc",
        "run_hidden",
        "run_static",
        "run_multiple_commands_rejected",
        "run_empty_without_previous",
        "run_input_without_previous",
        "run_background_job",
    ] {
        replay(&executor, name)?;
    }
    Ok(())
}

#[test]
fn a_silent_command_and_the_input_it_waits_for_answer_as_recorded() -> Result<()> {
    let executor = quick()?;
    replay(&executor, "run_no_change_timeout")?;
    replay(&executor, "run_input_to_process")
}

#[test]
fn a_long_command_and_what_is_tried_meanwhile_answer_as_recorded() -> Result<()> {
    let executor = quick()?;
    replay(&executor, "run_hard_timeout")?;
    replay(&executor, "run_continue_empty_command")?;
    let previous = executor.run("", 0.1)?;
    ensure!(exit_code(&previous) == -1, "{previous}");
    replay(&executor, "run_previous_still_running")
}

#[test]
fn control_keys_answer_as_recorded() -> Result<()> {
    let executor = quick()?;
    executor.run("while true; do sleep 1; done", 0.2)?;
    replay(&executor, "run_ctrl_c")?;
    executor.run("sleep 30", 0.2)?;
    replay(&executor, "run_ctrl_z")?;
    executor.run("cat", 0.2)?;
    replay(&executor, "run_ctrl_d")
}

#[test]
fn the_editor_answers_as_recorded() -> Result<()> {
    let executor = quick()?;
    let file = executor.workspace()?.join("test.txt");
    let text = "This is a test file.\nThis file is for testing purposes.\n";
    std::fs::write(&file, text)?;
    for name in [
        "edit_view_file",
        "edit_view_directory",
        "edit_relative_path",
        "edit_path_not_exist",
        "edit_bad_command",
        "edit_create_exists",
        "edit_create_missing_file_text",
        "edit_str_replace_same",
        "edit_str_replace_not_found",
        "edit_str_replace_multiple",
        "edit_str_replace",
        "edit_create",
    ] {
        replay(&executor, name)?;
    }
    std::fs::write(&file, "Stripped.\nThis file is for testing purposes.\n")?;
    replay(&executor, "edit_insert")
}

#[test]
fn plugins_that_are_not_there_answer_with_an_error_observation() -> Result<()> {
    let executor = quick()?;
    for (action, text) in [
        (
            json!({ "action": "run_ipython", "args": { "code": "1" } }),
            "JupyterRequirement not found. Unable to run IPython action.",
        ),
        (
            json!({ "action": "browse", "args": { "url": "http://localhost" } }),
            "Browser functionality is not supported or disabled.",
        ),
        (
            json!({ "action": "browse_interactive", "args": { "browser_actions": "noop()" } }),
            "Browser functionality is not supported or disabled.",
        ),
    ] {
        let expected = json!({
            "message": text,
            "observation": "error",
            "content": text,
            "extras": { "error_id": "" },
        });
        assert_eq!(executor.act(&action)?, expected);
    }
    Ok(())
}
