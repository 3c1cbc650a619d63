//! Sessions that nobody uses, or that live too long.

use std::{sync::Arc, time::Duration};

use tokio::{io::AsyncReadExt as _, net::unix::pipe, time::timeout};
use zareba_runtime::Sandbox as _;
use zareba_session::{
    Idle, Life, NewSession, Session, SessionError, SessionLimits, SessionState, SessionUpdate,
    SessionsOptions,
};

use crate::fixture::{
    Place, assert_all_answered, client, observe, on, output, owner, records, request, run, run_in,
    statuses,
};

fn limited(runtime: &str, limits: SessionLimits) -> NewSession {
    NewSession {
        limits,
        ..on(runtime)
    }
}

fn idle(millis: u64, when_idle: Idle) -> SessionLimits {
    SessionLimits {
        idle_timeout: Some(Duration::from_millis(millis)),
        when_idle: Some(when_idle),
        life_max: None,
    }
}

/// Waits until the session is so; whatever changes it records something.
async fn becomes(session: &Arc<Session>, state: SessionState) {
    let mut events = session.events(0);
    while session.info().state != state {
        events.next().await.unwrap();
    }
}

#[tokio::test]
async fn an_idle_session_is_paused_and_wakes_for_the_next_action_sn_3() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = limited("native", idle(300, Idle::Pause));
    let session = sessions.create_ready(new, owner()).await.unwrap();
    output(&session, "A=kept").await;
    for _ in 0..2 {
        becomes(&session, SessionState::Paused).await;
        assert_eq!(output(&session, "echo $A").await, "kept");
        assert_eq!(session.info().state, SessionState::Ready);
    }
    becomes(&session, SessionState::Paused).await;
    let sandbox = session.access(client()).await.unwrap();
    assert!(sandbox.list_files(None).await.is_ok());
    let told = statuses(&session).await;
    let (stopped, ready) = ("STATUS$STOPPED".to_owned(), "STATUS$READY".to_owned());
    let round = [stopped.clone(), ready.clone()];
    let expected = [vec![ready], round.to_vec(), round.to_vec(), round.to_vec()].concat();
    assert!(told.join(" ").contains(&expected.join(" ")), "{told:?}");
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

/// What runs on though its action has ended is work, and is not frozen in the middle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_in_which_a_command_still_runs_is_not_paused() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = limited("native", idle(300, Idle::Pause));
    let session = sessions.create_ready(new, owner()).await.unwrap();
    for (shell, command) in [
        ("one", "sleep 4; touch slept"),
        ("two", "timeout 4 sh -c 'while :; do :; done'; touch burnt"),
    ] {
        let late = observe(&session, run_in(shell, command).with_timeout(0.5)).await;
        assert_eq!(late["extras"]["metadata"]["exit_code"], -1, "{late}");
    }
    let background = "(timeout 4 sh -c 'while :; do :; done'; touch done) & true";
    observe(&session, run_in("three", background)).await;
    becomes(&session, SessionState::Paused).await;
    // All of it came to its end before.
    assert_eq!(output(&session, "ls").await, "burnt  done  slept");
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn pausing_and_resuming_may_alternate_quickly_and_paused_ones_can_be_closed_sn_3() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("native"), owner()).await.unwrap();
    let acting = async {
        for number in 0..20 {
            assert_eq!(
                output(&session, &format!("echo {number}")).await,
                number.to_string()
            );
        }
    };
    let alternating = async {
        for _ in 0..20 {
            session.pause().await.unwrap();
            session.pause().await.unwrap();
            session.resume().await.unwrap();
            session.resume().await.unwrap();
        }
    };
    tokio::join!(acting, alternating);
    assert_all_answered(&session, 20).await;
    session.pause().await.unwrap();
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_runtime_that_cannot_pause_says_so_and_goes_on() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = limited("cli", idle(1, Idle::Pause));
    let session = sessions.create_ready(new, owner()).await.unwrap();
    let error = session.pause().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the runtime `cli` cannot pause a sandbox"
    );
    assert_eq!(output(&session, "sleep 0.1; echo on").await, "on");
    assert_eq!(session.info().state, SessionState::Ready);
    session.close().await.unwrap();
}

#[tokio::test]
async fn an_idle_session_is_closed_but_not_while_something_runs() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = limited("cli", idle(200, Idle::Close));
    let session = sessions.create_ready(new, owner()).await.unwrap();
    assert_eq!(output(&session, "sleep 0.6; echo done").await, "done");
    becomes(&session, SessionState::Closed).await;
    let notes = records(&session).await;
    assert!(notes.iter().any(|record| {
        record.payload.get("note") == Some(&"closed: it was idle for too long".into())
    }));
    assert_eq!(place.leftovers(), [""; 0]);
}

/// Neither where the backend tells what goes on inside, nor where it cannot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_session_is_not_closed_while_a_build_outlives_its_timeout() {
    for runtime in ["native", "cli"] {
        let place = Place::new();
        let sessions = place.serve().await;
        let workspace = place.path("workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        let new = NewSession {
            workspace: Some(workspace.clone()),
            ..limited(runtime, idle(300, Idle::Close))
        };
        let session = sessions.create_ready(new, owner()).await.unwrap();
        output(&session, "mkfifo end").await;
        let mut end = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(workspace.join("end"))
            .unwrap();
        let build = run("sleep 3; echo x >end").with_timeout(0.5);
        let late = observe(&session, build).await;
        assert_eq!(late["extras"]["metadata"]["exit_code"], -1, "{late}");
        let built = timeout(Duration::from_secs(30), end.read_u8()).await;
        assert_eq!(
            built.expect("the build was killed").unwrap(),
            b'x',
            "{runtime}"
        );
        if runtime == "cli" {
            // Nothing but the next observation of the shell tells that it has ended.
            let told = observe(&session, run("")).await;
            assert_eq!(told["extras"]["metadata"]["exit_code"], 0, "{told}");
        }
        becomes(&session, SessionState::Closed).await;
        assert_eq!(place.leftovers(), [""; 0]);
    }
}

#[tokio::test]
async fn a_session_ends_when_its_life_does_used_or_not() {
    let place = Place::new();
    let sessions = place.serve().await;
    let limits = SessionLimits {
        life_max: Some(Duration::from_millis(500)),
        ..SessionLimits::default()
    };
    let session = sessions
        .create_ready(limited("cli", limits), owner())
        .await
        .unwrap();
    let under_way = session.submit(request(run("sleep 1000"))).await.unwrap();
    let answer = session.answer(under_way.sequence).await.unwrap();
    assert_eq!(answer.payload["observation"], "error");
    becomes(&session, SessionState::Closed).await;
    assert_all_answered(&session, 1).await;
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_life_can_be_lengthened_and_shortened_and_the_log_says_by_whom() {
    let place = Place::new();
    let options = SessionsOptions {
        life_max: Some(Duration::from_secs(7200)),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let short = || {
        let limits = SessionLimits {
            life_max: Some(Duration::from_secs(5)),
            ..SessionLimits::default()
        };
        sessions.create_ready(limited("cli", limits), owner())
    };
    let life = |life| SessionUpdate {
        life: Some(life),
        ..SessionUpdate::default()
    };
    let hour = life(Life::FromStart(Duration::from_secs(3600)));
    let long = short().await.unwrap();
    let labels = [("task".to_owned(), "17".to_owned())];
    let update = SessionUpdate {
        labels: Some(labels.clone().into()),
        ..hour.clone()
    };
    long.update(update, &client()).await.unwrap();
    // One of the first length that is made later says when that length is over.
    becomes(&short().await.unwrap(), SessionState::Closed).await;
    let info = long.info();
    assert_eq!(info.state, SessionState::Ready);
    assert_eq!(info.limits.life_max, Some(Duration::from_secs(3600)));
    assert_eq!(info.labels, labels.into());
    let notes = records(&long).await;
    let changed = notes
        .iter()
        .find(|record| record.payload.get("note") == Some(&"changed".into()));
    let changed = &changed.unwrap().payload;
    assert_eq!(changed["limits"]["life_max"], 3600.0);
    assert_eq!(changed["labels"]["task"], "17");
    assert_eq!(changed["by"]["owner"], owner().0);

    let beyond = life(Life::FromNow(Duration::from_secs(7200)));
    let of_key = SessionUpdate {
        life_max: Some(Duration::from_secs(3599)),
        ..hour
    };
    for update in [beyond, of_key] {
        let refused = long.update(update, &client()).await.unwrap_err();
        assert!(
            matches!(
                refused,
                SessionError::LimitNotPermitted {
                    limit: "life_max",
                    ..
                }
            ),
            "{refused}"
        );
    }
    assert_eq!(long.info().limits.life_max, Some(Duration::from_secs(3600)));

    let now = life(Life::FromNow(Duration::from_millis(1)));
    long.update(now.clone(), &client()).await.unwrap();
    becomes(&long, SessionState::Closed).await;
    let ended = long.update(now, &client()).await.unwrap_err();
    assert!(matches!(ended, SessionError::State { .. }), "{ended}");
    assert_eq!(place.leftovers(), [""; 0]);
}
