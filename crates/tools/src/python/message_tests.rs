//! What a worker sends is read as it was written, however it was cut, and nothing else gets
//! through.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// All messages of `bytes`, pushed in pieces of `cut` bytes, up to the first that is none.
fn cut_up(bytes: &[u8], cut: usize) -> (Vec<Reply>, bool) {
    let mut reader = ReplyReader::default();
    let mut replies = Vec::new();
    for piece in bytes.chunks(cut.max(1)) {
        reader.push(piece);
        loop {
            match reader.next() {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(_) => return (replies, false),
            }
        }
    }
    (replies, true)
}

fn done(id: u64, json: &str) -> (Value, Reply) {
    let text = json!({"done": {
        "id": id, "stdout": "o", "stderr": "", "truncated": false,
        "outcome": {"returned": {"json": json}},
    }});
    let reply = Reply::Done(Done {
        id,
        stdout: "o".to_owned(),
        stderr: String::new(),
        truncated: false,
        outcome: Outcome::Returned {
            json: json.to_owned(),
        },
    });
    (text, reply)
}

proptest! {
    #[test]
    fn messages_are_read_as_they_were_written(
        results in prop::collection::vec((any::<u64>(), ".{0,40}"), 0..6),
        cut in 1_usize..50,
    ) {
        let (texts, replies): (Vec<_>, Vec<_>) =
            results.iter().map(|(id, json)| done(*id, json)).unzip();
        let bytes: String = texts.iter().map(|text| format!("{text}\n")).collect();
        prop_assert_eq!(cut_up(bytes.as_bytes(), cut), (replies, true));
    }

    #[test]
    fn g_1_any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        cut in 1_usize..50,
    ) {
        let _ = cut_up(&bytes, cut);
    }

    #[test]
    fn g_1_where_bytes_are_cut_changes_nothing(
        bytes in r#"(\{"done":\{"id":[0-9]{1,22},"outcome":(\{"returned":\{"json":"[a-z\\"]{0,5}"\}\}|"cancelled"|[0-9"])\}\}|\[\[|[a-z]{0,5})\n{0,2}"#,
        cut in 1_usize..20,
    ) {
        prop_assert_eq!(cut_up(bytes.as_bytes(), cut), cut_up(bytes.as_bytes(), usize::MAX));
    }
}

#[test]
fn g_1_a_line_that_does_not_end_is_refused_and_not_kept() {
    let mut reader = ReplyReader::default();
    let piece = vec![b'x'; 1024 * 1024];
    let mut pushed = 0;
    let refused = loop {
        reader.push(&piece);
        pushed += piece.len();
        if let Err(error) = reader.next() {
            break error;
        }
        assert!(pushed < LINE_BYTES_MAX + 2 * piece.len());
    };
    assert!(matches!(refused, Nonsense::TooLong));
}

#[test]
fn a_request_is_one_line() {
    let kwargs = json!({"text": "a\nb"}).as_object().cloned().unwrap();
    let request = Request::Call {
        id: 7,
        tool: "t",
        args: &[json!(1)],
        kwargs: &kwargs,
        coerce: true,
    };
    assert_eq!(
        request.line().unwrap(),
        "{\"call\":{\"id\":7,\"tool\":\"t\",\"args\":[1],\"kwargs\":{\"text\":\"a\\nb\"},\"coerce\":true}}\n"
    );
}
