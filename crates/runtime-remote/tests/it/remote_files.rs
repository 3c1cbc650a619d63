//! Files as bytes, on another server of ours.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::time::timeout;
use zareba_runtime::{Runtime as _, RuntimeError, SandboxFiles};
use zareba_wire::{
    ByteStream,
    files::{
        ByteRange, Depth, Digest, DirectoryRequest, Existing, Expected, FileChange, FileFailure,
        FileKind, Links, ListRequest, Parents, ReadRequest, RemoveRequest, RenameRequest,
        StatRequest, WatchRequest, WriteRequest,
    },
};

use crate::{
    provider::Kind,
    zareba::{output, remote, spec},
};

const PATIENCE: Duration = Duration::from_secs(30);

fn bytes(text: &'static str) -> ByteStream {
    Box::pin(futures_util::stream::iter([Ok(Bytes::from(text))]))
}

fn write(path: &str, expected: Option<Expected>) -> WriteRequest {
    WriteRequest {
        path: path.to_owned(),
        mode: Some(0o640),
        parents: Parents::Make,
        expected,
    }
}

fn read(path: &str, range: Option<ByteRange>) -> ReadRequest {
    ReadRequest {
        path: path.to_owned(),
        range,
        digest: Digest::Skip,
    }
}

fn stat(path: &str) -> StatRequest {
    StatRequest {
        path: path.to_owned(),
        links: Links::Keep,
        digest: Digest::Sha256,
    }
}

fn reason(error: RuntimeError) -> FileFailure {
    match error {
        RuntimeError::File(error) => error.reason,
        other => panic!("{other:?}"),
    }
}

async fn text_of(files: &dyn SandboxFiles, request: ReadRequest) -> String {
    let content = files.read(request).await.unwrap();
    let pieces: Vec<Bytes> = content.stream.try_collect().await.unwrap();
    String::from_utf8(pieces.concat()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_written_read_and_looked_at_as_they_are() {
    let remote = remote(Kind::Cli).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    let absent = Some(Expected::Absent);
    let written = files
        .write(write("a/b", absent.clone()), bytes("0123456789"))
        .await
        .unwrap();
    assert_eq!((written.size, written.mode), (10, 0o640));
    let again = files.write(write("a/b", absent), bytes("x")).await;
    let refused = reason(again.unwrap_err());
    assert!(
        matches!(refused, FileFailure::Conflict | FileFailure::Exists),
        "{refused:?}"
    );
    let other = Some(Expected::Version("not-this".to_owned()));
    let refused = files.write(write("a/b", other), bytes("x")).await;
    assert_eq!(reason(refused.unwrap_err()), FileFailure::Conflict);
    assert_eq!(text_of(files, read("a/b", None)).await, "0123456789");
    let part = read("a/b", Some(ByteRange::Between(2, 4)));
    let content = files.read(part.clone()).await.unwrap();
    assert_eq!(
        (content.start, content.length, content.status.size),
        (2, 3, 10)
    );
    assert_eq!(content.status.version, written.version);
    assert_eq!(text_of(files, part).await, "234");
    let beyond = files.read(read("a/b", Some(ByteRange::From(10)))).await;
    assert_eq!(reason(beyond.unwrap_err()), FileFailure::BadRange);
    let this = Some(Expected::Version(written.version));
    files.write(write("a/b", this), bytes("new")).await.unwrap();

    output(&*sandbox, "ln -s a/b link").await.unwrap();
    let itself = StatRequest {
        digest: Digest::Skip,
        ..stat("link")
    };
    let link = files.stat(itself).await.unwrap();
    assert_eq!(
        (link.kind, link.target.as_deref()),
        (FileKind::Link, Some("a/b"))
    );
    let hashed = files.stat(stat("a/b")).await.unwrap().sha256.unwrap();
    let summed = output(&*sandbox, "sha256sum a/b").await.unwrap();
    assert!(summed.starts_with(&hashed), "{summed}");
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_are_made_listed_renamed_and_removed() {
    let remote = remote(Kind::Cli).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    let directory = DirectoryRequest {
        path: "d".to_owned(),
        mode: Some(0o700),
        parents: Parents::Require,
    };
    let made = files.make_directory(directory.clone()).await.unwrap();
    assert_eq!((made.kind, made.mode), (FileKind::Directory, 0o700));
    let again = files.make_directory(directory).await.unwrap_err();
    assert_eq!(reason(again), FileFailure::Exists);
    for name in ["d/one", "d/two"] {
        files.write(write(name, None), bytes(name)).await.unwrap();
    }
    let rename = |existing| RenameRequest {
        from: "d/two".to_owned(),
        to: "d/one".to_owned(),
        existing,
    };
    let refused = files.rename(rename(Existing::Keep)).await.unwrap_err();
    assert_eq!(reason(refused), FileFailure::Exists);
    files.rename(rename(Existing::Replace)).await.unwrap();
    let list = ListRequest {
        path: "d".to_owned(),
        after: None,
        limit: 10,
    };
    let page = files.list(list).await.unwrap();
    let names: Vec<&str> = page.entries.iter().map(|entry| &*entry.name).collect();
    assert_eq!((names, page.next), (vec!["one"], None));
    let remove = |depth| RemoveRequest {
        path: "d".to_owned(),
        depth,
    };
    let refused = files.remove(remove(Depth::One)).await.unwrap_err();
    assert_eq!(reason(refused), FileFailure::NotEmpty);
    files.remove(remove(Depth::Tree)).await.unwrap();
    let gone = files.stat(stat("d")).await.unwrap_err();
    assert_eq!(reason(gone), FileFailure::NotFound);
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_told_as_they_happen() {
    let remote = remote(Kind::Cli).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    let watch = WatchRequest {
        path: ".".to_owned(),
        depth: Depth::Tree,
    };
    let mut changes = files.watch(watch).await.unwrap();
    output(&*sandbox, "mkdir fresh").await.unwrap();
    let expected = FileChange::Created {
        path: "fresh".to_owned(),
        kind: FileKind::Directory,
    };
    loop {
        let change = timeout(PATIENCE, changes.next()).await.unwrap();
        if change.unwrap().unwrap() == expected {
            break;
        }
    }
    drop(changes);
    sandbox.close().await.unwrap();
    let error = files.stat(stat(".")).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Closed { .. }), "{error}");
    remote.site.stop().await;
}
