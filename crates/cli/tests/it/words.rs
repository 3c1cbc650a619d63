//! What the program says: help, version, settings, the machine, completions.

use serde_json::{Value, json};

use crate::support::{Place, Told, snapshots};

#[test]
fn the_help_names_every_command() {
    let told = Place::new().output(&["--help"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    let _snapshots = snapshots();
    insta::assert_snapshot!("help", told.stdout);
}

#[test]
fn every_command_has_help_with_an_example() {
    let place = Place::new();
    let mut all = String::new();
    for command in [
        &["run"][..],
        &["shell"],
        &["action"],
        &["create"],
        &["ps"],
        &["exec"],
        &["inspect"],
        &["diff"],
        &["cp"],
        &["port"],
        &["logs"],
        &["update"],
        &["pause"],
        &["resume"],
        &["stop"],
        &["rm"],
        &["gc"],
        &["image", "ls"],
        &["image", "import"],
        &["image", "pull"],
        &["image", "openhands"],
        &["image", "build"],
        &["image", "prune"],
        &["image", "rm"],
        &["tools", "ls"],
        &["tools", "call"],
        &["tools", "schema"],
        &["tools", "serve"],
        &["mcp"],
        &["serve"],
        &["key", "create"],
        &["log", "export"],
        &["log", "verify"],
        &["replay"],
        &["executor"],
        &["config", "show"],
        &["trust"],
        &["doctor"],
        &["completions"],
    ] {
        let told = place.output(&[command, &["--help"]].concat());
        assert_eq!(told.code, Some(0));
        assert!(told.stdout.contains("Example"), "{}", told.stdout);
        all.push_str(&format!(
            "$ zareba {} --help\n{}\n",
            command.join(" "),
            told.stdout
        ));
    }
    let _snapshots = snapshots();
    insta::assert_snapshot!("help-of-commands", all);
}

#[test]
fn a_wrong_command_line_is_refused_with_120() {
    let told = Place::new().output(&["shel"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(120), ""));
    insta::assert_snapshot!(told.stderr, @"
    error: unrecognized subcommand 'shel'

      tip: a similar subcommand exists: 'shell'

    Usage: zareba [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn the_version_has_the_commit_when_there_is_one() {
    let told = Place::new().output(&["--version"]);
    let version = told.stdout.strip_prefix("zareba ").unwrap().trim_end();
    let (number, commit) = version.split_once(" (").unwrap_or((version, ""));
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    assert!(commit.is_empty() || commit.ends_with(')'), "{version}");
}

#[test]
fn settings_are_shown_with_their_sources_and_without_secrets() {
    let place = Place::new();
    std::fs::write(
        place.path("workspace/zareba.toml"),
        "[shell]\ntimeout = 7\n",
    )
    .unwrap();
    let arguments = [
        "config",
        "show",
        "-o",
        "json",
        "--set",
        "files.auto_lint=true",
    ];
    let output = place
        .zareba(&arguments)
        .env("SESSION_API_KEY", "swordfish")
        .output()
        .unwrap();
    let told = Told::from(output);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let rows: Vec<Value> = serde_json::from_str(&told.stdout).unwrap();
    let row = |key: &str| {
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        let origin = row["origin"].as_str().unwrap().to_owned();
        (row["value"].clone(), origin)
    };
    assert_eq!(row("shell.timeout").0, json!(7));
    assert!(
        row("shell.timeout").1.contains("zareba.toml:2"),
        "{}",
        row("shell.timeout").1
    );
    assert_eq!(
        row("files.auto_lint"),
        (json!(true), "--set files.auto_lint".to_owned())
    );
    assert_eq!(row("executor.session_api_key").0, json!("***"));
    assert_eq!(row("runtime.kind").0, json!("native"));
    assert_eq!(row("runtime.image").0, Value::Null);
    assert_eq!(row("native.allow").0, json!([]));
    assert!(!told.stdout.contains("swordfish"));
    let told = place.output(&["config", "show"]);
    assert!(
        told.stdout.contains("shell.timeout = 7 "),
        "{}",
        told.stdout
    );
}

#[test]
fn a_mistake_in_a_file_is_told_with_its_place() {
    let place = Place::new();
    std::fs::write(place.path("workspace/other.toml"), "[shell]\ntimout = 7\n").unwrap();
    let told = place.output(&["--config", "other.toml", "config", "show"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(121), ""));
    insta::assert_snapshot!(told.stderr, @"
    error: cannot use the configuration
      caused by: other.toml:2:1: unknown key `shell.timout`; did you mean `shell.timeout`?
      hint: `zareba config show` lists every setting; docs/configuration.md explains them
    ");
}

#[test]
fn the_doctor_finds_what_these_tests_need_and_says_what_is_missing() {
    let place = Place::new();
    let told = place.output(&["doctor", "-o", "json"]);
    assert_eq!(told.code, Some(0), "{}", told.stdout);
    let report: Value = serde_json::from_str(&told.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let needed: Vec<(&str, &str)> = checks
        .iter()
        .filter(|check| check["needed"] == "now")
        .map(|check| {
            (
                check["name"].as_str().unwrap(),
                check["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        needed,
        [
            ("shell", "ok"),
            ("terminals", "ok"),
            ("/proc", "ok"),
            ("temporary files", "ok")
        ]
    );
    for tried in [
        "a trial start",
        "capabilities",
        "filtered network",
        "images",
    ] {
        let check = checks.iter().find(|check| check["name"] == tried).unwrap();
        assert_eq!(
            (&check["needed"], &check["status"]),
            (&json!("sandbox"), &json!("ok")),
            "{check}"
        );
    }
    let output = place
        .zareba(&["doctor"])
        .env("PATH", "/none")
        .output()
        .unwrap();
    let told = Told::from(output);
    assert_eq!(told.code, Some(1));
    assert!(
        told.stdout
            .contains("  missing  shell            install bash"),
        "{}",
        told.stdout
    );
    assert!(
        told.stdout
            .contains("  missing  git              apt-get install git"),
        "{}",
        told.stdout
    );
    assert_eq!(
        told.stderr,
        "zareba: something is missing that is needed now\n"
    );
}

#[test]
fn completions_are_printed_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let told = place.output(&["completions", shell]);
        assert_eq!(told.code, Some(0));
        assert!(told.stdout.contains("allow-network-without-key"), "{shell}");
        for command in ["create", "inspect", "workspace-mode", "plain-http"] {
            assert!(told.stdout.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn the_log_is_silent_unless_it_is_asked_for_and_can_be_json() {
    let place = Place::new();
    let arguments = ["run", "--runtime", "cli", "--", "true"];
    let output = place
        .zareba(&arguments)
        .env("LOG_LEVEL", "ERROR")
        .output()
        .unwrap();
    let quiet = Told::from(output);
    assert_eq!(quiet.stderr, "");
    let output = place
        .zareba(&arguments)
        .env("LOG_JSON", "1")
        .output()
        .unwrap();
    let json = Told::from(output);
    let record: Value = serde_json::from_str(json.stderr.lines().next().unwrap()).unwrap();
    assert_eq!(record["level"], "WARN");
    let output = place
        .zareba(&arguments)
        .env("ZAREBA_LOG", "a=b=c")
        .output()
        .unwrap();
    let wrong = Told::from(output);
    assert_eq!(wrong.code, Some(0));
    let warning = "warning: cannot use the log directives `a=b=c`: ";
    assert!(wrong.stderr.starts_with(warning), "{}", wrong.stderr);
}
