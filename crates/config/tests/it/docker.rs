//! The settings of the runtime `docker`.

use zareba_config::ImagePull;

use crate::case::Case;

#[test]
fn a_container_can_do_little_unless_something_else_is_said() {
    let docker = Case::new().load().settings.docker;
    assert_eq!(docker.pull, ImagePull::Never);
    assert_eq!(
        (docker.network.as_str(), docker.bind_address.as_str()),
        ("none", "127.0.0.1")
    );
    assert_eq!((docker.user_id, docker.group_id), (None, None));
    assert!(!docker.give_workspace && !docker.writable_root && !docker.debuggers);
    assert!(docker.capabilities.is_empty() && docker.volumes.is_empty());
    assert_eq!((docker.memory.bytes(), docker.pids), (2 << 30, 512));
}

#[test]
fn the_engine_is_also_found_by_dockers_own_variable() {
    let engine = |case: &Case| case.load().settings.docker.engine;
    let case = Case::new().variable("DOCKER_HOST", "unix:///a");
    assert_eq!(engine(&case).as_deref(), Some("unix:///a"));
    assert_eq!(case.origin("docker.engine"), "$DOCKER_HOST");
    let case = case.variable("ZAREBA_DOCKER_ENGINE", "unix:///b");
    assert_eq!(engine(&case).as_deref(), Some("unix:///b"));
    let empty = Case::new().variable("DOCKER_HOST", "");
    assert_eq!(engine(&empty), None);
}

#[test]
fn lists_of_what_is_allowed_tell_nothing_from_unset() {
    let allowed = |text: &str| {
        let case = Case::new().file("zareba.toml", text);
        case.load().settings.docker.allowed_images
    };
    assert_eq!(allowed(""), None);
    assert_eq!(allowed("[docker]\nallowed_images = []\n"), Some(Vec::new()));
    assert_eq!(
        allowed("[docker]\nallowed_images = [\"debian:*\"]\n"),
        Some(vec!["debian:*".to_owned()])
    );
}

#[test]
fn mistakes_are_told() {
    let case = Case::new()
        .set("docker.pull=always")
        .set("docker.memory=1M")
        .set("docker.network=")
        .set("docker.user_id=root");
    assert_eq!(
        case.complaints(),
        [
            "flag `--set docker.pull`: `docker.pull` must be one of \"never\", \"missing\", not \"always\"",
            "flag `--set docker.memory`: `docker.memory` must be at least 16MiB",
            "flag `--set docker.network`: `docker.network` must be `none`, `machine`, `internet`, `host` or the name of a network",
            "flag `--set docker.user_id`: `docker.user_id` must be an integer from 0 to 4294967295, not \"root\"",
        ]
    );
}
