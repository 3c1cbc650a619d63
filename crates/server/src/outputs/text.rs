//! From the bytes of a terminal to the text that a command wrote.

use zareba_session::{Mask, StreamMask};

/// Turns pieces of output into pieces of text. However the output is cut, the text is the same.
pub(super) struct OutputText {
    mask: StreamMask,
    /// Bytes of which more must come before they are text.
    held: Vec<u8>,
}

impl OutputText {
    pub(super) fn new(mask: &Mask) -> Self {
        Self {
            mask: mask.stream(),
            held: Vec::new(),
        }
    }

    /// The text that a piece completes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let shown = self.mask.push(bytes);
        self.held.extend_from_slice(&shown);
        let hold = self.held.len() - unfinished(&self.held);
        let rest = self.held.split_off(hold);
        as_text(&std::mem::replace(&mut self.held, rest))
    }

    /// The rest: nothing more comes.
    pub(super) fn finish(&mut self) -> String {
        let shown = self.mask.finish();
        self.held.extend_from_slice(&shown);
        as_text(&std::mem::take(&mut self.held))
    }
}

/// A terminal puts a carriage return before each line end; without that it is what was written.
fn as_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}

/// How many bytes at the end mean something else when more come: a carriage return, or the
/// beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    if bytes.ends_with(b"\r") {
        return 1;
    }
    let last = bytes.utf8_chunks().last();
    let cut = last.map_or(&[][..], |chunk| chunk.invalid());
    let may_go_on = std::str::from_utf8(cut).is_err_and(|error| error.error_len().is_none());
    if may_go_on { cut.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_same_however_the_output_is_cut() {
        let output = b"caf\xc3\xa9 \xff\r\n\r\n20%\r40%\r\r\n  tail \xe2\x82";
        let expected = "café \u{fffd}\n\n20%\r40%\r\n  tail \u{fffd}";
        for size in 1..=output.len() {
            let mut text = OutputText::new(&Mask::default());
            let mut shown: String = output.chunks(size).map(|piece| text.push(piece)).collect();
            shown.push_str(&text.finish());
            assert_eq!(shown, expected, "pieces of {size}");
        }
    }
}
