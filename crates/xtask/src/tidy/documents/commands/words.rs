//! Splits lines of a shell into words, as far as the examples of documents need it.

/// Ends a command; what follows begins another one.
const ENDS: &[char] = &['|', ';', '&', '>', '<', '('];

/// Each simple command of `text` with the number of its line, counted from zero. A backslash at the
/// end joins lines, quotes keep words together, and a comment ends the line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<String>)> {
    let mut commands = Vec::new();
    let mut scanner = Scanner::default();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (scanner.quote, character) {
            (None, '\\') if characters.peek() == Some(&'\n') => {
                characters.next();
                scanner.end_word();
                scanner.line += 1;
            }
            (None, '#') if scanner.word.is_empty() => {
                while characters.next_if(|next| *next != '\n').is_some() {}
            }
            (None, '\'' | '"') => scanner.quote = Some(character),
            (Some(quote), _) if quote == character => scanner.end_quote(),
            (None, '\n') => {
                scanner.end_command(&mut commands);
                scanner.line += 1;
                scanner.start = scanner.line;
            }
            (None, _) if ENDS.contains(&character) => scanner.end_command(&mut commands),
            (None, _) if character.is_whitespace() => scanner.end_word(),
            _ => {
                scanner.line += usize::from(character == '\n');
                scanner.word.push(character);
            }
        }
    }
    scanner.end_command(&mut commands);
    commands.into_iter()
}

#[derive(Default)]
struct Scanner {
    words: Vec<String>,
    word: String,
    quote: Option<char>,
    line: usize,
    /// The line in which the command begins.
    start: usize,
}

impl Scanner {
    /// A quoted word counts also when it is empty, and is never taken for a flag.
    fn end_quote(&mut self) {
        self.quote = None;
        if self.word.is_empty() || self.word.starts_with('-') {
            self.word.insert(0, '\'');
        }
    }

    fn end_word(&mut self) {
        if self.words.is_empty() && !self.word.is_empty() {
            self.start = self.line;
        }
        if !self.word.is_empty() {
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    fn end_command(&mut self, commands: &mut Vec<(usize, Vec<String>)>) {
        self.end_word();
        if !self.words.is_empty() {
            commands.push((self.start, std::mem::take(&mut self.words)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_at_operators_and_words_at_blanks() {
        let text = "a -b 'c d' | e; # f\n\ng \\\n  h && '' '-i'\n";
        let found: Vec<(usize, String)> = lines(text)
            .map(|(line, words)| (line, words.join(",")))
            .collect();
        assert_eq!(
            found,
            [(0, "a,-b,c d"), (0, "e"), (2, "g,h"), (3, "',\'-i")]
                .map(|(line, words)| (line, words.to_owned()))
        );
    }
}
