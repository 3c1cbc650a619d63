//! What is tried again, what is continued, and what is waited for no longer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use zareba_image::registry::PullError;

use crate::{
    server::{Answer, Seen, Server},
    shelf::{Built, Dialect, Shelf, blob_path, digest, first_byte},
    workbench::{ClosedPort, Workbench},
};

/// Long enough to come in several pieces.
fn layer() -> Vec<u8> {
    (0..1_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect()
}

fn shelf() -> Shelf {
    Shelf::of(&Built::new(Dialect::Oci, &[&layer()]))
}

fn is_layer(seen: &Seen) -> bool {
    seen.target == blob_path(&digest(&layer()))
}

fn requests_for_the_layer(server: &Server) -> Vec<Seen> {
    server.seen().into_iter().filter(is_layer).collect()
}

#[tokio::test]
async fn a_busy_registry_is_asked_again() {
    for status in [429, 500, 502, 503, 504] {
        let server = Server::start(shelf(), move |seen| {
            (seen.before < 2).then(|| Answer::status(status))
        })
        .await;
        Workbench::new().pull(&server).await.unwrap();
        assert_eq!(server.seen().len(), 9, "three things, three times each");
    }
}

#[tokio::test]
async fn a_registry_that_stays_busy_is_left_alone() {
    let server = Server::start(shelf(), |_| Some(Answer::status(503))).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(
        matches!(error, PullError::Busy { status: 503, .. }),
        "{error}"
    );
    assert!(error.is_temporary());
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_registry_that_says_when_is_asked_then() {
    let server = Server::start(shelf(), |seen| {
        let answer = || Answer::status(429).header("retry-after", "1");
        (seen.is_manifest() && seen.before == 0).then(answer)
    })
    .await;
    let begun = Instant::now();
    Workbench::new().pull(&server).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_registry_that_wants_too_long_a_pause_is_not_waited_for() {
    let server = Server::start(shelf(), |_| {
        Some(Answer::status(429).header("retry-after", "3600"))
    })
    .await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(error.to_string().contains("3600s"), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_layer_is_continued_where_the_connection_broke() {
    let server = Server::start(shelf(), |seen| {
        let answer = || Answer::ok(layer()).cut_after(400_000);
        (is_layer(seen) && seen.before == 0).then(answer)
    })
    .await;
    let mut workbench = Workbench::new();
    workbench.pull(&server).await.unwrap();
    assert_eq!(workbench.blob(&digest(&layer())), layer());
    let requests = requests_for_the_layer(&server);
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].range, None);
    let first = first_byte(requests[1].range.as_deref().unwrap());
    assert!((1..=400_000).contains(&first), "{first}");
}

#[tokio::test]
async fn a_server_that_begins_again_is_heard_from_where_we_were() {
    let server = Server::start(shelf(), |seen| match (is_layer(seen), seen.before) {
        (true, 0) => Some(Answer::ok(layer()).cut_after(400_000)),
        (true, _) => Some(Answer::ok(layer())),
        _ => None,
    })
    .await;
    let mut workbench = Workbench::new();
    workbench.pull(&server).await.unwrap();
    assert_eq!(workbench.blob(&digest(&layer())), layer());
}

#[tokio::test]
async fn a_continuation_that_was_not_asked_for_is_refused() {
    for (range, body) in [
        ("bytes 0-999999/1000000", layer()),
        ("bytes 999999-999999/1000000", vec![0]),
        ("nonsense", vec![0]),
    ] {
        let server = Server::start(shelf(), move |seen| match (is_layer(seen), seen.before) {
            (true, 0) => Some(Answer::ok(layer()).cut_after(400_000)),
            (true, _) => Some(
                Answer::ok(body.clone())
                    .with_status(206)
                    .header("content-range", range),
            ),
            _ => None,
        })
        .await;
        let error = Workbench::new().pull(&server).await.unwrap_err();
        assert!(
            matches!(error, PullError::InvalidDocument { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_continuation_with_other_content_is_found_out() {
    let server = Server::start(shelf(), |seen| match (is_layer(seen), &seen.range) {
        (true, None) => Some(Answer::ok(layer()).cut_after(400_000)),
        (true, Some(range)) => {
            let first = first_byte(range);
            let range = format!("bytes {first}-999999/1000000");
            let wrong = vec![0; 1_000_000 - first];
            Some(
                Answer::ok(wrong)
                    .with_status(206)
                    .header("content-range", &range),
            )
        }
        _ => None,
    })
    .await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::DigestMismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_registry_that_falls_silent_is_given_up() {
    let server = Server::start(shelf(), |seen| {
        is_layer(seen).then(|| Answer::ok(layer()).stalled_after(0))
    })
    .await;
    let mut workbench = Workbench::new();
    workbench.options.patience.idle = Duration::from_millis(400);
    let error = workbench.pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Interrupted { .. }), "{error}");
    assert_eq!(requests_for_the_layer(&server).len(), 3);
}

#[tokio::test]
async fn everything_together_has_a_time_limit() {
    let server = Server::start(shelf(), |seen| {
        is_layer(seen).then(|| Answer::ok(layer()).stalled_after(10))
    })
    .await;
    let mut workbench = Workbench::new();
    workbench.options.patience.overall = Duration::from_millis(200);
    let error = workbench.pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::TooSlow { .. }), "{error}");
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_said_to_be_unreachable() {
    let closed = ClosedPort::new();
    let nobody = closed.address();
    let name = format!("{nobody}/team/tool:1");
    let error = Workbench::new().pull_name(&name).await.unwrap_err();
    assert!(matches!(error, PullError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&nobody.to_string()), "{error}");
}

#[tokio::test]
async fn no_more_than_three_layers_come_at_once() {
    let layers: Vec<Vec<u8>> = (0..8).map(|number| vec![number; 1000]).collect();
    let layers: Vec<&[u8]> = layers.iter().map(Vec::as_slice).collect();
    let built = Built::new(Dialect::Oci, &layers);
    let configuration = digest(&built.configuration);
    let count = Arc::new(AtomicUsize::new(0));
    let reached = Arc::new(Notify::new());
    let (counter, notify) = (Arc::clone(&count), Arc::clone(&reached));
    let server = Server::start(Shelf::of(&built), move |seen| {
        if !seen.is_blob() || seen.target.ends_with(&configuration) {
            return None;
        }
        if counter.fetch_add(1, Ordering::SeqCst) == 2 {
            notify.notify_one();
        }
        Some(Answer::ok([0; 1000]).stalled_after(0))
    })
    .await;
    let mut workbench = Workbench::new();
    // With three on their way, a fourth would come in no time.
    let grace = async {
        reached.notified().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    tokio::select! {
        pulled = workbench.pull(&server) => panic!("{pulled:?}"),
        () = grace => {}
    }
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_pull_that_is_dropped_leaves_no_layout_and_nothing_unfinished() {
    let reached = Arc::new(Notify::new());
    let notify = Arc::clone(&reached);
    let server = Server::start(shelf(), move |seen| {
        is_layer(seen).then(|| {
            notify.notify_one();
            Answer::ok(layer()).stalled_after(400_000)
        })
    })
    .await;
    let mut workbench = Workbench::new();
    tokio::select! {
        pulled = workbench.pull(&server) => panic!("{pulled:?}"),
        () = reached.notified() => {}
    }
    assert!(!workbench.layout().join("index.json").exists());
    // Manifest and configuration; the file that was being written went with the pull.
    assert_eq!(workbench.blobs().len(), 2);
}
