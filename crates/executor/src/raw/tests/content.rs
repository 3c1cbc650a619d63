//! Reading and writing content.

use std::{fs, io, os::unix::fs::PermissionsExt as _};

use bytes::Bytes;
use zareba_wire::files::{
    ByteRange, Digest, Expected, FileFailure, FileKind, FileService as _, Parents, ReadRequest,
    WriteRequest,
};

use super::support::{Room, collect, next, pieces, reason, stream, write_to};

#[tokio::test]
async fn ranges_are_read_as_they_are_asked_for() {
    let room = Room::enclosed();
    room.put("f", "0123456789");
    for (range, expected) in [
        (None, "0123456789"),
        (Some(ByteRange::From(7)), "789"),
        (Some(ByteRange::Between(2, 4)), "234"),
        (Some(ByteRange::Between(8, 99)), "89"),
        (Some(ByteRange::Last(3)), "789"),
    ] {
        let read = room.read("f", range).await.unwrap();
        assert_eq!(read, expected.as_bytes(), "{range:?}");
    }
    let error = room.read("f", Some(ByteRange::From(10))).await.unwrap_err();
    assert_eq!(error.reason, FileFailure::BadRange);
    assert_eq!(error.current.unwrap().size, 10);
    room.put("empty", "");
    assert_eq!(room.read("empty", None).await.unwrap(), b"");
}

#[tokio::test]
async fn a_status_tells_kind_size_mode_and_hash() {
    let room = Room::enclosed();
    room.put("f", "abc");
    fs::set_permissions(room.path("f"), fs::Permissions::from_mode(0o640)).unwrap();
    let request = ReadRequest {
        path: "f".to_owned(),
        range: Some(ByteRange::Last(1)),
        digest: Digest::Sha256,
    };
    let content = room.files.read(request).await.unwrap();
    let status = content.status;
    assert_eq!(
        (status.kind, status.size, status.mode),
        (FileKind::File, 3, 0o640)
    );
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(status.sha256.as_deref(), Some(abc));
    assert_eq!(collect(content.stream).await.unwrap(), b"c");
}

/// FA-4: a file is read in pieces, and its size is checked while it is read.
#[tokio::test]
async fn a_file_that_becomes_shorter_is_an_error_and_one_that_grows_is_not() {
    let room = Room::enclosed();
    let whole = vec![b'x'; 1024 * 1024];
    for (length, is_whole) in [(300 * 1024, false), (2 * 1024 * 1024, true)] {
        room.put("f", &whole);
        let content = room.open_file("f", None).await.unwrap();
        let file = fs::OpenOptions::new().write(true).open(room.path("f"));
        file.unwrap().set_len(length).unwrap();
        let read = collect(content.stream).await;
        match is_whole {
            true => assert_eq!(read.unwrap(), whole),
            false => assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof),
        }
    }
}

/// A file of 64 GiB is opened and read from without being held.
#[tokio::test]
async fn the_size_of_a_file_does_not_matter() {
    let room = Room::enclosed();
    room.put("f", "");
    let size = 64 << 30;
    let file = fs::OpenOptions::new().write(true).open(room.path("f"));
    file.unwrap().set_len(size).unwrap();
    let mut content = room.open_file("f", None).await.unwrap();
    assert_eq!(content.length, size);
    for _ in 0..4 {
        let piece = next(&mut content.stream).await.unwrap().unwrap();
        assert_eq!(piece.len(), 256 * 1024);
    }
    let tail = room.read("f", Some(ByteRange::Last(10))).await.unwrap();
    assert_eq!(tail, [0; 10]);
}

#[tokio::test]
async fn content_is_written_whole_and_keeps_the_mode_of_the_file() {
    let room = Room::enclosed();
    let status = room.write("new", "one").await.unwrap();
    assert_eq!((status.size, status.mode), (3, 0o664));
    fs::set_permissions(room.path("new"), fs::Permissions::from_mode(0o6751)).unwrap();
    let content = pieces(&["two ", "and ", "more"]);
    let status = room.files.write(write_to("new"), content).await.unwrap();
    // Set-id bits do not survive a write, as with any other program.
    assert_eq!((status.size, status.mode), (12, 0o751));
    assert_eq!(room.get("new"), "two and more");
    let request = WriteRequest {
        mode: Some(0o600),
        parents: Parents::Make,
        ..write_to("a/b/c")
    };
    let status = room.files.write(request, pieces(&[])).await.unwrap();
    assert_eq!((status.size, status.mode), (0, 0o600));
    assert_eq!(reason(room.write("x/y", "").await), FileFailure::NotFound);
    let request = WriteRequest {
        mode: Some(0o4755),
        ..write_to("set-id")
    };
    let refused = room.files.write(request, pieces(&["x"])).await;
    assert_eq!(reason(refused), FileFailure::InvalidRequest);
    assert_eq!(room.names(), ["a", "new"]);
}

/// FA-5: on any error the original is untouched and nothing is left beside it.
#[tokio::test]
async fn content_that_breaks_off_changes_nothing() {
    let room = Room::enclosed();
    room.put("f", "old");
    let broken = [
        Ok(Bytes::from(vec![b'n'; 2 * 1024 * 1024])),
        Err(io::Error::other("gone")),
    ];
    let written = room
        .files
        .write(write_to("f"), stream(broken.into_iter()))
        .await;
    assert_eq!(reason(written), FileFailure::BrokenOff);
    assert_eq!(
        (room.get("f").as_str(), room.names()),
        ("old", vec!["f".to_owned()])
    );
}

#[tokio::test]
async fn a_writer_that_goes_away_leaves_nothing_behind() {
    let room = Room::enclosed();
    room.put("f", "old");
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let mut sender = Some(sender);
    let endless = std::iter::from_fn(move || {
        drop(sender.take());
        Some(Ok(Bytes::from(vec![b'n'; 1024 * 1024])))
    });
    let write = room.files.write(write_to("f"), stream(endless));
    tokio::select! {
        _ = write => panic!("there is no end of it"),
        _ = receiver => {}
    }
    // The work on a thread that was under way ends first.
    tokio::task::spawn_blocking(|| {}).await.unwrap();
    while room.names() != ["f"] {
        tokio::task::yield_now().await;
    }
    assert_eq!(room.get("f"), "old");
}

/// FA-6.
#[tokio::test]
async fn a_write_goes_ahead_only_over_what_was_expected() {
    let room = Room::enclosed();
    let absent = || Some(Expected::Absent);
    let first = room.write_if("f", "one", absent()).await.unwrap();
    let error = room.write_if("f", "two", absent()).await.unwrap_err();
    assert_eq!(error.reason, FileFailure::Conflict);
    assert_eq!(error.current.unwrap().version, first.version);

    let version = |version: &str| Some(Expected::Version(version.to_owned()));
    let second = room
        .write_if("f", "two", version(&first.version))
        .await
        .unwrap();
    assert_ne!(second.version, first.version);
    let stale = room.write_if("f", "three", version(&first.version)).await;
    let stale = stale.unwrap_err();
    assert_eq!(stale.reason, FileFailure::Conflict);
    assert_eq!(stale.current.unwrap().version, second.version);
    let missing = room.write_if("g", "", version(&first.version)).await;
    assert_eq!(reason(missing), FileFailure::Conflict);

    let two = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";
    let sha256 = |digits: &str| Some(Expected::Sha256(digits.to_owned()));
    let wrong = room
        .write_if("f", "x", sha256(&"0".repeat(64)))
        .await
        .unwrap_err();
    assert_eq!(wrong.current.unwrap().sha256.as_deref(), Some(two));
    room.write_if("f", "four", sha256(two)).await.unwrap();
    assert_eq!(room.get("f"), "four");
    assert_eq!(room.names(), ["f"]);
}

/// FA-6: of many who saw the same file, one writes.
#[tokio::test]
async fn concurrent_writers_never_interleave() {
    let room = Room::enclosed();
    let version = room.write("f", "start").await.unwrap().version;
    let writers: Vec<_> = (0..16)
        .map(|number| {
            let (files, version) = (room.files.clone(), version.clone());
            tokio::spawn(async move {
                let request = WriteRequest {
                    expected: Some(Expected::Version(version)),
                    ..write_to("f")
                };
                let half = number.to_string().repeat(1000);
                files.write(request, pieces(&[&half, &half])).await.is_ok()
            })
        })
        .collect();
    let mut winners = Vec::new();
    for (number, writer) in writers.into_iter().enumerate() {
        if writer.await.unwrap() {
            winners.push(number);
        }
    }
    let [winner] = winners.as_slice() else {
        panic!("{winners:?} all won");
    };
    assert_eq!(room.get("f"), winner.to_string().repeat(2000));
    assert_eq!(room.names(), ["f"]);
}
