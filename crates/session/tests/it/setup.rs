//! What a workspace brings for its own setting up.

use std::fs;

use zareba_eventlog::EntryKind;
use zareba_session::{NewSession, Setup};

use crate::fixture::{Place, assert_all_answered, on, output, owner, records, statuses};

#[tokio::test]
async fn the_setup_script_is_sourced_and_recorded_and_the_hook_installed() {
    let place = Place::new();
    let workspace = place.path("workspace");
    fs::create_dir_all(workspace.join(".openhands")).unwrap();
    fs::create_dir_all(workspace.join(".git/hooks")).unwrap();
    fs::write(workspace.join(".git/hooks/pre-commit"), "theirs").unwrap();
    fs::write(
        workspace.join(".openhands/setup.sh"),
        "READY=yes\necho setting up\n",
    )
    .unwrap();
    fs::write(
        workspace.join(".openhands/pre-commit.sh"),
        "echo checked; exit 7\n",
    )
    .unwrap();
    let sessions = place.serve().await;
    let new = || NewSession {
        workspace: Some(workspace.clone()),
        ..on("cli")
    };
    let session = sessions.create_ready(new(), owner()).await.unwrap();
    let expected = [
        "STATUS$STARTING_RUNTIME",
        "STATUS$RUNTIME_STARTED",
        "STATUS$READY",
        "STATUS$SETTING_UP_WORKSPACE",
        "STATUS$SETTING_UP_GIT_HOOKS",
        "STATUS$READY",
    ];
    assert_eq!(statuses(&session).await, expected);
    let all = records(&session).await;
    let action = all.iter().find(|it| it.kind == EntryKind::Action).unwrap();
    assert_eq!(action.payload["source"], "environment");
    assert_eq!(
        action.payload["args"]["command"],
        "chmod +x .openhands/setup.sh && source .openhands/setup.sh"
    );
    let observation = all
        .iter()
        .find(|it| it.kind == EntryKind::Observation)
        .unwrap();
    assert_eq!(observation.payload["content"], "setting up");
    assert_eq!(output(&session, "echo $READY").await, "yes");
    assert_eq!(
        output(&session, ".git/hooks/pre-commit; echo $?").await,
        "checked\n7"
    );
    assert_all_answered(&session, 4).await;
    session.close().await.unwrap();
    // A second session finds its own hook and does not take it for somebody else's.
    let again = sessions.create_ready(new(), owner()).await.unwrap();
    again.close().await.unwrap();
    let kept = fs::read_to_string(workspace.join(".git/hooks/pre-commit.local")).unwrap();
    assert_eq!(kept, "theirs");
}

#[tokio::test]
async fn nothing_is_run_when_nothing_is_wanted_or_there() {
    let place = Place::new();
    let workspace = place.path("workspace");
    fs::create_dir_all(workspace.join(".openhands")).unwrap();
    fs::write(workspace.join(".openhands/setup.sh"), "touch ran\n").unwrap();
    let sessions = place.serve().await;
    let unwanted = NewSession {
        workspace: Some(workspace.clone()),
        setup: Setup::Nothing,
        ..on("cli")
    };
    for new in [unwanted, on("cli")] {
        let session = sessions.create_ready(new, owner()).await.unwrap();
        assert_eq!(output(&session, "ls").await, "");
        assert_all_answered(&session, 1).await;
        session.close().await.unwrap();
    }
}
