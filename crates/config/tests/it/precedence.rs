//! Which source wins.

use std::path::Path;
use std::time::Duration;

use zareba_config::Settings;

use crate::case::Case;

#[test]
fn without_any_source_everything_has_its_default() {
    let configuration = Case::new().load();
    assert_eq!(configuration.settings, Settings::default());
    assert_eq!(configuration.files, []);
    assert_eq!(configuration.warnings, []);
    assert!(
        configuration
            .table()
            .iter()
            .all(|row| row.origin.to_string() == "default")
    );
}

#[test]
fn each_source_is_stronger_than_the_one_before() {
    let check = |case: &Case, seconds: u64, origin: &str| {
        assert_eq!(
            case.load().settings.shell.timeout,
            Duration::from_secs(seconds)
        );
        assert_eq!(case.origin("shell.timeout"), origin);
    };
    let case = Case::new();
    check(&case, 120, "default");
    let case = case.file("zareba.toml", "[shell]\ntimeout = 10\n");
    check(&case, 10, "zareba.toml:2");
    let case = case.variable("SANDBOX_TIMEOUT", "20");
    check(&case, 20, "$SANDBOX_TIMEOUT");
    let case = case.variable("ZAREBA_SHELL_TIMEOUT", "30");
    check(&case, 30, "$ZAREBA_SHELL_TIMEOUT");
    let case = case.set("shell.timeout=40");
    check(&case, 40, "--set shell.timeout");
    let case = case.flag("--timeout", "shell.timeout", "50");
    check(&case, 50, "--timeout");
}

#[test]
fn variables_for_the_sandbox_add_up_over_the_sources() {
    let case = Case::new()
        .file(
            "zareba.toml",
            "[env]\nA = \"file\"\nB = \"file\"\nC = \"file\"\n",
        )
        .variable(
            "SANDBOX_RUNTIME_STARTUP_ENV_VARS",
            "{'B': 'dict', 'D': 'dict'}",
        )
        .variable("SANDBOX_ENV_D", "passed")
        .variable("SANDBOX_ENV_E", "")
        .variable("ZAREBA_ENV_E", "ours")
        .set("env.C=flag");
    let configuration = case.load();
    let env: Vec<(&str, &str)> = configuration.settings.env.iter().collect();
    assert_eq!(
        env,
        [
            ("A", "file"),
            ("B", "dict"),
            ("C", "flag"),
            ("D", "passed"),
            ("E", "ours")
        ]
    );
    assert_eq!(case.origin("env.A"), "zareba.toml:2");
    assert_eq!(case.origin("env.B"), "$SANDBOX_RUNTIME_STARTUP_ENV_VARS");
    assert_eq!(case.origin("env.C"), "--set env.C");
    assert_eq!(case.origin("env.D"), "$SANDBOX_ENV_D");
    assert_eq!(case.origin("env.E"), "$ZAREBA_ENV_E");
}

#[test]
fn a_mount_onto_the_workspace_is_the_workspace() {
    let case = Case::new()
        .file("zareba.toml", "[runtime]\nworkspace = \"/from-file\"\n")
        .variable("SANDBOX_VOLUMES", "/data:/data:ro,/project:/workspace:rw");
    assert_eq!(
        case.load().settings.runtime.workspace.as_deref(),
        Some(Path::new("/project"))
    );
    assert_eq!(case.origin("runtime.workspace"), "$SANDBOX_VOLUMES");
}

#[test]
fn mounts_elsewhere_leave_no_host_directory_as_the_workspace() {
    let case = Case::new()
        .variable("ZAREBA_RUNTIME_WORKSPACE", "/from-variable")
        .variable("SANDBOX_VOLUMES", "/data:/data");
    assert_eq!(case.load().settings.runtime.workspace, None);
}

#[test]
fn mounts_of_a_weaker_file_do_not_undo_the_workspace_of_a_stronger_one() {
    let workspace = "[runtime]\nworkspace = \"/mine\"\n";
    let mounts = "[sandbox]\nvolumes = \"/data:/data\"\n";
    let user = "case-home/.config/zareba/zareba.toml";
    let settled = |system: &str, user_text: &str| {
        let case = Case::new()
            .file("etc/zareba.toml", system)
            .file(user, user_text);
        case.load().settings.runtime.workspace
    };
    assert_eq!(settled(mounts, workspace), Some("/mine".into()));
    assert_eq!(settled(workspace, mounts), None);
}

#[test]
fn mounts_do_not_undo_a_workspace_from_a_stronger_source() {
    let case = Case::new()
        .variable("SANDBOX_VOLUMES", "/project:/workspace")
        .set("runtime.workspace=/from-flag");
    assert_eq!(
        case.load().settings.runtime.workspace.as_deref(),
        Some(Path::new("/from-flag"))
    );
    assert_eq!(case.origin("runtime.workspace"), "--set runtime.workspace");
}

#[test]
fn an_empty_value_unsets_an_optional_setting_of_a_weaker_source() {
    let case = Case::new().file("zareba.toml", "[shell]\nprogram = \"/bin/dash\"\n");
    assert_eq!(
        case.load().settings.shell.program.as_deref(),
        Some(Path::new("/bin/dash"))
    );
    assert_eq!(
        case.set("shell.program=").load().settings.shell.program,
        None
    );
}
