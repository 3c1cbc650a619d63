//! `Content-Disposition` of a form part: reading it and writing it.

/// What a part says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disposition {
    /// The form field.
    pub(crate) name: Option<String>,
    /// The file's name, present only on file parts.
    pub(crate) file_name: Option<String>,
}

impl Disposition {
    /// Reads a header value such as `form-data; name="file"; filename="a.txt"`.
    ///
    /// In quoted values a backslash escapes a quote or a backslash, as clients write it; bytes
    /// that are not UTF-8 are replaced.
    pub(crate) fn parse(value: &[u8]) -> Self {
        let mut disposition = Self::default();
        let mut rest = skip_past_semicolon(value);
        while let Some((name, value, after)) = parameter(rest) {
            if name.eq_ignore_ascii_case(b"name") {
                disposition.name.get_or_insert(value);
            } else if name.eq_ignore_ascii_case(b"filename") {
                disposition.file_name.get_or_insert(value);
            }
            rest = after;
        }
        disposition
    }
}

/// Writes a file name between quotes, or nothing when no header can carry it.
pub(super) fn quoted(name: &str) -> Option<String> {
    if name.chars().any(char::is_control) {
        return None;
    }
    Some(format!(
        "\"{}\"",
        name.replace('\\', "\\\\").replace('"', "\\\"")
    ))
}

fn skip_past_semicolon(text: &[u8]) -> &[u8] {
    match memchr::memchr(b';', text) {
        Some(at) => &text[at + 1..],
        None => &[],
    }
}

/// The next `name=value` and what follows it.
fn parameter(text: &[u8]) -> Option<(&[u8], String, &[u8])> {
    let equals = memchr::memchr(b'=', text)?;
    let name = text[..equals].trim_ascii();
    let value = text[equals + 1..].trim_ascii_start();
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let (value, after) = unquote(quoted);
        return Some((name, value, skip_past_semicolon(after)));
    }
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    let bare = String::from_utf8_lossy(value[..end].trim_ascii()).into_owned();
    Some((name, bare, skip_past_semicolon(value)))
}

fn unquote(text: &[u8]) -> (String, &[u8]) {
    let mut value = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, text.get(at + 1)) {
            (b'"', _) => return (lossy(value), &text[at + 1..]),
            (b'\\', Some(&escaped @ (b'"' | b'\\'))) => {
                value.push(escaped);
                at += 2;
            }
            _ => {
                value.push(byte);
                at += 1;
            }
        }
    }
    (lossy(value), &[])
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, name: Option<&str>, file_name: Option<&str>) {
        let expected = Disposition {
            name: name.map(str::to_owned),
            file_name: file_name.map(str::to_owned),
        };
        assert_eq!(Disposition::parse(value.as_bytes()), expected, "{value}");
    }

    #[test]
    fn names_are_read_as_clients_write_them() {
        check(
            r#"form-data; name="file"; filename="up.txt""#,
            Some("file"),
            Some("up.txt"),
        );
        check(
            r#"form-data; filename="a;b=c.txt"; name="file""#,
            Some("file"),
            Some("a;b=c.txt"),
        );
        check(
            r#"form-data; NAME=file ; FileName=up.txt"#,
            Some("file"),
            Some("up.txt"),
        );
        check(
            r#"form-data; name="file"; filename="a\"b\\c""#,
            Some("file"),
            Some(r#"a"b\c"#),
        );
        check(
            r#"form-data; name="file"; filename="nö你.txt""#,
            Some("file"),
            Some("nö你.txt"),
        );
        check(r#"form-data; name="file""#, Some("file"), None);
        check(
            r#"form-data; name="file"; filename="open"#,
            Some("file"),
            Some("open"),
        );
        check("form-data", None, None);
        check("", None, None);
    }

    #[test]
    fn a_quoted_name_reads_back_as_itself() {
        for name in ["up.txt", "a b", r#"q"u\o"#, "nö你.txt", ";=;"] {
            let header = format!("form-data; filename={}", quoted(name).unwrap());
            check(&header, None, Some(name));
        }
        assert_eq!(quoted("a\r\nb"), None);
    }
}
