//! Paths, links and special files that are meant to do harm.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    time::Duration,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use zareba_wire::files::{
    Depth, DirectoryRequest, Existing, FileFailure, FileKind, FileService as _, Links, Parents,
    RenameRequest, WatchRequest, WriteRequest,
};

use super::support::{Room, pieces, reason, write_to};

/// FA-1, FA-5: nothing that leads out of the workspace is read, written, listed, removed, renamed
/// or watched.
#[tokio::test]
async fn no_request_leaves_the_workspace() {
    let room = Room::enclosed();
    fs::create_dir(room.outside().join("out")).unwrap();
    fs::write(room.outside().join("out/secret"), "secret").unwrap();
    symlink("../out", room.path("relative")).unwrap();
    symlink(room.outside().join("out"), room.path("absolute")).unwrap();
    symlink("../out/secret", room.path("file")).unwrap();
    symlink("../out/new", room.path("new")).unwrap();
    let absolute = room.outside().join("out/secret");
    let absolute = absolute.to_str().unwrap();
    let secrets = [
        "../out/secret",
        "relative/secret",
        "absolute/secret",
        "file",
        absolute,
    ];
    for path in secrets {
        assert_eq!(
            reason(room.read(path, None).await),
            FileFailure::OutsideRoot,
            "{path}"
        );
        assert_eq!(
            reason(room.write(path, "x").await),
            FileFailure::OutsideRoot,
            "{path}"
        );
        let stat = room.stat(path, Links::Follow).await;
        assert_eq!(reason(stat), FileFailure::OutsideRoot, "{path}");
        if path != "file" {
            let removed = room.remove(path, Depth::Tree).await;
            assert_eq!(reason(removed), FileFailure::OutsideRoot, "{path}");
        }
        for (from, to) in [(path, "here"), ("relative", path)] {
            if from == "file" || to == "file" {
                continue;
            }
            let renamed = room.files.rename(RenameRequest {
                from: from.to_owned(),
                to: to.to_owned(),
                existing: Existing::Replace,
            });
            assert_eq!(
                reason(renamed.await),
                FileFailure::OutsideRoot,
                "{from} to {to}"
            );
        }
    }
    assert_eq!(
        reason(room.write("new", "x").await),
        FileFailure::OutsideRoot
    );
    for path in ["..", "relative", "absolute", "/"] {
        let listed = room.list(path, None, 10).await;
        assert_eq!(reason(listed), FileFailure::OutsideRoot, "{path}");
        let watched = room.files.watch(WatchRequest {
            path: path.to_owned(),
            depth: Depth::Tree,
        });
        let watched = watched.await.map(drop);
        assert_eq!(reason(watched), FileFailure::OutsideRoot, "{path}");
        let made = room.files.make_directory(DirectoryRequest {
            path: format!("{path}/made"),
            mode: None,
            parents: Parents::Make,
        });
        assert_eq!(reason(made.await), FileFailure::OutsideRoot, "{path}");
    }
    let names: Vec<_> = fs::read_dir(room.outside().join("out")).unwrap().collect();
    assert_eq!(names.len(), 1);
    let secret = fs::read_to_string(room.outside().join("out/secret")).unwrap();
    assert_eq!(secret, "secret");
}

/// FA-5: a link that a racing program turns outward is never written through.
#[tokio::test]
async fn a_link_that_turns_while_content_comes_is_not_followed_out() {
    let room = Room::enclosed();
    fs::write(room.outside().join("secret"), "secret").unwrap();
    room.put("f", "old");
    symlink("f", room.path("link")).unwrap();
    let (link, outside) = (room.path("link"), room.outside().join("secret"));
    let turning = std::iter::once(()).map(move |()| {
        fs::remove_file(&link).unwrap();
        symlink(&outside, &link).unwrap();
        Ok(bytes::Bytes::from("new"))
    });
    let written = room
        .files
        .write(write_to("link"), super::support::stream(Box::new(turning)))
        .await;
    written.unwrap();
    assert_eq!(room.get("f"), "new");
    let secret = fs::read_to_string(room.outside().join("secret")).unwrap();
    assert_eq!(secret, "secret");
}

/// FA-3: what is neither a file nor a directory is told and never opened or waited for.
#[tokio::test]
async fn special_files_are_refused_at_once() {
    let room = Room::open();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, room.path("pipe"), FileType::Fifo, mode, 0).unwrap();
    let _listener = UnixListener::bind(room.path("socket")).unwrap();
    symlink("/dev/zero", room.path("device")).unwrap();
    let all = async {
        for path in ["pipe", "socket", "device", "/dev/zero"] {
            assert_eq!(
                reason(room.read(path, None).await),
                FileFailure::NotRegular,
                "{path}"
            );
            assert_eq!(
                reason(room.write(path, "x").await),
                FileFailure::NotRegular,
                "{path}"
            );
        }
        assert_eq!(
            room.stat("pipe", Links::Follow).await.unwrap().kind,
            FileKind::Pipe
        );
        assert_eq!(
            room.stat("device", Links::Follow).await.unwrap().kind,
            FileKind::Device
        );
        let page = room.list(".", None, 10).await.unwrap();
        let kinds: Vec<_> = page.entries.iter().map(|entry| entry.status.kind).collect();
        assert_eq!(kinds, [FileKind::Link, FileKind::Pipe, FileKind::Socket]);
    };
    tokio::time::timeout(Duration::from_secs(10), all)
        .await
        .unwrap();
}

/// A file of the kernel that says it is empty and is not.
#[tokio::test]
async fn files_without_a_true_size_are_read_as_long_as_they_say() {
    let room = Room::open();
    assert_eq!(room.read("/proc/self/status", None).await.unwrap(), b"");
}

/// FA-2.
#[tokio::test]
async fn paths_that_are_none_are_refused_by_name() {
    let room = Room::enclosed();
    for (path, expected) in [
        ("", FileFailure::InvalidPath),
        ("a\0b", FileFailure::InvalidPath),
        ("a/../..", FileFailure::NotFound),
        (&*"n".repeat(256), FileFailure::NameTooLong),
        (&*"n/".repeat(3000), FileFailure::NameTooLong),
    ] {
        assert_eq!(reason(room.read(path, None).await), expected, "{path:?}");
        let written = room.files.write(
            WriteRequest {
                parents: Parents::Make,
                ..write_to(path)
            },
            pieces(&["x"]),
        );
        assert!(written.await.is_err(), "{path:?}");
    }
    symlink("loop", room.path("loop")).unwrap();
    assert_eq!(reason(room.read("loop", None).await), FileFailure::LinkLoop);
    assert_eq!(room.names(), ["loop"]);
}
