//! From the description of an image to what is to be unpacked.

use super::{
    blobs::Blobs,
    documents::{Configuration, Descriptor, Document, Kind, Saved, bad, parse},
};
use crate::{
    Digest, ImageName,
    error::{DocumentProblem, ImageError},
    image::ImageConfig,
    limits::{LAYERS_MAX, LimitExceeded},
    platform,
};

/// How deeply indexes may be nested.
const INDEX_DEPTH_MAX: usize = 3;
/// What errors list of the images or platforms that there are.
const LISTED_MAX: usize = 20;
/// Annotations that carry the name of an image, the better one first.
const NAMES: [&str; 2] = [
    "io.containerd.image.name",
    "org.opencontainers.image.ref.name",
];

const INDEX: &str = "index";
const MANIFEST: &str = "manifest";
const CONFIGURATION: &str = "configuration";

/// An image that was chosen and described, with nothing of it unpacked yet.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The digest of the configuration, which holds those of all layers.
    pub(crate) id: Digest,
    pub(crate) config: ImageConfig,
    pub(crate) created: Option<String>,
    /// The lowest first.
    pub(crate) layers: Vec<PlannedLayer>,
    /// What the image is called where it comes from.
    pub(crate) names: Vec<ImageName>,
}

#[derive(Debug)]
pub(crate) struct PlannedLayer {
    /// The digest without compression, by which the store knows the layer.
    pub(crate) diff_id: Digest,
    /// Where it is.
    pub(crate) blob: String,
    /// Digest and size as they are transported; the older format does not say.
    pub(crate) expected: Option<(Digest, u64)>,
}

/// One image among those that a source holds.
struct Candidate<T> {
    names: Vec<String>,
    what: T,
}

/// Chooses the image for this machine, by its name when there are several.
pub(crate) fn plan(blobs: &Blobs, wanted: Option<&ImageName>) -> Result<Plan, ImageError> {
    // Newer archives have both descriptions, and this one has a digest for everything.
    if let Some(index) = blobs.read_document("index.json", INDEX)? {
        return plan_layout(blobs, &index, wanted);
    }
    match blobs.read_document("manifest.json", MANIFEST)? {
        Some(saved) => plan_saved(blobs, &saved, wanted),
        None => Err(ImageError::NotAnImage {
            path: blobs.path().to_owned(),
        }),
    }
}

fn plan_layout(
    blobs: &Blobs,
    index: &[u8],
    wanted: Option<&ImageName>,
) -> Result<Plan, ImageError> {
    let document: Document = parse(index, INDEX)?;
    let Kind::Index(manifests) = document.kind().map_err(|problem| bad(INDEX, problem))? else {
        return Err(bad(INDEX, DocumentProblem::NoKind));
    };
    let mut present = Vec::new();
    let mut fitting = Vec::new();
    for descriptor in manifests {
        let names = descriptor_names(&descriptor);
        if let Some(what) = choose(blobs, descriptor, 0, &mut present)? {
            fitting.push(Candidate { names, what });
        }
    }
    if fitting.is_empty() && !present.is_empty() {
        return Err(no_platform(present));
    }
    let chosen = pick(fitting, wanted, |a, b| a.0.digest == b.0.digest)?;
    let (config, layers) = chosen.what;
    let text = checked_document(blobs, &config, CONFIGURATION)?;
    let mut located = Vec::new();
    for layer in layers.into_iter().take(LAYERS_MAX + 1) {
        let digest = Digest::parse(&layer.digest).map_err(|error| bad(MANIFEST, error))?;
        located.push((blob_name(&digest), Some((digest, layer.size))));
    }
    describe(&text, located, &chosen.names)
}

/// Follows a descriptor to the manifest for this machine. Platforms that are there and do not
/// fit are noted.
fn choose(
    blobs: &Blobs,
    descriptor: Descriptor,
    depth: usize,
    present: &mut Vec<String>,
) -> Result<Option<(Descriptor, Vec<Descriptor>)>, ImageError> {
    if depth > INDEX_DEPTH_MAX {
        return Err(bad(INDEX, DocumentProblem::TooDeep));
    }
    if let Some(platform) = &descriptor.platform
        && !platform::fits(&platform.os, &platform.architecture)
    {
        if present.len() < LISTED_MAX && platform.os != "unknown" {
            present.push(shown(&format!("{}/{}", platform.os, platform.architecture)));
        }
        return Ok(None);
    }
    let text = checked_document(blobs, &descriptor, MANIFEST)?;
    let document: Document = parse(&text, MANIFEST)?;
    match document.kind().map_err(|problem| bad(MANIFEST, problem))? {
        Kind::Manifest { config, layers } => Ok(Some((config, layers))),
        Kind::Index(manifests) => {
            for inner in manifests {
                if let Some(found) = choose(blobs, inner, depth + 1, present)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
    }
}

fn plan_saved(blobs: &Blobs, saved: &[u8], wanted: Option<&ImageName>) -> Result<Plan, ImageError> {
    let saved: Vec<Saved> = parse(saved, MANIFEST)?;
    let candidates = saved.into_iter().map(|saved| Candidate {
        names: saved.repo_tags.clone().unwrap_or_default(),
        what: saved,
    });
    let chosen = pick(candidates.collect(), wanted, |a, b| a.config == b.config)?;
    let Saved { config, layers, .. } = chosen.what;
    let text = blobs.read_document(&config, CONFIGURATION)?;
    let text = text.ok_or_else(|| missing(&config))?;
    // The name of the configuration is its digest, in one of two spellings.
    let stem = config.rsplit('/').next().unwrap_or(&config);
    let stem = stem.strip_suffix(".json").unwrap_or(stem);
    if let Ok(expected) = Digest::parse(&format!("sha256:{stem}")) {
        check_digest(&config, expected, &text)?;
    }
    let located = layers.into_iter().map(|layer| (layer, None));
    describe(&text, located.take(LAYERS_MAX + 1).collect(), &chosen.names)
}

/// The one image that there is, or the one that has the name.
fn pick<T>(
    mut candidates: Vec<Candidate<T>>,
    wanted: Option<&ImageName>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Result<Candidate<T>, ImageError> {
    let is_wanted =
        |name: &String| wanted.is_some() && ImageName::parse(name).ok().as_ref() == wanted;
    let by_name = candidates
        .iter()
        .position(|candidate| candidate.names.iter().any(is_wanted));
    if let Some(index) = by_name {
        return Ok(candidates.swap_remove(index));
    }
    let Some(mut first) = candidates.pop() else {
        return Err(bad(INDEX, DocumentProblem::Empty));
    };
    // An image with several names may be listed once for each.
    if candidates
        .iter()
        .all(|other| is_same(&other.what, &first.what))
    {
        first
            .names
            .extend(candidates.into_iter().flat_map(|other| other.names));
        return Ok(first);
    }
    let all = candidates.iter().chain([&first]);
    let names = all.flat_map(|candidate| &candidate.names).take(LISTED_MAX);
    Err(ImageError::SeveralImages {
        names: names.map(|name| shown(name)).collect(),
    })
}

fn describe(
    text: &[u8],
    located: Vec<(String, Option<(Digest, u64)>)>,
    names: &[String],
) -> Result<Plan, ImageError> {
    let configuration: Configuration = parse(text, CONFIGURATION)?;
    let os = configuration.os.as_deref().unwrap_or(platform::OS);
    let architecture = configuration.architecture.as_deref();
    if !platform::fits(os, architecture.unwrap_or(platform::architecture())) {
        let present = format!("{os}/{}", architecture.unwrap_or_default());
        return Err(no_platform(vec![shown(&present)]));
    }
    let diff_ids = configuration.rootfs.diff_ids;
    if located.len() > LAYERS_MAX {
        return Err(LimitExceeded::Layers.into());
    }
    if located.len() != diff_ids.len() {
        let (layers, digests) = (located.len(), diff_ids.len());
        let problem = DocumentProblem::LayerCount { layers, digests };
        return Err(bad(CONFIGURATION, problem));
    }
    let mut layers = Vec::new();
    for ((blob, expected), diff_id) in located.into_iter().zip(diff_ids) {
        layers.push(PlannedLayer {
            diff_id: Digest::parse(&diff_id).map_err(|error| bad(CONFIGURATION, error))?,
            blob,
            expected,
        });
    }
    let defaults = configuration.config.unwrap_or_default();
    Ok(Plan {
        id: Digest::of(text),
        config: ImageConfig {
            env: defaults.env.unwrap_or_default(),
            working_dir: defaults.working_dir.filter(|text| !text.is_empty()),
            user: defaults.user.filter(|text| !text.is_empty()),
            entrypoint: defaults.entrypoint.unwrap_or_default(),
            cmd: defaults.cmd.unwrap_or_default(),
            labels: defaults.labels.unwrap_or_default(),
        },
        created: configuration.created,
        layers,
        names: names
            .iter()
            .filter_map(|name| ImageName::parse(name).ok())
            .collect(),
    })
}

/// The names that annotations give. A bare tag, which some tools write, names nothing.
fn descriptor_names(descriptor: &Descriptor) -> Vec<String> {
    let annotations = descriptor.annotations.as_ref();
    let name = NAMES.into_iter().find_map(|key| annotations?.get(key));
    let is_whole = |name: &&String| name.contains([':', '/', '@']);
    name.filter(is_whole).cloned().into_iter().collect()
}

/// Reads a small part whose digest and size are known.
fn checked_document(
    blobs: &Blobs,
    descriptor: &Descriptor,
    document: &'static str,
) -> Result<Vec<u8>, ImageError> {
    let expected = Digest::parse(&descriptor.digest).map_err(|error| bad(document, error))?;
    let name = blob_name(&expected);
    let text = blobs.read_document(&name, document)?;
    let text = text.ok_or_else(|| missing(&name))?;
    check_digest(&name, expected, &text)?;
    Ok(text)
}

fn check_digest(blob: &str, expected: Digest, text: &[u8]) -> Result<(), ImageError> {
    let found = Digest::of(text);
    if found == expected {
        return Ok(());
    }
    Err(ImageError::DigestMismatch {
        blob: blob.to_owned(),
        expected,
        found,
    })
}

fn blob_name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn missing(blob: &str) -> ImageError {
    ImageError::MissingBlob { blob: shown(blob) }
}

fn no_platform(mut present: Vec<String>) -> ImageError {
    present.dedup();
    ImageError::NoPlatform {
        wanted: format!("{}/{}", platform::OS, platform::architecture()),
        present,
    }
}

/// A text from outside, safe to print and short.
fn shown(text: &str) -> String {
    text.escape_debug().take(200).collect()
}
