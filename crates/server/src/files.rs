//! Files of a session over HTTP. Content goes through as streams and is never held whole; the
//! pace is that of the slower end.

mod archive;
mod content;
mod places;
mod refusal;
mod watch;

use http::HeaderValue;
use zareba_api::FileStatus;
use zareba_session::AdmittedSandbox;
use zareba_wire::files;

use self::refusal::Refused;
use crate::{app::App, auth::Principal, error::ApiError};

pub(crate) use archive::{pack, unpack};
pub(crate) use content::{read, remove, write};
pub(crate) use places::{list, make_directory, rename, status};
pub(crate) use watch::watch;

/// The sandbox of a session that this caller may see, awake.
async fn sandbox(
    app: &App,
    principal: &Principal,
    session: &str,
) -> Result<AdmittedSandbox, Refused> {
    let session = app.session(principal, session).await?;
    Ok(app.sandbox(principal, &session).await?)
}

/// What is told of a file.
fn told(status: files::FileStatus) -> FileStatus {
    let modified = jiff::Timestamp::try_from(status.modified);
    FileStatus {
        kind: kind(status.kind),
        size: status.size,
        mode: format!("{:04o}", status.mode),
        modified: modified.unwrap_or_default(),
        version: status.version,
        sha256: status.sha256,
        target: status.target,
    }
}

fn kind(kind: files::FileKind) -> zareba_api::FileKind {
    match kind {
        files::FileKind::File => zareba_api::FileKind::File,
        files::FileKind::Directory => zareba_api::FileKind::Directory,
        files::FileKind::Link => zareba_api::FileKind::Link,
        files::FileKind::Pipe => zareba_api::FileKind::Pipe,
        files::FileKind::Socket => zareba_api::FileKind::Socket,
        files::FileKind::Device => zareba_api::FileKind::Device,
    }
}

/// The tag of a file: its hash when that is known, else its version.
fn tag(status: &files::FileStatus) -> Option<HeaderValue> {
    let text = match &status.sha256 {
        Some(digits) => format!("\"sha256:{digits}\""),
        None => format!("\"{}\"", status.version),
    };
    HeaderValue::try_from(text).ok()
}

/// Permissions in octal digits.
fn mode(text: Option<&str>) -> Result<Option<u32>, ApiError> {
    let parsed = text.map(|text| u32::from_str_radix(text, 8));
    match parsed {
        None => Ok(None),
        Some(Ok(mode)) if mode <= 0o777 => Ok(Some(mode)),
        Some(_) => Err(ApiError::invalid("`mode` is an octal number up to 777")),
    }
}

/// How a browser is told to save what it gets, whatever it is (FA-10).
fn attachment(name: &str) -> HeaderValue {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let mut text = "attachment; filename*=UTF-8''".to_owned();
    for byte in name.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("attachment"))
}

/// The last name of a path, for those who save it.
fn last_name(path: &str) -> &str {
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.filter(|name| !name.is_empty()).unwrap_or("root")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FA-10.
    #[test]
    fn names_to_save_under_carry_no_header_of_their_own() {
        for (path, expected) in [
            ("/a/b.txt", "attachment; filename*=UTF-8''b.txt"),
            ("a b/", "attachment; filename*=UTF-8''a%20b"),
            ("/", "attachment; filename*=UTF-8''root"),
            (
                "x\r\nset-cookie: a",
                "attachment; filename*=UTF-8''x%0D%0Aset-cookie%3A%20a",
            ),
            ("ä\"", "attachment; filename*=UTF-8''%C3%A4%22"),
        ] {
            assert_eq!(attachment(last_name(path)), expected, "{path:?}");
        }
    }
}
