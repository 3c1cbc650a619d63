//! What a guard denies does not run, and is told and recorded.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use zareba_eventlog::EntryKind;
use zareba_protocol::{Action, SecurityRisk};
use zareba_session::{Deed, DeedContext, Guard, SessionsOptions, Verdict};
use zareba_wire::BoxFuture;

use crate::fixture::{
    Place, assert_all_answered, client, observe, on, output, owner, records, request, run, text,
};

/// Denies `rm` and says to whom, breaks down over `panic`, and never answers to `hang`.
#[derive(Default)]
struct NoRemoving {
    hangs: Arc<Notify>,
}

impl Guard for NoRemoving {
    fn assess<'a>(&'a self, deed: &'a Deed, context: DeedContext<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let Deed::Action(action) = deed else {
                return Verdict::Allow;
            };
            let Action::Run(run) = &action.action else {
                return Verdict::Allow;
            };
            match run.command.as_str() {
                "panic" => panic!("on purpose"),
                "hang" => {
                    self.hangs.notify_one();
                    std::future::pending().await
                }
                command if command.starts_with("rm ") => Verdict::Deny {
                    risk: SecurityRisk::High,
                    reason: format!("no removals by {}", context.requester.surface.as_str()),
                },
                _ => Verdict::Allow,
            }
        })
    }
}

#[tokio::test]
async fn a_denied_action_does_not_run() {
    let place = Place::new();
    let options = SessionsOptions {
        guard: Arc::new(NoRemoving::default()),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, "touch kept").await;
    let denied = observe(&session, run("rm kept")).await;
    assert_eq!(denied["extras"]["error_id"], "guard_denied");
    assert_eq!(text(&denied), "ERROR: guard_denied: no removals by session");
    assert_eq!(output(&session, "ls").await, "kept");
    let all = records(&session).await;
    let note = all
        .iter()
        .find(|record| record.kind == EntryKind::Note && record.payload["note"] == "guard")
        .unwrap();
    assert_eq!(note.cause, Some(denied["cause"].as_u64().unwrap()));
    assert_eq!(note.payload["risk"], 2);

    let mut asked = request(run("rm kept"));
    asked.requester = Some(client());
    let record = session.run(asked).await.unwrap();
    let text = record.payload["content"].as_str();
    assert_eq!(text, Some("ERROR: guard_denied: no removals by api"));

    let fault = observe(&session, run("panic")).await;
    assert_eq!(fault["extras"]["error_id"], "guard_denied");
    let all = records(&session).await;
    let last = all.iter().rfind(|record| record.kind == EntryKind::Note);
    let reason = "the guard failed, and what it cannot judge is denied";
    assert_eq!(last.unwrap().payload["reason"], reason);
    assert_eq!(output(&session, "echo still").await, "still");
    assert_all_answered(&session, 6).await;
    session.close().await.unwrap();
}

#[tokio::test]
async fn a_guard_that_never_answers_denies_the_action_in_time() {
    let place = Place::new();
    let guard = NoRemoving::default();
    let hangs = Arc::clone(&guard.hangs);
    let options = SessionsOptions {
        guard: Arc::new(guard),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    let denied = tokio::spawn({
        let session = Arc::clone(&session);
        async move { observe(&session, run("hang")).await }
    });
    hangs.notified().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    let denied = denied.await.unwrap();
    assert_eq!(
        text(&denied),
        "ERROR: guard_denied: the guard did not answer in time"
    );
    session.close().await.unwrap();
}
