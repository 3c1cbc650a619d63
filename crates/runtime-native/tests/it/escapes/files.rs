//! Attempts to reach files of the machine by name, by link and by device (NS-3, NS-4, NS-6).

use std::os::unix::fs::symlink;

use zareba_runtime::Runtime as _;

use super::{Prison, Treasure, WALLS, open_workspace, python};

/// Reads a file of the machine by a name that would lead there, with `{}` for its path.
async fn unreachable(name: &str, expected: &str) {
    let treasure = Treasure::hide();
    let direct = format!("read('{}').decode()", treasure.path());
    let outside = python::outside(&python::shown(&direct));
    assert_eq!(outside, format!("worked: {}", treasure.content));
    let attempt = format!("read('{}')", name.replace("{}", &treasure.path()));
    Prison::new().await.finds(&attempt, expected).await;
    treasure.assert_untouched();
}

#[tokio::test]
async fn a_file_of_the_machine_is_not_there_by_its_name_ns_4() {
    unreachable("{}", "ENOENT").await;
}

#[tokio::test]
async fn dots_do_not_lead_above_the_root_ns_3() {
    unreachable("/workspace/../../../../../..{}", "ENOENT").await;
}

#[tokio::test]
async fn ones_own_root_is_that_of_the_sandbox_ns_3() {
    unreachable("/proc/self/root/../../..{}", "ENOENT").await;
}

#[tokio::test]
async fn ones_own_directory_is_below_that_root_ns_3() {
    unreachable("/proc/self/cwd/../../../..{}", "ENOENT").await;
}

#[tokio::test]
async fn the_root_of_a_thread_is_that_of_the_sandbox_ns_3() {
    unreachable("/proc/thread-self/root{}", "ENOENT").await;
}

#[tokio::test]
async fn the_root_of_the_first_process_cannot_be_entered_ns_7() {
    unreachable("/proc/1/root{}", "EACCES").await;
}

#[tokio::test]
async fn the_directory_of_the_first_process_cannot_be_entered_ns_7() {
    unreachable("/proc/1/cwd/../../..{}", "EACCES").await;
}

#[tokio::test]
async fn a_link_that_an_agent_plants_leads_to_what_is_inside_ns_3() {
    let treasure = Treasure::hide();
    let prison = Prison::new().await;
    let plant = format!("os.symlink('{}', '/workspace/link')", treasure.path());
    assert_eq!(prison.attempt(&plant).await, "worked: None");
    assert_eq!(prison.attempt("read('/workspace/link')").await, "ENOENT");
    prison.end().await;
    treasure.assert_untouched();
}

#[tokio::test]
async fn a_link_in_a_workspace_leads_to_what_is_inside_ns_3() {
    let treasure = Treasure::hide();
    let workspace = tempfile::tempdir().unwrap();
    symlink(treasure.path(), workspace.path().join("absolute")).unwrap();
    let up = format!("../../../../..{}", treasure.path());
    symlink(up, workspace.path().join("relative")).unwrap();
    symlink(
        treasure.directory.path(),
        workspace.path().join("directory"),
    )
    .unwrap();
    for walls in [WALLS, open_workspace()] {
        let prison = Prison::at(walls, workspace.path()).await;
        assert_eq!(prison.attempt("read('absolute')").await, "ENOENT");
        assert_eq!(prison.attempt("read('relative')").await, "ENOENT");
        let written = prison.attempt("open('directory/new', 'w')").await;
        assert_eq!(written, "ENOENT");
        prison.end().await;
    }
    treasure.assert_untouched();
}

#[tokio::test]
async fn a_file_of_the_system_cannot_be_linked_into_the_workspace_ns_3() {
    let workspace = tempfile::tempdir().unwrap();
    let prison = Prison::at(open_workspace(), workspace.path()).await;
    let linked = "os.link('/usr/bin/env', '/workspace/env')";
    assert_eq!(prison.attempt(linked).await, "EXDEV");
    let by_descriptor = "call('linkat', -100, b'/proc/self/fd/%d' % os.open('/usr/bin/env', 0), \
                         -100, b'/workspace/env', 0x400)";
    assert_eq!(prison.attempt(by_descriptor).await, "EXDEV");
    prison.end().await;
    assert_eq!(std::fs::read_dir(workspace.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_descriptor_cannot_be_walked_up_past_the_root_ns_3() {
    let treasure = Treasure::hide();
    let attempt = format!(
        "os.open('../../../../..{}', 0, dir_fd=os.open('/workspace', os.O_RDONLY))",
        treasure.path()
    );
    Prison::new().await.finds(&attempt, "ENOENT").await;
}

#[tokio::test]
async fn a_replaced_file_of_the_system_is_replaced_inside_only_ns_3() {
    let before = std::fs::read("/etc/profile").unwrap();
    let prison = Prison::new().await;
    let replace = "os.unlink('/etc/profile') or open('/etc/profile', 'w').write('evil')";
    assert_eq!(prison.attempt(replace).await, "worked: 4");
    assert_eq!(
        prison.attempt("read('/etc/profile')").await,
        "worked: b'evil'"
    );
    prison.end().await;
    assert_eq!(std::fs::read("/etc/profile").unwrap(), before);
}

#[tokio::test]
async fn a_disk_cannot_be_made_as_a_node_ns_10() {
    let attempt = "os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0))";
    Prison::new().await.finds(attempt, "EPERM").await;
}

#[tokio::test]
async fn memory_cannot_be_made_as_a_node_ns_10() {
    let attempt = "os.mknod('/tmp/memory', 0o20666, os.makedev(1, 1))";
    Prison::new().await.finds(attempt, "EPERM").await;
}

/// A node of number 0:0 is how an overlay notes that a file of a lower layer is gone.
#[tokio::test]
async fn a_whiteout_cannot_be_made_as_a_node_ns_10() {
    let attempt = "os.mknod('/usr/bin/whiteout', 0o20666, os.makedev(0, 0))";
    Prison::new().await.finds(attempt, "EPERM").await;
}

#[tokio::test]
async fn there_are_no_devices_but_harmless_ones_ns_5() {
    let prison = Prison::new().await;
    let names = prison.python("print(*sorted(os.listdir('/dev')))").await;
    let expected = "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero";
    assert_eq!(names, expected);
    prison.end().await;
}

/// Only root can make one, and whoever is root outside may have put it there long ago.
#[tokio::test]
#[ignore = "needs root"]
async fn a_device_that_lies_in_a_workspace_cannot_be_opened_ns_3() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let workspace = tempfile::tempdir().unwrap();
    let node = workspace.path().join("null");
    mknodat(
        CWD,
        &node,
        FileType::CharacterDevice,
        Mode::from_raw_mode(0o666),
        makedev(1, 3),
    )
    .unwrap();
    assert_eq!(std::fs::read(&node).unwrap(), b"");
    for walls in [WALLS, open_workspace()] {
        let prison = Prison::at(walls, workspace.path()).await;
        prison.finds("read('/workspace/null')", "EACCES").await;
    }
}

/// What a mount is made of outside while a sandbox runs does not appear in it.
#[tokio::test]
#[ignore = "needs root"]
async fn a_mount_that_is_made_outside_does_not_come_in_ns_3() {
    let place = tempfile::tempdir().unwrap();
    let workspace = Mounted::at(place.path());
    mount(&["--make-shared", &place.path().display().to_string()]);
    let below = place.path().join("below");
    std::fs::create_dir(&below).unwrap();
    let prison = Prison::at(open_workspace(), place.path()).await;
    let mounted = Mounted::at(&below);
    std::fs::write(below.join("news"), "from outside").unwrap();
    let listed = prison.attempt("os.listdir('/workspace/below')").await;
    assert_eq!(listed, "worked: []");
    prison.end().await;
    drop((mounted, workspace));
}

/// A file system in memory, mounted for as long as this is there.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn at(path: &std::path::Path) -> Self {
        mount(&["-t", "tmpfs", "none", &path.display().to_string()]);
        Self(path.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

fn mount(arguments: &[&str]) {
    let status = std::process::Command::new("mount").args(arguments).status();
    assert!(status.unwrap().success(), "mount {arguments:?}");
}

#[tokio::test]
async fn what_git_runs_cannot_be_changed_in_a_workspace_that_reaches_the_machine_ns_6() {
    let workspace = tempfile::tempdir().unwrap();
    let git = workspace.path().join(".git");
    std::fs::create_dir(&git).unwrap();
    std::fs::write(git.join("config"), "[core]\n").unwrap();
    let prison = Prison::at(open_workspace(), workspace.path()).await;
    for (attempt, expected) in [
        ("open('.git/hooks/pre-commit', 'w')", "EROFS"),
        ("open('.git/config', 'a')", "EROFS"),
        ("os.unlink('.git/config')", "EBUSY"),
        ("os.rename('.git/hooks', '.git/moved')", "EBUSY"),
        ("os.rename('.git', '.moved')", "EBUSY"),
    ] {
        assert_eq!(prison.attempt(attempt).await, expected, "{attempt}");
    }
    prison.end().await;
    assert_eq!(
        std::fs::read_to_string(git.join("config")).unwrap(),
        "[core]\n"
    );
    assert_eq!(std::fs::read_dir(git.join("hooks")).unwrap().count(), 0);
}

/// What editors and shells outside act on cannot be made either, by any way to a name; and nothing of
/// ours stays in the workspace.
#[tokio::test]
async fn guarded_names_that_are_missing_cannot_be_made_ns_6() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::create_dir(workspace.path().join("theirs")).unwrap();
    let prison = Prison::at(open_workspace(), workspace.path()).await;
    let spec = zareba_runtime::SandboxSpec {
        workspace: Some(workspace.path().to_owned()),
        ..crate::fixture::spec()
    };
    // The first to end leaves the other guarded.
    let first = prison.fixture.runtime.create(spec).await.unwrap();
    first.close().await.unwrap();
    for (attempt, expected) in [
        ("open('.vscode/tasks.json', 'w')", "EROFS"),
        ("os.mkdir('.vscode')", "EEXIST"),
        ("os.rmdir('.vscode')", "EBUSY"),
        ("os.rename('.vscode', 'moved')", "EBUSY"),
        ("os.rename('theirs', '.vscode')", "EBUSY"),
        ("os.symlink('theirs', '.vscode')", "EEXIST"),
        ("os.utime('.vscode')", "EROFS"),
        ("open('.envrc', 'w')", "EISDIR"),
        ("os.rmdir('.envrc')", "EBUSY"),
        ("os.symlink('theirs', '.envrc')", "EEXIST"),
    ] {
        assert_eq!(prison.attempt(attempt).await, expected, "{attempt}");
    }
    prison.end().await;
    assert_eq!(names(workspace.path()), ["theirs"]);
}

/// What a user has put there meanwhile stays, and so does a directory of the user's that was empty.
#[tokio::test]
async fn only_stand_ins_that_are_still_empty_are_removed_ns_6() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::create_dir(workspace.path().join(".envrc")).unwrap();
    let prison = Prison::at(open_workspace(), workspace.path()).await;
    assert_eq!(names(workspace.path()), [".envrc", ".vscode"]);
    std::fs::write(workspace.path().join(".vscode/settings.json"), "{}").unwrap();
    assert_eq!(
        prison.attempt("os.listdir('.vscode')").await,
        "worked: ['settings.json']"
    );
    prison.end().await;
    assert_eq!(names(workspace.path()), [".envrc", ".vscode"]);
}

fn names(directory: &std::path::Path) -> Vec<String> {
    let listed = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = listed
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
