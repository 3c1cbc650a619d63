//! Settings on the command line.

use zareba_config::{FileScope, Override, ParseOverride};

use crate::case::Case;

#[test]
fn a_value_begins_after_the_first_equals_sign() {
    let expected = Override::new("--set env.OPTIONS", "env.OPTIONS", " a=b");
    assert_eq!(Override::parse("env.OPTIONS = a=b"), Ok(expected));
    assert_eq!(
        Override::parse("shell.timeout"),
        Err(ParseOverride::NoValue("shell.timeout".to_owned()))
    );
}

#[test]
fn flags_take_both_names_of_a_setting() {
    let settings = Case::new()
        .set("sandbox.timeout=5")
        .set("files.scope=workspace")
        .set("sandbox.runtime_startup_env_vars={\"A\": \"1\"}")
        .set("sandbox.additional_networks=['/a']")
        .load()
        .settings;
    assert_eq!(settings.shell.timeout.as_secs(), 5);
    assert_eq!(settings.files.scope, FileScope::Workspace);
    assert_eq!(settings.env.get("A"), Some("1"));
    assert_eq!(settings.openhands.sandbox.additional_networks, ["/a"]);
}

#[test]
fn an_unknown_key_is_a_mistake_with_a_proposal() {
    let case = Case::new()
        .set("shell.timout=3")
        .set("wallpaper=blue")
        .flag("--fast", "shel.timeout", "1");
    assert_eq!(
        case.complaints(),
        [
            "flag `--set shell.timout`: unknown key `shell.timout`; did you mean `shell.timeout`?",
            "flag `--set wallpaper`: unknown key `wallpaper`",
            "flag `--fast`: unknown key `shel.timeout`; did you mean `shell.timeout`?",
        ]
    );
}

#[test]
fn a_value_that_does_not_fit_is_a_mistake() {
    let case = Case::new()
        .set("runtime.kind=dokcer")
        .set("shell.timeout=-3")
        .set("shell.no_change_timeout=")
        .set("env.1X=y")
        .set("sandbox.runtime_startup_env_vars={'A': 1}");
    assert_eq!(
        case.complaints(),
        [
            "flag `--set runtime.kind`: `runtime.kind` must be one of \"cli\", \"local\", \"native\", \
             \"docker\", not \"dokcer\"; did you mean `docker`?",
            "flag `--set shell.timeout`: `shell.timeout` must be a number of seconds, not -3",
            "flag `--set shell.no_change_timeout`: `shell.no_change_timeout` must be a number of seconds, not \"\"",
            "flag `--set env.1X`: `env.1X` has \"1X\", which is no name for a variable",
            "flag `--set sandbox.runtime_startup_env_vars`: `sandbox.runtime_startup_env_vars` must be a \
             string, not an integer",
        ]
    );
}

#[test]
fn a_flag_for_several_runtimes_is_wrong_once() {
    let mut case = Case::new();
    for key in ["native.memory", "docker.memory"] {
        case = case.flag("--memory", key, "lots");
    }
    assert_eq!(
        case.complaints(),
        [
            "flag `--memory`: `native.memory` must be a number of bytes, or one with a unit of 1024s such as \
             \"512MiB\" or \"2G\", not \"lots\""
        ]
    );
}
