//! Attempts on whoever takes something out of a sandbox: names and links that would lead the
//! taker elsewhere (FA-1, FA-9).

use std::{os::unix::fs::symlink, path::Path};

use zareba_protocol::{Action, ObservationKind, ReadFile};
use zareba_runtime::RuntimeError;

use super::{Prison, Treasure, open_workspace};

/// Where things are taken to, in a directory that nothing else may appear in.
struct Destination {
    around: tempfile::TempDir,
}

impl Destination {
    fn new() -> Self {
        let around = tempfile::tempdir().unwrap();
        std::fs::create_dir(around.path().join("taken")).unwrap();
        Self { around }
    }

    fn path(&self) -> std::path::PathBuf {
        self.around.path().join("taken")
    }

    async fn take(&self, prison: &Prison, from: &str) -> Result<(), RuntimeError> {
        let sandbox = &prison.sandbox;
        sandbox.copy_from(Path::new(from), &self.path()).await
    }

    /// Taking the whole workspace fails, for this reason.
    async fn refuses(&self, prison: &Prison, reason: &str) {
        let error = self.take(prison, "/workspace").await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(reason), "{error}: {source}");
    }

    /// Nothing was written beside it.
    fn assert_alone(&self) {
        assert_eq!(names(self.around.path()), ["taken"]);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_link_that_is_taken_out_brings_no_file_of_the_machine_fa_9() {
    let treasure = Treasure::hide();
    let destination = Destination::new();
    let prison = Prison::new().await;
    let plant = format!("ln -s {} link; echo mine > file", treasure.path());
    assert_eq!(prison.shell(&plant).await.0, 0);
    destination
        .refuses(&prison, "may lead out of the destination")
        .await;
    assert_eq!(names(&destination.path()), [""; 0]);
    destination.assert_alone();
    treasure.assert_untouched();
    prison.end().await;
}

#[tokio::test]
async fn a_link_by_which_something_is_asked_for_is_followed_inside_fa_1() {
    let treasure = Treasure::hide();
    let destination = Destination::new();
    let prison = Prison::new().await;
    prison
        .shell(&format!("ln -s {} link", treasure.path()))
        .await;
    assert!(destination.take(&prison, "/workspace/link").await.is_err());
    assert_eq!(names(&destination.path()), [""; 0]);
    destination.assert_alone();
    prison.end().await;
}

/// A link that is at the destination already is where the second half of an attack would go.
#[tokio::test]
async fn what_is_taken_out_does_not_go_through_a_link_at_the_destination_fa_5() {
    let treasure = Treasure::hide();
    let destination = Destination::new();
    symlink(treasure.path(), destination.path().join("file")).unwrap();
    symlink(
        treasure.directory.path(),
        destination.path().join("directory"),
    )
    .unwrap();
    let prison = Prison::new().await;
    let plant = "echo evil > file; mkdir directory; echo evil > directory/treasure; echo evil > directory/new";
    assert_eq!(prison.shell(plant).await.0, 0);
    destination
        .refuses(&prison, "is a link in the destination")
        .await;
    treasure.assert_untouched();
    destination.assert_alone();
    prison.end().await;
}

/// First a link out, then a file below its name: by two copies, as one tree cannot hold both.
#[tokio::test]
async fn a_link_that_was_taken_out_does_not_carry_the_next_copy_away_fa_9() {
    let treasure = Treasure::hide();
    let destination = Destination::new();
    let prison = Prison::new().await;
    let link = format!(
        "ln -s {} step; ln -s .. up",
        treasure.directory.path().display()
    );
    prison.shell(&link).await;
    destination
        .refuses(&prison, "may lead out of the destination")
        .await;
    let next = "rm step up; mkdir step up; echo evil > step/treasure; echo evil > step/new; echo evil > up/new";
    assert_eq!(prison.shell(next).await.0, 0);
    destination.take(&prison, "/workspace").await.unwrap();
    assert_eq!(names(&destination.path()), ["step", "up"]);
    treasure.assert_untouched();
    destination.assert_alone();
    prison.end().await;
}

#[tokio::test]
async fn names_that_look_like_ways_up_are_names_fa_9() {
    let destination = Destination::new();
    let prison = Prison::new().await;
    let plant =
        "mkdir -p '...' 'a b'; echo x > '.../..x'; echo x > '..\\evil'; echo x > $'new\\nline'";
    assert_eq!(prison.shell(plant).await.0, 0);
    destination.take(&prison, "/workspace").await.unwrap();
    assert_eq!(
        names(&destination.path()),
        ["...", "..\\evil", "a b", "new\nline"]
    );
    destination.assert_alone();
    prison.end().await;
}

#[tokio::test]
async fn dots_in_what_is_asked_for_end_at_the_root_fa_1() {
    let treasure = Treasure::hide();
    let destination = Destination::new();
    let prison = Prison::new().await;
    let path = format!("/workspace/../../../..{}", treasure.path());
    assert!(destination.take(&prison, &path).await.is_err());
    assert_eq!(names(&destination.path()), [""; 0]);
    prison.end().await;
}

/// A pipe would make whoever opens it wait, a device would act.
#[tokio::test]
async fn special_files_are_not_taken_out_fa_3() {
    let destination = Destination::new();
    let prison = Prison::new().await;
    let plant = "mkfifo pipe; echo mine > file; \
                 python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'";
    assert_eq!(prison.shell(plant).await.0, 0);
    destination.take(&prison, "/workspace").await.unwrap();
    assert_eq!(names(&destination.path()), ["file"]);
    prison.end().await;
}

#[tokio::test]
async fn set_id_bits_are_not_taken_out_fa_9() {
    use std::os::unix::fs::PermissionsExt as _;
    let destination = Destination::new();
    let prison = Prison::new().await;
    assert_eq!(
        prison.shell("cp /bin/true evil; chmod 6755 evil").await.0,
        0
    );
    destination.take(&prison, "/workspace").await.unwrap();
    let mode = std::fs::metadata(destination.path().join("evil")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o7000, 0);
    prison.end().await;
}

/// Files are read by the executor, inside, also where the workspace is the machine's own.
#[tokio::test]
async fn a_file_that_is_read_for_an_agent_is_one_of_the_sandbox_fa_1() {
    let treasure = Treasure::hide();
    let workspace = tempfile::tempdir().unwrap();
    symlink(treasure.path(), workspace.path().join("link")).unwrap();
    let prison = Prison::at(open_workspace(), workspace.path()).await;
    let dots = format!("/workspace/../../../..{}", treasure.path());
    let magic = format!("/proc/self/root{}", treasure.path());
    for path in ["/workspace/link", &treasure.path(), &dots, &magic] {
        let action = Action::Read(ReadFile::new(path));
        let observation = prison
            .sandbox
            .run_action(action.into())
            .await
            .unwrap()
            .observation;
        let is_refused = matches!(observation.kind, ObservationKind::Error { .. });
        assert!(is_refused, "{path}: {:?}", observation.kind);
        assert!(!observation.content.contains(&treasure.content), "{path}");
    }
    prison.end().await;
}
