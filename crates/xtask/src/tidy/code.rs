//! A look at Rust text without its comments and literals, line for line.
//!
//! Not a parser: it knows just enough of the lexical grammar that the word `unsafe` in a comment
//! or a string is not taken for code.

/// `source` without comments, the inside of literals replaced by `_`; line breaks stay where they
/// are, so line numbers hold.
pub(super) fn without_comments_and_literals(source: &str) -> String {
    let mut scanner = Scanner {
        rest: source,
        code: String::with_capacity(source.len()),
    };
    while scanner.step() {}
    scanner.code
}

/// The words of one line of code that could be keywords or names.
pub(super) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|character| !is_word(character))
        .filter(|word| !word.is_empty())
}

struct Scanner<'a> {
    rest: &'a str,
    code: String,
}

impl Scanner<'_> {
    /// Moves past one comment, literal, word or other character; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.drop(end);
        } else if self.rest.starts_with("/*") {
            self.drop(block_comment_length(self.rest));
        } else if let Some(length) = raw_string_length(self.rest) {
            self.mask(length);
        } else if first == '"' {
            self.mask(quoted_length(self.rest, '"'));
        } else if first == '\'' {
            match character_literal_length(self.rest) {
                Some(length) => self.mask(length),
                None => self.keep(1),
            }
        } else if is_word(first) {
            let end = self.rest.find(|next| !is_word(next));
            self.keep(end.unwrap_or(self.rest.len()));
        } else {
            self.keep(first.len_utf8());
        }
        true
    }

    fn keep(&mut self, length: usize) {
        let (kept, rest) = self.rest.split_at(length);
        self.code.push_str(kept);
        self.rest = rest;
    }

    /// Forgets a comment, but not its line breaks.
    fn drop(&mut self, length: usize) {
        let (dropped, rest) = self.rest.split_at(length);
        self.code.extend(dropped.chars().filter(|c| *c == '\n'));
        self.rest = rest;
    }

    /// Hides a literal: it stays visible that something is there, not what.
    fn mask(&mut self, length: usize) {
        let (masked, rest) = self.rest.split_at(length);
        let hidden = masked.chars().map(|c| if c == '\n' { c } else { '_' });
        self.code.extend(hidden);
        self.rest = rest;
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Length of the possibly nested comment that `text` starts with.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of the raw string that `text` starts with, if it starts with one.
fn raw_string_length(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        text.starts_with(&format!("{prefix}\"")) || text.starts_with(&format!("{prefix}#"))
    })?;
    let after_prefix = &text[prefix.len()..];
    let hashes = after_prefix.len() - after_prefix.trim_start_matches('#').len();
    let body = after_prefix[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let opening = prefix.len() + hashes + 1;
    Some(match body.find(&end) {
        Some(at) => opening + at + end.len(),
        None => text.len(),
    })
}

/// Length of the literal between two `quote`s, with backslash escapes inside.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return at + quote.len_utf8();
        }
    }
    text.len()
}

/// Length of `'x'` or `'\n'`; `None` when the quote opens a lifetime.
fn character_literal_length(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    let (second_at, second) = characters.next()?;
    if first == '\\' {
        Some(quoted_length(text, '\''))
    } else {
        (second == '\'').then_some(second_at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        assert_eq!(without_comments_and_literals(source), expected);
    }

    #[test]
    fn comments_vanish_and_their_line_breaks_stay() {
        check("a // unsafe\nb", "a \nb");
        check("a /* one /* two\n */ three */ b", "a \n b");
        check("/* never closed", "");
    }

    #[test]
    fn literals_are_hidden() {
        check(r#"f("a // \" b", c)"#, "f(___________, c)");
        check("r#\"a \"b\" \"# c", "___________ c");
        check("br\"\\\" c", "_____ c");
        check("\"one\ntwo\"", "____\n____");
        check(r"['\'', '\\', 'é']", "[____, ____, ___]");
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        check("fn f<'a>(r#type: &'a str)", "fn f<'a>(r#type: &'a str)");
        check("for_r\"x\"", "for_r___");
    }

    #[test]
    fn words_are_whole() {
        let found: Vec<&str> = words("#![expect(unsafe_code)] unsafe{").collect();
        assert_eq!(found, ["expect", "unsafe_code", "unsafe"]);
    }
}
