//! The order in which the docker command looks, and what it finds.

use super::*;

fn sources(config_dir: &Path) -> EngineSources {
    EngineSources {
        host: None,
        context: None,
        config_dir: config_dir.to_owned(),
        tls_verify: false,
        cert_path: None,
        runtime_dir: None,
    }
}

fn write_context(config_dir: &Path, name: &str, host: &str) -> PathBuf {
    let digest: String = Sha256::digest(name.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let meta = config_dir.join("contexts/meta").join(&digest);
    fs::create_dir_all(&meta).unwrap();
    let document = serde_json::json!({
        "Name": name,
        "Metadata": {},
        "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": false}},
    });
    fs::write(meta.join("meta.json"), document.to_string()).unwrap();
    config_dir.join("contexts/tls").join(digest).join("docker")
}

fn unix(path: &str) -> EngineAddress {
    EngineAddress::Unix(path.into())
}

#[test]
fn a_host_goes_before_a_context_and_that_before_the_configured_one() {
    let config = tempfile::tempdir().unwrap();
    write_context(config.path(), "here", "unix:///run/here.sock");
    write_context(config.path(), "there", "unix:///run/there.sock");
    let configured = config.path().join("config.json");
    fs::write(configured, r#"{"currentContext": "there"}"#).unwrap();
    let mut sources = sources(config.path());
    let resolve = |sources: &EngineSources| EngineAddress::resolve(sources).unwrap();
    assert_eq!(resolve(&sources), unix("/run/there.sock"));
    sources.context = Some("here".to_owned());
    assert_eq!(resolve(&sources), unix("/run/here.sock"));
    sources.host = Some("unix:///run/host.sock".to_owned());
    assert_eq!(resolve(&sources), unix("/run/host.sock"));
}

#[test]
fn keys_are_looked_for_where_the_docker_command_keeps_them() {
    let config = tempfile::tempdir().unwrap();
    let tls = write_context(config.path(), "far", "tcp://engine:2376");
    let mut sources = sources(config.path());
    sources.context = Some("far".to_owned());
    let tcp = |tls| EngineAddress::Tcp {
        address: "engine:2376".to_owned(),
        tls,
    };
    assert_eq!(EngineAddress::resolve(&sources).unwrap(), tcp(None));
    fs::create_dir_all(&tls).unwrap();
    let found = EngineAddress::resolve(&sources).unwrap();
    assert_eq!(found, tcp(Some(TlsFiles::in_directory(&tls))));
    sources.host = Some("tcp://engine:2376".to_owned());
    sources.tls_verify = true;
    let found = EngineAddress::resolve(&sources).unwrap();
    assert_eq!(found, tcp(Some(TlsFiles::in_directory(config.path()))));
    sources.cert_path = Some("/certs".into());
    let found = EngineAddress::resolve(&sources).unwrap();
    assert_eq!(found, tcp(Some(TlsFiles::in_directory("/certs".as_ref()))));
}

#[test]
fn a_rootless_engine_or_podman_is_found_where_docker_is_not() {
    let place = tempfile::tempdir().unwrap();
    let docker = place.path().join("docker.sock");
    let podman = place.path().join("podman/podman.sock");
    let usual = || {
        let mut sockets = usual_sockets(Some(place.path()));
        assert_eq!(sockets[0], Path::new(DEFAULT_SOCKET));
        assert_eq!(sockets[1..3], [docker.clone(), podman.clone()]);
        // Those of this machine may be there or not.
        sockets[0] = place.path().join("missing");
        sockets.truncate(3);
        sockets
    };
    assert_eq!(first_there(usual()), place.path().join("missing"));
    fs::create_dir(place.path().join("podman")).unwrap();
    fs::write(&podman, "").unwrap();
    assert_eq!(first_there(usual()), podman);
    fs::write(&docker, "").unwrap();
    assert_eq!(first_there(usual()), docker);
}

#[test]
fn what_cannot_be_used_is_told_with_a_way_out() {
    let config = tempfile::tempdir().unwrap();
    let mut sources = sources(config.path());
    let mut refusal = |host: &str| {
        sources.host = Some(host.to_owned());
        EngineAddress::resolve(&sources).unwrap_err().to_string()
    };
    for host in [
        "engine",
        "unix://relative",
        "tcp://engine",
        "https://engine:2376",
        "ftp://x:1",
        "ssh://",
        "ssh://-oProxyCommand=x",
        "ssh://me@-far",
        "ssh://far:port",
        "ssh://far/a b;c",
    ] {
        assert!(refusal(host).contains("is no address"), "{host}");
    }
    sources.host = None;
    sources.context = Some("nowhere".to_owned());
    let error = EngineAddress::resolve(&sources).unwrap_err().to_string();
    assert!(error.contains("`nowhere`"), "{error}");
}

#[test]
fn a_machine_behind_ssh_is_named_as_the_docker_command_does() {
    let config = tempfile::tempdir().unwrap();
    let found = |host: &str| {
        let mut sources = sources(config.path());
        sources.host = Some(host.to_owned());
        match EngineAddress::resolve(&sources).unwrap() {
            EngineAddress::Ssh(host) => host,
            other => panic!("{other:?}"),
        }
    };
    let far = SshHost {
        user: None,
        host: "far".to_owned(),
        port: None,
        socket: None,
    };
    assert_eq!(found("ssh://far"), far);
    assert_eq!(found("ssh://far/"), far);
    assert_eq!(
        found("ssh://me@far:2222/run/user/1000/docker.sock"),
        SshHost {
            user: Some("me".to_owned()),
            port: Some(2222),
            socket: Some("/run/user/1000/docker.sock".to_owned()),
            ..far.clone()
        }
    );
    let six = found("ssh://me@[fe80::1%eth0]:22");
    assert_eq!((six.host.as_str(), six.port), ("fe80::1%eth0", Some(22)));
}

#[test]
fn an_engine_behind_a_socket_is_here_and_others_are_elsewhere() {
    let config = tempfile::tempdir().unwrap();
    let place = |host: &str| {
        let mut sources = sources(config.path());
        sources.host = Some(host.to_owned());
        EngineAddress::resolve(&sources).unwrap().usual_place()
    };
    assert_eq!(place("unix:///run/s"), EnginePlace::ThisMachine);
    assert_eq!(place("tcp://127.0.0.1:2375"), EnginePlace::Elsewhere);
    assert_eq!(place("ssh://far"), EnginePlace::Elsewhere);
}
