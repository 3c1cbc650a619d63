//! A name is used once, and its result is there for everybody who asks with it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::*;

fn told(text: &str) -> ObservationEvent {
    error(text)
}

fn content(event: &ObservationEvent) -> &str {
    &event.observation.content
}

#[tokio::test]
async fn a_second_request_waits_for_the_first_and_a_third_gets_the_kept_result() {
    let (once, count, go) = (
        Arc::new(Once::default()),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Notify::new()),
    );
    let work = || {
        let (count, go) = (Arc::clone(&count), Arc::clone(&go));
        async move {
            let number = count.fetch_add(1, Ordering::SeqCst);
            go.notified().await;
            told(&format!("run {number}"))
        }
    };
    let mut first = Box::pin(once.run("a".to_owned(), work()));
    let mut second = Box::pin(once.run("a".to_owned(), work()));
    let neither = tokio::select! {
        biased;
        _ = &mut first => false,
        _ = &mut second => false,
        () = std::future::ready(()) => true,
    };
    assert!(neither);
    // Whoever asked first is gone; what was asked for is not.
    drop(first);
    go.notify_one();
    assert_eq!(content(&second.await), "run 0");
    assert_eq!(content(&once.run("a".to_owned(), work()).await), "run 0");
    go.notify_one();
    assert_eq!(content(&once.run("b".to_owned(), work()).await), "run 1");
}

#[tokio::test]
async fn a_fault_is_a_result_too() {
    let once = Once::default();
    let failed = once
        .run("a".to_owned(), async { panic!("on purpose") })
        .await;
    assert_eq!(content(&failed), FAULT);
    let again = once.run("a".to_owned(), async { told("second") }).await;
    assert_eq!(content(&again), FAULT);
}

#[tokio::test]
async fn only_so_many_run_at_once() {
    let once = Arc::new(Once::default());
    let mut waiting = Vec::new();
    for number in 0..RUNNING_MAX {
        let answer = once.enter(number.to_string(), Arc::default(), std::future::pending());
        waiting.push(answer.unwrap());
    }
    let refused = once.run("more".to_owned(), async { told("ran") }).await;
    assert!(content(&refused).contains("NOT run"), "{refused:?}");
    // Dropping it stops them, and those who wait are told.
    drop(once);
    for mut answer in waiting {
        let answer = answer.wait_for(Option::is_some).await.unwrap().clone();
        assert_eq!(content(&answer.unwrap()), FAULT);
    }
}

#[tokio::test]
async fn results_are_kept_within_a_number() {
    let once = Once::default();
    for number in 0..=RESULTS_MAX {
        once.run(number.to_string(), async { told("first") }).await;
    }
    let newest = RESULTS_MAX.to_string();
    assert_eq!(
        content(&once.run(newest, async { told("second") }).await),
        "first"
    );
    assert_eq!(
        content(&once.run("0".to_owned(), async { told("second") }).await),
        "second"
    );
    let ledger = lock(&once.ledger);
    assert_eq!(
        (
            ledger.order.len(),
            ledger.results.len(),
            ledger.running.len()
        ),
        (RESULTS_MAX, RESULTS_MAX, 0)
    );
}

#[tokio::test]
async fn results_are_kept_within_a_size_and_forgotten_ones_do_not_run_again() {
    let once = Once::default();
    let large = || told(&"x".repeat(RESULT_BYTES_MAX / 4));
    for name in ["a", "b", "c", "d", "e"] {
        once.run(name.to_owned(), async move { large() }).await;
    }
    assert!(lock(&once.ledger).bytes <= RESULT_BYTES_MAX);
    for name in ["a", "b"] {
        let again = once.run(name.to_owned(), async { told("second") }).await;
        assert_eq!(content(&again), FORGOTTEN, "{name}");
    }
    let newest = once.run("e".to_owned(), async { told("second") }).await;
    assert_eq!(newest, large());
}
