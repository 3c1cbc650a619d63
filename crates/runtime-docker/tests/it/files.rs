//! Files as bytes, in a container that has nothing but busybox.

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use zareba_runtime::RuntimeError;
use zareba_wire::{
    ArchiveFormat, ByteStream, Download, Upload, UploadTreatment,
    files::{
        Digest, FileFailure, FileKind, Links, Parents, ReadRequest, StatRequest, WriteRequest,
    },
};

use crate::fixture::{BUSYBOX, fixture, output};

/// More than any buffer on the way holds.
const MUCH: usize = 16 * 1024 * 1024;

fn bytes_of(text: impl Into<Bytes>) -> ByteStream {
    Box::pin(stream::iter([Ok(text.into())]))
}

async fn collect(stream: ByteStream) -> Vec<u8> {
    let pieces: Vec<Bytes> = stream.try_collect().await.unwrap();
    pieces.concat()
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

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_and_written_as_bytes() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    let files = sandbox.files().unwrap();
    let written = files.write(write_to("d/f x"), bytes_of("ä\0\n")).await;
    let written = written.unwrap();
    assert_eq!((written.kind, written.size), (FileKind::File, 4));
    assert_eq!(output(&*sandbox, "wc -c < 'd/f x'").await.trim(), "4");
    let read = files.read(read_of("d/f x")).await.unwrap();
    assert_eq!(collect(read.stream).await, "ä\0\n".as_bytes());

    let piece = Bytes::from(vec![7; 1024 * 1024]);
    let much = stream::iter(std::iter::repeat_n(piece, MUCH / (1024 * 1024))).map(Ok);
    files.write(write_to("much"), Box::pin(much)).await.unwrap();
    let request = StatRequest {
        path: "much".to_owned(),
        links: Links::Follow,
        digest: Digest::Skip,
    };
    let size = files.stat(request).await.unwrap().size;
    assert_eq!(size, u64::try_from(MUCH).unwrap());

    let missing = files.read(read_of("none")).await;
    let Err(RuntimeError::File(missing)) = missing else {
        panic!("{missing:?}");
    };
    assert_eq!(missing.reason, FileFailure::NotFound);
    sandbox.pause().await.unwrap();
    let paused = files.read(read_of("much")).await.unwrap_err();
    assert!(matches!(paused, RuntimeError::Paused { .. }), "{paused:?}");
    sandbox.resume().await.unwrap();
    sandbox.close().await.unwrap();
    let closed = files.read(read_of("much")).await.unwrap_err();
    assert!(matches!(closed, RuntimeError::Closed { .. }), "{closed:?}");
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_go_out_and_come_in() {
    let fixture = fixture(BUSYBOX);
    let sandbox = fixture.sandbox().await;
    let files = sandbox.files().unwrap();
    output(
        &*sandbox,
        "mkdir from; echo one > from/1; echo two > from/2",
    )
    .await;
    let request = Download {
        path: "from".into(),
        format: ArchiveFormat::Tar,
    };
    let packed = collect(files.download(request).await.unwrap()).await;
    let upload = Upload {
        destination: "to".into(),
        file_name: "from.tar".to_owned(),
        treatment: UploadTreatment::Unpack,
        room: None,
    };
    files.upload(upload, bytes_of(packed)).await.unwrap();
    assert_eq!(output(&*sandbox, "cat to/1 to/2").await, "one\ntwo");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}
