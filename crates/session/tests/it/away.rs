//! Sandboxes whose backend does not answer when a server starts.

use std::time::Duration;

use tokio::time::timeout;
use zareba_runtime::SandboxId;
use zareba_session::{NewSession, Session, SessionError, SessionState, event_json};

use crate::{
    backend::Backend,
    fixture::{Place, assert_all_answered, on, output, owner, request, run, statuses, text},
    recovery::in_another_life,
};

/// It is asked for again within seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for what is recorded next, and returns the word of the note that it is.
async fn next_note(session: &Session, from: u64) -> String {
    let next = session.events(from).next().await.unwrap();
    next.payload["note"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_sandbox_whose_backend_is_only_down_is_not_lost() {
    let place = Place::new();
    let id = place.id("kept");
    let new = NewSession {
        id: Some(id.clone()),
        ..on("local")
    };
    in_another_life(&place, async |sessions| {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "A=kept").await;
    })
    .await;

    let (backend, options) = Backend::new(&place);
    backend.set_away(true);
    let (sessions, recovery) = place.recover_with(options).await;
    assert_eq!((recovery.found, recovery.lost), (1, 0));
    let session = sessions.get(&id).await.unwrap();
    let error = session.run(request(run("true"))).await.unwrap_err();
    assert!(matches!(error, SessionError::Away { .. }), "{error}");
    assert_eq!(session.info().state, SessionState::Ready);
    assert!(session.close().await.is_err());
    let from = session.info().next_event;
    backend.set_away(false);
    let noted = timeout(PATIENCE, next_note(&session, from)).await;
    assert_eq!(noted.unwrap(), "recovered");
    assert_eq!(output(&session, "echo $A").await, "kept");
    sessions.remove(&id).await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_sandbox_that_went_while_its_backend_was_down_is_lost() {
    let place = Place::new();
    let id = place.id("gone");
    let new = NewSession {
        id: Some(id.clone()),
        ..on("local")
    };
    let under_way = in_another_life(&place, async |sessions| {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        let under_way = session.submit(request(run("sleep 1000"))).await;
        under_way.unwrap().sequence
    })
    .await;

    let (backend, options) = Backend::new(&place);
    backend.set_away(true);
    let (sessions, recovery) = place.recover_with(options).await;
    assert_eq!((recovery.found, recovery.in_doubt), (1, 1));
    let session = sessions.get(&id).await.unwrap();
    assert_eq!(session.info().state, SessionState::Ready);
    let sandbox = SandboxId::new(id.as_str()).unwrap();
    place.options().runtimes["local"]
        .destroy(&sandbox)
        .await
        .unwrap();
    backend.set_away(false);
    // Whoever waited for the action hears of it, and nothing more is run.
    let answer = timeout(PATIENCE, session.answer(under_way)).await;
    let answer = event_json(&answer.unwrap().unwrap());
    assert_eq!(answer["extras"]["error_id"], "disconnected");
    assert!(text(&answer).contains("sandbox was lost"), "{answer}");
    let mut events = session.events(session.info().next_event);
    while session.info().state != SessionState::Lost {
        timeout(PATIENCE, events.next()).await.unwrap().unwrap();
    }
    let refused = session.run(request(run("true"))).await.unwrap_err();
    assert!(matches!(refused, SessionError::State { .. }), "{refused}");
    let told = statuses(&session).await;
    let last = told.last().map(String::as_str);
    assert_eq!(last, Some("STATUS$ERROR_RUNTIME_DISCONNECTED"));
    assert_all_answered(&session, 1).await;
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}
