//! Every setting on every runtime: `--set` changes something, or is refused.

use std::path::Path;

use zareba_config::{
    ConfigFile, Environment, LoadError, LoadRequest, Override, Settings, UntrustedSettings,
};
use zareba_runtime_docker::Lifetime;

use super::*;
use crate::sandbox::{
    asked::{AMOUNTS_AND_NETWORK, request},
    docker::{self, Asker},
    walls,
};

/// Values, of which each setting takes at least one that differs from its default.
const SAMPLES: [&str; 21] = [
    "true",
    "false",
    "77",
    "5000",
    "100MiB",
    "0.5",
    "read-only",
    "host",
    "workspace",
    "missing",
    "close",
    "any",
    "disk",
    "this-machine",
    "[\"a.example\"]",
    "{\"a\": 1}",
    "[{\"name\": \"a\", \"command\": \"b\"}]",
    "127.0.0.2",
    "/srv:/data",
    "[\"/srv\"]",
    "[\"http://a.example\"]",
];

/// Sections of which every command that makes a sandbox reads all, or that are its own.
const OF_ALL: [&str; 5] = ["files.", "mcp.", "runtime.", "shell.", "state."];

/// Settings of `docker` that say more of another one, without which they have nothing to do.
const TOGETHER: [(&str, &str); 2] = [
    ("docker.group_id", "docker.user_id=7"),
    ("sandbox.cuda_visible_devices", "sandbox.enable_gpu=true"),
];

const KINDS: [RuntimeKind; 4] = [
    RuntimeKind::Native,
    RuntimeKind::Docker,
    RuntimeKind::Local,
    RuntimeKind::Cli,
];

fn load(kind: RuntimeKind, set: &[String]) -> Result<Configuration, LoadError> {
    let kind = Override::new("--runtime", "runtime.kind", kind.as_str());
    let set = set.iter().map(|set| Override::parse(set).unwrap());
    Configuration::load(&LoadRequest {
        file: ConfigFile::Nothing,
        environment: &Environment::default(),
        overrides: &[kind].into_iter().chain(set).collect::<Vec<_>>(),
        untrusted: UntrustedSettings::Refuse,
    })
}

/// The configuration without and with a value for this setting that is not its default.
fn with_sample(kind: RuntimeKind, key: &str) -> (Configuration, Configuration) {
    let is_told = |named: &str| kind == RuntimeKind::Docker && named == key;
    let together = TOGETHER.iter().filter(|(named, _)| is_told(named));
    let together: Vec<String> = together.map(|(_, other)| (*other).to_owned()).collect();
    let usual = load(kind, &together).unwrap();
    let mut loaded = SAMPLES.iter().filter_map(|sample| {
        let set = [&together[..], &[format!("{key}={sample}")]].concat();
        let set = load(kind, &set).ok()?;
        (set.settings != usual.settings).then_some(set)
    });
    match loaded.next() {
        Some(set) => (usual, set),
        None => panic!("`{key}` takes none of the samples: add one"),
    }
}

/// What a runtime makes of its own settings.
fn made_of(kind: RuntimeKind, configuration: &Configuration) -> String {
    let settings = &configuration.settings;
    let asked = request(configuration, kind);
    match kind {
        RuntimeKind::Native => {
            let walls = walls::walls(settings).unwrap();
            let rules = walls::policy(settings).unwrap();
            format!("{asked:?} {walls:?} {rules:?}")
        }
        RuntimeKind::Docker => format!("{asked:?} {}", docker_made_of(settings)),
        _ => format!("{asked:?}"),
    }
}

fn docker_made_of(settings: &Settings) -> String {
    let (environment, state) = (Environment::default(), Path::new("/state"));
    let made = docker::options(settings, &environment, state, Lifetime::WithUs, Asker::Us);
    let made = match made {
        Ok(made) => made,
        // Read, and found wrong.
        Err(failure) => return failure.to_string(),
    };
    let places = (
        &made.engine,
        &made.place,
        &made.program,
        &made.workspace_path,
    );
    let image = (&made.image, &made.platform, &made.pull, &made.allowed);
    let files = (&made.ownership, &made.volumes, &made.overlays, &made.user);
    let guarded = &made.guarded_names;
    let network = (&made.network, &made.additional_networks, &made.extra_hosts);
    let ports = (&made.ports, &made.bind_address);
    let rest = (&made.usage, &made.gpu, &made.relaxed, &made.extra);
    format!("{places:?} {image:?} {files:?} {guarded:?} {network:?} {ports:?} {rest:?}")
}

#[test]
fn what_is_set_for_a_sandbox_changes_it_or_is_refused_by_its_name() {
    let keys = zareba_config::keys();
    for key in keys.iter().filter(|key| key.absent.is_none()) {
        let is_of_all = OF_ALL.iter().any(|section| key.path.starts_with(section));
        for kind in KINDS {
            let (usual, set) = match key.path {
                "runtime.kind" => continue,
                path => with_sample(kind, path),
            };
            let shown = (key.path, kind.as_str());
            if let Err(failure) = refuse_unread(&set) {
                let message = failure.to_string();
                assert!(message.contains(key.path), "{shown:?}: {message}");
                continue;
            }
            let changed = made_of(kind, &set) != made_of(kind, &usual);
            assert!(
                changed || is_of_all,
                "{shown:?} has no effect, and is accepted"
            );
        }
    }
}

#[test]
fn a_runtime_is_told_only_of_its_own_settings() {
    let refusal = |kind, set: &str| {
        let set = load(kind, &[set.to_owned()]).unwrap();
        refuse_unread(&set).err().map(|failure| failure.to_string())
    };
    for (kind, set, told) in [
        (
            RuntimeKind::Local,
            "native.system=read-only",
            Some("the runtime `local`"),
        ),
        (
            RuntimeKind::Native,
            "docker.gpus=all",
            Some("the runtime `native`"),
        ),
        (
            RuntimeKind::Docker,
            "native.network=host",
            Some("the runtime `docker`"),
        ),
        (
            RuntimeKind::Native,
            "sandbox.user_id=7",
            Some("the runtime `native`"),
        ),
        (
            RuntimeKind::Native,
            "server.drain=3",
            Some("the sandbox of a command"),
        ),
        (
            RuntimeKind::Native,
            "pool.native.size=3",
            Some("the sandbox of a command"),
        ),
        (RuntimeKind::Native, "native.system=read-only", None),
        (RuntimeKind::Docker, "docker.gpus=all", None),
        // OpenHands' name of a setting that every runtime reads.
        (RuntimeKind::Native, "sandbox.timeout=3", None),
        (RuntimeKind::Native, "env.A=1", None),
    ] {
        let refused = refusal(kind, set);
        match told {
            Some(told) => assert!(refused.unwrap().contains(told), "{set}"),
            None => assert_eq!(refused, None, "{set}"),
        }
    }
    // A runtime without walls refuses them itself, with what it cannot hold.
    for name in AMOUNTS_AND_NETWORK {
        assert!(is_asked_by_request(
            RuntimeKind::Cli,
            &format!("native.{name}")
        ));
    }
}
