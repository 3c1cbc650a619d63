//! What the program says: help, version, settings, the machine, completions.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{Lasting, Place, Told, ZAREBA, snapshots};

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
        // Also where clap breaks lines that are broken here already.
        let wide: Vec<&str> = told
            .stdout
            .lines()
            .filter(|line| line.chars().count() > 100)
            .collect();
        assert!(wide.is_empty(), "{command:?}: {wide:#?}");
        let torn = told.stdout.lines().zip(told.stdout.lines().skip(1));
        for (above, line) in torn {
            let is_torn = above.chars().count() > 85 && !above.starts_with(' ');
            let is_rest = line.chars().count() < 10 && !line.is_empty() && !line.ends_with('.');
            assert!(!is_torn || !is_rest, "{command:?}: `{line}` is left over");
        }
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
fn what_fingers_know_from_elsewhere_works() {
    let place = Place::new();
    let told = place.output(&["version"]);
    assert_eq!(
        (told.code, told.stdout),
        (Some(0), place.output(&["--version"]).stdout)
    );
    assert_eq!(place.output(&["images"]), place.output(&["image", "ls"]));
    let told = place.output(&["kill", "none"]);
    assert_eq!(told.code, Some(123), "{}", told.stderr);
    assert!(
        told.stderr.contains("there is no sandbox `none`"),
        "{}",
        told.stderr
    );
}

/// What bash offers at the end of a line, whose words it has cut as it does.
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let script = r#"
        source <(zareba completions bash)
        complete -p zareba > /dev/null || exit 3
        COMP_WORDS=(zareba "$@") COMP_CWORD=$#
        COMP_LINE="zareba $*" COMP_POINT=${#COMP_LINE}
        current=${!#}
        [[ $current == [:=] ]] && current=
        _zareba zareba "$current" "${@: -2:1}"
        for word in "${COMPREPLY[@]}"; do echo "$word"; done
    "#;
    let beside = Path::new(ZAREBA).parent().unwrap();
    let like = place.zareba(&[]);
    let variables = like
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut shell = Command::new("bash");
    shell
        .args(["-c", script, "bash"])
        .args(words)
        .env_clear()
        .envs(variables)
        .env("PATH", format!("{}:/usr/bin:/bin", beside.display()))
        .current_dir(place.path("workspace"));
    let told = Told::from(shell.output().unwrap());
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (Some(0), ""),
        "{words:?}"
    );
    let mut offered: Vec<String> = told.stdout.lines().map(str::to_owned).collect();
    offered.sort();
    offered
}

#[test]
fn bash_is_offered_commands_values_names_and_files() {
    let place = Place::new();
    let one = Lasting::create(&place, &["--name", "alpha-one"]);
    let two = Lasting::create(&place, &["--name", "alpha-two"]);
    std::fs::create_dir(place.path("workspace/sources")).unwrap();
    std::fs::write(place.path("workspace/script"), "").unwrap();
    for (words, expected) in [
        (&["exe"][..], &["exec", "executor"][..]),
        (
            &["run", "--runtime", ""],
            &["cli", "docker", "local", "native"],
        ),
        (&["run", "--runtime", "=", "d"], &["docker"]),
        (
            &["run", "--runtime", "="],
            &["cli", "docker", "local", "native"],
        ),
        (&["run", "--workspace-m"], &["--workspace-mode"]),
        (&["create", "--network", "f"], &["filtered"]),
        (&["update", "--when-idle", ""], &["close", "pause", "stay"]),
        (&["ps", "-o", "j"], &["json"]),
        (&["exec", "alpha-"], &["alpha-one", "alpha-two"]),
        (&["exec", "-it", "alpha-t"], &["alpha-two"]),
        (&["stop", "alpha-one", "alpha-t"], &["alpha-two"]),
        (&["cp", "alpha-o"], &["alpha-one:"]),
        (&["cp", "s"], &["script", "sources"]),
        (&["run", "--workspace", "s"], &["sources"]),
        (&["action", "sc"], &["script"]),
        (&["exec", "nothing-like-it"], &[]),
        (&["--server", "http://127.0.0.1:1", "exec", ""], &[]),
    ] {
        assert_eq!(offered(&place, words), expected, "{words:?}");
    }
    drop((one, two));
}

#[test]
fn completions_are_printed_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let told = place.output(&["completions", shell]);
        assert_eq!(told.code, Some(0));
        assert!(told.stdout.contains("complete -- "), "{shell}");
    }
    for shell in ["elvish", "powershell"] {
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
