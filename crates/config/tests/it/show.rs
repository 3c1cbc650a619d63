//! The table of `zareba config show`.

use std::fmt::Write as _;

use zareba_config::{Origin, Row, keys};

use crate::case::Case;

fn find(rows: &[Row], key: &str) -> (String, String) {
    let row = rows.iter().find(|row| row.key == key).unwrap();
    (row.value.to_string(), row.origin.to_string())
}

#[test]
fn rows_stand_in_the_order_of_the_reference_and_then_by_variable() {
    let rows = Case::new().set("env.B=1").set("env.A=2").load().table();
    let mut expected: Vec<String> = keys().iter().map(|key| key.path.to_owned()).collect();
    expected.extend(["env.A".to_owned(), "env.B".to_owned()]);
    let shown: Vec<String> = rows.iter().map(|row| row.key.clone()).collect();
    assert_eq!(shown, expected);
    assert_eq!(rows[0].key, "runtime.kind");
}

#[test]
fn values_are_toml_with_their_origin() {
    let rows = Case::new()
        .file("zareba.toml", "[shell]\nprogram = 'C:\\sh'\n")
        .variable("SANDBOX_TIMEOUT", "2.5")
        .set("sandbox.additional_networks=['/a b']")
        .load()
        .table();
    let expect = |key: &str, value: &str| assert_eq!(find(&rows, key).0, value);
    expect("runtime.kind", "\"native\"");
    expect("runtime.workspace", "\"\"");
    expect("shell.timeout", "2.5");
    expect("shell.no_change_timeout", "10");
    expect("shell.program", "'C:\\sh'");
    expect("files.auto_lint", "false");
    expect("sandbox.additional_networks", "[\"/a b\"]");
    assert_eq!(find(&rows, "runtime.kind").1, "default");
    assert_eq!(find(&rows, "shell.timeout").1, "$SANDBOX_TIMEOUT");
    assert_eq!(
        find(&rows, "sandbox.additional_networks").1,
        "--set sandbox.additional_networks"
    );
}

#[test]
fn the_table_written_as_a_file_reads_back_as_the_same_settings() {
    let configuration = Case::new()
        .set("runtime.workspace=/a \"quoted\" path")
        .set("shell.timeout=0.25")
        .set("sandbox.docker_runtime_kwargs={'a': {'b': [1, 2.5, true]}}")
        .set("sandbox.base_container_image=")
        .set("env.TEXT=two\nlines")
        .load();
    let mut text = String::new();
    let absent: Vec<&str> = keys()
        .iter()
        .filter_map(|key| key.absent.map(|_| key.path))
        .collect();
    for Row { key, value, .. } in configuration.table() {
        if absent.contains(&key.as_str()) {
            continue;
        }
        writeln!(text, "{key} = {value}").unwrap();
    }
    let read_back = Case::new().file("zareba.toml", &text).load();
    assert_eq!(read_back.settings, configuration.settings, "{text}");
}

#[test]
fn secrets_are_masked_wherever_they_stand() {
    let configuration = Case::new()
        .variable("ZAREBA_TELEMETRY_HEADERS", "hunter2")
        .variable("SESSION_API_KEY", "hunter2")
        .variable("SANDBOX_ENV_GITHUB_TOKEN", "hunter2")
        .variable("SANDBOX_ENV_EDITOR", "vi")
        .set("log.database=hunter2")
        .set("sandbox.docker_runtime_kwargs={'environment': {'DB_PASSWORD': 'hunter2'}, 'auth_token': ['hunter2']}")
        .load();
    let rows = configuration.table();
    for key in [
        "telemetry.headers",
        "executor.session_api_key",
        "env.GITHUB_TOKEN",
        "log.database",
    ] {
        assert_eq!(find(&rows, key).0, "\"***\"", "{key}");
    }
    assert_eq!(find(&rows, "env.EDITOR").0, "\"vi\"");
    assert!(!format!("{rows:?}").contains("hunter2"), "{rows:?}");
    let kwargs = configuration
        .settings
        .openhands
        .sandbox
        .docker_runtime_kwargs
        .clone();
    assert!(
        format!("{kwargs:?}").contains("hunter2"),
        "the settings themselves keep the value"
    );
    let mut logged = configuration.settings.clone();
    logged.openhands.sandbox.docker_runtime_kwargs = None;
    assert!(!format!("{logged:?}").contains("hunter2"), "{logged:?}");
}

#[test]
fn an_unset_secret_is_shown_as_unset() {
    let rows = Case::new().load().table();
    assert_eq!(find(&rows, "executor.session_api_key").0, "\"\"");
}

#[test]
fn every_key_that_sounds_like_a_secret_is_one() {
    // These name an object or a label; the secret itself is elsewhere.
    let names_only = [
        "kubernetes.image_pull_secret",
        "kubernetes.ingress_tls_secret",
        "kubernetes.node_selector_key",
        "server.tls_key",
    ];
    // These hold a secret among other things.
    let holders = ["log.database", "telemetry.headers"];
    for key in keys() {
        let sounds_secret = ["key", "token", "secret", "password"]
            .iter()
            .any(|word| key.path.ends_with(word));
        let is_secret = key.accepts == "secret";
        assert_eq!(
            is_secret,
            holders.contains(&key.path) || (sounds_secret && !names_only.contains(&key.path)),
            "{}",
            key.path
        );
    }
}

#[test]
fn origins_print_in_one_word() {
    let file = Origin::File {
        path: "a/zareba.toml".into(),
        line: 7,
        column: 3,
    };
    assert_eq!(file.to_string(), "a/zareba.toml:7");
}
