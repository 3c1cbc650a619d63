//! What a program says, without the session's secrets.

use bytes::Bytes;
use zareba_session::{Mask, StreamMask};
use zareba_wire::{
    program::{FRAME_BYTES_MAX, ProgramEvent},
    serving::Voice,
};

/// Hides secrets, also those that come in pieces; what could be the beginning of one is held back.
pub(super) struct Masked {
    mask: Mask,
    stdout: StreamMask,
    stderr: StreamMask,
}

impl Masked {
    pub(super) fn new(mask: &Mask) -> Self {
        Self {
            mask: mask.clone(),
            stdout: mask.stream(),
            stderr: mask.stream(),
        }
    }
}

impl Voice for Masked {
    fn say(&mut self, event: ProgramEvent, hear: &mut dyn FnMut(ProgramEvent)) {
        let last = match event {
            ProgramEvent::Stdout(bytes) => {
                return pieces(self.stdout.push(&bytes), ProgramEvent::Stdout, hear);
            }
            ProgramEvent::Stderr(bytes) => {
                return pieces(self.stderr.push(&bytes), ProgramEvent::Stderr, hear);
            }
            ProgramEvent::Exit(exit) => ProgramEvent::Exit(exit),
            ProgramEvent::Error(message) => {
                ProgramEvent::Error(self.mask.text(&message).into_owned())
            }
        };
        pieces(self.stdout.finish(), ProgramEvent::Stdout, hear);
        pieces(self.stderr.finish(), ProgramEvent::Stderr, hear);
        hear(last);
    }
}

/// What stands for a secret may be longer than the secret, so that a piece may be cut again.
fn pieces(shown: Vec<u8>, said: fn(Bytes) -> ProgramEvent, hear: &mut dyn FnMut(ProgramEvent)) {
    let mut shown = Bytes::from(shown);
    while !shown.is_empty() {
        let piece = shown.split_to(shown.len().min(FRAME_BYTES_MAX));
        hear(said(piece));
    }
}

#[cfg(test)]
mod tests {
    use zareba_session::Secret;

    use super::*;

    #[test]
    fn secrets_are_hidden_also_between_pieces_and_pieces_stay_small() {
        let mask = Mask::new([&Secret("swordfish-123".to_owned())]);
        let mut voice = Masked::new(&mask);
        let mut heard = Vec::new();
        let many = Bytes::from("swordfish-123 ".repeat(FRAME_BYTES_MAX / 14));
        for event in [
            ProgramEvent::Stdout("the key is sword".into()),
            ProgramEvent::Stdout("fish-123\nsword".into()),
            ProgramEvent::Stderr(many),
            ProgramEvent::Error("no swordfish-123".to_owned()),
        ] {
            voice.say(event, &mut |said| heard.push(said));
        }
        let last = heard.pop();
        assert_eq!(
            last,
            Some(ProgramEvent::Error("no <secret_hidden>".to_owned()))
        );
        let (mut shown, mut complaints) = (Vec::new(), Vec::new());
        for event in heard {
            match event {
                ProgramEvent::Stdout(bytes) => shown.extend_from_slice(&bytes),
                ProgramEvent::Stderr(bytes) => {
                    assert!(bytes.len() <= FRAME_BYTES_MAX);
                    complaints.extend_from_slice(&bytes);
                }
                other => panic!("{other:?}"),
            }
        }
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown, "the key is <secret_hidden>\nsword");
        let complaints = String::from_utf8(complaints).unwrap();
        assert!(!complaints.contains("swordfish"));
        let hidden = complaints.matches("<secret_hidden>").count();
        assert_eq!(hidden, FRAME_BYTES_MAX / 14);
    }
}
