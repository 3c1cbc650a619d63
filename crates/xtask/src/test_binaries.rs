//! Finds compiled integration tests, so that a script can run them as another user.
//!
//! `cargo test` cannot change the user between building and running, and a build as that user
//! would need a target directory of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

/// Builds the tests of the whole workspace and returns the integration tests of `crates/CRATE`.
///
/// The whole workspace, because a build of one crate may choose other features of its
/// dependencies and would then compile them a second time.
pub(crate) fn build(root: &Path, crate_name: &str) -> anyhow::Result<Vec<String>> {
    let output = Command::new("cargo")
        .args(["test", "--workspace", "--no-run", "--message-format=json"])
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run `cargo test --no-run`")?;
    ensure!(output.status.success(), "the tests do not build");
    let messages = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    integration_tests(&messages, crate_name)
}

/// The executables in cargo's messages, one JSON object per line, that belong to `crates/CRATE`.
fn integration_tests(messages: &str, crate_name: &str) -> anyhow::Result<Vec<String>> {
    let manifest = format!("/crates/{crate_name}/Cargo.toml");
    let mut executables = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cargo printed no JSON")?;
        let is_ours = message["manifest_path"]
            .as_str()
            .is_some_and(|path| path.ends_with(&manifest));
        let is_integration_test = message["target"]["kind"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|kind| kind == "test"));
        if let (true, true, Some(executable)) =
            (is_ours, is_integration_test, message["executable"].as_str())
        {
            executables.push(executable.to_owned());
        }
    }
    Ok(executables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integration_tests_of_the_crate_are_taken() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/x/crates/cli/Cargo.toml","target":{"kind":["bin"]},"executable":"/x/zareba-unit"}
{"reason":"compiler-artifact","manifest_path":"/x/crates/cli/Cargo.toml","target":{"kind":["test"]},"executable":"/x/it-1"}
{"reason":"compiler-artifact","manifest_path":"/x/crates/wire/Cargo.toml","target":{"kind":["test"]},"executable":"/x/it-2"}
{"reason":"compiler-artifact","manifest_path":"/x/crates/cli/Cargo.toml","target":{"kind":["lib"]},"executable":null}
{"reason":"build-finished","success":true}"#;
        assert_eq!(integration_tests(messages, "cli").unwrap(), ["/x/it-1"]);
    }

    #[test]
    fn anything_but_messages_is_refused() {
        assert!(integration_tests("Compiling zareba-cli", "cli").is_err());
    }
}
