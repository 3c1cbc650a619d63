//! Changes, as they are told.

use std::{fs, os::unix::fs::symlink, time::Duration};

use zareba_wire::files::{
    ChangeStream, Depth, FileChange, FileFailure, FileKind, FileService as _, WatchRequest,
};

use super::support::{Room, next, reason};

const PATIENCE: Duration = Duration::from_secs(20);

async fn watch(room: &Room, depth: Depth) -> ChangeStream {
    let path = ".".to_owned();
    let watched = room.files.watch(WatchRequest { path, depth });
    watched.await.unwrap()
}

async fn told(changes: &mut ChangeStream) -> FileChange {
    let change = tokio::time::timeout(PATIENCE, next(changes)).await;
    change.unwrap().unwrap().unwrap()
}

/// Reads changes up to and with this one.
async fn until(changes: &mut ChangeStream, last: &FileChange) -> Vec<FileChange> {
    let mut seen = Vec::new();
    while seen.last() != Some(last) {
        seen.push(told(changes).await);
    }
    seen
}

fn created(path: &str, kind: FileKind) -> FileChange {
    let path = path.to_owned();
    FileChange::Created { path, kind }
}

fn removed(path: &str, kind: FileKind) -> FileChange {
    let path = path.to_owned();
    FileChange::Removed { path, kind }
}

fn modified(path: &str) -> FileChange {
    FileChange::Modified {
        path: path.to_owned(),
    }
}

fn renamed(path: &str, to: &str, kind: FileKind) -> FileChange {
    FileChange::Renamed {
        path: path.to_owned(),
        to: to.to_owned(),
        kind,
    }
}

#[tokio::test]
async fn files_that_come_change_move_and_go_are_told_in_order() {
    let room = Room::enclosed();
    fs::create_dir(room.path("old")).unwrap();
    let mut changes = watch(&room, Depth::Tree).await;
    room.put("a", "content");
    fs::rename(room.path("a"), room.path("old/b")).unwrap();
    room.put("old/b", "more content");
    fs::remove_file(room.path("old/b")).unwrap();
    let last = removed("old/b", FileKind::File);
    let mut seen = until(&mut changes, &last).await;
    seen.dedup();
    let expected = [
        created("a", FileKind::File),
        modified("a"),
        renamed("a", "old/b", FileKind::File),
        modified("old/b"),
        last,
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn new_directories_are_watched_with_what_is_in_them_already() {
    let room = Room::enclosed();
    let mut changes = watch(&room, Depth::Tree).await;
    fs::create_dir_all(room.outside().join("tree/deep")).unwrap();
    fs::write(room.outside().join("tree/deep/f"), "").unwrap();
    fs::rename(room.outside().join("tree"), room.path("tree")).unwrap();
    until(&mut changes, &created("tree/deep/f", FileKind::File)).await;
    fs::rename(room.path("tree"), room.path("moved")).unwrap();
    until(&mut changes, &renamed("tree", "moved", FileKind::Directory)).await;
    room.put("moved/deep/g", "");
    let seen = until(&mut changes, &created("moved/deep/g", FileKind::File)).await;
    assert_eq!(seen.len(), 1, "{seen:?}");
    // Out of sight is gone, with all below it.
    fs::rename(room.path("moved"), room.outside().join("gone")).unwrap();
    until(&mut changes, &removed("moved", FileKind::Directory)).await;
    fs::write(room.outside().join("gone/deep/g"), "unseen").unwrap();
    room.put("last", "");
    let seen = until(&mut changes, &created("last", FileKind::File)).await;
    let unseen = seen
        .iter()
        .filter(|change| format!("{change:?}").contains("deep"));
    // What was told late belongs to the write before the move.
    assert!(unseen.count() <= 1, "{seen:?}");
}

#[tokio::test]
async fn one_directory_is_watched_when_one_was_meant() {
    let room = Room::enclosed();
    fs::create_dir(room.path("below")).unwrap();
    let mut changes = watch(&room, Depth::One).await;
    room.put("below/unseen", "");
    room.put("seen", "");
    assert_eq!(told(&mut changes).await, created("seen", FileKind::File));
}

/// FA-1: a link to a directory elsewhere is not watched.
#[tokio::test]
async fn links_are_told_and_not_followed() {
    let room = Room::enclosed();
    fs::create_dir(room.outside().join("out")).unwrap();
    symlink("../out", room.path("link")).unwrap();
    let mut changes = watch(&room, Depth::Tree).await;
    symlink("../out", room.path("second")).unwrap();
    fs::write(room.outside().join("out/secret"), "").unwrap();
    room.put("last", "");
    let seen = until(&mut changes, &created("last", FileKind::File)).await;
    let expected = [
        created("second", FileKind::File),
        created("last", FileKind::File),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_end_of_the_directory_is_the_end_of_the_watch() {
    let room = Room::enclosed();
    fs::create_dir(room.path("d")).unwrap();
    let path = "d".to_owned();
    let depth = Depth::Tree;
    let mut changes = room
        .files
        .watch(WatchRequest { path, depth })
        .await
        .unwrap();
    fs::remove_dir(room.path("d")).unwrap();
    until(&mut changes, &FileChange::Gone).await;
    let end = tokio::time::timeout(PATIENCE, next(&mut changes)).await;
    assert!(end.unwrap().is_none());
}

#[tokio::test]
async fn more_directories_than_are_watched_are_told() {
    let room = Room::enclosed();
    for number in 0..4200 {
        fs::create_dir(room.path(&number.to_string())).unwrap();
    }
    let mut changes = watch(&room, Depth::Tree).await;
    let change = told(&mut changes).await;
    assert!(
        matches!(change, FileChange::Incomplete { directories: 2.. }),
        "{change:?}"
    );
}

/// HS-15: a reader that does not read costs a bounded queue, and is told what it missed.
#[tokio::test]
async fn a_reader_that_falls_behind_is_told() {
    let room = Room::enclosed();
    let mut changes = watch(&room, Depth::One).await;
    let path = room.path("f");
    let busy = tokio::task::spawn_blocking(move || {
        for number in 0..30_000 {
            let other = path.with_extension(number.to_string());
            fs::write(&path, "").unwrap();
            fs::rename(&path, &other).unwrap();
            fs::remove_file(&other).unwrap();
        }
    });
    busy.await.unwrap();
    until(&mut changes, &FileChange::Overflow).await;
}

#[tokio::test]
async fn watches_are_counted_and_end_with_their_readers() {
    let room = Room::enclosed();
    let mut watches = Vec::new();
    for _ in 0..crate::raw::WATCHES_MAX {
        watches.push(watch(&room, Depth::One).await);
    }
    let request = WatchRequest {
        path: ".".to_owned(),
        depth: Depth::One,
    };
    let refused = room.files.watch(request.clone()).await.map(drop);
    assert_eq!(reason(refused), FileFailure::Busy);
    watches.clear();
    let again = async {
        while room.files.watch(request.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}
