//! Records as they come.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use serde_json::json;
use zareba_eventlog::{EventLog, LogError, Subscription};

use crate::support::*;

pub(crate) async fn el_7_a_subscription_sees_each_record_once_in_order(log: &EventLog) {
    const WRITERS: u64 = 8;
    const EACH: u64 = 50;
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let log = log.clone();
            tokio::spawn(async move { append_some(&log, &session("s"), EACH).await })
        })
        .collect();
    let readers: Vec<_> = [0, 1, 63, 64, 200]
        .into_iter()
        .map(|from| {
            let mut subscription = log.subscribe(session("s"), from);
            tokio::spawn(async move {
                for expected in from..WRITERS * EACH {
                    assert_eq!(subscription.cursor(), expected);
                    let record = subscription.next().await.unwrap();
                    assert_eq!(record.sequence, expected);
                }
            })
        })
        .collect();
    for task in writers.into_iter().chain(readers) {
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, task)
            .await
            .expect("no end")
            .unwrap();
    }
}

pub(crate) async fn a_subscription_from_any_number_waits_for_what_is_not_there(log: &EventLog) {
    let session = session("s");
    let mut ahead = log.subscribe(session.clone(), 3);
    let waits = tokio::spawn(async move { ahead.next().await.unwrap() });
    append_some(log, &session, 5).await;
    assert_eq!(waits.await.unwrap().sequence, 3);
    let end = log.store().end(session.clone()).await.unwrap();
    assert_eq!(*end.borrow(), 5);
}

pub(crate) async fn a_dropped_wait_loses_nothing(log: &EventLog) {
    let session = session("s");
    let mut subscription = log.subscribe(session.clone(), 0);
    for n in 0..20 {
        let mut polls = 0;
        {
            let mut next = pin!(subscription.next());
            poll_fn(|context| {
                polls += 1;
                let is_there = next.as_mut().poll(context).is_ready();
                assert!(!is_there, "nothing was written yet");
                Poll::Ready(())
            })
            .await;
        }
        append(log, &session, action(json!({ "n": n }))).await;
        let record = subscription.next().await.unwrap();
        assert_eq!((record.sequence, polls), (n, 1));
    }
}

pub(crate) async fn removal_and_close_end_subscriptions(log: &EventLog) {
    let removed = waiting_for_more(log, "removed").await;
    let closed = waiting_for_more(log, "closed").await;
    let mut waiting = [removed, closed].map(|mut subscription| {
        let next = async move { subscription.next().await };
        Some(tokio::spawn(next))
    });
    let mut outcome = async |which: usize| {
        let outcome = waiting[which].take().unwrap().await.unwrap();
        assert!(matches!(outcome, Err(LogError::Closed)), "{outcome:?}");
    };
    log.store().remove(session("removed")).await.unwrap();
    outcome(0).await;
    log.store().close().await.unwrap();
    outcome(1).await;
}

pub(crate) async fn sn_4_a_subscription_does_not_read_on_in_another_log_of_the_same_name(
    log: &EventLog,
) {
    let mut stalled = waiting_for_more(log, "s").await;
    append_some(log, &session("s"), 2).await;
    log.store().remove(session("s")).await.unwrap();
    append_some(log, &session("s"), 3).await;
    let outcome = stalled.next().await;
    assert!(matches!(outcome, Err(LogError::Closed)), "{outcome:?}");
}

/// A subscription that has seen all there is.
async fn waiting_for_more(log: &EventLog, name: &str) -> Subscription {
    append_some(log, &session(name), 1).await;
    let mut subscription = log.subscribe(session(name), 0);
    subscription.next().await.unwrap();
    subscription
}
