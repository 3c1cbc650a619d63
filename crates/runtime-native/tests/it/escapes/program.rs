//! Attempts on our own program, which the executor inside was started from: whoever could change
//! it would run outside, with the rights of whoever starts it next (CVE-2019-5736 was that).
//!
//! Its content is busy as long as it runs, but its mode, times, owner and attributes are not, and
//! Landlock does not look at them: that nobody can look into the executor is the only wall there.

use std::{
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::PathBuf,
};

use zareba_protocol::{Action, EditFile, ObservationKind, WriteFile};
use zareba_runtime_native::{LocalOptions, NativeRuntime};

use super::{Prison, WALLS, processes::EXECUTOR};
use crate::fixture::{self, Fixture, spec};

/// A sandbox whose executor is a copy that belongs to whoever runs the test: only then is the
/// owner of the file no wall.
struct Copied {
    prison: Prison,
    path: PathBuf,
    before: Appearance,
    _directory: tempfile::TempDir,
}

/// All that could have been changed.
#[derive(Debug, PartialEq, Eq)]
struct Appearance {
    mode: u32,
    owner: (u32, u32),
    links: u64,
    changed: (i64, i64),
    bytes: u64,
}

impl Copied {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        let path = directory.path().join("zareba");
        std::fs::copy(fixture::program(), &path).unwrap();
        let state = fixture::state();
        let local = LocalOptions {
            program: path.clone(),
            ..fixture::local_options()
        };
        let runtime = NativeRuntime::new(fixture::options(&state), local, WALLS);
        Self {
            before: appearance(&path),
            prison: Prison::of(Fixture { runtime, state }, spec()).await,
            path,
            _directory: directory,
        }
    }

    /// An attempt on the program does not get as far as the program.
    async fn withstands(self, attempt: &str) {
        let target = format!("/proc/{EXECUTOR}/exe");
        let came_to = self.prison.attempt(&attempt.replace("{}", &target)).await;
        self.assert_unchanged();
        assert_eq!(came_to, "EACCES", "{attempt}");
        self.prison.end().await;
    }

    fn assert_unchanged(&self) {
        assert_eq!(appearance(&self.path), self.before);
        let now = std::fs::read(&self.path).unwrap();
        assert!(
            now == std::fs::read(fixture::program()).unwrap(),
            "other bytes"
        );
    }
}

/// The time of the last change covers attributes, too.
fn appearance(path: &std::path::Path) -> Appearance {
    let found = std::fs::metadata(path).unwrap();
    Appearance {
        mode: found.mode(),
        owner: (found.uid(), found.gid()),
        links: found.nlink(),
        changed: (found.ctime(), found.ctime_nsec()),
        bytes: found.len(),
    }
}

#[tokio::test]
async fn our_program_cannot_be_overwritten_through_the_executor() {
    Copied::new()
        .await
        .withstands("os.open('{}', os.O_WRONLY)")
        .await;
}

#[tokio::test]
async fn our_program_cannot_be_cut_off_through_the_executor() {
    Copied::new().await.withstands("os.truncate('{}', 0)").await;
}

#[tokio::test]
async fn the_mode_of_our_program_cannot_be_changed_through_the_executor() {
    Copied::new()
        .await
        .withstands("os.chmod('{}', 0o777)")
        .await;
}

#[tokio::test]
async fn the_times_of_our_program_cannot_be_changed_through_the_executor() {
    Copied::new()
        .await
        .withstands("os.utime('{}', (0, 0))")
        .await;
}

#[tokio::test]
async fn our_program_cannot_be_given_attributes_through_the_executor() {
    Copied::new()
        .await
        .withstands("os.setxattr('{}', 'user.mark', b'evil')")
        .await;
}

#[tokio::test]
async fn the_owner_of_our_program_cannot_be_changed_through_the_executor() {
    Copied::new()
        .await
        .withstands("os.chown('{}', os.getuid(), os.getgid())")
        .await;
}

#[tokio::test]
async fn our_program_cannot_be_linked_to_through_the_executor() {
    Copied::new()
        .await
        .withstands("call('linkat', -100, b'{}', -100, b'/tmp/program', 0x400)")
        .await;
}

/// A process that runs our program has it as its own, and itself it may look at.
#[tokio::test]
async fn our_program_cannot_be_run_to_be_reached_as_ones_own() {
    let copied = Copied::new().await;
    let run = format!("os.execv('/proc/{EXECUTOR}/exe', ['zareba', '--version'])");
    assert_eq!(copied.prison.attempt(&run).await, "EACCES");
    copied.assert_unchanged();
    copied.prison.end().await;
}

/// The executor itself opens files for an agent, and its own program is not closed to it.
#[tokio::test]
async fn the_executor_does_not_write_its_own_program_when_it_is_asked_to() {
    let copied = Copied::new().await;
    for path in ["/proc/self/exe", "/proc/thread-self/exe", "/proc/2/exe"] {
        let write = Action::Write(WriteFile::new(path, "evil"));
        let create = Action::Edit(EditFile {
            file_text: Some("evil".to_owned()),
            ..EditFile::new(path, "create")
        });
        for action in [write, create] {
            let answer = copied.prison.sandbox.run_action(action.into()).await;
            let observation = answer.unwrap().observation;
            copied.assert_unchanged();
            let is_refused = matches!(observation.kind, ObservationKind::Error { .. })
                || observation.content.starts_with("ERROR:");
            assert!(is_refused, "{path}: {observation:?}");
        }
    }
    copied.prison.end().await;
}
