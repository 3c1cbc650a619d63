//! Where the body of a request ends.

use crate::denial::Fault;
use crate::http::head::Framing;

/// Longest line that says how long a chunk is: sixteen digits and the line's end.
const SIZE_LINE_BYTES_MAX: usize = 18;

/// Follows a body through its pieces and says how much of each belongs to it.
#[derive(Debug)]
pub(crate) struct Body(State);

#[derive(Debug)]
enum State {
    /// So many bytes are left.
    Length(u64),
    /// In a line that says how long the next chunk is.
    Size(Vec<u8>),
    /// In a chunk, with so many bytes left.
    Chunk(u64),
    /// Behind a chunk's content, or behind the last chunk: this much of a line end is left.
    LineEnd {
        left: &'static [u8],
        then: Next,
    },
    Done,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Size,
    Done,
}

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size(Vec::new()),
        })
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.0, State::Done)
    }

    /// How many of the next bytes belong to the body. Chunk extensions and trailers are refused:
    /// hardly anybody sends them, and servers disagree about them.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_done() {
            let taken = self.step(rest)?;
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(bytes.len() - rest.len())
    }

    /// Takes at least one byte.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        match &mut self.0 {
            State::Done => Ok(0),
            State::Length(left) => {
                let taken = take(left, bytes);
                if *left == 0 {
                    self.0 = State::Done;
                }
                Ok(taken)
            }
            State::Chunk(left) => {
                let taken = take(left, bytes);
                if *left == 0 {
                    self.0 = line_end(Next::Size);
                }
                Ok(taken)
            }
            State::Size(line) => {
                line.extend(bytes.first());
                if let Some(digits) = line.strip_suffix(b"\r\n") {
                    self.0 = match size(digits)? {
                        0 => line_end(Next::Done),
                        size => State::Chunk(size),
                    };
                } else if line.len() >= SIZE_LINE_BYTES_MAX {
                    return Err(Fault::Http);
                }
                Ok(1)
            }
            State::LineEnd { left, then } => {
                let (expected, behind) = left.split_first().ok_or(Fault::Http)?;
                if bytes.first() != Some(expected) {
                    return Err(Fault::Http);
                }
                if behind.is_empty() {
                    self.0 = match then {
                        Next::Size => State::Size(Vec::new()),
                        Next::Done => State::Done,
                    };
                } else {
                    *left = behind;
                }
                Ok(1)
            }
        }
    }
}

fn line_end(then: Next) -> State {
    State::LineEnd {
        left: b"\r\n",
        then,
    }
}

/// As many bytes as are both there and left.
fn take(left: &mut u64, bytes: &[u8]) -> usize {
    let room = usize::try_from(*left).unwrap_or(usize::MAX);
    let taken = bytes.len().min(room);
    *left = left.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX));
    taken
}

fn size(digits: &[u8]) -> Result<u64, Fault> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Fault::Http);
    }
    let text = str::from_utf8(digits).map_err(|_| Fault::Http)?;
    u64::from_str_radix(text, 16).map_err(|_| Fault::Http)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNKED: &[u8] = b"5\r\nhello\r\n00a\r\n0123456789\r\n0\r\n\r\n";

    #[test]
    fn a_body_ends_where_its_head_says() {
        let mut body = Body::new(Framing::Length(5));
        assert_eq!(body.advance(b"hel"), Ok(3));
        assert!(!body.is_done());
        assert_eq!(body.advance(b"loGET / HTTP/1.1"), Ok(2));
        assert!(body.is_done());
        assert!(Body::new(Framing::Length(0)).is_done());
    }

    #[test]
    fn chunks_end_with_the_empty_one() {
        let mut body = Body::new(Framing::Chunked);
        let sent = [CHUNKED, b"GET / HTTP/1.1\r\n"].concat();
        assert_eq!(body.advance(&sent), Ok(CHUNKED.len()));
        assert!(body.is_done());
    }

    #[test]
    fn chunks_that_servers_could_read_differently_are_refused() {
        for bytes in [
            &b"5;x=y\r\nhello\r\n"[..],
            b"5\nhello\r\n",
            b"5\r\nhelloX",
            b"5\r\nhello\n",
            b" 5\r\n",
            b"0x5\r\n",
            b"-1\r\n",
            b"\r\n",
            b"11111111111111111\r\n",
            b"0\r\nTrailer: x\r\n\r\n",
            b"5\r\r\n",
        ] {
            let mut body = Body::new(Framing::Chunked);
            assert_eq!(body.advance(bytes), Err(Fault::Http), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(cuts in proptest::collection::vec(0..CHUNKED.len(), 0..6)) {
            let mut cuts = cuts;
            cuts.push(CHUNKED.len());
            cuts.sort_unstable();
            let mut body = Body::new(Framing::Chunked);
            let mut from = 0;
            for cut in cuts {
                prop_assert_eq!(body.advance(&CHUNKED[from..cut]), Ok(cut - from));
                from = cut;
            }
            prop_assert!(body.is_done());
        }

        #[test]
        fn any_bytes_are_followed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut body = Body::new(Framing::Chunked);
            if let Ok(taken) = body.advance(&bytes) {
                prop_assert!(taken == bytes.len() || body.is_done());
            }
        }
    }
}
