//! The pages of the viewer. Everything that comes from outside is escaped.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::file::{Content, Kind};

/// The page that shows a file.
pub(super) fn of(path: &Path, content: &Content) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = escaped(&name);
    let media_type = content.kind.media_type();
    let (before, after) = match content.kind {
        Kind::Pdf => (
            format!("<object type=\"{media_type}\" width=\"100%\" height=\"1000\" data=\""),
            format!("\"><p>{name} cannot be shown by this browser.</p></object>"),
        ),
        Kind::Png | Kind::Jpeg | Kind::Gif => {
            ("<img src=\"".to_owned(), format!("\" alt=\"{name}\">"))
        }
    };
    let mut page = opening(&format!("File Viewer - {name}"));
    page.reserve(content.bytes.len() / 3 * 4 + 512);
    page.push_str(&before);
    page.push_str("data:");
    page.push_str(media_type);
    page.push_str(";base64,");
    STANDARD.encode_string(&content.bytes, &mut page);
    page.push_str(&after);
    page.push_str("</body></html>\n");
    page
}

/// The page that says why there is nothing to see.
pub(super) fn error(heading: &str, detail: &str) -> String {
    let (heading, detail) = (escaped(heading), escaped(detail));
    let mut page = opening("File Viewer");
    page.push_str(&format!("<h1>{heading}</h1>"));
    if !detail.is_empty() {
        page.push_str(&format!("<p>{detail}</p>"));
    }
    page.push_str("</body></html>\n");
    page
}

fn opening(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{title}</title></head><body>"
    )
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}
