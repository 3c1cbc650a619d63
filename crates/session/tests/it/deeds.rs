//! What is done to a sandbox beside actions is judged, recorded and only then done.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zareba_eventlog::{EntryKind, EventLog, Options};
use zareba_protocol::SecurityRisk;
use zareba_runtime::{RuntimeError, Sandbox as _};
use zareba_session::{
    Deed, DeedContext, Guard, Home, NewSession, NewTerminal, SandboxChange, Secret, Session,
    SessionState, SessionUpdate, Sessions, SessionsOptions, TerminalOutput, Verdict, event_json,
};
use zareba_wire::{
    ArchiveFormat, BoxFuture, ByteStream, Download,
    files::{Digest, Links, Parents, ReadRequest, StatRequest, WriteRequest},
    program::{ProgramEvent, ProgramLine, ProgramRequest, TerminalSize},
};

use crate::fixture::{Place, client, on, output, owner, records};

/// The records of deeds until now, without numbers and times.
async fn deeds(session: &Session) -> Vec<Value> {
    let records = records(session).await;
    let of_deeds = records.iter().filter(|record| {
        record.kind == EntryKind::Note && record.payload.get("note") == Some(&json!("deed"))
    });
    let told = of_deeds.map(|record| {
        let mut event = event_json(record);
        let fields = event.as_object_mut().unwrap();
        for changing in ["id", "timestamp", "duration_ms", "note"] {
            fields.remove(changing);
        }
        event
    });
    told.collect()
}

fn by() -> Value {
    json!({ "owner": "somebody", "key": "k1", "scope": "session", "surface": "api" })
}

fn content(text: &'static str) -> ByteStream {
    let piece = Ok(Bytes::from_static(text.as_bytes()));
    Box::pin(futures_util::stream::iter([piece]))
}

fn write(path: &str) -> WriteRequest {
    WriteRequest {
        path: path.to_owned(),
        mode: None,
        parents: Parents::Require,
        expected: None,
    }
}

fn read(path: &str) -> ReadRequest {
    ReadRequest {
        path: path.to_owned(),
        range: None,
        digest: Digest::Skip,
    }
}

#[tokio::test]
async fn a_write_is_recorded_around_with_its_hash_and_equal_reads_are_one_record() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let sandbox = session.access(client()).await.unwrap();
    let files = sandbox.files().unwrap();
    files.write(write("a.txt"), content("hello")).await.unwrap();
    let refused = files.write(write("none/a.txt"), content("hello")).await;
    refused.unwrap_err();
    for _ in 0..3 {
        files.read(read("a.txt")).await.unwrap();
    }
    let stat = StatRequest {
        path: "nothing".to_owned(),
        links: Links::Follow,
        digest: Digest::Skip,
    };
    files.stat(stat).await.unwrap_err();
    let all = records(&session).await;
    let first = all.iter().find(|record| record.kind == EntryKind::Note);
    assert!(first.is_some());
    session.close().await.unwrap();
    let told = deeds(&session).await;
    let number = |nth: usize| {
        let begun = all
            .iter()
            .filter(|record| record.payload.get("state") == Some(&json!("begun")));
        begun.map(|record| record.sequence).nth(nth).unwrap()
    };
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let (first, second) = (number(0), number(1));
    // A file that is not there is refused before anything of the content is read, or after.
    let refused = &told[3];
    let measured = (&refused["bytes"], &refused["sha256"]);
    let (zero, five) = (json!(0), json!(5));
    assert!(
        measured == (&zero, &json!(nothing)) || measured == (&five, &json!(hash)),
        "{refused}"
    );
    let expected = [
        json!({ "state": "begun", "deed": { "kind": "write", "path": "a.txt" }, "by": by() }),
        json!({
            "cause": first, "state": "ended", "deed": { "kind": "write" }, "outcome": "done",
            "bytes": 5, "sha256": hash,
        }),
        json!({ "state": "begun", "deed": { "kind": "write", "path": "none/a.txt" }, "by": by() }),
        json!({
            "cause": second, "state": "ended", "deed": { "kind": "write" }, "outcome": "failed",
            "error": "not_found", "bytes": refused["bytes"], "sha256": refused["sha256"],
        }),
        json!({
            "state": "done", "deed": { "kind": "read", "path": "a.txt" }, "by": by(),
            "outcome": "done", "count": 3, "bytes": 15,
        }),
        json!({
            "state": "done", "deed": { "kind": "stat", "path": "nothing" }, "by": by(),
            "error": "not_found", "outcome": "failed", "count": 1,
        }),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_download_is_recorded_with_the_hash_of_what_left() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, "echo hello >a.txt").await;
    let sandbox = session.access(client()).await.unwrap();
    let request = Download {
        path: sandbox.workspace().to_owned(),
        format: ArchiveFormat::Tar,
    };
    let path = request.path.to_string_lossy().into_owned();
    let mut archive = sandbox.files().unwrap().download(request).await.unwrap();
    let mut sent = Vec::new();
    while let Some(piece) = archive.next().await {
        sent.extend_from_slice(&piece.unwrap());
    }
    drop(archive);
    session.close().await.unwrap();
    let hash = Sha256::digest(&sent);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = json!({
        "state": "done", "deed": { "kind": "download", "path": path }, "by": by(),
        "outcome": "done", "count": 1, "bytes": sent.len(), "sha256": hash,
    });
    assert_eq!(deeds(&session).await, [expected]);
}

/// Breaks down over writes, does not like programs, and forgets all about directories.
struct Odd;

impl Guard for Odd {
    fn assess<'a>(&'a self, deed: &'a Deed, context: DeedContext<'a>) -> BoxFuture<'a, Verdict> {
        assert!(!matches!(deed, Deed::Write { .. }), "on purpose");
        Box::pin(std::future::ready(match deed {
            Deed::Program { .. } => Verdict::Deny {
                risk: SecurityRisk::Medium,
                reason: format!("no programs for {}", context.requester.owner.0),
            },
            _ => Verdict::Allow,
        }))
    }
}

#[tokio::test]
async fn what_a_guard_denies_or_cannot_judge_is_not_done_and_recorded() {
    let place = Place::new();
    let options = SessionsOptions {
        guard: Arc::new(Odd),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let sandbox = session.access(client()).await.unwrap();
    let files = sandbox.files().unwrap();
    let written = files.write(write("a.txt"), content("hello")).await;
    assert!(
        matches!(written, Err(RuntimeError::Denied { .. })),
        "{written:?}"
    );
    let argv = ["touch", "b.txt"].map(str::to_owned).to_vec();
    let request = ProgramRequest::new(ProgramLine::Argv(argv));
    let started = sandbox.start_program(request).await;
    assert_eq!(
        started.unwrap_err().to_string(),
        "guard_denied: no programs for somebody"
    );
    assert_eq!(output(&session, "ls").await, "");
    let told = deeds(&session).await;
    let refused = json!({
        "state": "refused", "by": by(), "risk": 2,
        "deed": { "kind": "write", "path": "a.txt" },
        "reason": "the guard failed, and what it cannot judge is denied",
    });
    let denied = json!({
        "state": "refused", "by": by(), "risk": 1,
        "deed": { "kind": "program", "argv": ["touch", "b.txt"], "tty": false },
        "reason": "no programs for somebody",
    });
    assert_eq!(told, [refused, denied]);
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_is_recorded_with_what_was_typed_and_shown_and_without_secrets() {
    const SECRET: &str = "swordfish-123";
    let place = Place::new();
    let sessions = place.serve().await;
    let new = NewSession {
        secrets: vec![("TOKEN".to_owned(), Secret(SECRET.to_owned()))],
        ..on("cli")
    };
    let session = sessions.create_ready(new, owner()).await.unwrap();
    let sandbox = session.access(client()).await.unwrap();
    let new = NewTerminal {
        name: Some("mine".to_owned()),
        program: Some(ProgramLine::Shell(
            "read line; echo \"got $line\"; exit 3".to_owned(),
        )),
        directory: None,
        environment: vec![("COLOR".to_owned(), "never shown".to_owned())],
        size: TerminalSize::new(24, 80).unwrap(),
    };
    let terminal = session.terminals().open(&sandbox, new).await.unwrap();
    let typed = format!("{SECRET} and more\n");
    terminal.write(typed.into()).await.unwrap();
    let mut viewer = terminal.view(Some(0));
    while !matches!(viewer.next().await, Some(TerminalOutput::End(_))) {}
    session.close().await.unwrap();
    let told = deeds(&session).await;
    let begun = &told[0];
    assert_eq!(
        begun["deed"],
        json!({
            "kind": "terminal", "name": "mine", "env": ["TERM", "COLOR"], "tty": true,
            "command": "read line; echo \"got $line\"; exit 3",
        })
    );
    let streamed = |stream: &str| {
        let pieces = told.iter().filter(|it| it["stream"] == stream);
        pieces
            .map(|it| it["text"].as_str().unwrap())
            .collect::<String>()
    };
    assert_eq!(streamed("input"), "<secret_hidden> and more\n");
    let shown = streamed("output");
    assert!(
        shown.contains("got <secret_hidden> and more\r\n"),
        "{shown:?}"
    );
    let last = told.last().unwrap();
    assert_eq!(
        (&last["exit_code"], &last["outcome"]),
        (&json!(3), &json!("exited"))
    );
    assert!(!format!("{told:?}").contains(SECRET));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_is_recorded_before_it_runs_and_when_it_has_ended() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let sandbox = session.access(client()).await.unwrap();
    let line = ProgramLine::Shell("printf 12345; printf 123 >&2".to_owned());
    let program = sandbox
        .start_program(ProgramRequest::new(line))
        .await
        .unwrap();
    let begun = deeds(&session).await;
    assert_eq!(begun.len(), 1, "{begun:?}");
    let (_input, mut events) = program.split();
    while !matches!(events.next().await, Some(ProgramEvent::Exit(_))) {}
    drop(events);
    session.close().await.unwrap();
    let told = deeds(&session).await;
    let number = told[1]["cause"].clone();
    let ended = json!({
        "cause": number, "state": "ended", "deed": { "kind": "program" }, "exit_code": 0,
        "outcome": "exited", "input_bytes": 0, "output_bytes": 5, "error_bytes": 3,
    });
    assert_eq!(told[1..], [ended]);
}

/// Denies that sessions are paused, changed or removed, and lets all else be.
struct Settled;

impl Guard for Settled {
    fn assess<'a>(&'a self, deed: &'a Deed, _context: DeedContext<'a>) -> BoxFuture<'a, Verdict> {
        let is_denied = matches!(
            deed,
            Deed::Update | Deed::Manage(SandboxChange::Pause | SandboxChange::Purge)
        );
        Box::pin(std::future::ready(match is_denied {
            true => Verdict::Deny {
                risk: SecurityRisk::Low,
                reason: "it stays as it is".to_owned(),
            },
            false => Verdict::Allow,
        }))
    }
}

/// What an earlier deed has opened can be given back, although there is no room to record it.
#[tokio::test]
async fn a_full_log_keeps_no_client_from_resuming_and_closing() {
    let place = Place::new();
    let log = Options {
        session_bytes_max: Some(2048),
        ..Options::default()
    };
    let path = place.path("events.db");
    let log = EventLog::open_file_with(&path, log);
    let home = Home::open(&place.path("")).await.unwrap();
    let started = Sessions::start_in(home, log.await.unwrap(), place.options()).await;
    let (sessions, _) = started.unwrap();
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let sandbox = session.access(client()).await.unwrap();
    let files = sandbox.files().unwrap();
    let mut writes = 0;
    while files.write(write("a.txt"), content("hello")).await.is_ok() {
        writes += 1;
        assert!(writes < 100, "the log is never full");
    }
    session.resume_for(&client()).await.unwrap();
    session.close_for(&client()).await.unwrap();
}

#[tokio::test]
async fn changes_of_a_session_as_a_whole_are_judged_and_recorded_with_who_asked() {
    let place = Place::new();
    let options = SessionsOptions {
        guard: Arc::new(Settled),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let denied = [
        session.pause_for(&client()).await,
        session.update(SessionUpdate::default(), &client()).await,
        session.close_for_removal(&client()).await,
    ];
    for outcome in denied {
        assert_eq!(
            outcome.unwrap_err().to_string(),
            "guard_denied: it stays as it is"
        );
    }
    assert_eq!(session.info().state, SessionState::Ready);
    session.resume_for(&client()).await.unwrap();
    session.close_for(&client()).await.unwrap();
    session.close_for(&client()).await.unwrap();
    let told = deeds(&session).await;
    let refused = |kind: &str| {
        json!({
            "state": "refused", "by": by(), "risk": 0, "deed": { "kind": kind },
            "reason": "it stays as it is",
        })
    };
    let (begun, ended) = (
        |kind: &str| json!({ "state": "begun", "by": by(), "deed": { "kind": kind } }),
        |kind: &str, cause: &Value| {
            let deed = json!({ "kind": kind });
            json!({ "cause": cause, "state": "ended", "deed": deed, "outcome": "done" })
        },
    );
    let expected = [
        refused("pause"),
        refused("update"),
        refused("purge"),
        begun("resume"),
        ended("resume", &told[4]["cause"]),
        begun("close"),
        ended("close", &told[6]["cause"]),
    ];
    assert_eq!(told, expected);
    let last = records(&session).await.pop().unwrap();
    assert_eq!(
        last.payload["state"], "closed",
        "nothing comes behind the end"
    );
}
