//! Limits and names that hold whoever asks, and however many do at once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use zareba_eventlog::{Durability, EventLog};
use zareba_session::{
    Idle, NewSession, Owner, SessionError, SessionLimits, SessionState, Sessions, SessionsOptions,
};

use crate::fixture::{Place, client, on, output, owner, records, request, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_never_waits_for_those_who_wait_for_it() {
    let place = Place::new();
    let path = place.path("events.db");
    let log = EventLog::open_file(&path, Durability::Disk).await.unwrap();
    let (sessions, _) = Sessions::start(log, place.options()).await.unwrap();
    for round in 0..12 {
        let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
        let users: Vec<_> = (0..16)
            .map(|user| {
                let session = Arc::clone(&session);
                tokio::spawn(async move {
                    while session.info().state == SessionState::Ready {
                        if user % 2 == 0 {
                            let _ = session.run(request(run("true"))).await;
                        } else {
                            let _ = session.access(client()).await;
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        output(&session, "true").await;
        let ended = async {
            let (one, two) = tokio::join!(session.close(), session.close());
            one.and(two).unwrap();
            for user in users {
                user.await.unwrap();
            }
        };
        let limit = Duration::from_secs(30);
        let ended = tokio::time::timeout(limit, ended).await;
        ended.unwrap_or_else(|_| panic!("round {round} hangs"));
        let closed = records(&session).await;
        let closed = closed.iter().filter(|record| {
            record.payload.get("note").and_then(|note| note.as_str()) == Some("closed")
        });
        assert_eq!(closed.count(), 1);
    }
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn sn_4_a_name_that_was_removed_is_never_given_away_again() {
    let place = Place::new();
    let sessions = place.serve().await;
    let named = || NewSession {
        id: Some(place.id("ci")),
        ..on("cli")
    };
    sessions.create_ready(named(), owner()).await.unwrap();
    let id = place.id("ci");
    let removals = join_all((0..4).map(|_| sessions.remove(&id))).await;
    assert!(removals.iter().any(Result::is_ok), "{removals:?}");
    for error in removals.into_iter().filter_map(Result::err) {
        assert!(matches!(error, SessionError::NotFound { .. }), "{error}");
    }
    for owner in [owner(), Owner("other".to_owned())] {
        let again = sessions.create(named(), owner).await.unwrap_err();
        assert!(matches!(again, SessionError::NameRemoved { .. }), "{again}");
    }
    assert!(sessions.get(&id).await.is_err());
    assert!(sessions.remove(&id).await.is_err());
    assert_eq!(sessions.list(None, None, 10).await, []);
    assert_eq!(sessions.log().store().sessions().await.unwrap(), []);
    assert_eq!(sessions.counts(), BTreeMap::new());
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_quota_holds_however_many_come_at_once_and_all_are_counted() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = || NewSession {
        quota: Some(3),
        ..on("cli")
    };
    let made = join_all((0..12).map(|_| sessions.create_ready(new(), owner()))).await;
    let (made, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), sessions.open_count(&owner())), (3, 3));
    for error in refused.into_iter().filter_map(Result::err) {
        let expected = "you have 3 sessions, which is the limit; close one first";
        assert_eq!(error.to_string(), expected);
    }
    let first = made.into_iter().flatten().next().unwrap();
    first.close().await.unwrap();
    let other = Owner("other".to_owned());
    assert_eq!(sessions.open_count(&other), 0);
    sessions.create_ready(new(), other.clone()).await.unwrap();
    let counts = [(SessionState::Ready, 3), (SessionState::Closed, 1)];
    assert_eq!(sessions.counts(), BTreeMap::from(counts));
    sessions.shut_down(Duration::from_secs(5)).await;
    sessions.log().store().close().await.unwrap();

    // Another server counts what has ended before it, too. `cli` ends with its server.
    let sessions = place.serve().await;
    let counts = [(SessionState::Lost, 3), (SessionState::Closed, 1)];
    assert_eq!(sessions.counts(), BTreeMap::from(counts));
    assert_eq!(sessions.list(Some(&other), None, 10).await.len(), 1);
    for info in sessions.list(None, None, 10).await {
        sessions.remove(&info.id).await.unwrap();
    }
    assert_eq!(sessions.counts(), BTreeMap::new());
}

#[tokio::test]
async fn actions_that_wait_for_their_turn_count_too() {
    let place = Place::new();
    let sessions = place.serve().await;
    let session = sessions.create_ready(on("cli"), owner()).await.unwrap();
    output(&session, "mkfifo go").await;
    let first = session.submit(request(run("cat go"))).await.unwrap();
    let more = join_all((0..220).map(|_| session.submit(request(run("true")))));
    let outcomes = more.await;
    let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 21);
    for error in refused {
        assert!(matches!(error, SessionError::TooMany { .. }), "{error}");
    }
    let go = std::path::PathBuf::from(session.info().workspace).join("go");
    let open = tokio::task::spawn_blocking(move || std::fs::write(go, "went"));
    open.await.unwrap().unwrap();
    session.answer(first.sequence).await.unwrap();
    session.close().await.unwrap();
}

#[tokio::test]
async fn what_makes_no_sense_leaves_no_session() {
    let place = Place::new();
    let sessions = place.serve().await;
    let large = ("LARGE".to_owned(), "x".repeat(200_000));
    for wrong in [
        NewSession {
            no_change_timeout: Some(Duration::ZERO),
            ..on("cli")
        },
        NewSession {
            environment: vec![large],
            ..on("cli")
        },
        NewSession {
            labels: [("l".to_owned(), "x".repeat(5000))].into(),
            ..on("cli")
        },
    ] {
        let error = sessions.create(wrong, owner()).await.unwrap_err();
        assert!(matches!(error, SessionError::Invalid { .. }), "{error}");
    }
    assert_eq!(sessions.counts(), BTreeMap::new());
    assert_eq!(sessions.list(None, None, 10).await, []);
}

#[tokio::test]
async fn g_3_a_client_cannot_lengthen_what_the_operator_set() {
    let place = Place::new();
    let options = SessionsOptions {
        life_max: Some(Duration::from_secs(3600)),
        when_idle: Idle::Close,
        idle_timeout: Duration::from_millis(300),
        ..place.options()
    };
    let sessions = place.serve_with(options).await;
    let usual = SessionLimits::default();
    for (limit, limits) in [
        (
            "idle_timeout",
            SessionLimits {
                idle_timeout: Some(Duration::from_secs(3600)),
                ..usual
            },
        ),
        (
            "when_idle",
            SessionLimits {
                when_idle: Some(Idle::Stay),
                ..usual
            },
        ),
        (
            "life_max",
            SessionLimits {
                life_max: Some(Duration::from_secs(36_000)),
                ..usual
            },
        ),
    ] {
        let new = NewSession {
            limits,
            ..on("cli")
        };
        let refused = sessions.create(new, owner()).await.unwrap_err();
        let SessionError::LimitNotPermitted { limit: named, .. } = refused else {
            panic!("{limit}: {refused}");
        };
        assert_eq!(named, limit);
    }
    // A key's life that is longer than the settings allow was not asked for, and is held to them.
    let new = NewSession {
        life_max: Some(Duration::from_secs(36_000)),
        ..on("cli")
    };
    let session = sessions.create_ready(new, owner()).await.unwrap();
    let mut events = session.events(0);
    let closed = async {
        while session.info().state != SessionState::Closed {
            events.next().await.unwrap();
        }
    };
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, closed).await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}
