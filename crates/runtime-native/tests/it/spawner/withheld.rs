//! Control groups that change after a spawner has looked at them.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use zareba_confine::cgroup::{Controller, Host, Version};
use zareba_runtime::Runtime as _;
use zareba_runtime_native::LocalOptions;

use super::{COPIES_FROM, await_beginning, close, copies, create, program_with, spawner};
use crate::fixture::{self, spec};

/// Commands that take the control of processes away from whoever sees their mounts, and what they
/// mount over. The second generation then offers less than everything.
fn withholding() -> (String, Vec<PathBuf>) {
    let (mut commands, mut covered) = (String::new(), Vec::new());
    for hierarchy in Host::detect().unwrap().hierarchies() {
        let mut cover = |options: &str, place: PathBuf| {
            write!(commands, "mount {options} '{}' && ", place.display()).unwrap();
            covered.push(place);
        };
        let directory = &hierarchy.directory;
        match hierarchy.version {
            Version::V2 => {
                cover(
                    "--bind \"$place/some\"",
                    directory.join("cgroup.controllers"),
                );
                cover(
                    "--bind \"$place/none\"",
                    directory.join("cgroup.subtree_control"),
                );
            }
            Version::V1 if hierarchy.controllers.contains(&Controller::Pids) => {
                cover("-t tmpfs -o ro none", directory.clone());
            }
            Version::V1 => {}
        }
    }
    (commands, covered)
}

#[tokio::test]
#[ignore = "needs root"]
async fn what_was_withheld_from_a_spawner_is_looked_at_afresh_by_every_copy() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("some"), "memory\n").unwrap();
    fs::write(place.path().join("none"), "").unwrap();
    let (commands, covered) = withholding();
    let script = format!(
        "export place program\n\
         exec unshare --mount sh -c '{}: >\"$place/begun\" && exec \"$program\" \"$@\"' sh \"$@\"",
        commands.replace('\'', "'\\''")
    );
    let fixture = fixture::native_by(LocalOptions {
        program: program_with(place.path(), &script),
        ..fixture::local_options()
    });
    let mut sandboxes = create(&fixture.runtime, COPIES_FROM).await;
    await_beginning(&place);
    let refused = fixture.runtime.create(spec()).await.err();
    let refused = format!("{refused:?}");
    assert!(refused.contains("cannot limit the sandbox"), "{refused}");
    let spawner_before = spawner(&fixture);
    let number = spawner_before.unwrap().to_string();
    for path in covered {
        let mut uncover = Command::new("nsenter");
        uncover.args(["-t", &number, "-m", "umount"]).arg(path);
        assert!(uncover.status().unwrap().success());
    }
    sandboxes.extend(create(&fixture.runtime, 1).await);
    assert_eq!(copies(&fixture), 1);
    assert_eq!(spawner(&fixture), spawner_before);
    close(sandboxes).await;
    assert_eq!(fixture.leftovers(), [""; 0]);
}
