//! Words to shell text that means exactly those words.

/// Words that begin something of their own when a command starts with them.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// One command line with these words.
pub(crate) fn join(words: &[String]) -> String {
    let mut quoted = words.iter().map(|word| quote(word)).collect::<Vec<_>>();
    if let Some(first) = quoted.first_mut()
        && RESERVED.contains(&first.as_str())
    {
        *first = format!("'{first}'");
    }
    quoted.join(" ")
}

/// One word. A quote inside is closed, escaped and opened again.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+:,./-".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn joined(words: &[&str]) -> String {
        join(
            &words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        assert_eq!(joined(&["ls", "-l", "a b"]), "ls -l 'a b'");
        assert_eq!(
            joined(&["echo", "it's", "$HOME", ""]),
            r"echo 'it'\''s' '$HOME' ''"
        );
        assert_eq!(joined(&["A=b"]), "'A=b'");
        assert_eq!(joined(&["time", "time"]), "'time' time");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_shell_reads_the_very_words(words in vec("[^\\x00\r]{0,8}", 1..4)) {
            let mut command = vec!["printf".to_owned(), "%s\\0".to_owned()];
            command.extend(words.iter().cloned());
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &join(&command)])
                .output()
                .unwrap();
            let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        }
    }
}
