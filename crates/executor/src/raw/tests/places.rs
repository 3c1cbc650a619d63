//! Listing, renaming, removing and making directories.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
};

use zareba_wire::files::{
    Depth, DirectoryRequest, Existing, FileFailure, FileKind, FileService as _, Links, Parents,
    RenameRequest,
};

use super::support::{Room, reason};

/// FA-4: pages, and links that are told and not followed.
#[tokio::test]
async fn a_directory_is_listed_in_pages_in_the_order_of_bytes() {
    let room = Room::enclosed();
    for name in ["b", "B", "a", "é"] {
        room.put(name, name);
    }
    fs::create_dir(room.path("dir")).unwrap();
    symlink("nowhere", room.path("link")).unwrap();
    fs::write(room.path("").join(OsStr::from_bytes(b"\xff")), "").unwrap();
    let all = ["B", "a", "b", "dir", "link", "é", "\\xff"];
    for limit in [1, 2, 3, 7, 100] {
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = room.list(".", after.as_deref(), limit).await.unwrap();
            assert!(page.entries.len() <= limit && !page.truncated);
            seen.extend(page.entries);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let names: Vec<_> = seen.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, all, "{limit}");
        assert_eq!(seen[3].status.kind, FileKind::Directory);
        assert_eq!(seen[4].status.kind, FileKind::Link);
        assert_eq!(seen[4].status.target.as_deref(), Some("nowhere"));
        assert_eq!(seen[5].status.size, 2);
    }
    assert_eq!(room.read("\\xff", None).await.unwrap(), b"");
    assert_eq!(
        reason(room.list("a", None, 1).await),
        FileFailure::NotDirectory
    );
    assert_eq!(
        reason(room.list("no", None, 1).await),
        FileFailure::NotFound
    );
}

#[tokio::test]
async fn links_are_followed_or_kept_as_asked() {
    let room = Room::enclosed();
    room.put("f", "content");
    symlink("f", room.path("link")).unwrap();
    let followed = room.stat("link", Links::Follow).await.unwrap();
    assert_eq!((followed.kind, followed.size), (FileKind::File, 7));
    let kept = room.stat("link", Links::Keep).await.unwrap();
    assert_eq!(
        (kept.kind, kept.target.as_deref()),
        (FileKind::Link, Some("f"))
    );
    // A write goes to the file that the link leads to.
    room.write("link", "new").await.unwrap();
    assert_eq!(room.get("f"), "new");
    assert!(room.path("link").is_symlink());
}

#[tokio::test]
async fn what_is_removed_is_what_was_named() {
    let room = Room::enclosed();
    fs::create_dir_all(room.path("d/e/f")).unwrap();
    room.put("d/e/g", "");
    room.put("kept", "kept");
    symlink("../kept", room.path("d/link")).unwrap();
    assert_eq!(
        reason(room.remove("d", Depth::One).await),
        FileFailure::NotEmpty
    );
    room.remove("d/link", Depth::One).await.unwrap();
    symlink(room.path(""), room.path("d/up")).unwrap();
    room.remove("d", Depth::Tree).await.unwrap();
    assert_eq!(room.names(), ["kept"]);
    assert_eq!(
        reason(room.remove("d", Depth::Tree).await),
        FileFailure::NotFound
    );
    room.remove("kept", Depth::Tree).await.unwrap();
    assert_eq!(room.names(), [""; 0]);
    for path in ["..", "a/..", "."] {
        let refused = reason(room.remove(path, Depth::Tree).await);
        let expected = [FileFailure::InvalidPath, FileFailure::OutsideRoot];
        assert!(expected.contains(&refused), "{path}: {refused:?}");
    }
    assert!(room.path("").is_dir());
}

/// The directory is known by what it is, so no other way to write its path gets around.
#[tokio::test]
async fn the_workspace_and_the_directories_above_it_are_not_removed() {
    let room = Room::open();
    fs::create_dir_all(room.path("d/e")).unwrap();
    room.put("d/e/f", "kept");
    symlink(room.path(""), room.path("link")).unwrap();
    let workspace = room.path("").to_str().unwrap().to_owned();
    let above = room.outside().to_str().unwrap().to_owned();
    for (path, expected) in [
        (".", FileFailure::Denied),
        ("./", FileFailure::Denied),
        (workspace.as_str(), FileFailure::Denied),
        (&format!("/{workspace}/"), FileFailure::Denied),
        ("d/../../w", FileFailure::Denied),
        ("link/../w", FileFailure::Denied),
        (&above, FileFailure::Denied),
        ("/", FileFailure::InvalidPath),
        ("d/..", FileFailure::InvalidPath),
    ] {
        for depth in [Depth::Tree, Depth::One] {
            assert_eq!(reason(room.remove(path, depth).await), expected, "{path}");
            assert_eq!(room.get("d/e/f"), "kept", "{path}");
        }
    }
    // The link is a name in the workspace like any other.
    room.remove("link", Depth::Tree).await.unwrap();
    assert_eq!(room.names(), ["d"]);
}

#[tokio::test]
async fn a_name_is_taken_over_only_when_that_was_asked_for() {
    let room = Room::enclosed();
    room.put("a", "a");
    room.put("b", "b");
    let rename = |from: &str, to: &str, existing| {
        room.files.rename(RenameRequest {
            from: from.to_owned(),
            to: to.to_owned(),
            existing,
        })
    };
    assert_eq!(
        reason(rename("a", "b", Existing::Keep).await),
        FileFailure::Exists
    );
    assert_eq!(
        (room.get("a"), room.get("b")),
        ("a".to_owned(), "b".to_owned())
    );
    rename("a", "b", Existing::Replace).await.unwrap();
    assert_eq!(room.names(), ["b"]);
    assert_eq!(room.get("b"), "a");
    fs::create_dir(room.path("d")).unwrap();
    rename("b", "d/c", Existing::Keep).await.unwrap();
    assert_eq!(room.get("d/c"), "a");
    let into_itself = rename("d", "d/e", Existing::Keep).await;
    assert_eq!(reason(into_itself), FileFailure::InvalidRequest);
    assert_eq!(
        reason(rename("x", "y", Existing::Keep).await),
        FileFailure::NotFound
    );
}

#[tokio::test]
async fn directories_are_made_with_and_without_those_above() {
    let room = Room::enclosed();
    let make = |path: &str, mode, parents| {
        room.files.make_directory(DirectoryRequest {
            path: path.to_owned(),
            mode,
            parents,
        })
    };
    let made = make("a", Some(0o700), Parents::Require).await.unwrap();
    assert_eq!((made.kind, made.mode), (FileKind::Directory, 0o700));
    assert_eq!(
        reason(make("a", None, Parents::Require).await),
        FileFailure::Exists
    );
    make("a", None, Parents::Make).await.unwrap();
    assert_eq!(
        reason(make("x/y", None, Parents::Require).await),
        FileFailure::NotFound
    );
    make("x/y", None, Parents::Make).await.unwrap();
    assert!(room.path("x/y").is_dir());
    room.put("f", "");
    assert_eq!(
        reason(make("f/g", None, Parents::Make).await),
        FileFailure::NotDirectory
    );
    let set_id = make("s", Some(0o2755), Parents::Require).await;
    assert_eq!(reason(set_id), FileFailure::InvalidRequest);
}
