//! Routes in documents: those below `/v1` are in the OpenAPI document with their method, others are
//! written in the code of a server.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Marked, with_messages};
use crate::tidy::report::Finding;
use crate::tidy::repository::Repository;

const DOCUMENT: &str = "openapi/zareba.json";

/// Crates whose text holds the routes that the OpenAPI document does not describe.
const SERVERS: &[&str] = &[
    "crates/wire/src/",
    "crates/facades/src/",
    "crates/server/src/",
];

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// Paths of other programs' APIs, and what the code puts together from pieces.
const ELSEWHERE: &[&str] = &["/v1/traces", "/docs", "/redoc"];

pub(in crate::tidy) fn check(repository: &Repository) -> Vec<Finding> {
    let operations = operations(repository.text(DOCUMENT).unwrap_or_default());
    let mut findings = Vec::new();
    for (path, pieces) in with_messages(repository) {
        for piece in pieces {
            for route in routes(&piece) {
                if !exists(repository, &operations, &route) {
                    let message = format!("no server has the route `{}`", route.spelt());
                    findings.push(Finding::at_line(path, route.line, message));
                }
            }
        }
    }
    findings
}

/// Method and path of every operation, the method in capitals.
fn operations(document: &str) -> BTreeSet<(String, String)> {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let paths = document.get("paths").and_then(Value::as_object);
    let all = paths.into_iter().flatten().flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(|(method, _)| (method.to_uppercase(), path.clone()))
    });
    all.collect()
}

/// A path, with the method if there is one in front of it.
struct Route<'a> {
    line: usize,
    method: Option<&'a str>,
    path: &'a str,
}

impl Route<'_> {
    fn spelt(&self) -> String {
        match self.method {
            Some(method) => format!("{method} {}", self.path),
            None => self.path.to_owned(),
        }
    }
}

/// Paths below `/v1`, and paths that follow a method.
fn routes<'a>(piece: &Marked<'a>) -> Vec<Route<'a>> {
    let mut found = Vec::new();
    for (index, line) in piece.text.lines().enumerate() {
        let mut method = None;
        for word in line.split_whitespace() {
            let word = word.trim_matches(['"', '\'', '(', ')', ',', ';']);
            let word = word.split_once("\\|").map_or(word, |(first, _)| first);
            let path = match word.find("/v1/") {
                Some(at) => &word[at..],
                None if method.is_some() && word.starts_with('/') => word,
                None => "",
            };
            let path = path.split(['?', '#', '"', '\'']).next().unwrap_or_default();
            if !path.is_empty() {
                found.push(Route {
                    line: piece.line + index,
                    method,
                    path,
                });
            }
            method = METHODS.contains(&word).then_some(word);
        }
    }
    found
}

fn exists(
    repository: &Repository,
    operations: &BTreeSet<(String, String)>,
    route: &Route<'_>,
) -> bool {
    if ELSEWHERE.contains(&route.path) || route.path.starts_with("/<") {
        return true;
    }
    if !route.path.starts_with("/v1/") {
        return is_in_code(repository, route.path);
    }
    operations.iter().any(|(method, path)| {
        route.method.is_none_or(|named| named == method) && is_like(path, route.path)
    })
}

/// Whether `path` is `template` with its parameters filled in, or shortened by `…`.
fn is_like(template: &str, path: &str) -> bool {
    let mut expected = template.split('/');
    for part in path.split('/') {
        if matches!(part, "…" | "..." | "*") {
            return true;
        }
        match expected.next() {
            Some(name) if name == part => {}
            Some(name) if name.starts_with('{') && !part.is_empty() => {}
            _ => return false,
        }
    }
    expected.next().is_none()
}

fn is_in_code(repository: &Repository, path: &str) -> bool {
    let literal = format!("{path}\"");
    repository
        .rust_sources()
        .filter(|(file, _)| SERVERS.iter().any(|server| file.starts_with(server)))
        .any(|(_, text)| text.contains(&literal))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAPI: &str = r#"{"paths": {
        "/v1/sessions": {"get": {}, "post": {}},
        "/v1/sessions/{session}/actions": {"post": {}}
    }}"#;

    fn check_document(text: &str) -> Vec<(Option<usize>, String)> {
        let repository = Repository::of(&[
            (DOCUMENT, OPENAPI),
            (
                "crates/wire/src/server/routes.rs",
                ".get(\"/alive\", alive)",
            ),
            ("docs/a.md", text),
        ]);
        let found = check(&repository).into_iter();
        found.map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn routes_that_exist_pass_with_any_parameter() {
        let text = "`GET /v1/sessions?limit=3`, `POST /v1/sessions/{id}/actions`, `/v1/sessions/…`\n\
                    and `GET /alive`. A path such as /v1/nowhere in prose is not judged.\n\
                    ```sh\ncurl \"$URL/v1/sessions/$ID/actions\" -d '{}'\n```\n";
        assert_eq!(check_document(text), []);
    }

    #[test]
    fn routes_and_methods_that_do_not_exist_are_found() {
        let text = "`DELETE /v1/sessions` and\n`/v1/session`\n```sh\ncurl -s \\\n  $URL/v1/sessions/a/b\n\
                    ```\n`GET /alife`\n";
        let found: Vec<(Option<usize>, String)> = check_document(text);
        assert_eq!(
            found,
            [
                (Some(1), "DELETE /v1/sessions"),
                (Some(2), "/v1/session"),
                (Some(5), "/v1/sessions/a/b"),
                (Some(7), "GET /alife"),
            ]
            .map(|(line, route)| (line, format!("no server has the route `{route}`")))
        );
    }
}
