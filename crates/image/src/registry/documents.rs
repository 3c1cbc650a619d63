//! Manifests and indexes, in the words of OCI and in Docker's.
//!
//! What a document is, is decided once and strictly: a text that could be read as a manifest by
//! one program and as an index by another is refused, since both have the same digest
//! (CVE-2021-41190).

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Part, Platform, PullError, error::shown};
use crate::{
    Digest,
    limits::{DOCUMENT_BYTES_MAX, LAYERS_MAX},
};

/// Most platforms that an index is listed with in an error.
const PRESENT_MAX: usize = 32;

const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_MANIFEST_1: &str = "application/vnd.docker.distribution.manifest.v1+json";

/// What is asked for, so that no registry translates into something older.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.docker.distribution.manifest.v2+json";

const CONFIGURATIONS: &[&str] = &[
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];

/// Layers that can be unpacked. Those that must be fetched from elsewhere are not among them.
const LAYERS: &[&str] = &[
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
];

/// Content that a document points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// What a name may stand for.
#[derive(Debug)]
pub(super) enum Document {
    /// One image for each of several platforms.
    Index(Vec<Entry>),
    Manifest(Manifest),
}

/// One line of an index.
#[derive(Debug)]
pub(super) struct Entry {
    descriptor: RawDescriptor,
}

/// One image.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) media_type: &'static str,
    pub(super) configuration: Descriptor,
    /// From the lowest on; an image may have one several times.
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDocument {
    media_type: Option<String>,
    manifests: Option<Vec<RawDescriptor>>,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    /// Only in the first version of Docker's format.
    fs_layers: Option<IgnoredAny>,
}

/// Size and digest are required also because every entry of a hostile list then costs its sender
/// more bytes than it costs us.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<RawPlatform>,
}

#[derive(Debug, Deserialize)]
struct RawPlatform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    variant: Option<String>,
}

/// The parts of an image's configuration that say what it runs on and is made of.
#[derive(Deserialize)]
struct RawConfiguration {
    os: Option<String>,
    architecture: Option<String>,
    rootfs: RawRoot,
}

#[derive(Deserialize)]
struct RawRoot {
    diff_ids: Vec<String>,
}

impl Document {
    /// Reads what came as `content_type`.
    pub(super) fn parse(
        part: &Part,
        content_type: Option<&str>,
        text: &[u8],
    ) -> Result<Self, PullError> {
        let raw: RawDocument = decode(part, text)?;
        let media_type = media_type(part, content_type, &raw)?;
        match (media_type, raw) {
            (
                OCI_INDEX | DOCKER_INDEX,
                RawDocument {
                    manifests: Some(manifests),
                    config: None,
                    layers: None,
                    fs_layers: None,
                    ..
                },
            ) => Ok(Self::Index(manifests.into_iter().map(Entry::new).collect())),
            (
                OCI_MANIFEST | DOCKER_MANIFEST,
                RawDocument {
                    config: Some(config),
                    layers: Some(layers),
                    manifests: None,
                    fs_layers: None,
                    ..
                },
            ) => Manifest::new(part, media_type, &config, &layers).map(Self::Manifest),
            (DOCKER_MANIFEST_1, _) => Err(PullError::UnsupportedMedia {
                part: part.clone(),
                media_type: DOCKER_MANIFEST_1.to_owned(),
            }),
            _ => Err(invalid(part, "it does not have the fields of its type")),
        }
    }
}

impl Entry {
    fn new(descriptor: RawDescriptor) -> Self {
        Self { descriptor }
    }

    fn is_for(&self, platform: &Platform) -> bool {
        let own = self.descriptor.platform.as_ref();
        own.is_some_and(|own| platform.is(&own.os, &own.architecture))
    }

    fn is_baseline_of(&self, platform: &Platform) -> bool {
        let own = self.descriptor.platform.as_ref();
        own.is_some_and(|own| platform.is_baseline(own.variant.as_deref()))
    }

    fn platform(&self) -> Option<String> {
        let own = self.descriptor.platform.as_ref()?;
        let name = match &own.variant {
            Some(variant) => format!("{}/{}/{variant}", own.os, own.architecture),
            None => format!("{}/{}", own.os, own.architecture),
        };
        // Builders list their notes about an image as images for nothing.
        (name != "unknown/unknown").then(|| shown(&name))
    }
}

/// The line of an index that is meant for `platform`. Of several variants it is the one that runs
/// everywhere, and only else the first. An index with one line that does not say what it is for
/// means that line; the configuration will tell.
pub(super) fn choose(
    part: &Part,
    entries: &[Entry],
    platform: &Platform,
) -> Result<Descriptor, PullError> {
    let fitting = || entries.iter().filter(|entry| entry.is_for(platform));
    let only = match entries {
        [only] if only.descriptor.platform.is_none() => Some(only),
        _ => None,
    };
    let chosen = fitting()
        .find(|entry| entry.is_baseline_of(platform))
        .or_else(|| fitting().next())
        .or(only)
        .ok_or_else(|| PullError::NoPlatform {
            wanted: platform.clone(),
            present: entries
                .iter()
                .filter_map(Entry::platform)
                .take(PRESENT_MAX)
                .collect(),
        })?;
    let chosen = checked(part, &chosen.descriptor, &[OCI_MANIFEST, DOCKER_MANIFEST])?;
    if chosen.size > DOCUMENT_BYTES_MAX {
        return Err(too_large(Part::PlatformManifest {
            digest: chosen.digest,
        }));
    }
    Ok(chosen)
}

impl Manifest {
    fn new(
        part: &Part,
        media_type: &'static str,
        config: &RawDescriptor,
        layers: &[RawDescriptor],
    ) -> Result<Self, PullError> {
        if layers.len() > LAYERS_MAX {
            return Err(invalid(part, "it has too many layers"));
        }
        let configuration = checked(part, config, CONFIGURATIONS)?;
        if configuration.size > DOCUMENT_BYTES_MAX {
            return Err(too_large(Part::Configuration {
                digest: configuration.digest,
            }));
        }
        let layers = layers
            .iter()
            .map(|layer| checked(part, layer, LAYERS))
            .collect::<Result<Vec<_>, _>>()?;
        check_sizes(part, &configuration, &layers)?;
        Ok(Self {
            media_type,
            configuration,
            layers,
        })
    }

    /// Bytes of the image as it is transferred.
    pub(super) fn size(&self) -> u64 {
        let layers = each_once(self.layers.iter());
        let sizes = layers.iter().map(|layer| layer.size);
        sizes.fold(self.configuration.size, u64::saturating_add)
    }

    /// The layers that the caller does not have, each once. `diff_ids` are what the configuration
    /// calls them.
    pub(super) fn wanted(
        &self,
        part: &Part,
        diff_ids: &[Digest],
        have: impl Fn(&Digest) -> bool,
    ) -> Result<Vec<&Descriptor>, PullError> {
        if diff_ids.len() != self.layers.len() {
            return Err(invalid(
                part,
                "it has another number of layers than its manifest",
            ));
        }
        let layers = self.layers.iter().zip(diff_ids);
        let wanted = layers.filter(|(_, diff_id)| !have(diff_id));
        Ok(each_once(wanted.map(|(layer, _)| layer)))
    }
}

/// Checks that a configuration is of an image for `platform`, and says what its layers are without
/// compression.
pub(super) fn read_configuration(
    part: &Part,
    configuration: &[u8],
    platform: &Platform,
) -> Result<Vec<Digest>, PullError> {
    let raw: RawConfiguration = decode(part, configuration)?;
    let os = raw.os.unwrap_or_default();
    let architecture = raw.architecture.unwrap_or_default();
    if !platform.is(&os, &architecture) {
        return Err(PullError::NoPlatform {
            wanted: platform.clone(),
            present: vec![shown(&format!("{os}/{architecture}"))],
        });
    }
    let diff_ids = raw.rootfs.diff_ids.iter();
    diff_ids.map(|text| digest(part, text)).collect()
}

pub(super) fn invalid(part: &Part, problem: &str) -> PullError {
    PullError::InvalidDocument {
        part: part.clone(),
        problem: problem.to_owned(),
    }
}

pub(super) fn too_large(part: Part) -> PullError {
    PullError::TooLarge {
        part,
        limit: DOCUMENT_BYTES_MAX,
    }
}

/// The decoder itself ends at a depth of 128.
fn decode<'a, T: Deserialize<'a>>(part: &Part, text: &'a [u8]) -> Result<T, PullError> {
    serde_json::from_slice(text).map_err(|error| PullError::InvalidDocument {
        part: part.clone(),
        problem: shown(&error.to_string()),
    })
}

/// What a document is: as it says itself, else as it was sent, else as it looks. When the first
/// two both say something, they must agree.
fn media_type(
    part: &Part,
    content_type: Option<&str>,
    raw: &RawDocument,
) -> Result<&'static str, PullError> {
    let sent = content_type
        .and_then(|value| value.split(';').next())
        .and_then(|value| known(value.trim()));
    match (&raw.media_type, sent) {
        (Some(own), sent) => {
            let own = known(own).ok_or_else(|| PullError::UnsupportedMedia {
                part: part.clone(),
                media_type: shown(own),
            })?;
            match sent {
                Some(sent) if sent != own => Err(invalid(
                    part,
                    "its type is not the one that it was sent with",
                )),
                _ => Ok(own),
            }
        }
        (None, Some(sent)) => Ok(sent),
        (None, None) if raw.fs_layers.is_some() => Ok(DOCKER_MANIFEST_1),
        (None, None) if raw.manifests.is_some() => Ok(OCI_INDEX),
        (None, None) => Ok(OCI_MANIFEST),
    }
}

fn known(media_type: &str) -> Option<&'static str> {
    [
        OCI_INDEX,
        OCI_MANIFEST,
        DOCKER_INDEX,
        DOCKER_MANIFEST,
        DOCKER_MANIFEST_1,
    ]
    .into_iter()
    .find(|known| *known == media_type)
}

fn checked(
    part: &Part,
    raw: &RawDescriptor,
    media_types: &[&str],
) -> Result<Descriptor, PullError> {
    let digest = digest(part, &raw.digest)?;
    if !media_types.contains(&raw.media_type.as_str()) {
        return Err(PullError::UnsupportedMedia {
            part: part.clone(),
            media_type: shown(&raw.media_type),
        });
    }
    Ok(Descriptor {
        media_type: raw.media_type.clone(),
        digest,
        size: raw.size,
    })
}

pub(super) fn digest(part: &Part, text: &str) -> Result<Digest, PullError> {
    Digest::parse(text).map_err(|source| PullError::InvalidDigest {
        part: part.clone(),
        source,
    })
}

/// One content has one size; a document that says two is lying with one of them.
fn check_sizes(
    part: &Part,
    configuration: &Descriptor,
    layers: &[Descriptor],
) -> Result<(), PullError> {
    let mut sizes = HashMap::from([(&configuration.digest, configuration.size)]);
    for layer in layers {
        let known = sizes.insert(&layer.digest, layer.size);
        if known.is_some_and(|size| size != layer.size) {
            return Err(invalid(part, "it gives one layer two sizes"));
        }
    }
    Ok(())
}

fn each_once<'a>(layers: impl Iterator<Item = &'a Descriptor>) -> Vec<&'a Descriptor> {
    let mut seen = HashSet::new();
    layers.filter(|layer| seen.insert(&layer.digest)).collect()
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
