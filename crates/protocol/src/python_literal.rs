//! Reads a Python literal as a JSON value.
//!
//! Old trajectories carry an editor call as Python source. Only literals are read, nothing is
//! evaluated: strings, numbers, `True`, `False`, `None`, lists, tuples and dicts with string keys.

use serde_json::{Map, Number, Value};

/// Editor calls nest two levels; more than this is not one of them.
const DEPTH_MAX: usize = 32;

/// The value of `source`, or nothing if it is not a literal that JSON can hold.
pub(crate) fn parse(source: &str) -> Option<Value> {
    let mut reader = Reader { rest: source };
    let value = reader.value(0)?;
    reader.skip_space();
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_space();
        match self.rest.chars().next()? {
            '{' => self.dict(depth),
            '[' => self.sequence(']', depth),
            '(' => self.sequence(')', depth),
            '-' | '+' | '.' | '0'..='9' => self.number(),
            _ => self.word().or_else(|| self.strings().map(Value::String)),
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Value> {
        self.take('{')?;
        let mut object = Map::new();
        loop {
            if self.take('}').is_some() {
                return Some(Value::Object(object));
            }
            let key = self.strings()?;
            self.take(':')?;
            object.insert(key, self.value(depth + 1)?);
            if self.take(',').is_none() {
                self.take('}')?;
                return Some(Value::Object(object));
            }
        }
    }

    fn sequence(&mut self, close: char, depth: usize) -> Option<Value> {
        let mut characters = self.rest.chars();
        characters.next();
        self.rest = characters.as_str();
        let mut items = Vec::new();
        loop {
            if self.take(close).is_some() {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            if self.take(',').is_none() {
                self.take(close)?;
                // Parentheses without a comma only group.
                return match (close, items.len()) {
                    (')', 1) => items.pop(),
                    _ => Some(Value::Array(items)),
                };
            }
        }
    }

    fn number(&mut self) -> Option<Value> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        let digits = digits.replace('_', "");
        let number = match digits.parse::<i64>() {
            Ok(integer) => Number::from(integer),
            Err(_) if digits.bytes().any(|byte| byte.is_ascii_digit()) => {
                Number::from_f64(digits.parse().ok()?)?
            }
            Err(_) => return None,
        };
        self.rest = rest;
        Some(Value::Number(number))
    }

    fn word(&mut self) -> Option<Value> {
        let words = [
            ("True", Value::Bool(true)),
            ("False", Value::Bool(false)),
            ("None", Value::Null),
        ];
        let (rest, value) = words
            .into_iter()
            .find_map(|(word, value)| Some((self.rest.strip_prefix(word)?, value)))?;
        self.rest = rest;
        Some(value)
    }

    /// One string, or several that follow each other and mean their concatenation.
    fn strings(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut any = false;
        loop {
            self.skip_space();
            let unprefixed = self.rest.trim_start_matches(['r', 'R', 'u', 'U']);
            let prefix = self.rest.len() - unprefixed.len();
            let starts = unprefixed.starts_with(['\'', '"']);
            if prefix > 1 || !starts {
                return any.then_some(text);
            }
            let raw = self.rest.starts_with(['r', 'R']);
            self.rest = unprefixed;
            self.string(&mut text, raw)?;
            any = true;
        }
    }

    fn string(&mut self, text: &mut String, raw: bool) -> Option<()> {
        let quote = ["'''", "\"\"\"", "'", "\""]
            .into_iter()
            .find(|q| self.rest.starts_with(q))?;
        self.rest = self.rest.strip_prefix(quote)?;
        loop {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                self.rest = rest;
                return Some(());
            }
            let mut characters = self.rest.chars();
            let character = characters.next()?;
            self.rest = characters.as_str();
            match character {
                '\n' if quote.len() == 1 => return None,
                '\\' if raw => {
                    text.push('\\');
                    let escaped = characters.next()?;
                    text.push(escaped);
                    self.rest = characters.as_str();
                }
                '\\' => self.escape(text)?,
                _ => text.push(character),
            }
        }
    }

    /// What stands behind a backslash; an unknown escape keeps its backslash, as in Python.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        let after = characters.as_str();
        let simple = match character {
            '\n' => {
                self.rest = after;
                return Some(());
            }
            '\\' | '\'' | '"' => character,
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => return self.code_point(after, 2, 16, text),
            'u' => return self.code_point(after, 4, 16, text),
            'U' => return self.code_point(after, 8, 16, text),
            '0'..='7' => {
                let digits = self
                    .rest
                    .bytes()
                    .take(3)
                    .take_while(|b| matches!(b, b'0'..=b'7'));
                return self.code_point(self.rest, digits.count(), 8, text);
            }
            other => {
                text.push('\\');
                other
            }
        };
        text.push(simple);
        self.rest = after;
        Some(())
    }

    fn code_point(
        &mut self,
        from: &str,
        digits: usize,
        radix: u32,
        text: &mut String,
    ) -> Option<()> {
        let number = from.get(..digits)?;
        if !number.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        text.push(char::from_u32(u32::from_str_radix(number, radix).ok()?)?);
        let used = self.rest.len() - from.len() + digits;
        self.rest = self.rest.get(used..)?;
        Some(())
    }

    fn take(&mut self, character: char) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(character)?;
        Some(())
    }

    fn skip_space(&mut self) {
        self.rest = self
            .rest
            .trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_editor_call_is_read() {
        let source = r#"{'command': 'view', "path": '/workspace/a b.py', 'view_range': [1, -1], 'n': None, 't': (True, False,), 'f': 1.5e3}"#;
        let expected = json!({
            "command": "view", "path": "/workspace/a b.py", "view_range": [1, -1],
            "n": null, "t": [true, false], "f": 1500.0,
        });
        assert_eq!(parse(source), Some(expected));
    }

    #[test]
    fn strings_are_unescaped_as_python_does() {
        let cases = [
            (r"'it\'s'", "it's"),
            (
                r"'a\n\t\\\x41\u00e9\U0001f642\101\0'",
                "a\n\t\\A\u{e9}\u{1f642}A\0",
            ),
            (r"'\d'", "\\d"),
            (r"r'\d\''", "\\d\\'"),
            ("'a' \"b\"\n'c'", "abc"),
            ("'''a\n'b'''", "a\n'b"),
            ("'a\\\nb'", "ab"),
            ("('grouped')", "grouped"),
        ];
        for (source, expected) in cases {
            assert_eq!(parse(source), Some(json!(expected)), "{source}");
        }
    }

    #[test]
    fn what_is_no_literal_is_refused() {
        let sources = [
            "",
            "{",
            "{'a'}",
            "{'a': }",
            "{1: 2}",
            "'open",
            "'a\nb'",
            "os.system('x')",
            "{'a': x}",
            "{} {}",
            "1 + 1",
            "-",
            "nan",
            r"'\x4'",
            r"'\ud800'",
            "b'bytes'",
            "rr'a'",
        ];
        for source in sources {
            assert_eq!(parse(source), None, "{source}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse(&nested(DEPTH_MAX)).is_some());
        assert_eq!(parse(&nested(100_000)), None);
    }
}
