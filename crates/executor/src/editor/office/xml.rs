//! A walk over XML that sees tags and text, and forgives what it does not understand.

use std::borrow::Cow;

/// One step of the walk; names come without their prefix.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Open(Tag<'a>),
    /// Also follows an empty element.
    Close(&'a str),
    Text(Cow<'a, str>),
}

/// An opening tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag<'a> {
    pub(super) name: &'a str,
    attributes: &'a str,
}

impl<'a> Tag<'a> {
    /// An attribute by its name without prefix.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut rest = self.attributes;
        while let Some((key, after)) = rest.split_once('=') {
            let after = after.trim_start();
            let quote = after
                .chars()
                .next()
                .filter(|quote| matches!(quote, '"' | '\''))?;
            let (value, after) = after[1..].split_once(quote)?;
            if local(key.trim()) == name {
                return Some(unescaped(value));
            }
            rest = after;
        }
        None
    }
}

/// The steps of a document.
pub(super) struct Walk<'a> {
    rest: &'a str,
    /// The name of an empty element that was opened and is still to be closed.
    closing: Option<&'a str>,
}

impl<'a> Walk<'a> {
    pub(super) fn over(xml: &'a str) -> Self {
        Self {
            rest: xml,
            closing: None,
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        if let Some(name) = self.closing.take() {
            return Some(Step::Close(name));
        }
        loop {
            if !self.rest.starts_with('<') {
                let end = self.rest.find('<').unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                return (!text.is_empty()).then(|| Step::Text(unescaped(text)));
            }
            if let Some(after) = self.rest.strip_prefix("<![CDATA[") {
                let (text, rest) = after.split_once("]]>")?;
                self.rest = rest;
                return Some(Step::Text(Cow::Borrowed(text)));
            }
            if let Some(after) = self.rest.strip_prefix("<!--") {
                self.rest = after.split_once("-->")?.1;
                continue;
            }
            let end = tag_end(self.rest)?;
            let inside = &self.rest[1..end];
            self.rest = &self.rest[end + 1..];
            if inside.starts_with(['?', '!']) {
                continue;
            }
            if let Some(name) = inside.strip_prefix('/') {
                return Some(Step::Close(local(name.trim_end())));
            }
            let open = inside.strip_suffix('/');
            let inside = open.unwrap_or(inside);
            let (name, attributes) = inside
                .split_once(|space: char| space.is_ascii_whitespace())
                .unwrap_or((inside, ""));
            let name = local(name);
            self.closing = open.map(|_| name);
            return Some(Step::Open(Tag { name, attributes }));
        }
    }
}

/// Where a tag ends: a `>` that stands in no quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

fn local(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let known = after
            .split_once(';')
            .and_then(|(name, after)| Some((entity(name)?, after)));
        match known {
            Some((character, after)) => {
                out.push(character);
                rest = after;
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_texts_and_attributes_are_seen() {
        let xml = "<?xml version='1.0'?><w:p w:a='1' b=\"x>&quot;y\"><!-- <no> --><w:br/>a &lt;&#65;&#x42; &no;<![CDATA[<c>]]></w:p >";
        let steps: Vec<Step<'_>> = Walk::over(xml).collect();
        let Some(Step::Open(tag)) = steps.first() else {
            panic!("{steps:?}")
        };
        assert_eq!(tag.name, "p");
        assert_eq!(tag.attribute("a").as_deref(), Some("1"));
        assert_eq!(tag.attribute("b").as_deref(), Some("x>\"y"));
        assert_eq!(tag.attribute("c"), None);
        assert_eq!(
            steps[1..],
            [
                Step::Open(Tag {
                    name: "br",
                    attributes: ""
                }),
                Step::Close("br"),
                Step::Text("a <AB &no;".into()),
                Step::Text("<c>".into()),
                Step::Close("p"),
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_walked_to_its_end(xml in "[<>/a&;'\"=!?\\[\\]-]{0,60}|\\PC{0,40}") {
            for step in Walk::over(&xml) {
                if let Step::Open(tag) = step {
                    tag.attribute("a");
                }
            }
        }
    }
}
