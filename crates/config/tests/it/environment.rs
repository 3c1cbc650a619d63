//! Settings in variables.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use zareba_config::{
    ConfigFile, Configuration, Environment, LeftOutReason, LoadRequest, RESERVED_VARIABLES,
    Settings, UntrustedSettings, keys,
};

use crate::case::Case;

#[test]
fn names_of_openhands_reach_the_same_settings_as_ours() {
    let theirs = Case::new()
        .variable("WORKSPACE_MOUNT_PATH_IN_SANDBOX", "/project")
        .variable("SANDBOX_TIMEOUT", "4")
        .variable("NO_CHANGE_TIMEOUT_SECONDS", "3")
        .variable("ENABLE_AUTO_LINT", "true")
        .variable("SESSION_API_KEY", "key")
        .variable("SU_TO_USER", "no")
        .load();
    let ours = Case::new()
        .variable("ZAREBA_RUNTIME_WORKSPACE_IN_SANDBOX", "/project")
        .variable("ZAREBA_SHELL_TIMEOUT", "4")
        .variable("ZAREBA_SHELL_NO_CHANGE_TIMEOUT", "3")
        .variable("ZAREBA_FILES_AUTO_LINT", "1")
        .variable("ZAREBA_EXECUTOR_SESSION_API_KEY", "key")
        .variable("ZAREBA_EXECUTOR_SU_TO_USER", "0")
        .load();
    assert_eq!(theirs.settings, ours.settings);
    assert_eq!(
        ours.settings.runtime.workspace_in_sandbox,
        Path::new("/project")
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
    let case = Case::new()
        .variable("SANDBOX_RUNTIME_CONTAINER_IMAGE", "image:1")
        .variable("SANDBOX_PLATFORM", "linux/amd64");
    let sandbox = case.load().settings.openhands.sandbox;
    assert_eq!(sandbox.runtime_container_image.as_deref(), Some("image:1"));
    assert_eq!(sandbox.platform.as_deref(), Some("linux/amd64"));
}

/// Other programs use these names for settings of their own.
#[test]
fn a_name_that_others_use_changes_no_sandbox() {
    let mut case = Case::new();
    for name in [
        "RUNTIME",
        "DEBUG",
        "WORKSPACE_BASE",
        "WORKSPACE_MOUNT_PATH",
        "RUN_AS_OPENHANDS",
        "ENABLE_BROWSER",
        "MAX_ITERATIONS",
        "CACHE_DIR",
        "KUBERNETES_NAMESPACE",
        "KUBERNETES_PRIVILEGED",
    ] {
        case = case.variable(name, "local");
    }
    let configuration = case.load();
    assert_eq!(configuration.settings, Settings::default());
    assert_eq!(
        (configuration.warnings, configuration.left_out),
        (vec![], vec![])
    );
}

#[test]
fn these_are_all_the_variables_without_our_prefix() {
    let keys = keys();
    let names = keys.iter().flat_map(|key| &key.variables);
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.retain(|name| !name.starts_with("ZAREBA_") && !name.starts_with("SANDBOX_"));
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "DESIRED_NUM_WARM_SERVERS",
            "DOCKER_HOST",
            "ENABLE_AUTO_LINT",
            "INITIAL_NUM_WARM_SERVERS",
            "MCP_SHTTP_SERVERS",
            "MCP_SSE_SERVERS",
            "MCP_STDIO_SERVERS",
            "NO_CHANGE_TIMEOUT_SECONDS",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_SERVICE_NAME",
            "RUNTIME_USERNAME",
            "SECURITY_CONFIRMATION_MODE",
            "SECURITY_SECURITY_ANALYZER",
            "SESSION_API_KEY",
            "SU_TO_USER",
            "WORKSPACE_MOUNT_PATH_IN_SANDBOX",
        ]
    );
}

/// <https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>
#[test]
fn variables_of_a_service_of_kubernetes_are_left_alone() {
    let mut case = Case::new();
    for (name, value) in [
        ("ZAREBA_SERVICE_HOST", "10.0.0.11"),
        ("ZAREBA_SERVICE_PORT", "7070"),
        ("ZAREBA_SERVICE_PORT_HTTP", "7070"),
        ("ZAREBA_PORT", "tcp://10.0.0.11:7070"),
        ("ZAREBA_PORT_7070_TCP", "tcp://10.0.0.11:7070"),
        ("ZAREBA_PORT_7070_TCP_PROTO", "tcp"),
        ("ZAREBA_PORT_7070_TCP_PORT", "7070"),
        ("ZAREBA_PORT_7070_TCP_ADDR", "10.0.0.11"),
        ("ZAREBA_PORT_53_UDP_ADDR", "fd00::11"),
        ("ZAREBA_PORT_9_SCTP", "sctp://10.0.0.11:9"),
        ("ZAREBA_SERVER_SERVICE_HOST", "10.0.0.12"),
        ("ZAREBA_SERVER_PORT", "tcp://10.0.0.12:80"),
        ("ZAREBA_LOG_DB_SERVICE_PORT_POSTGRES", "5432"),
    ] {
        case = case.variable(name, value);
    }
    assert_eq!(case.load().settings, Settings::default());
}

#[test]
fn what_only_looks_like_a_service_is_a_mistake() {
    for (name, value) in [
        ("ZAREBA_SERVER_PORT", "7070"),
        ("ZAREBA_PORT", "7070"),
        ("ZAREBA_SERVICE_PORT", "http"),
        ("ZAREBA_PORT_X_TCP", "tcp://10.0.0.11:7070"),
        ("ZAREBA_PORT_7070_TCP_PROTO", "icmp"),
        ("ZAREBA_PORT_7070_TCP_NAME", "7070"),
    ] {
        let complaints = Case::new().variable(name, value).complaints();
        assert_eq!(complaints.len(), 1, "{name}={value}: {complaints:?}");
    }
}

/// A Service must not be able to set anything.
#[test]
fn no_setting_has_a_name_that_a_service_could_give_it() {
    for key in keys().iter().filter(|key| key.absent.is_none()) {
        for name in &key.variables {
            let is_like = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT", "_ADDR", "_PROTO"]
                .iter()
                .any(|end| name.ends_with(end));
            assert!(!is_like, "{name}");
        }
    }
}

#[test]
fn what_this_version_does_not_have_is_told_and_left_out_in_openhands_names() {
    let case = Case::new().variable("SANDBOX_CLOSE_DELAY", "5");
    let configuration = case.load();
    assert_eq!(configuration.settings, Settings::default());
    let left_out: Vec<(&str, String, LeftOutReason)> = configuration
        .left_out
        .iter()
        .map(|it| (it.key.as_str(), it.origin.to_string(), it.reason))
        .collect();
    assert_eq!(
        left_out,
        [(
            "sandbox.close_delay",
            "$SANDBOX_CLOSE_DELAY".to_owned(),
            LeftOutReason::NotInThisVersion
        )]
    );
}

#[test]
fn a_confirmation_mode_that_does_not_exist_is_refused_under_every_name() {
    for name in [
        "SECURITY_CONFIRMATION_MODE",
        "ZAREBA_SECURITY_CONFIRMATION_MODE",
    ] {
        assert_eq!(
            Case::new().variable(name, "true").complaints(),
            [format!(
                "environment variable `{name}`: `security.confirmation_mode` is not in this version: \
                 actions run without being confirmed here; the client has to ask"
            )]
        );
    }
    let off = Case::new().variable("SECURITY_CONFIRMATION_MODE", "false");
    assert_eq!(off.load().settings, Settings::default());
}

/// OpenHands starts it with all of its own variables, and asks before an action itself.
#[test]
fn an_executor_leaves_confirmations_to_its_client() {
    let load = |name: &str| {
        Configuration::load(&LoadRequest {
            file: ConfigFile::Nothing,
            environment: &Environment::from_pairs([(name, "true")]),
            overrides: &[],
            untrusted: UntrustedSettings::Refuse,
        })
    };
    let loaded = load("SECURITY_CONFIRMATION_MODE").unwrap();
    assert_eq!(loaded.settings, Settings::default());
    assert!(load("ZAREBA_SECURITY_CONFIRMATION_MODE").is_err());
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
    assert_eq!(
        row.unwrap().value.to_string(),
        r#"{ cpus = "", mem_limit = "2g" }"#
    );
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
    let case = Case::new()
        .file(
            "zareba.toml",
            "[sandbox]\ndocker_runtime_kwargs = { a = 1 }\n",
        )
        .variable("SANDBOX_DOCKER_RUNTIME_KWARGS", "None");
    assert_eq!(
        case.load().settings.openhands.sandbox.docker_runtime_kwargs,
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
    let case = Case::new().variable(
        "WORKSPACE_MOUNT_PATH_IN_SANDBOX",
        OsString::from_vec(vec![0xff]),
    );
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
            "environment variable `WORKSPACE_MOUNT_PATH_IN_SANDBOX`: `runtime.workspace_in_sandbox` is not \
             UTF-8 text",
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
