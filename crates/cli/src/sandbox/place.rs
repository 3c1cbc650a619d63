//! Where sandboxes, images and their records are kept.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use zareba_config::{Environment, Settings};
use zareba_confine::is_root_of_machine;
use zareba_image::ImageStore;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Root's.
const OF_ROOT: &str = "/var/lib/zareba";

/// The directory that the settings name, or the usual one: root's, the user's, or for a user
/// without a home one that carries the user's number. Whoever uses it checks that it is private.
pub(super) fn state_directory(settings: &Settings, environment: &Environment) -> PathBuf {
    let uid = rustix::process::geteuid();
    match &settings.state.directory {
        // What is recorded there is looked for from anywhere.
        Some(directory) => std::path::absolute(directory).unwrap_or_else(|_| directory.clone()),
        None if is_root_of_machine() => PathBuf::from(OF_ROOT),
        None => of_user(environment)
            .unwrap_or_else(|| PathBuf::from(format!("/tmp/zareba-{}", uid.as_raw()))),
    }
}

/// Where images are.
pub(super) fn images(state: &Path) -> PathBuf {
    state.join("images")
}

/// Opens the store of images, which is made when missing.
///
/// The store checks itself; whoever could write to the directory above could put another one in
/// its place, so that is checked here, as the runtimes do it for sandboxes.
pub(super) fn image_store(state: &Path) -> Result<ImageStore, Failure> {
    let deed = || format!("cannot use the state directory `{}`", state.display());
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state)
        .or_fail(Exit::Start, deed())?;
    let found = fs::metadata(state).or_fail(Exit::Start, deed())?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || found.mode() & 0o022 != 0 {
        let cause = "it belongs to another user, or others may write to it";
        return Err(Failure::new(Exit::Start, cause)
            .while_doing(deed())
            .hint("remove it, or name another by the setting `state.directory`"));
    }
    ImageStore::open(&images(state)).map_err(|error| Failure::of(Exit::Start, &error))
}

/// `$XDG_STATE_HOME`, or `~/.local/state`; a relative value is to be ignored by that
/// specification.
fn of_user(environment: &Environment) -> Option<PathBuf> {
    let absolute = |name: &str| {
        environment
            .get_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME");
    // Users without a home often have one that is not there, or the root.
    let home = absolute("HOME").filter(|home| home.parent().is_some() && home.is_dir());
    let state = state.or_else(|| home.map(|home| home.join(".local/state")));
    state.map(|state| state.join("zareba"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_state_follows_the_specification() {
        let check = |pairs: &[(&str, &str)], expected: Option<&str>| {
            let environment = Environment::from_pairs(pairs.iter().copied());
            assert_eq!(
                of_user(&environment),
                expected.map(PathBuf::from),
                "{pairs:?}"
            );
        };
        check(
            &[("XDG_STATE_HOME", "/s"), ("HOME", "/tmp")],
            Some("/s/zareba"),
        );
        check(&[("HOME", "/tmp")], Some("/tmp/.local/state/zareba"));
        check(
            &[("XDG_STATE_HOME", "s"), ("HOME", "/tmp")],
            Some("/tmp/.local/state/zareba"),
        );
        check(&[("HOME", "/")], None);
        check(&[("HOME", "/nonexistent")], None);
        check(&[], None);
    }

    #[test]
    fn a_directory_that_is_set_counts_for_everybody() {
        let mut settings = Settings::default();
        settings.state.directory = Some("/somewhere".into());
        let environment = Environment::default();
        assert_eq!(
            state_directory(&settings, &environment),
            PathBuf::from("/somewhere")
        );
    }
}
