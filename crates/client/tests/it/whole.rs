//! The typed client against the whole server.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use zareba_client::{
    CreateKey, CreateSession, CreateTerminal, ErrorCode, EventKind, KeyQuota, KeyScope,
    ListFilesQuery, PageQuery, SessionState, TerminalEvent,
};
use zareba_protocol::{Action, ActionEvent, ErrorClass, RunCommand};

use crate::{provider::Kind, site::Site};

fn command(text: &str) -> ActionEvent {
    Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::new(text)
    })
    .into()
}

#[tokio::test]
async fn sessions_are_made_used_listed_and_ended() {
    let site = Site::start(Kind::Cli).await;
    let client = site.client();
    assert!(client.ready().await.unwrap().ready);
    assert_eq!(client.runtimes().await.unwrap().runtimes.len(), 1);
    let session = client
        .create_session(CreateSession::default())
        .await
        .unwrap();
    assert_eq!(session.state, SessionState::Ready);
    let observation = client.run(&session.id, command("echo here")).await.unwrap();
    assert_eq!(observation.observation.content, "here");
    let page = client.sessions(&PageQuery::default()).await.unwrap();
    assert_eq!(page.sessions.len(), 1);
    let error = client.pause_session(&session.id).await.unwrap_err();
    assert_eq!(
        (error.class(), error.code()),
        (ErrorClass::Unsupported, Some(ErrorCode::Unsupported))
    );
    client.keep_session_alive(&session.id).await.unwrap();
    client.delete_session(&session.id).await.unwrap();
    client.delete_session(&session.id).await.unwrap();
    assert_eq!(
        client.session(&session.id).await.unwrap().state,
        SessionState::Closed
    );
    client.purge_session(&session.id).await.unwrap();
    let error = client.session(&session.id).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    site.stop().await;
}

/// RH-2: a name makes asking again harmless.
#[tokio::test]
async fn a_named_action_runs_once_rh_2() {
    let site = Site::start(Kind::Cli).await;
    let client = site.client();
    let session = client
        .create_session(CreateSession::default())
        .await
        .unwrap()
        .id;
    let action = || command("echo x >> times; cat times");
    for _ in 0..3 {
        let answer = client.run_named(&session, action(), "name").await.unwrap();
        assert_eq!(answer.observation.content, "x");
    }
    let error = client
        .run_named(&session, command("true"), "name")
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::IdempotencyMismatch));
    let accepted = client
        .submit(&session, &command("echo later"), "other")
        .await
        .unwrap();
    let answer = client
        .answer(&session, accepted.action, Duration::from_secs(30))
        .await;
    assert_eq!(answer.unwrap().unwrap().observation.content, "later");
    site.stop().await;
}

#[tokio::test]
async fn events_come_once_and_in_order_from_any_number() {
    let site = Site::start(Kind::Cli).await;
    let client = site.client();
    let session = client
        .create_session(CreateSession::default())
        .await
        .unwrap()
        .id;
    let mut stream = client.event_stream(&session, 0);
    let writer = {
        let (client, session) = (client.clone(), session.clone());
        tokio::spawn(async move {
            for number in 0..5 {
                client
                    .run(&session, command(&format!("echo {number}")))
                    .await
                    .unwrap();
            }
        })
    };
    let mut seen = Vec::new();
    while seen.len() < 5 {
        let event = stream.next().await.unwrap();
        if event.kind == EventKind::Observation {
            seen.push(event.payload["content"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4"]);
    writer.await.unwrap();
    let page = client.events(&session, 0, None).await.unwrap();
    let numbers: Vec<u64> = page.events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (0..page.next).collect::<Vec<_>>());
    let mut later = client.event_stream(&session, page.next - 1);
    assert_eq!(
        later.next().await.unwrap(),
        page.events[page.events.len() - 1]
    );
    assert_eq!(later.cursor(), page.next);
    site.stop().await;
}

#[tokio::test]
async fn keys_are_made_and_removed() {
    let site = Site::start(Kind::Cli).await;
    let client = site.client();
    let new = CreateKey {
        owner: "alice".to_owned(),
        scope: KeyScope::Session,
        session: None,
        expires_in: None,
        quota: KeyQuota::default(),
    };
    let created = client.create_key(&new).await.unwrap();
    assert!(client.keys().await.unwrap().keys.contains(&created.key));
    client.delete_key(&created.key.id).await.unwrap();
    assert!(!client.keys().await.unwrap().keys.contains(&created.key));
    site.stop().await;
}

#[tokio::test]
async fn files_are_written_listed_read_and_removed() {
    let site = Site::start(Kind::Cli).await;
    let client = site.client();
    let session = client
        .create_session(CreateSession::default())
        .await
        .unwrap()
        .id;
    let pieces = (0..30).map(|number| Ok(Bytes::from(vec![number; 100_000])));
    let content = Box::pin(futures_util::stream::iter(pieces.collect::<Vec<_>>()));
    let written = client
        .write_file(&session, "made/file", content)
        .await
        .unwrap();
    assert_eq!(written.size, 3_000_000);
    let query = ListFilesQuery {
        path: Some("made".to_owned()),
        ..ListFilesQuery::default()
    };
    let page = client.list_files(&session, &query).await.unwrap();
    assert_eq!(page.entries[0].name, "file");
    let read = client.read_file(&session, "made/file").await.unwrap();
    let read: Vec<Bytes> = read.try_collect().await.unwrap();
    assert_eq!(read.iter().map(Bytes::len).sum::<usize>(), 3_000_000);
    client.remove_file(&session, "made").await.unwrap();
    let error = client.file_status(&session, "made").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound));
    site.stop().await;
}

#[tokio::test]
async fn a_terminal_is_opened_typed_into_and_closed() {
    let site = Site::start(Kind::Cli).await;
    let client = site.client();
    let session = client
        .create_session(CreateSession::default())
        .await
        .unwrap()
        .id;
    let new = CreateTerminal {
        argv: Some(["cat"].map(str::to_owned).to_vec()),
        ..CreateTerminal::default()
    };
    let terminal = client.open_terminal(&session, &new).await.unwrap();
    let mut view = client
        .view_terminal(&session, &terminal.name, None)
        .await
        .unwrap();
    view.input(Bytes::from_static(b"typed\n")).await.unwrap();
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("typed\r\ntyped") {
        match view.next().await.unwrap() {
            TerminalEvent::Output(bytes) => shown.extend_from_slice(&bytes),
            TerminalEvent::Notice(_) => {}
            TerminalEvent::End => panic!("it ended with {shown:?}"),
        }
    }
    assert_eq!(client.terminals(&session).await.unwrap().terminals.len(), 1);
    client
        .close_terminal(&session, &terminal.name)
        .await
        .unwrap();
    assert_eq!(client.terminals(&session).await.unwrap().terminals, []);
    site.stop().await;
}
