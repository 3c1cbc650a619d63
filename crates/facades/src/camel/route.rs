//! Which route a path means: exactly one, the same with slashes behind it, or none.

use std::borrow::Cow;

use http::{Method, Uri};

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// To the tool of this name.
    Tool(String),
    /// To a page of the server's own.
    Page(Page),
    /// To one of those, with slashes too many behind it.
    SlashLess,
    /// Nowhere.
    None,
}

/// Pages of the server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Health,
    OpenApi,
    Docs,
    Redoc,
}

impl Page {
    fn named(name: &str) -> Option<Self> {
        match name {
            "health" => Some(Self::Health),
            "openapi.json" => Some(Self::OpenApi),
            "docs" => Some(Self::Docs),
            "redoc" => Some(Self::Redoc),
            _ => None,
        }
    }

    /// Whether a method may ask for it. Only what FastAPI adds by itself answers to HEAD.
    pub(super) fn is_for(self, method: &Method) -> bool {
        *method == Method::GET || (*method == Method::HEAD && self != Self::Health)
    }

    /// The same as the header `Allow` says it.
    pub(super) fn methods(self) -> &'static str {
        match self {
            Self::Health => "GET",
            Self::OpenApi | Self::Docs | Self::Redoc => "GET, HEAD",
        }
    }
}

/// Pages come before tools, as in the original.
pub(super) fn find(path: &str, has_tool: impl Fn(&str) -> bool) -> Route {
    let Some(name) = decoded(path) else {
        return Route::None;
    };
    let Some(name) = name.strip_prefix('/') else {
        return Route::None;
    };
    let known = |name: &str| Page::named(name).is_some() || has_tool(name);
    match Page::named(name) {
        Some(page) => Route::Page(page),
        None if has_tool(name) => Route::Tool(name.to_owned()),
        None if name.ends_with('/') && known(name.trim_end_matches('/')) => Route::SlashLess,
        None => Route::None,
    }
}

/// The target without slashes at the end of its path, on the same host.
pub(super) fn without_slashes(uri: &Uri) -> String {
    let path = uri.path().trim_end_matches('/');
    match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// A path with `%` and two digits made bytes again; `None` when that is no text.
fn decoded(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| first == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = match byte {
            Some(_) => behind.get(2..).unwrap_or_default(),
            None => behind,
        };
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_a_page_a_tool_or_nowhere() {
        let route = |path: &str| find(path, |name| name == "math_add");
        assert_eq!(route("/math_add"), Route::Tool("math_add".to_owned()));
        assert_eq!(route("/math%5fadd"), Route::Tool("math_add".to_owned()));
        assert_eq!(route("/health"), Route::Page(Page::Health));
        assert_eq!(route("/hea%6cth"), Route::Page(Page::Health));
        assert_eq!(route("/openapi.json"), Route::Page(Page::OpenApi));
        for path in ["/health/", "/math_add/", "/docs//"] {
            assert_eq!(route(path), Route::SlashLess, "{path}");
        }
        for path in [
            "/",
            "",
            "//",
            "//health",
            "/nope",
            "/nope/",
            "/math_add/x",
            "/%ff",
            "/%",
        ] {
            assert_eq!(route(path), Route::None, "{path}");
        }
    }

    #[test]
    fn slashes_are_taken_off_and_the_query_stays() {
        let shown = |uri: &str| without_slashes(&uri.parse().unwrap());
        assert_eq!(shown("/health/"), "/health");
        assert_eq!(shown("http://host/a/docs//?x=1"), "/a/docs?x=1");
    }
}
