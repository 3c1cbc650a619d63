//! Terminals of a session: several viewers of one program.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use zareba_session::{
    NewSession, NewTerminal, Owner, Secret, Session, Sessions, TERMINALS_MAX, Terminal,
    TerminalEnd, TerminalError, TerminalOutput, Viewer,
};
use zareba_wire::program::{ProgramExit, ProgramLine, TerminalSize};

use crate::fixture::{Place, client};

const PATIENCE: Duration = Duration::from_secs(30);

async fn session(sessions: &Sessions, new: NewSession) -> Arc<Session> {
    let owner = Owner("tester".to_owned());
    sessions.create_ready(new, owner).await.unwrap()
}

fn on_terminal(name: Option<&str>, command: Option<&str>) -> NewTerminal {
    NewTerminal {
        name: name.map(str::to_owned),
        program: command.map(|command| ProgramLine::Shell(command.to_owned())),
        directory: None,
        environment: Vec::new(),
        size: TerminalSize::new(24, 80).unwrap(),
    }
}

async fn open(
    session: &Session,
    name: Option<&str>,
    command: Option<&str>,
) -> Result<Arc<Terminal>, TerminalError> {
    let sandbox = session.access(client()).await.unwrap();
    let new = on_terminal(name, command);
    session.terminals().open(&sandbox, new).await
}

async fn close(session: &Session, name: &str) {
    let door = session.door(client());
    session.terminals().close(&door, name).await.unwrap();
}

/// Output up to and with a text.
async fn until(viewer: &mut Viewer, text: &str) -> String {
    let mut seen = Vec::new();
    loop {
        let next = timeout(PATIENCE, viewer.next()).await;
        match next.unwrap_or_else(|_| panic!("no {text:?} in {:?}", String::from_utf8_lossy(&seen)))
        {
            Some(TerminalOutput::Bytes(bytes)) => seen.extend_from_slice(&bytes),
            other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&seen)),
        }
        let shown = String::from_utf8_lossy(&seen);
        if shown.contains(text) {
            return shown.into_owned();
        }
    }
}

async fn end(viewer: &mut Viewer) -> TerminalEnd {
    loop {
        match timeout(PATIENCE, viewer.next()).await.unwrap() {
            Some(TerminalOutput::Bytes(_)) => {}
            Some(TerminalOutput::End(end)) => return end,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_viewers_see_the_same_and_either_may_type() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = session(&sessions, NewSession::default()).await;
    let terminal = open(&session, None, None).await.unwrap();
    assert_eq!(terminal.name(), "1");
    let mut first = terminal.view(None);
    terminal.write("echo one$((1 + 1))\n".into()).await.unwrap();
    until(&mut first, "one2").await;
    // Who comes later sees what was, and then what comes.
    let mut second = terminal.view(None);
    terminal.write("echo two$((1 + 1))\n".into()).await.unwrap();
    let seen = until(&mut second, "two2").await;
    assert!(seen.contains("one2"), "{seen:?}");
    until(&mut first, "two2").await;

    let size = TerminalSize::new(40, 132).unwrap();
    terminal.resize(size).await.unwrap();
    terminal.write("stty size\n".into()).await.unwrap();
    until(&mut second, "40 132").await;
    assert_eq!(terminal.info().size, size);

    terminal.write("exit 3\n".into()).await.unwrap();
    for viewer in [&mut first, &mut second] {
        assert_eq!(end(viewer).await, TerminalEnd::Exit(ProgramExit::Code(3)));
    }
    let listed = session.terminals().list();
    assert_eq!(listed[0].end, Some(TerminalEnd::Exit(ProgramExit::Code(3))));
    let gone = async {
        while terminal.write("late".into()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

/// HS-15: a viewer that does not read is cut with a cursor from which it can go on, and the
/// program and the other viewer never wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_viewer_is_cut_and_can_go_on() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = session(&sessions, NewSession::default()).await;
    let command = "read go; i=0; while [ $i -lt 40000 ]; do echo line$i of many lines; i=$((i+1)); done; \
                   echo all-done; read stay";
    let terminal = open(&session, Some("busy"), Some(command)).await.unwrap();
    let (mut slow, mut quick) = (terminal.view(Some(0)), terminal.view(Some(0)));
    terminal.write("go\n".into()).await.unwrap();
    until(&mut quick, "all-done").await;
    let Some(TerminalOutput::Behind { cursor }) = slow.next().await else {
        panic!("it was not cut");
    };
    assert_eq!(slow.next().await, None);
    let mut again = terminal.view(Some(cursor));
    assert_eq!(again.cursor(), cursor);
    until(&mut again, "all-done").await;
    close(&session, "busy").await;
    assert_eq!(end(&mut again).await, TerminalEnd::Closed);
    let gone = session.terminals().get("busy").unwrap_err();
    assert!(matches!(gone, TerminalError::NotFound { .. }), "{gone}");
    session.close().await.unwrap();
}

/// EL-9: a secret is hidden also when the program writes it in two pieces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_not_shown() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = NewSession {
        secrets: vec![("TOKEN".to_owned(), Secret("open-sesame-42".to_owned()))],
        ..NewSession::default()
    };
    let session = session(&sessions, new).await;
    let command = "stty -echo; printf open-se; read go; printf same-42; echo .done";
    let terminal = open(&session, None, Some(command)).await.unwrap();
    let mut viewer = terminal.view(None);
    terminal.write("go\n".into()).await.unwrap();
    let seen = until(&mut viewer, ".done").await;
    assert!(!seen.contains("sesame"), "{seen:?}");
    assert!(seen.contains("<secret_hidden>.done"), "{seen:?}");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminals_have_names_and_are_counted() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = session(&sessions, NewSession::default()).await;
    let cat = Some("cat");
    for name in ["", "a b", "../x", &"n".repeat(65)] {
        let refused = open(&session, Some(name), cat).await.unwrap_err();
        assert!(
            matches!(refused, TerminalError::InvalidName { .. }),
            "{refused}"
        );
    }
    let ended = open(&session, Some("ended"), Some("true")).await.unwrap();
    end(&mut ended.view(None)).await;
    for _ in 1..TERMINALS_MAX {
        open(&session, None, cat).await.unwrap();
    }
    let taken = open(&session, Some("1"), cat).await.unwrap_err();
    assert!(matches!(taken, TerminalError::Exists { .. }), "{taken}");
    // The one that has ended makes room.
    open(&session, Some("last"), cat).await.unwrap();
    let full = open(&session, None, cat).await.unwrap_err();
    assert!(matches!(full, TerminalError::TooMany), "{full}");
    let names: Vec<_> = session.terminals().list();
    assert_eq!(names.len(), TERMINALS_MAX);
    close(&session, "1").await;
    let again = open(&session, None, cat).await.unwrap();
    assert_eq!(again.name(), "1");
    let mut viewer = again.view(None);
    session.close().await.unwrap();
    let over = end(&mut viewer).await;
    assert!(
        !matches!(over, TerminalEnd::Exit(ProgramExit::Code(_))),
        "{over:?}"
    );
    assert_eq!(place.leftovers(), [""; 0]);
}
