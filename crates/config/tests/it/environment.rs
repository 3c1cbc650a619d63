//! Settings in variables.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use zareba_config::{Environment, RESERVED_VARIABLES, RuntimeKind, Settings, keys};

use crate::case::Case;

#[test]
fn names_of_openhands_reach_the_same_settings_as_ours() {
    let theirs = Case::new()
        .variable("RUNTIME", "local")
        .variable("WORKSPACE_BASE", "/project")
        .variable("SANDBOX_KEEP_RUNTIME_ALIVE", "True")
        .variable("NO_CHANGE_TIMEOUT_SECONDS", "3")
        .variable("ENABLE_AUTO_LINT", "true")
        .variable("DESIRED_NUM_WARM_SERVERS", "2")
        .variable("SESSION_API_KEY", "key")
        .variable("SU_TO_USER", "no")
        .load();
    let ours = Case::new()
        .variable("ZAREBA_RUNTIME_KIND", "local")
        .variable("ZAREBA_RUNTIME_WORKSPACE", "/project")
        .variable("ZAREBA_RUNTIME_KEEP_ALIVE", "true")
        .variable("ZAREBA_SHELL_NO_CHANGE_TIMEOUT", "3")
        .variable("ZAREBA_FILES_AUTO_LINT", "1")
        .variable("ZAREBA_LOCAL_WARM_SERVERS", "2")
        .variable("ZAREBA_EXECUTOR_SESSION_API_KEY", "key")
        .variable("ZAREBA_EXECUTOR_SU_TO_USER", "0")
        .load();
    assert_eq!(theirs.settings, ours.settings);
    assert_eq!(ours.settings.runtime.kind, RuntimeKind::Local);
    assert_eq!(
        ours.settings.runtime.workspace.as_deref(),
        Some(Path::new("/project"))
    );
    assert_eq!(
        ours.settings
            .executor
            .session_api_key
            .as_ref()
            .map(|key| key.expose()),
        Some("key")
    );
    assert!(!ours.settings.executor.su_to_user);
}

#[test]
fn prefixes_of_openhands_sections_are_read() {
    let openhands = Case::new()
        .variable("SANDBOX_RUNTIME_CONTAINER_IMAGE", "image:1")
        .variable("SANDBOX_VSCODE_PORT", "41234")
        .variable("SECURITY_CONFIRMATION_MODE", "TRUE")
        .variable("KUBERNETES_NAMESPACE", "agents")
        .variable("DEBUG", "1")
        .load()
        .settings
        .openhands;
    assert_eq!(
        openhands.sandbox.runtime_container_image.as_deref(),
        Some("image:1")
    );
    assert_eq!(openhands.sandbox.vscode_port, Some(41234));
    assert!(openhands.security.confirmation_mode);
    assert_eq!(openhands.kubernetes.namespace, "agents");
    assert!(openhands.core.debug);
}

#[test]
fn booleans_of_openhands_are_true_only_when_they_say_so() {
    for (text, expected) in [
        ("true", true),
        ("TRUE", true),
        ("1", true),
        ("yes", false),
        ("0", false),
    ] {
        let case = Case::new().variable("SANDBOX_ENABLE_AUTO_LINT", text);
        assert_eq!(case.load().settings.files.auto_lint, expected, "{text}");
    }
}

#[test]
fn words_that_mean_yes_are_known_where_openhands_knows_them() {
    for (text, expected) in [
        ("Yes", true),
        ("on", true),
        ("t", true),
        ("off", false),
        ("2", false),
    ] {
        let case = Case::new().variable("SU_TO_USER", text);
        assert_eq!(case.load().settings.executor.su_to_user, expected, "{text}");
    }
}

#[test]
fn our_own_booleans_take_no_other_word() {
    let case = Case::new().variable("ZAREBA_FILES_AUTO_LINT", "yes");
    assert_eq!(
        case.complaints(),
        [
            "environment variable `ZAREBA_FILES_AUTO_LINT`: `files.auto_lint` must be a boolean, not \"yes\""
        ]
    );
}

#[test]
fn lists_and_tables_are_python_or_json() {
    for text in ["['a', 'b']", "[\"a\", \"b\"]", "('a', 'b',)"] {
        let case = Case::new().variable("SANDBOX_ADDITIONAL_NETWORKS", text);
        assert_eq!(
            case.load().settings.openhands.sandbox.additional_networks,
            ["a", "b"],
            "{text}"
        );
    }
    let case = Case::new().variable(
        "SANDBOX_DOCKER_RUNTIME_KWARGS",
        "{'mem_limit': '2g', 'cpus': None}",
    );
    let row = case
        .load()
        .table()
        .into_iter()
        .find(|row| row.key == "sandbox.docker_runtime_kwargs");
    assert_eq!(row.unwrap().value, r#"{ cpus = "", mem_limit = "2g" }"#);
    let case = Case::new().variable("SANDBOX_ADDITIONAL_NETWORKS", "a,b");
    assert_eq!(
        case.complaints(),
        [
            "environment variable `SANDBOX_ADDITIONAL_NETWORKS`: `sandbox.additional_networks` must be a list \
          of strings in JSON or Python syntax: expected a value at character 1"
        ]
    );
}

#[test]
fn none_unsets_a_value() {
    let case = Case::new().variable("SANDBOX_RUNTIME_EXTRA_BUILD_ARGS", "None");
    assert_eq!(
        case.load()
            .settings
            .openhands
            .sandbox
            .runtime_extra_build_args,
        None
    );
}

#[test]
fn empty_variables_count_as_not_set() {
    let mut case = Case::new();
    for key in keys() {
        for name in &key.variables {
            case = case.variable(name, "");
        }
    }
    assert_eq!(case.load().settings, Settings::default());
}

#[test]
fn a_common_name_with_a_foreign_value_is_skipped_with_a_warning() {
    let case = Case::new()
        .variable("RUNTIME", "nodejs18")
        .variable("MAX_ITERATIONS", "many");
    let configuration = case.load();
    assert_eq!(configuration.settings, Settings::default());
    let warnings: Vec<String> = configuration
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        warnings,
        [
            "environment variable `RUNTIME`: `runtime.kind` must be one of \"cli\", \"local\", \"native\", \
             \"docker\", \"kubernetes\", \"remote\", \"daytona\", \"modal\", \"runloop\", \"e2b\", not \"nodejs18\"",
            "environment variable `MAX_ITERATIONS`: `core.max_iterations` must be an integer from 0 to \
             4294967295, not \"many\"",
        ]
    );
}

#[test]
fn unknown_variables_with_our_prefix_are_mistakes() {
    let check = |name: &str, expected: &str| {
        let complaints = Case::new().variable(name, "x").complaints();
        let expected = format!("environment variable `{name}`: no setting has this name{expected}");
        assert_eq!(complaints, [expected]);
    };
    check(
        "ZAREBA_FILES_AUTOLINT",
        "; did you mean `ZAREBA_FILES_AUTO_LINT`?",
    );
    check("ZAREBA_CONFG", "; did you mean `ZAREBA_CONFIG`?");
    check(
        "ZAREBA_FILES_WATCH_EVERYTHING",
        "; valid here: `ZAREBA_FILES_SCOPE`, `ZAREBA_FILES_AUTO_LINT`",
    );
    check("ZAREBA_PAINT_THE_SHED", "");
    check("ZAREBA_ENV_", "");
}

#[test]
fn reserved_variables_pass() {
    let mut case = Case::new().file("given.toml", "");
    for name in RESERVED_VARIABLES {
        let value = if name == "ZAREBA_CONFIG" {
            case.path("given.toml")
        } else {
            "x".into()
        };
        case = case.variable(&name.replace('*', "SOCKET"), value);
    }
    assert_eq!(case.load().settings, Settings::default());
}

#[test]
fn other_variables_are_none_of_our_business() {
    let case = Case::new()
        .variable("SANDBOX_VOLUME_OVERLAYS", "/overlays")
        .variable("SANDBOX_ANYTHING", "x")
        .variable("PATH", "/bin");
    assert_eq!(case.load().settings, Settings::default());
}

#[test]
fn a_value_that_is_no_text_is_a_mistake_only_where_it_is_read() {
    let bytes = || OsString::from_vec(vec![b'a', 0xff]);
    assert_eq!(
        Case::new().variable("LS_COLORS", bytes()).load().settings,
        Settings::default()
    );
    assert_eq!(
        Case::new()
            .variable("ZAREBA_SHELL_PROGRAM", bytes())
            .complaints(),
        ["environment variable `ZAREBA_SHELL_PROGRAM`: `shell.program` is not UTF-8 text"]
    );
    assert_eq!(
        Case::new().variable("SANDBOX_ENV_X", bytes()).complaints(),
        ["environment variable `SANDBOX_ENV_X`: `env.X` is not UTF-8 text"]
    );
}

#[test]
fn an_environment_shows_its_names_and_keeps_its_values() {
    let environment = Environment::from_pairs([("B", "secret"), ("A", "1"), ("B", "last")]);
    assert_eq!(format!("{environment:?}"), r#"{"A", "B"}"#);
    assert_eq!(
        (environment.get("B"), environment.get("C")),
        (Some("last"), None)
    );
    assert_eq!(environment.iter().count(), 2);
}

#[test]
fn the_environment_of_the_process_can_be_read() {
    let path = std::env::var_os("PATH");
    assert_eq!(Environment::from_process().get_os("PATH"), path.as_deref());
}
