//! What a guard denies does not run, and is told and recorded.

use std::sync::Arc;

use zareba_eventlog::EntryKind;
use zareba_protocol::{Action, ActionEvent, SecurityRisk};
use zareba_session::{Guard, SessionInfo, SessionsOptions, Verdict};
use zareba_wire::BoxFuture;

use crate::fixture::{Place, assert_all_answered, observe, on, output, owner, records, run, text};

/// Denies `rm`, and breaks down over `panic`.
struct NoRemoving;

impl Guard for NoRemoving {
    fn assess<'a>(
        &'a self,
        action: &'a ActionEvent,
        _session: &'a SessionInfo,
    ) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            match &action.action {
                Action::Run(run) if run.command == "panic" => panic!("on purpose"),
                Action::Run(run) if run.command.starts_with("rm ") => Verdict::Deny {
                    risk: SecurityRisk::High,
                    reason: "it removes files".to_owned(),
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
        guard: Arc::new(NoRemoving),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, "touch kept").await;
    let denied = observe(&session, run("rm kept")).await;
    assert_eq!(denied["extras"]["error_id"], "guard_denied");
    assert_eq!(text(&denied), "ERROR: guard_denied: it removes files");
    assert_eq!(output(&session, "ls").await, "kept");
    let all = records(&session).await;
    let note = all
        .iter()
        .find(|record| record.kind == EntryKind::Note && record.payload["note"] == "guard")
        .unwrap();
    assert_eq!(note.cause, Some(denied["cause"].as_u64().unwrap()));
    assert_eq!(note.payload["risk"], 2);

    let fault = observe(&session, run("panic")).await;
    assert_eq!(fault["extras"]["error_id"], "internal");
    assert_eq!(output(&session, "echo still").await, "still");
    assert_all_answered(&session, 5).await;
    session.close().await.unwrap();
}
