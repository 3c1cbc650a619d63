//! Files as bytes, in this process, in a server and in a sandbox.

use std::{future::poll_fn, io, path::Path, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_core::Stream;
use tokio::{task::JoinSet, time::timeout};
use zareba_executor::{Owner, Transfers};
use zareba_protocol::{Action, ErrorClass, WriteFile};
use zareba_runtime::{Runtime, RuntimeError, Sandbox, SandboxFiles, SandboxSpec};
use zareba_runtime_native::{DiskLimit, NativeRuntime};
use zareba_wire::{
    ArchiveFormat, ByteStream, Download, Upload, UploadTreatment,
    files::{
        ByteRange, ChangeStream, Depth, Digest, DirectoryRequest, Existing, Expected, FileChange,
        FileFailure, FileKind, Links, ListRequest, Parents, ReadRequest, RemoveRequest,
        RenameRequest, StatRequest, WatchRequest, WriteRequest,
    },
};

use crate::fixture::{self, Fixture, output, spec};

const PATIENCE: Duration = Duration::from_secs(30);

/// So many bytes go through in the test of streams: more than any buffer on the way holds.
const MUCH: usize = 96 * 1024 * 1024;

struct Pieces<I>(I);

impl<I: Iterator<Item = Bytes> + Unpin> Stream for Pieces<I> {
    type Item = io::Result<Bytes>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.next().map(Ok))
    }
}

fn stream(pieces: impl Iterator<Item = Bytes> + Send + Unpin + 'static) -> ByteStream {
    Box::pin(Pieces(pieces))
}

async fn next<T>(stream: &mut Pin<Box<dyn Stream<Item = T> + Send>>) -> Option<T> {
    let next = poll_fn(|context| stream.as_mut().poll_next(context));
    timeout(PATIENCE, next).await.unwrap()
}

async fn collect(mut stream: ByteStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = next(&mut stream).await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    bytes
}

fn write_to(path: &str) -> WriteRequest {
    WriteRequest {
        path: path.to_owned(),
        mode: None,
        parents: Parents::Make,
        expected: None,
    }
}

fn read_of(path: &str) -> ReadRequest {
    ReadRequest {
        path: path.to_owned(),
        range: None,
        digest: Digest::Skip,
    }
}

fn reason<T>(result: Result<T, RuntimeError>) -> FileFailure {
    match result {
        Err(RuntimeError::File(error)) => error.reason,
        Err(error) => panic!("{error:?}"),
        Ok(_) => panic!("there was no error"),
    }
}

async fn until(changes: &mut ChangeStream, last: &FileChange) {
    while next(changes).await.unwrap().unwrap() != *last {}
}

async fn offers_files<R: Runtime>(fixture: Fixture<R>) {
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    content(files, &*sandbox).await;
    places(files).await;
    changes(files, &*sandbox).await;
    archives(files).await;
    sandbox.close().await.unwrap();
    let closed = files.read(read_of("f")).await.unwrap_err();
    assert!(matches!(closed, RuntimeError::Closed { .. }), "{closed:?}");
    assert_eq!(fixture.leftovers(), [""; 0]);
}

async fn content(files: &dyn SandboxFiles, sandbox: &dyn Sandbox) {
    let pieces = ["one ", "two ", "ä\0\n"].map(Bytes::from);
    let written = files.write(write_to("d/f x"), stream(pieces.into_iter()));
    let written = written.await.unwrap();
    assert_eq!((written.kind, written.size), (FileKind::File, 12));
    assert_eq!(output(sandbox, "cat 'd/f x' | wc -c").await.trim(), "12");
    let read = files.read(read_of("d/f x")).await.unwrap();
    assert_eq!(read.status.version, written.version);
    assert_eq!(collect(read.stream).await, "one two ä\0\n".as_bytes());
    let request = ReadRequest {
        range: Some(ByteRange::Between(4, 6)),
        digest: Digest::Sha256,
        ..read_of("d/f x")
    };
    let part = files.read(request).await.unwrap();
    assert_eq!((part.start, part.length, part.status.size), (4, 3, 12));
    assert_eq!(part.status.sha256.map(|digits| digits.len()), Some(64));
    assert_eq!(collect(part.stream).await, b"two");

    let stale = WriteRequest {
        expected: Some(Expected::Version("0-0-0-0".to_owned())),
        ..write_to("d/f x")
    };
    let much = std::iter::repeat_n(Bytes::from(vec![1; 1024 * 1024]), 8);
    let conflict = files.write(stale, stream(much)).await.unwrap_err();
    let RuntimeError::File(conflict) = conflict else {
        panic!("{conflict:?}");
    };
    assert_eq!(conflict.reason, FileFailure::Conflict);
    assert_eq!(conflict.current.unwrap().version, written.version);
    let missing = files.read(read_of("none")).await;
    assert_eq!(missing.as_ref().unwrap_err().class(), ErrorClass::NotFound);
    assert_eq!(reason(missing), FileFailure::NotFound);
    output(sandbox, "mkfifo pipe").await;
    let pipe = files.read(read_of("pipe")).await;
    assert_eq!(reason(pipe), FileFailure::NotRegular);
}

async fn places(files: &dyn SandboxFiles) {
    let request = DirectoryRequest {
        path: "p/q".to_owned(),
        mode: None,
        parents: Parents::Make,
    };
    files.make_directory(request).await.unwrap();
    for name in ["p/b", "p/a", "p/c"] {
        let content = stream(std::iter::empty());
        files.write(write_to(name), content).await.unwrap();
    }
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let request = ListRequest {
            path: "p".to_owned(),
            after,
            limit: 3,
        };
        let page = files.list(request).await.unwrap();
        names.extend(page.entries.into_iter().map(|entry| entry.name));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, ["a", "b", "c", "q"]);
    let rename = |existing| RenameRequest {
        from: "p/a".to_owned(),
        to: "p/b".to_owned(),
        existing,
    };
    let kept = files.rename(rename(Existing::Keep)).await;
    assert_eq!(reason(kept), FileFailure::Exists);
    files.rename(rename(Existing::Replace)).await.unwrap();
    let remove = |depth| RemoveRequest {
        path: "p".to_owned(),
        depth,
    };
    let kept = files.remove(remove(Depth::One)).await;
    assert_eq!(reason(kept), FileFailure::NotEmpty);
    files.remove(remove(Depth::Tree)).await.unwrap();
    let gone = files.stat(StatRequest {
        path: "p".to_owned(),
        links: Links::Keep,
        digest: Digest::Skip,
    });
    assert_eq!(reason(gone.await), FileFailure::NotFound);
}

async fn changes(files: &dyn SandboxFiles, sandbox: &dyn Sandbox) {
    let request = WatchRequest {
        path: ".".to_owned(),
        depth: Depth::Tree,
    };
    let mut changes = files.watch(request).await.unwrap();
    output(sandbox, "mkdir -p new/dir && echo x > new/dir/file").await;
    let (path, kind) = ("new/dir/file".to_owned(), FileKind::File);
    until(
        &mut changes,
        &FileChange::Created {
            path: path.clone(),
            kind,
        },
    )
    .await;
    output(sandbox, "mv new/dir/file moved && rm -r new").await;
    let to = "moved".to_owned();
    until(&mut changes, &FileChange::Renamed { path, to, kind }).await;
    let (path, kind) = ("new".to_owned(), FileKind::Directory);
    until(&mut changes, &FileChange::Removed { path, kind }).await;
}

async fn archives(files: &dyn SandboxFiles) {
    let request = Download {
        path: "d".into(),
        format: ArchiveFormat::Tar,
    };
    let archive = collect(files.download(request).await.unwrap()).await;
    let request = Upload {
        file_name: "again.tar".to_owned(),
        destination: "again".into(),
        treatment: UploadTreatment::Unpack,
        room: None,
    };
    let content = stream(std::iter::once(Bytes::from(archive)));
    files.upload(request, content).await.unwrap();
    let read = files.read(read_of("again/f x")).await.unwrap();
    assert_eq!(read.length, 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_offered_in_this_process() {
    offers_files(fixture::cli()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_offered_by_a_server() {
    offers_files(fixture::local()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_offered_by_a_sandbox() {
    offers_files(fixture::native()).await;
}

/// A tree with a mount point in it cannot be removed whole, so nothing of it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_the_workspace_nor_a_mount_point_is_removed_through_a_writable_workspace() {
    let fixture = fixture::native();
    let workspace = tempfile::tempdir().unwrap();
    let kept = |name: &str| std::fs::read_to_string(workspace.path().join(name)).unwrap();
    std::fs::create_dir_all(workspace.path().join("a/b")).unwrap();
    std::fs::create_dir(workspace.path().join(".git")).unwrap();
    for name in ["a/b/c", ".git/HEAD"] {
        std::fs::write(workspace.path().join(name), name).unwrap();
    }
    let spec = SandboxSpec {
        workspace: Some(workspace.path().to_owned()),
        ..spec()
    };
    let sandbox = fixture.runtime.create(spec).await.unwrap();
    let files = sandbox.files().unwrap();
    let remove = |path: &str, depth| {
        let path = path.to_owned();
        files.remove(RemoveRequest { path, depth })
    };
    for path in [
        ".",
        "/workspace",
        "/proc/self/root/workspace",
        ".git",
        ".git/hooks",
        "/tmp",
    ] {
        for depth in [Depth::Tree, Depth::One] {
            assert_eq!(
                reason(remove(path, depth).await),
                FileFailure::Denied,
                "{path}"
            );
        }
    }
    assert_eq!(
        reason(remove("/", Depth::Tree).await),
        FileFailure::InvalidPath
    );
    for name in ["a/b/c", ".git/HEAD"] {
        assert_eq!(kept(name), name);
    }
    remove("a", Depth::Tree).await.unwrap();
    assert!(!workspace.path().join("a").exists());
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// FA-4, FA-5, HS-15: what goes through is not held, by neither end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_content_goes_through_with_little_memory() {
    let fixture = fixture::local();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.unwrap().split_ascii_whitespace().nth(1).unwrap();
        number.parse::<usize>().unwrap() * 1024
    };
    let before = peak();
    let piece = Bytes::from(vec![7; 64 * 1024]);
    let pieces = std::iter::repeat_n(piece, MUCH / (64 * 1024));
    let written = files.write(write_to("much"), stream(pieces)).await.unwrap();
    assert_eq!(written.size, MUCH as u64);
    let mut read = files.read(read_of("much")).await.unwrap();
    let mut received = 0;
    while let Some(piece) = next(&mut read.stream).await {
        received += piece.unwrap().len();
    }
    assert_eq!(received, MUCH);
    let growth = peak().saturating_sub(before);
    assert!(growth < MUCH / 4, "grew by {growth} bytes");
    sandbox.close().await.unwrap();
}

fn tight() -> Fixture<NativeRuntime> {
    let mut walls = fixture::walls();
    walls.usage.disk.bytes = 16 << 20;
    fixture::native_with(walls)
}

fn megabytes(count: usize) -> ByteStream {
    let megabyte = Bytes::from(vec![b'x'; 1 << 20]);
    stream((0..count).map(move |_| megabyte.clone()))
}

async fn bytes_on_disk(sandbox: &dyn Sandbox) -> u64 {
    let found = sandbox.inspect().await.unwrap();
    found["usage"]["disk"]["bytes"].as_u64().unwrap()
}

/// By streams, at once and one after another, by archives and by actions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_cannot_put_more_into_a_sandbox_than_its_disk_limit_ns_16() {
    const LIMIT: u64 = 16 << 20;
    let fixture = tight();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    assert_eq!(
        reason(files.write(write_to("large"), megabytes(17)).await),
        FileFailure::Quota
    );
    files.write(write_to("fits"), megabytes(8)).await.unwrap();
    let mut uploads = JoinSet::new();
    for number in 0..16 {
        let sandbox = Arc::clone(&sandbox);
        uploads.spawn(async move {
            let files = sandbox.files().unwrap();
            let path = format!("f{number}");
            files.write(write_to(&path), megabytes(4)).await
        });
    }
    let uploads = uploads.join_all().await;
    let stored = uploads.iter().filter(|upload| upload.is_ok()).count();
    assert!(stored <= 1, "{uploads:?}");
    assert!(bytes_on_disk(&*sandbox).await <= LIMIT);
    let text = "x".repeat(1 << 20);
    for number in 0..20 {
        let action = Action::Write(WriteFile::new(
            format!("/workspace/w{number}"),
            text.as_str(),
        ));
        sandbox.run_action(action.into()).await.unwrap();
    }
    assert!(bytes_on_disk(&*sandbox).await <= LIMIT);
    let path = "/workspace/more";
    let refused = sandbox.run_action(Action::Write(WriteFile::new(path, text.as_str())).into());
    let refused = refused.await.unwrap().observation;
    assert!(refused.content.contains("`native.disk`"), "{refused:?}");
    output(&*sandbox, "rm -r ./*").await;
    sandbox
        .run_action(Action::Write(WriteFile::new(path, "room again")).into())
        .await
        .unwrap();
    assert_eq!(output(&*sandbox, "cat more").await, "room again");
    sandbox.close().await.unwrap();
}

/// By directories on the way to a file, by directories alone, and by a copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_and_copies_end_at_the_disk_limit_ns_16() {
    let mut walls = fixture::walls();
    walls.usage.disk = DiskLimit {
        bytes: 16 << 20,
        inodes: 500,
    };
    let fixture = fixture::native_with(walls);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    let way = "d/".repeat(1000);
    let request = |path: &str| DirectoryRequest {
        path: path.to_owned(),
        mode: None,
        parents: Parents::Make,
    };
    let made = files.make_directory(request(&way)).await;
    assert_eq!(reason(made), FileFailure::Quota);
    let written = files
        .write(write_to(&format!("{way}f")), megabytes(0))
        .await;
    assert_eq!(reason(written), FileFailure::Quota);
    let upload = Upload {
        file_name: "f".to_owned(),
        destination: way.clone().into(),
        treatment: UploadTreatment::Store,
        room: None,
    };
    let uploaded = files.upload(upload, megabytes(0)).await;
    assert_eq!(reason(uploaded), FileFailure::Quota);
    let source = tempfile::tempdir().unwrap();
    let large = source.path().join("large");
    std::fs::write(&large, vec![1; 17 << 20]).unwrap();
    let copied = sandbox.copy_to(&large, Path::new("/workspace")).await;
    assert_eq!(reason(copied), FileFailure::Quota);
    assert_eq!(output(&*sandbox, "ls -A").await, "");
    files.make_directory(request("a/b/c")).await.unwrap();
    std::fs::write(&large, vec![1; 4 << 20]).unwrap();
    sandbox
        .copy_to(&large, Path::new("/workspace/a"))
        .await
        .unwrap();
    assert_eq!(output(&*sandbox, "stat -c %s a/large").await, "4194304");
    sandbox.close().await.unwrap();
}

/// It would be refused half-way, when what is in it is gone already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_with_a_directory_that_cannot_be_changed_is_kept_whole() {
    let fixture = fixture::native();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    output(
        &*sandbox,
        "mkdir -p t/a t/b t/c; touch t/a/x t/b/y; chmod 555 t/b t/c",
    )
    .await;
    let remove = || {
        files.remove(RemoveRequest {
            path: "t".to_owned(),
            depth: Depth::Tree,
        })
    };
    assert_eq!(reason(remove().await), FileFailure::Denied);
    assert_eq!(output(&*sandbox, "ls t/a t/b").await, "t/a:\nx\n\nt/b:\ny");
    output(&*sandbox, "chmod 755 t/b").await;
    // The empty one goes with its parent's permission.
    remove().await.unwrap();
    assert_eq!(output(&*sandbox, "ls -A").await, "");
    sandbox.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_that_unpacks_to_more_than_the_disk_limit_is_refused_and_leaves_nothing_ns_16() {
    let source = tempfile::tempdir().unwrap();
    for number in 0..20 {
        let file = std::fs::File::create(source.path().join(number.to_string())).unwrap();
        file.set_len(1 << 20).unwrap();
    }
    let fixture = tight();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let files = sandbox.files().unwrap();
    // Zeros pack so well that the archive itself would fit a hundred times.
    let here = Transfers::new(Owner::Ourselves);
    let packed = here.download(Download {
        path: source.path().to_owned(),
        format: ArchiveFormat::Zip,
    });
    let archive = Bytes::from(collect(packed.await.unwrap()).await);
    let upload = |destination: &str| {
        let request = Upload {
            file_name: "bomb.zip".to_owned(),
            destination: destination.into(),
            treatment: UploadTreatment::Unpack,
            room: None,
        };
        files.upload(request, stream(std::iter::once(archive.clone())))
    };
    assert_eq!(reason(upload("one").await), FileFailure::Quota);
    let (first, second) = tokio::join!(upload("one"), upload("two"));
    assert_eq!([reason(first), reason(second)], [FileFailure::Quota; 2]);
    assert_eq!(output(&*sandbox, "ls -A").await, "");
    sandbox.close().await.unwrap();
}
