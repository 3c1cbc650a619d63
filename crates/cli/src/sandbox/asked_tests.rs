//! Tests over all flags that a sandbox can be asked for with: the next one cannot be forgotten.

use std::{collections::BTreeSet, path::Path};

use clap::{Args as _, Command, FromArgMatches as _};
use serde_json::{Value, json};
use zareba_config::{ConfigFile, Environment, LoadRequest, Override, UntrustedSettings};
use zareba_runtime::{Grant, RequestField, Runtime, RuntimeError, request::grant_without_walls};
use zareba_runtime_docker::{DockerOptions, DockerRuntime, EngineAddress};
use zareba_runtime_native::{LocalOptions, NativeOptions, NativeRuntime, ServerLifetime};

use super::request as request_of;
use super::*;
use crate::{
    arguments::{LifeArguments, SandboxArguments},
    sandbox::walls,
};

/// A value for every flag that differs from what is usual.
fn sample(flag: &str) -> Vec<&'static str> {
    match flag {
        "runtime" => vec!["--runtime", "local"],
        "image" => vec!["--image", "debian"],
        "workspace" => vec!["--workspace", "/srv"],
        "workspace_mode" => vec!["--workspace-mode", "read-only"],
        "network" => vec!["--network", "host"],
        "allow" => vec!["--allow", "a.example"],
        "deny" => vec!["--network", "filtered", "--deny", "a.example"],
        "memory" => vec!["--memory", "100MiB"],
        "cpus" => vec!["--cpus", "0.5"],
        "pids" => vec!["--pids", "77"],
        "disk" => vec!["--disk", "100MiB"],
        "user" => vec!["--user", "1234:1235"],
        "mounts" => vec!["--mount", "/srv:/data:ro"],
        "variables" => vec!["-e", "A=1"],
        "best_effort" => vec!["--best-effort"],
        "life_max" => vec!["--life-max", "2h"],
        "idle_timeout" => vec!["--idle-timeout", "10m"],
        "when_idle" => vec!["--when-idle", "close"],
        "labels" => vec!["--label", "task=17"],
        other => panic!("the flag `{other}` has no sample here: say what it asks for"),
    }
}

fn command() -> Command {
    SandboxArguments::augment_args(Command::new("zareba"))
}

/// The same with what only a server keeps.
fn command_for_server() -> Command {
    LifeArguments::augment_args(command())
}

/// Without that for the tools of a home, which is no wish that a request could carry: it has a test of its own.
fn flags_of(command: &Command) -> Vec<String> {
    let arguments = command.get_arguments();
    let names = arguments.map(|it| it.get_id().to_string());
    names.filter(|name| name != "home_tools").collect()
}

fn flags() -> Vec<String> {
    flags_of(&command())
}

fn loaded(words: &[&str], set: &[&str]) -> Configuration {
    loaded_from(ConfigFile::Nothing, &[], words, set).0
}

fn loaded_from(
    file: ConfigFile<'_>,
    variables: &[(&str, &str)],
    words: &[&str],
    set: &[&str],
) -> (Configuration, LifeArguments) {
    let matches = command_for_server().get_matches_from(["zareba"].iter().chain(words));
    let arguments = SandboxArguments::from_arg_matches(&matches).unwrap();
    let life = LifeArguments::from_arg_matches(&matches).unwrap();
    let mut overrides = arguments.overrides().unwrap();
    overrides.extend(set.iter().map(|set| Override::parse(set).unwrap()));
    let variables = variables.iter().copied();
    let configuration = Configuration::load(&LoadRequest {
        file,
        environment: &Environment::from_pairs(variables),
        overrides: &overrides,
        untrusted: UntrustedSettings::Refuse,
    });
    (configuration.unwrap(), life)
}

fn request(configuration: &Configuration) -> SandboxRequest {
    request_of(configuration, configuration.settings.runtime.kind)
}

/// What a server is sent.
fn told(words: &[&str]) -> Value {
    let (configuration, life) = loaded_from(ConfigFile::Nothing, &[], words, &[]);
    told_by(&configuration, &life)
}

fn told_by(configuration: &Configuration, life: &LifeArguments) -> Value {
    let options = server_options(configuration, life);
    let session = options.session(spec_for_server(configuration)).unwrap();
    serde_json::to_value(session).unwrap()
}

#[test]
fn tools_of_a_home_are_shown_on_this_machine_without_an_image_or_refused() {
    let refused = |server: Option<&str>, words: &[&str]| {
        let words = [&["--home-tools"][..], words].concat();
        let refused = refuse_home_tools(server, &loaded(&words, &[]));
        refused.err().map(|failure| failure.exit())
    };
    assert_eq!(refused(None, &[]), None);
    assert_eq!(refused(Some("http://s"), &[]), Some(Exit::Usage));
    for words in [
        ["--runtime", "docker"],
        ["--runtime", "local"],
        ["--image", "debian"],
    ] {
        assert_eq!(refused(None, &words), Some(Exit::Usage), "{words:?}");
    }
    // In a file it is the operator's, for sandboxes that it can hold for.
    let set = loaded(&["--image", "debian"], &["native.home_tools=read-only"]);
    assert!(refuse_home_tools(Some("http://s"), &set).is_ok());
    assert!(!is_told("native.home_tools", RuntimeKind::Native));
}

#[test]
fn every_flag_changes_what_a_server_is_told() {
    let usual = told(&[]);
    assert_eq!(usual, json!({ "limits": {}, "setup": "nothing" }));
    for flag in flags_of(&command_for_server()) {
        assert_ne!(told(&sample(&flag)), usual, "--{flag} is dropped");
    }
}

/// A server may use another runtime by default, also one without walls.
#[test]
fn a_runtime_is_told_to_a_server_also_when_it_is_the_default_of_this_machine() {
    assert_eq!(told(&["--runtime", "native"])["runtime"], "native");
    let (set, life) = loaded_from(ConfigFile::Nothing, &[], &[], &["runtime.kind=native"]);
    assert_eq!(told_by(&set, &life)["runtime"], "native");
    let variables = [("ZAREBA_RUNTIME_KIND", "native")];
    let (variable, life) = loaded_from(ConfigFile::Nothing, &variables, &[], &[]);
    assert_eq!(told_by(&variable, &life)["runtime"], "native");
}

#[test]
fn a_file_says_something_to_a_server_only_when_it_is_named() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("zareba.toml");
    let text = "[runtime]\nkind = \"local\"\nimage = \"i\"\nworkspace = \"/w\"\nbest_effort = true\n\
                [shell]\ntimeout = 7\nno_change_timeout = 3\n";
    std::fs::create_dir(home.path().join("zareba")).unwrap();
    std::fs::write(home.path().join("zareba/zareba.toml"), text).unwrap();
    std::fs::write(&path, text).unwrap();
    let variables = [("XDG_CONFIG_HOME", home.path().to_str().unwrap())];
    let places = zareba_config::SearchPlaces {
        project: Path::new("/nowhere"),
        system: Path::new("/nowhere"),
    };
    let (users, life) = loaded_from(ConfigFile::Search(places), &variables, &[], &[]);
    assert_eq!(users.settings.runtime.kind, RuntimeKind::Local);
    assert_eq!(told_by(&users, &life), told(&[]));
    let (named, life) = loaded_from(ConfigFile::At(&path), &[], &[], &[]);
    let expected = json!({
        "runtime": "local", "image": "i", "workspace": "/w", "best_effort": true,
        "timeout": 7.0, "no_change_timeout": 3.0, "limits": {}, "setup": "nothing",
    });
    assert_eq!(told_by(&named, &life), expected);
}

/// What a session can be made with has a flag or a setting, or stands here with the reason.
#[test]
fn every_field_of_a_new_session_has_a_flag() {
    let contract = include_str!("../../../../openapi/zareba.json");
    let contract: Value = serde_json::from_str(contract).unwrap();
    let fields = &contract["components"]["schemas"]["CreateSession"]["properties"];
    let fields: BTreeSet<String> = fields.as_object().unwrap().keys().cloned().collect();
    let mut told_of = BTreeSet::new();
    for flag in flags_of(&command_for_server()) {
        let sent = told(&sample(&flag));
        told_of.extend(sent.as_object().unwrap().keys().cloned());
    }
    let set = ["shell.timeout=3", "shell.no_change_timeout=3"];
    let (set, life) = loaded_from(ConfigFile::Nothing, &[], &[], &set);
    told_of.extend(told_by(&set, &life).as_object().unwrap().keys().cloned());
    told_of.insert("id".to_owned()); // `--name`
    let without = [
        ("plugins", "no runtime has any in this version"),
        (
            "secrets",
            "on a command line they would stand in the list of processes",
        ),
    ];
    told_of.extend(without.map(|(field, _)| field.to_owned()));
    assert_eq!(told_of, fields);
}

fn native() -> NativeRuntime {
    let options = NativeOptions {
        state_dir: "/nowhere".into(),
        images: "/nowhere".into(),
        environment: Vec::new(),
        shell: None,
        scope: zareba_executor::FileScope::WholeFilesystem,
        linting: zareba_executor::Linting::Off,
    };
    let local = LocalOptions {
        program: "/nowhere".into(),
        warm_servers: 0,
        warm_no_change_timeout: std::time::Duration::from_secs(1),
        lifetime: ServerLifetime::WithUs,
    };
    let walls = walls::walls(&loaded(&[], &[]).settings).unwrap();
    NativeRuntime::new(options, local, walls)
}

/// Each flag that is part of a request is held by each runtime, or refused by its name.
#[test]
fn every_runtime_holds_a_flag_or_refuses_it() {
    let state = tempfile::tempdir().unwrap();
    let engine = EngineAddress::Unix("/nowhere".into());
    let docker = DockerOptions::hardened(engine, state.path().to_owned(), "/nowhere".into());
    let docker = DockerRuntime::new(docker).unwrap();
    let native = native();
    type Granting<'a> = &'a dyn Fn(&SandboxRequest) -> Result<Grant, RuntimeError>;
    let runtimes: [(&str, Granting<'_>); 4] = [
        ("native", &|request| native.grant(request)),
        ("docker", &|request| docker.grant(request)),
        ("cli", &|request| grant_without_walls("cli", request)),
        ("local", &|request| grant_without_walls("local", request)),
    ];
    for (name, grant) in runtimes {
        let usual = grant(&SandboxRequest::default()).unwrap();
        for flag in flags() {
            let words = [&["--runtime", name][..], &sample(&flag)].concat();
            let words = match flag.as_str() {
                "runtime" => continue,
                _ => words,
            };
            let request = request(&loaded(&words, &[]));
            if request == SandboxRequest::default() {
                let is_of_spec = ["image", "workspace", "variables"].contains(&flag.as_str());
                assert!(is_of_spec, "--{flag} is dropped for `{name}`");
                continue;
            }
            match grant(&request) {
                // A wish for what is so anyway holds.
                Ok(granted) if granted == usual => {
                    let holds_anyway =
                        flag == "best_effort" || (flag == "network" && name != "native");
                    assert!(holds_anyway, "--{flag} is passed over by `{name}`");
                }
                Ok(_) => {}
                Err(RuntimeError::Unhonoured { remedy, .. }) => assert!(!remedy.is_empty()),
                Err(error) => panic!("--{flag} on `{name}`: {error}"),
            }
        }
    }
}

/// What a request can ask for has a flag of its own, or stands here with the reason.
#[test]
fn every_field_of_a_request_has_a_flag() {
    let without = [(RequestField::Plugins, "no runtime has any in this version")];
    let flags = flags();
    for field in RequestField::ALL {
        let has_flag = flags.iter().any(|flag| flag == field.as_str());
        let has_reason = without.iter().any(|(other, _)| *other == field);
        assert!(has_flag != has_reason, "{field}");
    }
}

#[test]
fn a_user_and_mounts_are_told_to_a_server_as_they_were_typed() {
    let words = ["--user", "7", "--mount", "/a:/b:ro", "--mount", "/c:/d"];
    let asked = request(&loaded(&words, &[]));
    assert_eq!(asked.user.as_deref(), Some("7:7"));
    assert_eq!(asked.mounts, ["/a:/b:ro", "/c:/d"]);
    let root = request(&loaded(&["--user", "root"], &[]));
    assert_eq!(root.user.as_deref(), Some("0:0"));
    // A setting of another runtime asks for nothing.
    let set = request(&loaded(
        &[],
        &["docker.user_id=7", "docker.volumes=[\"/a:/b\"]"],
    ));
    assert_eq!(set, SandboxRequest::default());
}

#[test]
fn settings_of_a_file_ask_for_nothing_and_those_of_the_command_line_do() {
    assert_eq!(request(&loaded(&[], &[])), SandboxRequest::default());
    let set = request(&loaded(&[], &["native.memory=64MiB"]));
    assert_eq!(set.memory_bytes, Some(64 << 20));
    let docker = request(&loaded(&["--runtime", "docker", "--memory", "64MiB"], &[]));
    assert_eq!(docker.memory_bytes, Some(64 << 20));
}

#[test]
fn what_is_set_and_cannot_be_told_to_a_server_is_refused_by_its_name() {
    let refused = |set: &str, kind: RuntimeKind| {
        refuse_untold(&loaded(&["--runtime", kind.as_str()], &[set])).is_err()
    };
    for told in [
        "native.network=host",
        "env.A=1",
        "shell.timeout=3",
        "state.directory=/s",
    ] {
        assert!(!refused(told, RuntimeKind::Native), "{told}");
    }
    for untold in [
        "native.system=read-only",
        "native.inodes=999",
        "docker.memory=1G",
        "docker.gpus=all",
        "pool.native.size=3",
        "shell.program=/bin/sh",
        "runtime.workspace_in_sandbox=/w",
    ] {
        assert!(refused(untold, RuntimeKind::Native), "{untold}");
    }
    assert!(!refused("docker.memory=1G", RuntimeKind::Docker));
    assert!(refused("native.memory=1G", RuntimeKind::Docker));
}
