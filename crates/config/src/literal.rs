//! Lists and tables inside a variable or a flag, in Python's or JSON's syntax.
//!
//! OpenHands reads such variables as Python literals (`{'A': '1'}`), everybody else writes JSON
//! (`{"A": "1"}`). The two grammars overlap so far that one parser takes both. It knows data only:
//! no names, calls, operators or string prefixes.

use std::collections::BTreeMap;

use crate::value::Value;

/// Deeper nesting than any setting has; it bounds the recursion on text from outside.
const NESTING_MAX: usize = 16;

/// Why a text is no literal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseLiteral {
    /// Something else stands where a value, a separator or a bracket has to be.
    #[error("expected {expected} at character {position}")]
    Expected {
        expected: &'static str,
        position: usize,
    },
    /// Lists and tables are nested deeper than anything here needs.
    #[error("more than {NESTING_MAX} levels of nesting")]
    TooDeep,
}

/// Reads one literal that fills the whole text.
pub(crate) fn parse_literal(text: &str) -> Result<Value, ParseLiteral> {
    let mut parser = Parser {
        characters: text.chars().collect(),
        position: 0,
    };
    let value = parser.value(0)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.expected("the end")),
    }
}

struct Parser {
    characters: Vec<char>,
    position: usize,
}

impl Parser {
    fn value(&mut self, depth: usize) -> Result<Value, ParseLiteral> {
        if depth > NESTING_MAX {
            return Err(ParseLiteral::TooDeep);
        }
        self.skip_space();
        match self.peek() {
            Some('[') => self.list(']', depth),
            Some('(') => self.list(')', depth),
            Some('{') => self.table(depth),
            Some('"' | '\'') => self.string().map(Value::Text),
            Some(_) => self.word(),
            None => Err(self.expected("a value")),
        }
    }

    fn list(&mut self, close: char, depth: usize) -> Result<Value, ParseLiteral> {
        self.position += 1;
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            if !self.take(',') && !self.next_is(close) {
                return Err(self.expected("`,` or the end of the list"));
            }
        }
        Ok(Value::List(items))
    }

    fn table(&mut self, depth: usize) -> Result<Value, ParseLiteral> {
        self.position += 1;
        let mut entries = BTreeMap::new();
        while !self.take('}') {
            if !self.next_is('"') && !self.next_is('\'') {
                return Err(self.expected("a quoted name"));
            }
            let name = self.string()?;
            if !self.take(':') {
                return Err(self.expected("`:`"));
            }
            entries.insert(name, self.value(depth + 1)?);
            if !self.take(',') && !self.next_is('}') {
                return Err(self.expected("`,` or `}`"));
            }
        }
        Ok(Value::Table(entries))
    }

    fn string(&mut self) -> Result<String, ParseLiteral> {
        let quote = self.peek();
        self.position += 1;
        let mut text = String::new();
        loop {
            let character = self.advance();
            if character.is_some() && character == quote {
                return Ok(text);
            }
            match character {
                None | Some('\n') => return Err(self.expected("the closing quote")),
                Some('\\') => self.escape(&mut text)?,
                Some(other) => text.push(other),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), ParseLiteral> {
        let character = match self.advance() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('x') => self.code_point(2)?,
            Some('u') => self.code_point(4)?,
            Some('U') => self.code_point(8)?,
            Some(same @ ('\\' | '\'' | '"' | '/')) => same,
            // Python keeps a backslash that introduces nothing.
            Some(other) => {
                text.push('\\');
                other
            }
            None => return Err(self.expected("the closing quote")),
        };
        text.push(character);
        Ok(())
    }

    /// Reads the digits of an escape; two JSON surrogates in a row make one character.
    fn code_point(&mut self, digits: usize) -> Result<char, ParseLiteral> {
        let high = self.hexadecimal(digits)?;
        let code = if digits == 4 && (0xd800..0xdc00).contains(&high) {
            if self.advance() != Some('\\') || self.advance() != Some('u') {
                return Err(self.expected("the second half of a surrogate pair"));
            }
            match self.hexadecimal(4)? {
                low @ 0xdc00..0xe000 => 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                _ => return Err(self.expected("the second half of a surrogate pair")),
            }
        } else {
            high
        };
        char::from_u32(code).ok_or_else(|| self.expected("a character code"))
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, ParseLiteral> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.advance().and_then(|character| character.to_digit(16));
            let Some(digit) = digit else {
                return Err(self.expected("a hexadecimal digit"));
            };
            code = (code << 4) | digit;
        }
        Ok(code)
    }

    fn word(&mut self) -> Result<Value, ParseLiteral> {
        let start = self.position;
        while self
            .peek()
            .is_some_and(|next| next.is_ascii_alphanumeric() || "+-._".contains(next))
        {
            self.position += 1;
        }
        let word: String = self.characters[start..self.position].iter().collect();
        match word.as_str() {
            "True" | "true" => return Ok(Value::Boolean(true)),
            "False" | "false" => return Ok(Value::Boolean(false)),
            "None" | "null" => return Ok(Value::Null),
            _ => {}
        }
        if let Ok(integer) = word.parse() {
            return Ok(Value::Integer(integer));
        }
        match word.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => {
                self.position = start;
                Err(self.expected("a value"))
            }
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.next_is(wanted);
        if found {
            self.position += 1;
        }
        found
    }

    fn next_is(&mut self, wanted: char) -> bool {
        self.skip_space();
        self.peek() == Some(wanted)
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.position).copied()
    }

    fn advance(&mut self) -> Option<char> {
        let character = self.peek();
        self.position += usize::from(character.is_some());
        character
    }

    fn expected(&self, expected: &'static str) -> ParseLiteral {
        ParseLiteral::Expected {
            expected,
            position: self.position + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Value::Table(
            entries
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    #[test]
    fn python_and_json_spell_the_same_table() {
        let expected = table([
            ("A", text("1")),
            (
                "b",
                Value::List(vec![
                    Value::Boolean(true),
                    Value::Boolean(false),
                    Value::Null,
                ]),
            ),
            ("c", Value::Integer(-3)),
            ("d", Value::Float(1.5)),
        ]);
        let python = "{'A': '1', 'b': (True, False, None,), 'c': -3, 'd': 1.5,}";
        let json = r#" {"A": "1", "b": [true, false, null], "c": -3, "d": 1.5} "#;
        assert_eq!(parse_literal(python), Ok(expected.clone()));
        assert_eq!(parse_literal(json), Ok(expected));
    }

    #[test]
    fn escapes_mean_what_both_languages_say() {
        let source = r#"['it\'s', "a\tb\n", "\x41\u00e9\U0001F600", "\ud83d\ude00", '\d']"#;
        let expected = ["it's", "a\tb\n", "Aé😀", "😀", "\\d"].map(text);
        assert_eq!(parse_literal(source), Ok(Value::List(expected.to_vec())));
    }

    #[test]
    fn a_broken_literal_is_refused_with_its_position() {
        let check = |source: &str, expected: &'static str, position: usize| {
            let error = ParseLiteral::Expected { expected, position };
            assert_eq!(parse_literal(source), Err(error), "{source}");
        };
        check("", "a value", 1);
        check("[1 2]", "`,` or the end of the list", 4);
        check("{'a' 1}", "`:`", 6);
        check("{a: 1}", "a quoted name", 2);
        check("['open", "the closing quote", 7);
        check("[1] tail", "the end", 5);
        check("__import__('os')", "a value", 1);
        check(r#""\u12""#, "a hexadecimal digit", 7);
        check(
            r#""\ud83d\u0041""#,
            "the second half of a surrogate pair",
            14,
        );
        check(r#""\ude00""#, "a character code", 8);
        check("[1", "`,` or the end of the list", 3);
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_literal(&deep(NESTING_MAX + 1)).is_ok());
        assert_eq!(parse_literal(&deep(100_000)), Err(ParseLiteral::TooDeep));
    }
}
