//! Control keys by name: `C-c` and its like, which press a key whether or not an action says that
//! it is input.

/// A control key, and what a terminal sends for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlKey {
    /// What is typed.
    pub byte: u8,
    /// The character of its name, in upper case.
    pub name: char,
}

impl ControlKey {
    /// The key that a command names: exactly three characters, `C-` and a letter or one of
    /// `@ [ \ ] ^ _ ?`.
    pub fn of(command: &str) -> Option<Self> {
        let mut characters = command.strip_prefix("C-")?.chars();
        let (character, None) = (characters.next()?, characters.next()) else {
            return None;
        };
        let name = character.to_ascii_uppercase();
        let byte = match name {
            '@'..='_' => u8::try_from(name).ok()? & 0x1f,
            '?' => 0x7f,
            _ => return None,
        };
        Some(Self { byte, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_keys_are_three_characters_of_any_case() {
        let key = |byte, name| Some(ControlKey { byte, name });
        assert_eq!(ControlKey::of("C-c"), key(3, 'C'));
        assert_eq!(ControlKey::of("C-Z"), key(26, 'Z'));
        assert_eq!(ControlKey::of("C-@"), key(0, '@'));
        assert_eq!(ControlKey::of("C-["), key(27, '['));
        assert_eq!(ControlKey::of("C-\\"), key(28, '\\'));
        assert_eq!(ControlKey::of("C-?"), key(127, '?'));
        for text in ["", "C-", "C-cc", "c-c", "C-1", "C-é", "ls"] {
            assert_eq!(ControlKey::of(text), None, "{text}");
        }
    }
}
