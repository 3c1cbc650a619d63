//! Tests over all flags that a sandbox can be asked for with: the next one cannot be forgotten.

use clap::{Args as _, Command, FromArgMatches as _};
use zareba_config::{ConfigFile, Environment, LoadRequest, UntrustedSettings};
use zareba_runtime::{Grant, RequestField, Runtime, RuntimeError, request::grant_without_walls};
use zareba_runtime_docker::{DockerOptions, DockerRuntime, EngineAddress};
use zareba_runtime_native::{LocalOptions, NativeOptions, NativeRuntime, ServerLifetime};

use super::*;
use crate::{arguments::SandboxArguments, sandbox::walls};

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
        other => panic!("the flag `{other}` has no sample here: say what it asks for"),
    }
}

fn flags() -> Vec<String> {
    let command = SandboxArguments::augment_args(Command::new("zareba"));
    let ids = command
        .get_arguments()
        .map(|argument| argument.get_id().to_string());
    ids.collect()
}

fn loaded(words: &[&str], set: &[&str]) -> Configuration {
    let command = SandboxArguments::augment_args(Command::new("zareba"));
    let matches = command.get_matches_from(["zareba"].iter().chain(words));
    let arguments = SandboxArguments::from_arg_matches(&matches).unwrap();
    let mut overrides = arguments.overrides().unwrap();
    overrides.extend(set.iter().map(|set| Override::parse(set).unwrap()));
    Configuration::load(&LoadRequest {
        file: ConfigFile::Nothing,
        environment: &Environment::from_pairs(Vec::<(String, String)>::new()),
        overrides: &overrides,
        untrusted: UntrustedSettings::Refuse,
    })
    .unwrap()
}

/// What of a spec is asked of a server: everything that has no name of its own in a request.
fn told(configuration: &Configuration) -> (RuntimeKind, String) {
    let settings = &configuration.settings;
    let asked = SandboxSpec {
        request: request(configuration),
        ..spec(settings)
    };
    (settings.runtime.kind, format!("{asked:?}"))
}

#[test]
fn every_flag_changes_what_a_server_is_told() {
    let usual = told(&loaded(&[], &[]));
    for flag in flags() {
        let asked = told(&loaded(&sample(&flag), &[]));
        assert_ne!(asked, usual, "--{flag} is dropped");
    }
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
    let refused = |set: &str, kind| refuse_untold(&[set.to_owned()], kind).is_err();
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
