//! Keys that can be pressed by name.

use zareba_protocol::ControlKey;

/// A key, and what a terminal sends for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// What is typed.
    pub(super) bytes: Vec<u8>,
    /// The letter of a control key, in upper case.
    pub(super) control: Option<char>,
}

/// `C-c` and the like. Pressed whether or not it is meant as input.
pub(super) fn control_key(text: &str) -> Option<Key> {
    let ControlKey { byte, name } = ControlKey::of(text)?;
    Some(Key {
        bytes: vec![byte],
        control: Some(name),
    })
}

/// `Up`, `Enter`, `F1` and the like, as input: the key, then Enter, as tmux users know it.
pub(super) fn named_key(text: &str) -> Option<Key> {
    let bytes: &[u8] = match text {
        "Enter" => b"\r",
        "Up" => b"\x1b[A\r",
        "Down" => b"\x1b[B\r",
        "Right" => b"\x1b[C\r",
        "Left" => b"\x1b[D\r",
        "Home" => b"\x1b[H\r",
        "End" => b"\x1b[F\r",
        "PageUp" | "PgUp" | "PPage" => b"\x1b[5~\r",
        "PageDown" | "PgDn" | "NPage" => b"\x1b[6~\r",
        "Insert" | "IC" => b"\x1b[2~\r",
        "Delete" | "DC" => b"\x1b[3~\r",
        "Escape" => b"\x1b\r",
        "Tab" => b"\t\r",
        "BTab" => b"\x1b[Z\r",
        "BSpace" => b"\x7f\r",
        "Space" => b" \r",
        "F1" => b"\x1bOP\r",
        "F2" => b"\x1bOQ\r",
        "F3" => b"\x1bOR\r",
        "F4" => b"\x1bOS\r",
        "F5" => b"\x1b[15~\r",
        "F6" => b"\x1b[17~\r",
        "F7" => b"\x1b[18~\r",
        "F8" => b"\x1b[19~\r",
        "F9" => b"\x1b[20~\r",
        "F10" => b"\x1b[21~\r",
        "F11" => b"\x1b[23~\r",
        "F12" => b"\x1b[24~\r",
        _ => return None,
    };
    Some(Key {
        bytes: bytes.to_vec(),
        control: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_key_is_followed_by_enter_and_enter_is_pressed_once() {
        assert_eq!(
            named_key("Up").map(|key| key.bytes),
            Some(b"\x1b[A\r".to_vec())
        );
        assert_eq!(
            named_key("Enter").map(|key| key.bytes),
            Some(b"\r".to_vec())
        );
        assert_eq!(named_key("up"), None);
    }
}
