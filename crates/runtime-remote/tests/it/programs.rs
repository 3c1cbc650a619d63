//! Programs, ports and what is told of a sandbox, on another server of ours.

use std::time::Duration;

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};
use zareba_protocol::ErrorClass;
use zareba_runtime::{Runtime as _, RuntimeError};
use zareba_wire::program::{
    ProgramConnection, ProgramEvent, ProgramExit, ProgramLine, ProgramRequest, ProgramSignal,
    ProgramStdin, StartFailure,
};

use crate::{
    provider::Kind,
    zareba::{output, remote, spec},
};

const PATIENCE: Duration = Duration::from_secs(30);

fn shell(text: &str) -> ProgramRequest {
    ProgramRequest {
        stdin: ProgramStdin::Open,
        ..ProgramRequest::new(ProgramLine::Shell(text.to_owned()))
    }
}

/// What a program writes, and how it ends.
async fn whole(program: ProgramConnection) -> (Vec<u8>, Vec<u8>, ProgramExit) {
    let (input, mut events) = program.split();
    drop(input);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match timeout(PATIENCE, events.next()).await.unwrap() {
            Some(ProgramEvent::Stdout(bytes)) => stdout.extend_from_slice(&bytes),
            Some(ProgramEvent::Stderr(bytes)) => stderr.extend_from_slice(&bytes),
            Some(ProgramEvent::Exit(exit)) => return (stdout, stderr, exit),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_has_its_streams_here() {
    let remote = remote(Kind::Cli).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    let program = shell("echo out; echo err >&2; exit 7");
    let program = sandbox.start_program(program).await.unwrap();
    let (stdout, stderr, exit) = whole(program).await;
    assert_eq!((&stdout[..], &stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(exit, ProgramExit::Code(7));

    // More than is held anywhere on the way, both ways.
    let text: Bytes = b"0123456789abcde\n".repeat(128 * 1024).into();
    let (input, mut events) = sandbox.start_program(shell("cat")).await.unwrap().split();
    let typed = text.clone();
    tokio::spawn(async move {
        input.write_stdin(typed).await.unwrap();
        input.close_stdin().await.unwrap();
    });
    let mut shown = Vec::new();
    let end = loop {
        match timeout(PATIENCE, events.next()).await.unwrap() {
            Some(ProgramEvent::Stdout(bytes)) => shown.extend_from_slice(&bytes),
            other => break other,
        }
    };
    assert_eq!(end, Some(ProgramEvent::Exit(ProgramExit::Code(0))));
    assert_eq!(shown, text);

    let (input, mut events) = sandbox
        .start_program(shell("sleep 1000"))
        .await
        .unwrap()
        .split();
    input.signal(ProgramSignal::Kill).await.unwrap();
    let end = timeout(PATIENCE, events.next()).await.unwrap();
    assert_eq!(end, Some(ProgramEvent::Exit(ProgramExit::Signal(9))));
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_cannot_be_started_says_why() {
    let remote = remote(Kind::Cli).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    let argv = |program: &str| {
        let words = vec![program.to_owned()];
        ProgramRequest::new(ProgramLine::Argv(words))
    };
    let elsewhere = ProgramRequest {
        directory: Some("/no/such".to_owned()),
        ..argv("ls")
    };
    for (request, expected) in [
        (argv("no-such-program"), StartFailure::NotFound),
        (argv("/etc/passwd"), StartFailure::NotExecutable),
        (elsewhere, StartFailure::Directory),
        (argv(""), StartFailure::Invalid),
    ] {
        match sandbox.start_program(request).await.unwrap_err() {
            RuntimeError::Program(error) => assert_eq!(error.reason, expected, "{error}"),
            other => panic!("{other:?}"),
        }
    }
    sandbox.close().await.unwrap();
    let error = sandbox.start_program(argv("ls")).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Closed { .. }), "{error}");
    remote.site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_ends_when_nobody_holds_it() {
    let remote = remote(Kind::Cli).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    output(&*sandbox, "mkfifo gone").await.unwrap();
    let text = "trap 'echo yes > gone; exit' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let (input, mut events) = sandbox.start_program(shell(text)).await.unwrap().split();
    let ready = timeout(PATIENCE, events.next()).await.unwrap();
    assert_eq!(ready, Some(ProgramEvent::Stdout("ready\n".into())));
    drop((input, events));
    let told = timeout(PATIENCE, output(&*sandbox, "cat gone")).await;
    assert_eq!(told.unwrap().unwrap(), "yes");
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_inside_is_connected_to() {
    let remote = remote(Kind::Cli).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    // Without walls a port inside is the same port here.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = tokio::spawn(async move {
        let (mut inside, _) = listener.accept().await.unwrap();
        let mut asked = [0; 4];
        inside.read_exact(&mut asked).await.unwrap();
        inside.write_all(b"pong").await.unwrap();
    });
    let mut socket = sandbox.connect_port(port).await.unwrap();
    socket.write_all(b"ping").await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, socket.read_to_end(&mut answer)).await;
    read.unwrap().unwrap();
    assert_eq!(answer, b"pong");
    answers.await.unwrap();
    // The sandbox is there, only nobody listens: that is not the same as a sandbox that is gone.
    let error = sandbox.connect_port(port).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid, "{error}");
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_around_a_sandbox_is_told() {
    let walled = remote(Kind::Native).await;
    let sandbox = walled.runtime.create(spec()).await.unwrap();
    let document = sandbox.inspect().await.unwrap();
    assert!(document["enforcement"].is_object(), "{document}");
    sandbox.close().await.unwrap();
    walled.site.stop().await;
    let open = remote(Kind::Cli).await;
    let sandbox = open.runtime.create(spec()).await.unwrap();
    let error = sandbox.inspect().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unsupported, "{error}");
    sandbox.close().await.unwrap();
    open.site.stop().await;
}
