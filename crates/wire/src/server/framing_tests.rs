//! Requests as they come, whole and in pieces.

use super::*;

/// Reads bytes at once and one by one, and returns which request was refused, which was the last
/// that could be followed, and how many were there.
fn read(bytes: &str) -> (Option<u64>, Option<u64>, u64) {
    let found = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let findings = Arc::new(Findings::new());
        let mut reader = Reader::new(Arc::clone(&findings));
        for piece in pieces {
            reader.read(piece);
        }
        let number = |at: &AtomicU64| Some(at.load(Ordering::Acquire)).filter(|at| *at != u64::MAX);
        (
            number(&findings.ambiguous),
            number(&findings.last),
            reader.request,
        )
    };
    let whole = found(&mut [bytes.as_bytes()].into_iter());
    let apart = found(&mut bytes.as_bytes().chunks(1));
    assert_eq!(whole, apart, "{bytes:?}");
    whole
}

const PLAIN: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn clear_requests_are_counted() {
    let counted =
        "POST / HTTP/1.1\r\nContent-Length: 32\r\n\r\nTransfer-Encoding: a\r\n\r\nGET / \r\n";
    let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                   1f;x=y\r\nContent-Length: 3\r\nGET / HTTP\r\n\r\n0\r\nTrailer: x\r\n\r\n";
    for one in [PLAIN, counted, chunked, "\r\n\r\nGET / HTTP/1.1\r\n\r\n"] {
        assert_eq!(read(one), (None, None, 1), "{one:?}");
        assert_eq!(
            read(&format!("{one}{PLAIN}{one}")),
            (None, None, 3),
            "{one:?}"
        );
    }
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(10_000));
    assert_eq!(read(&long), (None, None, 1));
}

/// HS-13.
#[test]
fn requests_with_two_lengths_are_refused() {
    for headers in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "transfer-encoding:chunked\r\nX: y\r\nCONTENT-LENGTH:\t3",
        "Content-Length: 3\r\nContent-Length: 3",
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3, 3",
        "Content-Length: +3x",
        "Content-Length: ",
        "Content-Length: 99999999999999999999",
        "Content-Length: 0\r\nTransfer-Encoding: identity",
        "Content-Length : 3\r\nTransfer-Encoding: chunked",
    ] {
        let bad = format!("POST / HTTP/1.1\r\n{headers}\r\n\r\nabc{PLAIN}");
        assert_eq!(read(&bad).0, Some(0), "{headers:?}");
        assert_eq!(read(&format!("{PLAIN}{bad}")).0, Some(1), "{headers:?}");
    }
    let long = format!("Transfer-Encoding: {}chunked", "x,".repeat(200));
    assert_eq!(
        read(&format!("POST / HTTP/1.1\r\n{long}\r\n\r\n")).0,
        Some(0)
    );
}

/// HS-13: content in a coding that is not undone is not what its sender means, and two codings may end
/// in two places.
#[test]
fn requests_in_an_unknown_transfer_coding_are_refused() {
    for headers in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: ",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ] {
        let bad = format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n0\r\n\r\n{PLAIN}");
        assert_eq!(read(&bad).0, Some(0), "{headers:?}");
    }
    for value in ["Chunked", "\tchunked "] {
        let good = format!("POST / HTTP/1.1\r\nTransfer-Encoding: {value}\r\n\r\n0\r\n\r\n");
        assert_eq!(read(&good), (None, None, 1), "{value:?}");
    }
}

/// HS-13: a proxy in front may see one long line where we would see two, or the other way round.
#[test]
fn a_head_with_a_bare_line_feed_is_refused() {
    let long = format!("X: {}\n", "y".repeat(1000));
    for head in [
        "GET / HTTP/1.1\n\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\nX: \r\r\nHost: a\nX: \r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &format!("GET / HTTP/1.1\r\n{long}\r\n"),
    ] {
        assert_eq!(read(&format!("{head}{PLAIN}")).0, Some(0), "{head:?}");
        assert_eq!(read(&format!("{PLAIN}{head}")).0, Some(1), "{head:?}");
    }
    let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["1\nx\r\n0\r\n\r\n", "0\r\nX: y\n\r\n", "0\r\n\n"] {
        assert_eq!(
            read(&format!("{chunks}{body}{PLAIN}")),
            (None, Some(0), 0),
            "{body:?}"
        );
    }
}

#[test]
fn nothing_is_followed_behind_what_may_not_be_http() {
    let upgrade = "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
    let frames = "Content-Length: 1\r\nTransfer-Encoding: x\r\n\r\n";
    assert_eq!(read(&format!("{upgrade}{frames}")), (None, Some(0), 0));
    let tunnel = "CONNECT a:1 HTTP/1.1\r\n\r\n";
    assert_eq!(read(&format!("{PLAIN}{tunnel}x")), (None, Some(1), 1));
    let chunks = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
    assert_eq!(read(chunks), (None, Some(0), 0));
}
