//! What is a volume and what is not, and what is never mounted.

use super::*;

fn parse(text: &str) -> Result<Vec<VolumeRequest>, String> {
    VolumeRequest::parse_list(text).map_err(|error| error.to_string())
}

fn volume(source: VolumeSource, target: &str, mode: VolumeMode) -> VolumeRequest {
    VolumeRequest {
        source,
        target: target.into(),
        mode,
    }
}

#[test]
fn lists_are_read_as_openhands_writes_them() {
    let host = |path: &str| VolumeSource::Host(path.into());
    let named = |name: &str| VolumeSource::Named(name.to_owned());
    assert_eq!(
        parse("/a:/b, /c:/d:ro,/e:/f:overlay,cache:/g,volume:data:/h:ro,"),
        Ok(vec![
            volume(host("/a"), "/b", VolumeMode::ReadWrite),
            volume(host("/c"), "/d", VolumeMode::ReadOnly),
            volume(host("/e"), "/f", VolumeMode::Overlay),
            volume(named("cache"), "/g", VolumeMode::ReadWrite),
            volume(named("data"), "/h", VolumeMode::ReadOnly),
        ])
    );
    assert_eq!(parse(""), Ok(Vec::new()));
}

#[test]
fn what_is_no_volume_is_refused() {
    for text in [
        "/a",
        "/a:/b:ro:x",
        "/a:/b:exec",
        "a/b:/c",
        "../a:/c",
        ":/c",
        "/a:b",
        "/a:/",
        "/a:/b/../c",
        "/a:/.zareba/door",
        "/a:/proc/x",
        "volume:/a:/b",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_would_give_the_machine_away_is_never_mounted_dk_2() {
    let state = tempfile::tempdir().unwrap();
    let inside = state.path().join("docker");
    fs::create_dir(&inside).unwrap();
    let engine = tempfile::tempdir().unwrap();
    let socket = engine.path().join("s");
    fs::write(&socket, "").unwrap();
    let rules = MountRules {
        state_dir: &inside,
        socket: Some(&socket),
        allowed: None,
    };
    let link = state.path().join("link");
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    let refused = [
        Path::new("/"),
        Path::new("/proc"),
        Path::new("/proc/self"),
        Path::new("/sys"),
        Path::new("/dev"),
        Path::new("/var"),
        Path::new("/etc/ssh"),
        &inside,
        state.path(),
        &socket,
        engine.path(),
        &link,
    ];
    for path in refused.into_iter().filter(|path| path.exists()) {
        let outcome = rules.resolve(path);
        assert!(
            matches!(outcome, Err(VolumeError::Refused { .. })),
            "{}: {outcome:?}",
            path.display()
        );
    }
}

#[test]
fn an_allow_list_is_for_real_paths() {
    let listed = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let link = listed.path().join("out");
    std::os::unix::fs::symlink(other.path(), &link).unwrap();
    let state = tempfile::tempdir().unwrap();
    let allowed = [listed.path().to_owned()];
    let rules = MountRules {
        state_dir: state.path(),
        socket: None,
        allowed: Some(&allowed),
    };
    assert!(rules.resolve(listed.path()).is_ok());
    for path in [other.path(), &link] {
        let outcome = rules.resolve(path);
        assert!(
            matches!(outcome, Err(VolumeError::NotAllowed { .. })),
            "{outcome:?}"
        );
    }
}
