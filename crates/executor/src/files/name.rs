//! File names as text, so that every name can be shown and every shown name can be used.
//!
//! Names are bytes and texts are not. A name that is UTF-8 is shown as it is. One that is not is
//! shown escaped: each byte that does not decode becomes `\xNN`, and each backslash `\x5c`. A
//! name that is UTF-8 but looks escaped, because it has a `\xNN` of its own, is escaped too; so no
//! two names are shown alike.
//!
//! Read back, a text means the escaped name when it is exactly what that name is shown as, and
//! otherwise itself. An agent that never saw an escape can use any backslashes it likes.

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// A file name as text.
pub(crate) fn printable(name: &OsStr) -> Cow<'_, str> {
    match name.to_str() {
        Some(text) if unescaped(text).is_none() => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(name)),
    }
}

/// A path as text, name by name.
pub fn printable_path(path: &Path) -> String {
    if let Some(text) = path.to_str()
        && !text.contains("\\x")
    {
        return text.to_owned();
    }
    let mut out = String::with_capacity(path.as_os_str().len());
    for (index, name) in path.as_os_str().as_bytes().split(is_slash).enumerate() {
        if index > 0 {
            out.push('/');
        }
        out.push_str(&printable(OsStr::from_bytes(name)));
    }
    out
}

/// The path that a text means, name by name.
pub fn meant_path(text: &str) -> PathBuf {
    if !text.contains("\\x") {
        return PathBuf::from(text);
    }
    let mut out = Vec::with_capacity(text.len());
    for (index, name) in text.split('/').enumerate() {
        if index > 0 {
            out.push(b'/');
        }
        out.extend_from_slice(meant(name).as_bytes());
    }
    PathBuf::from(OsString::from_vec(out))
}

/// The name that a text means.
fn meant(text: &str) -> Cow<'_, OsStr> {
    match unescaped(text) {
        Some(name) if printable(&name) == text => Cow::Owned(name),
        _ => Cow::Borrowed(OsStr::new(text)),
    }
}

fn escaped(name: &OsStr) -> String {
    let mut out = String::with_capacity(name.len() + 6);
    for chunk in name.as_bytes().utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\x5c"));
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// The bytes with every `\xNN` resolved; `None` when there is none.
fn unescaped(text: &str) -> Option<OsString> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    let mut found = false;
    while let Some((&first, after)) = rest.split_first() {
        match escape(rest) {
            Some(byte) => {
                found = true;
                out.push(byte);
                rest = &rest[4..];
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    found.then(|| OsString::from_vec(out))
}

/// The byte that an escape at the start of these bytes stands for.
fn escape(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [b'\\', b'x', high, low, ..] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

/// Lower case only, as they are shown.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_names_that_need_it_are_escaped() {
        let check = |name: &[u8], expected: &str| {
            assert_eq!(printable(OsStr::from_bytes(name)), expected);
            assert_eq!(meant(expected), OsStr::from_bytes(name), "{expected}");
        };
        check("plain-é".as_bytes(), "plain-é");
        check(b"a\xff\xc3b", "a\\xff\\xc3b");
        check(b"back\\slash", "back\\slash");
        check(b"back\\slash\xff", "back\\x5cslash\\xff");
        check(b"looks \\xff", "looks \\x5cxff");
        check(b"looks \\x41", "looks \\x5cx41");
        check(b"looks \\x5cx41", "looks \\x5cx5cx41");
        check(b"upper \\xFF", "upper \\xFF");
        check(b"short \\xf", "short \\xf");
    }

    #[test]
    fn a_text_that_is_no_names_escaped_form_means_itself() {
        for text in [
            "\\x41",
            "\\x2e\\x2e",
            "\\x2f",
            "\\xff\\x2f",
            "\\xff\\x00",
            "\\xff\\",
            "\\xc3\\xa9",
            "\\x5cplain",
        ] {
            assert_eq!(meant(text), OsStr::new(text), "{text}");
        }
    }

    #[test]
    fn paths_are_escaped_name_by_name() {
        let path = Path::new(OsStr::from_bytes(b"/a\\x/caf\xe9/\\d"));
        assert_eq!(printable_path(path), "/a\\x/caf\\xe9/\\d");
        assert_eq!(meant_path("/a\\x/caf\\xe9/\\d"), path);
        assert_eq!(printable_path(Path::new("/")), "/");
    }

    proptest! {
        #[test]
        fn every_name_is_meant_by_what_it_is_shown_as(
            name in proptest::collection::vec(
                prop_oneof![
                    Just(b'\\'), Just(b'x'), Just(b'5'), Just(b'c'), Just(b'f'), Just(0xc3), any::<u8>(),
                ],
                1..24,
            )
        ) {
            prop_assume!(!name.contains(&0) && !name.contains(&b'/'));
            let name = OsStr::from_bytes(&name);
            let shown = printable(name);
            prop_assert_eq!(&*meant(&shown), name);
        }
    }
}
