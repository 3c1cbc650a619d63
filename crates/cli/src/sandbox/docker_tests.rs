//! What becomes of the settings of `[docker]`, and of those of OpenHands that mean the same.

use zareba_config::{ConfigFile, Configuration, LoadRequest, Override, UntrustedSettings};
use zareba_runtime_docker::{VolumeMode, VolumeSource};

use super::*;

fn read(pairs: &[&str], asker: Asker) -> Result<DockerOptions, Failure> {
    let overrides: Vec<_> = pairs
        .iter()
        .map(|pair| Override::parse(pair).unwrap())
        .collect();
    let environment = Environment::default();
    let configuration = Configuration::load(&LoadRequest {
        file: ConfigFile::Nothing,
        environment: &environment,
        untrusted: UntrustedSettings::Refuse,
        overrides: &overrides,
    });
    let settings = configuration.unwrap().settings;
    let state = Path::new("/state");
    options(&settings, &environment, state, Lifetime::WithUs, asker)
}

#[test]
fn without_settings_it_is_the_strictest() {
    let made = read(&[], Asker::Us).unwrap();
    let strict = DockerOptions::hardened(
        EngineAddress::Unix("/var/run/docker.sock".into()),
        "/state".into(),
        std::env::current_exe().unwrap(),
    );
    assert!(matches!(made.engine, EngineAddress::Unix(_)));
    assert_eq!((made.image, made.pull), (None, PullPolicy::Never));
    assert_eq!((made.usage, made.user), (strict.usage, strict.user));
    assert_eq!(
        (made.network, made.relaxed),
        (strict.network, strict.relaxed)
    );
    assert_eq!((made.allowed, made.gpu), (strict.allowed, strict.gpu));
    assert_eq!(made.volumes, strict.volumes);
    assert!(made.extra.is_empty() && made.ports.is_empty() && made.extra_hosts.is_empty());
}

#[test]
fn clients_get_what_is_listed_and_otherwise_the_one_image() {
    let images = |pairs: &[&str], asker| read(pairs, asker).unwrap().allowed.images;
    let one = ["docker.image=debian:12"];
    assert_eq!(images(&one, Asker::Us), None);
    assert_eq!(images(&one, Asker::Clients), Some(vec!["debian:12".into()]));
    assert_eq!(images(&[], Asker::Clients), Some(Vec::new()));
    let listed = [one[0], "docker.allowed_images=[\"a:*\"]"];
    for asker in [Asker::Us, Asker::Clients] {
        assert_eq!(images(&listed, asker), Some(vec!["a:*".into()]));
    }
}

#[test]
fn the_image_is_ours_then_the_runtimes_then_openhands() {
    let image = |pairs: &[&str]| read(pairs, Asker::Us).unwrap().image;
    let base = "sandbox.base_container_image=base";
    let theirs = "sandbox.runtime_container_image=theirs";
    let kind = "runtime.kind=docker";
    assert_eq!(image(&[base]).as_deref(), Some("base"));
    assert_eq!(image(&[base, theirs]).as_deref(), Some("theirs"));
    let given = [base, theirs, "runtime.image=r"];
    assert_eq!(image(&given).as_deref(), Some("theirs"));
    assert_eq!(image(&[&given[..], &[kind]].concat()).as_deref(), Some("r"));
    let all = [&given[..], &[kind, "docker.image=ours"]].concat();
    assert_eq!(image(&all).as_deref(), Some("ours"));
}

#[test]
fn openhands_own_names_are_heard() {
    let made = read(
        &[
            "sandbox.use_host_network=true",
            "sandbox.user_id=1234",
            "sandbox.enable_gpu=true",
            "sandbox.cuda_visible_devices=0, 2",
            "sandbox.docker_runtime_kwargs={'mem_limit': '1g', 'cpu_shares': 2}",
            "sandbox.additional_networks=['tools']",
            "sandbox.volumes=/a:/workspace:rw,/b:/c:ro",
            "docker.options={'cpu_shares': 3}",
        ],
        Asker::Us,
    )
    .unwrap();
    assert_eq!(made.network, NetworkChoice::Host);
    let user = SandboxUser::Numbers {
        uid: 1234,
        gid: 1234,
    };
    assert_eq!(made.user, user);
    let devices = vec!["0".to_owned(), "2".to_owned()];
    assert_eq!(made.gpu, GpuRequest::Devices(devices));
    assert_eq!(made.additional_networks, ["tools"]);
    // The workspace is given apart from the volumes.
    let volume = VolumeRequest {
        source: VolumeSource::Host("/b".into()),
        target: "/c".into(),
        mode: VolumeMode::ReadOnly,
    };
    assert_eq!(made.volumes, [volume]);
    let extra = serde_json::json!({ "mem_limit": "1g", "cpu_shares": 3 });
    assert_eq!(Json::Object(made.extra), extra);
}

#[test]
fn ports_are_written_in_three_ways() {
    let any = PortChoice::Any { inside: 80 };
    let fixed = PortChoice::Fixed {
        inside: 80,
        outside: 8080,
    };
    let same = PortChoice::Same {
        first: 4000,
        last: 4999,
    };
    for (text, choice, variable) in [
        ("80", any, None),
        ("8080:80", fixed, None),
        ("4000-4999", same, None),
        ("PORT=4000-4999", same, Some("PORT".to_owned())),
    ] {
        assert_eq!(port(text), Some(PortRequest { choice, variable }), "{text}");
    }
    for text in ["", "0", "x", "80:", ":80", "5-4", "70000", "1:2:3", "A="] {
        assert_eq!(port(text), None, "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_told_by_the_name_of_its_setting() {
    for (pair, words) in [
        ("docker.ports=['x']", "`docker.ports` has `x`"),
        ("docker.bind_address=here", "`docker.bind_address`, `here`"),
        ("docker.volumes=['a']", "cannot use `docker.volumes`"),
        ("docker.network=filtered", "cannot filter its network"),
        ("docker.engine=ssh://", "where the Docker Engine is"),
    ] {
        let failure = read(&[pair], Asker::Us).unwrap_err();
        assert_eq!(failure.exit(), Exit::Configuration, "{pair}");
        assert!(failure.to_string().contains(words), "{failure}");
    }
}

#[test]
fn a_place_is_used_when_it_has_a_name_and_has_sandboxes_when_it_has_directories() {
    let state = tempfile::tempdir().unwrap();
    assert!(!was_used(state.path()) && !has_sandboxes(state.path()));
    let docker = state.path().join("docker");
    fs::create_dir(&docker).unwrap();
    fs::write(docker.join(".instance"), "x").unwrap();
    assert!(was_used(state.path()) && !has_sandboxes(state.path()));
    fs::create_dir(docker.join("docker-1")).unwrap();
    assert!(has_sandboxes(state.path()));
}
