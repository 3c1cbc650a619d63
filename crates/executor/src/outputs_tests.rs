//! What readers of outputs are told.

use std::time::Duration;

use super::*;

fn asked(action: &str, from: u64, wait: Duration) -> OutputRequest {
    OutputRequest {
        action: action.to_owned(),
        from,
        wait,
    }
}

#[tokio::test]
async fn an_action_that_nobody_has_begun_is_unknown_once_the_wait_is_over() {
    let outputs = Outputs::default();
    let piece = outputs.read(&asked("a/1", 7, Duration::ZERO)).await;
    assert_eq!(piece, OutputPiece::empty(7, OutputState::Unknown));
}

#[tokio::test]
async fn a_reader_that_comes_first_waits_for_the_action_to_begin_and_to_end() {
    let outputs = Outputs::default();
    let asked = asked("a/1", 0, Duration::from_secs(20));
    let (piece, ()) = tokio::join!(outputs.read(&asked), async {
        drop(outputs.open("a/1"));
    });
    assert_eq!(piece, OutputPiece::empty(0, OutputState::Ended));
}

#[test]
fn only_so_many_ended_outputs_are_kept() {
    let outputs = Outputs::default();
    for number in 0..=ENDED_MAX {
        drop(outputs.open(&format!("a/{number}")));
    }
    let known = outputs.lock();
    assert_eq!(
        (known.outputs.len(), known.outputs.contains_key("a/0")),
        (ENDED_MAX, false)
    );
}
