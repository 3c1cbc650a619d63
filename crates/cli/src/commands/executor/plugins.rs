//! What the command line says of plugins and the browser. None of them is part of this version;
//! actions that need one are answered with the error that the contract has for that.

use crate::{arguments::ExecutorArguments, exit::Exit, failure::Failure, say};

const KNOWN: [&str; 3] = ["jupyter", "agent_skills", "vscode"];

/// Refuses what OpenHands would refuse, and says what will not be there.
pub(super) fn check(arguments: &ExecutorArguments) -> Result<(), Failure> {
    for plugin in &arguments.plugins {
        if !KNOWN.contains(&plugin.as_str()) {
            let known = KNOWN.join(", ");
            return Err(
                Failure::new(Exit::Usage, format!("Plugin {plugin} not found"))
                    .hint(format!("there are: {known}")),
            );
        }
    }
    let browser = &arguments.browser;
    let has_task = !browser.eval.task.is_empty();
    if has_task && browser.no_enable_browser {
        let message = "Browser environment is not enabled in config";
        return Err(Failure::new(Exit::Usage, message)
            .hint("`--browsergym-eval-env` does not go with `--no-enable-browser`"));
    }
    let mut missing: Vec<&str> = arguments.plugins.iter().map(String::as_str).collect();
    if has_task || browser.enable_browser {
        missing.push("browser");
    }
    if !missing.is_empty() {
        say::note(format_args!(
            "not available in this version: {}",
            missing.join(", ")
        ));
    }
    Ok(())
}
