//! The texts that describe images: indexes, manifests, configurations.
//!
//! Read leniently where the formats allow things to be missing or null, and not further. Depth is
//! bounded by the parser, length before it is called.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};

use crate::error::{DocumentProblem, ImageError};

/// An index or a manifest; which one is told by what is in it.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

/// The two things that a document can be.
#[derive(Debug)]
pub(super) enum Kind {
    Index(Vec<Descriptor>),
    Manifest {
        config: Descriptor,
        layers: Vec<Descriptor>,
    },
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Descriptor {
    pub(super) digest: String,
    pub(super) size: u64,
    pub(super) platform: Option<Platform>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Platform {
    pub(super) os: String,
    pub(super) architecture: String,
}

/// What `docker save` writes as `manifest.json`, once for each image.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Saved {
    pub(super) config: String,
    pub(super) repo_tags: Option<Vec<String>>,
    pub(super) layers: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Configuration {
    pub(super) created: Option<String>,
    pub(super) os: Option<String>,
    pub(super) architecture: Option<String>,
    pub(super) config: Option<Defaults>,
    pub(super) rootfs: Root,
}

#[derive(Debug, Deserialize)]
pub(super) struct Root {
    pub(super) diff_ids: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Defaults {
    pub(super) env: Option<Vec<String>>,
    pub(super) working_dir: Option<String>,
    pub(super) user: Option<String>,
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) cmd: Option<Vec<String>>,
    pub(super) labels: Option<BTreeMap<String, String>>,
}

impl Document {
    /// Both at once would be read differently by different tools, so it is refused.
    pub(super) fn kind(self) -> Result<Kind, DocumentProblem> {
        match (self.manifests, self.config, self.layers) {
            (Some(manifests), None, None) => Ok(Kind::Index(manifests)),
            (None, Some(config), Some(layers)) => Ok(Kind::Manifest { config, layers }),
            (Some(_), _, _) => Err(DocumentProblem::TwoKinds),
            (None, _, _) => Err(DocumentProblem::NoKind),
        }
    }
}

/// Parses a text whose length has been checked.
pub(super) fn parse<T: DeserializeOwned>(
    text: &[u8],
    document: &'static str,
) -> Result<T, ImageError> {
    serde_json::from_slice(text).map_err(|error| bad(document, error))
}

pub(super) fn bad(document: &'static str, problem: impl Into<DocumentProblem>) -> ImageError {
    let source = problem.into();
    ImageError::BadDocument { document, source }
}
