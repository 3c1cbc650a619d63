//! The parameters of requests for files. Unknown ones are refused, because a misspelt condition
//! would otherwise be none.

use axum::extract::Query;
use http::Uri;
use serde::Deserialize;

use super::{super::answer::Refusal, bad_request};
use crate::files::{ByteRange, Depth, Digest, Expected, Links, Parents};

/// How a range is written.
const RANGE_WORDS: &str = "`FIRST-LAST`, `FIRST-` or `-COUNT`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileQuery {
    path: Option<String>,
    links: Option<String>,
    digest: Option<String>,
    range: Option<String>,
    mode: Option<String>,
    parents: Option<String>,
    expected: Option<String>,
    after: Option<String>,
    limit: Option<String>,
    depth: Option<String>,
}

impl FileQuery {
    pub(super) fn of(uri: &Uri) -> Result<Self, Refusal> {
        match Query::try_from_uri(uri) {
            Ok(Query(query)) => Ok(query),
            Err(error) => Err(bad_request(format!("the parameters {}", error.body_text()))),
        }
    }

    pub(super) fn path(&self) -> Result<String, Refusal> {
        let missing = || bad_request("the parameter `path` is missing".to_owned());
        self.path.clone().ok_or_else(missing)
    }

    pub(super) fn after(&self) -> Option<String> {
        self.after.clone()
    }

    pub(super) fn links(&self) -> Result<Links, Refusal> {
        word(
            "links",
            &self.links,
            [("follow", Links::Follow), ("keep", Links::Keep)],
        )
    }

    pub(super) fn digest(&self) -> Result<Digest, Refusal> {
        let words = [("none", Digest::Skip), ("sha256", Digest::Sha256)];
        word("digest", &self.digest, words)
    }

    pub(super) fn parents(&self) -> Result<Parents, Refusal> {
        let words = [("require", Parents::Require), ("make", Parents::Make)];
        word("parents", &self.parents, words)
    }

    pub(super) fn depth(&self, default: Depth) -> Result<Depth, Refusal> {
        match &self.depth {
            None => Ok(default),
            given => word("depth", given, [("one", Depth::One), ("tree", Depth::Tree)]),
        }
    }

    pub(super) fn mode(&self) -> Result<Option<u32>, Refusal> {
        let Some(text) = &self.mode else {
            return Ok(None);
        };
        match u32::from_str_radix(text, 8) {
            Ok(mode) if mode <= 0o777 => Ok(Some(mode)),
            _ => Err(bad_request(format!(
                "the parameter `mode` is no octal number up to 777: {}",
                text.escape_debug()
            ))),
        }
    }

    pub(super) fn limit(&self, default: usize, max: usize) -> Result<usize, Refusal> {
        match self.limit.as_deref().map(str::parse) {
            None => Ok(default),
            Some(Ok(limit)) if (1..=max).contains(&limit) => Ok(limit),
            Some(_) => Err(bad_request(format!(
                "the parameter `limit` must be a number from 1 to {max}"
            ))),
        }
    }

    pub(super) fn range(&self) -> Result<Option<ByteRange>, Refusal> {
        let Some(text) = &self.range else {
            return Ok(None);
        };
        let range = ByteRange::from_words(text);
        let bad = || bad_request(format!("the parameter `range` must be {RANGE_WORDS}"));
        range.map(Some).ok_or_else(bad)
    }

    pub(super) fn expected(&self) -> Result<Option<Expected>, Refusal> {
        let Some(text) = &self.expected else {
            return Ok(None);
        };
        let expected = Expected::from_words(text);
        expected.map(Some).ok_or_else(|| {
            bad_request(
                "the parameter `expected` must be `absent`, `version:…` or `sha256:…`".to_owned(),
            )
        })
    }
}

/// One of a few words; the first is meant when none is given.
fn word<T: Copy, const N: usize>(
    name: &str,
    given: &Option<String>,
    words: [(&str, T); N],
) -> Result<T, Refusal> {
    let chosen = match given {
        None => words.first(),
        Some(given) => words.iter().find(|(word, _)| word == given),
    };
    chosen.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        bad_request(format!(
            "the parameter `{name}` must be {}",
            known.join(" or ")
        ))
    })
}
