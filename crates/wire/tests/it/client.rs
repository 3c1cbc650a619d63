//! Our own client against our own server, and against servers that misbehave.

use std::{fs, io, time::Duration};

use futures_util::TryStreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use zareba_protocol::{Action, ActionEvent, ErrorClass, RunCommand, Think};
use zareba_wire::{
    ArchiveFormat, Download, Endpoint, SessionKey, Upload, UploadTreatment,
    client::{ClientError, ExecutorClient},
    server::{ServerLimits, ServerOptions},
};

use crate::fake::{keyed, keyless, run_observation, start, start_at};

const KEY: &str = "testkey";

fn client(endpoint: &Endpoint) -> ExecutorClient {
    ExecutorClient::new(endpoint.clone(), SessionKey::new(KEY).ok())
}

fn run(command: &str) -> ActionEvent {
    Action::Run(RunCommand::new(command)).into()
}

fn upload(name: &str, destination: &str, treatment: UploadTreatment) -> Upload {
    Upload {
        file_name: name.into(),
        destination: destination.into(),
        treatment,
        room: None,
    }
}

async fn collected(stream: zareba_wire::ByteStream) -> io::Result<Vec<u8>> {
    let pieces: Vec<_> = stream.try_collect().await?;
    Ok(pieces.concat())
}

#[tokio::test]
async fn every_method_works_over_tcp_and_over_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    for server in [
        start(keyed(KEY)),
        start_at(&Endpoint::Unix(path), keyed(KEY)),
    ] {
        let client = client(&server.endpoint);
        client.alive().await.unwrap();
        let info = client.server_info().await.unwrap();
        assert!(
            info.uptime > 0.0 && info.resources.memory.rss > 0,
            "{info:?}"
        );

        let event = run("ls").with_timeout(2.0);
        assert_eq!(
            client.execute(event.clone()).await.unwrap(),
            run_observation("ls", "ls")
        );
        assert_eq!(*server.service.actions.lock().unwrap(), [event]);

        let store = upload("näme \"q\".bin", "/up dir/ä", UploadTreatment::Store);
        let content = vec![7_u8; 1_000_000];
        client
            .upload(&store, io::Cursor::new(content.clone()))
            .await
            .unwrap();
        assert_eq!(
            *server.service.uploads.lock().unwrap(),
            [(store, Ok(1_000_000))]
        );
        let stored = server.service.root.path().join("up dir/ä/näme \"q\".bin");
        assert!(fs::read(stored).unwrap() == content);

        let listed = client.list_files(Some("/up dir".as_ref())).await.unwrap();
        assert_eq!(listed, ["ä/"]);
        assert_eq!(client.list_files(None).await.unwrap(), Vec::<String>::new());

        let download = Download {
            path: "/up dir".into(),
            format: ArchiveFormat::Tar,
        };
        let archive = client.download(&download).await.unwrap();
        assert_eq!(
            collected(archive).await.unwrap(),
            b"PK first second last tar"
        );
        server.stop().await;
    }
}

#[tokio::test]
async fn errors_have_the_class_of_what_went_wrong() {
    let server = start(keyed(KEY));
    let right = client(&server.endpoint);
    let wrong = ExecutorClient::new(server.endpoint.clone(), None);
    let error = wrong.execute(run("ls")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the executor refused with status 403: Invalid API Key"
    );
    assert_eq!(
        (error.class(), error.may_have_run()),
        (ErrorClass::Permission, false)
    );

    let missing = Download {
        path: "/nope".into(),
        format: ArchiveFormat::Zip,
    };
    let error = right.download(&missing).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::NotFound);
    let relative = upload("a", "b", UploadTreatment::Store);
    let error = right
        .upload(&relative, io::Cursor::new(vec![0; 10]))
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    let named = upload("a\nb", "/", UploadTreatment::Store);
    let error = right.upload(&named, tokio::io::empty()).await.unwrap_err();
    assert!(
        matches!(error, ClientError::InvalidRequest { .. }),
        "{error:?}"
    );
    let think = Action::Think(Think::new("hm")).into();
    assert_eq!(
        right.execute(think).await.unwrap_err().class(),
        ErrorClass::Internal
    );

    server
        .service
        .ready
        .store(false, std::sync::atomic::Ordering::SeqCst);
    let error = right.alive().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the executor refused with status 503: not initialized"
    );
    assert_eq!(error.class(), ErrorClass::Busy);

    let gone = server.endpoint.clone();
    server.stop().await;
    let error = client(&gone).execute(run("ls")).await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    assert_eq!(
        (error.class(), error.may_have_run()),
        (ErrorClass::Disconnected, false)
    );
}

#[tokio::test]
async fn an_archive_that_breaks_off_is_an_error_and_not_a_short_archive() {
    let server = start(keyless());
    fs::create_dir(server.service.root.path().join("broken")).unwrap();
    let download = Download {
        path: "/broken".into(),
        format: ArchiveFormat::Zip,
    };
    // Depending on what was flushed, even the head may be missing.
    let outcome = match client(&server.endpoint).download(&download).await {
        Ok(archive) => collected(archive).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    assert!(outcome.is_err(), "{outcome:?}");
}

#[tokio::test]
async fn a_source_that_fails_leaves_nothing_stored() {
    struct Failing(bool);
    impl tokio::io::AsyncRead for Failing {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            space: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            if std::mem::replace(&mut self.0, true) {
                return std::task::Poll::Ready(Err(io::Error::other("unreadable")));
            }
            space.put_slice(b"half");
            std::task::Poll::Ready(Ok(()))
        }
    }
    let server = start(keyless());
    let file = upload("f", "/up", UploadTreatment::Store);
    let error = client(&server.endpoint)
        .upload(&file, Failing(false))
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Disconnected);
    assert!(!server.service.root.path().join("up/f").exists());
}

#[tokio::test]
async fn connections_are_used_again_and_replaced_when_the_server_closed_them() {
    let limits = ServerLimits {
        connections: 1,
        ..ServerLimits::default()
    };
    let server = start(ServerOptions {
        limits,
        ..keyless()
    });
    let endpoint = server.endpoint.clone();
    let client = client(&endpoint);
    // With room for one connection, the second request can only be on the same one.
    for _ in 0..3 {
        client.list_files(None).await.unwrap();
    }
    server.stop().await;
    let again = start_at(&endpoint, keyless());
    assert_eq!(
        client.execute(run("ls")).await.unwrap(),
        run_observation("ls", "ls")
    );
    assert_eq!(again.service.actions.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_connection_that_was_made_ahead_carries_the_next_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(&Endpoint::Tcp(listener.local_addr().unwrap()));
    client.connect_ahead().await;
    let (mut stream, _) = listener.accept().await.unwrap();
    // There is one, so this makes no other.
    client.connect_ahead().await;
    let asking = tokio::spawn(async move { client.list_files(None).await });
    let mut head = [0; 4096];
    assert!(stream.read(&mut head).await.unwrap() > 0);
    drop((stream, listener));
    assert!(asking.await.unwrap().is_err());
}

/// A server that reads a request and hangs up; it counts the requests that it got.
async fn hang_up_on_requests(listener: TcpListener, requests: usize) -> usize {
    let mut seen = 0;
    while seen < requests {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        if stream.read(&mut head).await.unwrap() > 0 {
            seen += 1;
        }
    }
    // Whoever tries again gets no further than this.
    let more = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
    seen + usize::from(more.is_ok())
}

#[tokio::test]
async fn an_action_that_was_written_is_never_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
    let server = tokio::spawn(hang_up_on_requests(listener, 1));
    let error = client(&endpoint)
        .execute(run("rm precious"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, ClientError::Disconnected { .. }),
        "{error:?}"
    );
    assert!(error.may_have_run());
    assert_eq!(server.await.unwrap(), 1);
}

#[tokio::test]
async fn a_silent_server_is_waited_for_as_long_as_the_action_may_take_and_5_s() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
    let started = std::time::Instant::now();
    let error = client(&endpoint)
        .execute(run("sleep 9").with_timeout(0.5))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error:?}");
    assert_eq!(
        (error.class(), error.may_have_run()),
        (ErrorClass::Timeout, true)
    );
    let waited = started.elapsed();
    assert!(
        Duration::from_millis(5500) <= waited && waited < Duration::from_secs(9),
        "{waited:?}"
    );
}

#[tokio::test]
async fn answers_that_make_no_sense_are_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        assert_ne!(stream.read(&mut head).await.unwrap(), 0);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{}{}")
            .await
            .unwrap();
    });
    let error = client(&endpoint).execute(run("ls")).await.unwrap_err();
    assert!(
        matches!(error, ClientError::InvalidAnswer { .. }),
        "{error:?}"
    );
}
