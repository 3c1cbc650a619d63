//! The way from a name to a layout on disk.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{
    Url,
    header::{CONTENT_TYPE, HeaderMap},
};

use super::{
    Part, PullError, PullOptions, blob,
    connection::{Connection, Wanted, read_body},
    documents::{self, ACCEPTED, Descriptor, Document, Manifest},
    layout::Layout,
    tries::Tries,
};
use crate::{Digest, ImageName, Progress, Stage, limits::DOCUMENT_BYTES_MAX};

/// Layers on their way at once. More would not be faster, and registries count.
const LAYERS_AT_ONCE: usize = 3;

/// The digest of what is sent, as a registry knows it.
const CONTENT_DIGEST: &str = "docker-content-digest";

/// An image that lies complete and checked in a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledImage {
    pub name: ImageName,
    /// What the name stood for, an index or a manifest. With `@` and this behind its repository
    /// the image will be the same one for ever (DK-10).
    pub resolved: Digest,
    pub manifest: Digest,
    /// Also the image's id.
    pub configuration: Digest,
    /// Bytes of configuration and layers in the registry, fetched or not.
    pub size_bytes: u64,
    /// The layout's directory.
    pub layout: PathBuf,
}

/// Fetches an image into the directory `into`, which becomes an OCI image layout. It should be
/// new, such as one in the scratch space of a store.
///
/// Dropping the future stops everything. What is then in `into` is no layout, and nothing is
/// anywhere else.
pub async fn pull(
    name: &ImageName,
    into: &Path,
    options: &PullOptions<'_>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<PulledImage, PullError> {
    let pull = Pull {
        name,
        options,
        connection: Connection::new(name, options)?,
        layout: Layout::create(into)?,
        progress: Mutex::new(progress),
    };
    let limit = options.patience.overall;
    let (resolved, manifest, content) = tokio::time::timeout(limit, pull.run())
        .await
        .map_err(|_| PullError::TooSlow { limit })??;
    Ok(PulledImage {
        name: name.clone(),
        resolved,
        manifest: manifest.digest,
        size_bytes: content.size(),
        configuration: content.configuration.digest,
        layout: into.to_owned(),
    })
}

/// One pull on its way.
struct Pull<'a> {
    name: &'a ImageName,
    options: &'a PullOptions<'a>,
    connection: Connection,
    layout: Layout,
    /// Shared by the layers that come at the same time.
    progress: Mutex<&'a mut (dyn FnMut(Progress) + Send)>,
}

/// What is known of a document before it comes.
#[derive(Default)]
struct Expected {
    digest: Option<Digest>,
    size: Option<u64>,
}

/// A document with its digest, which has been checked.
struct Fetched {
    text: Vec<u8>,
    digest: Digest,
    content_type: Option<String>,
}

impl Pull<'_> {
    async fn run(&self) -> Result<(Digest, Descriptor, Manifest), PullError> {
        self.report(Stage::Resolving, None, (0, None));
        let (resolved, descriptor, manifest) = self.manifest().await?;
        let (size, limit) = (manifest.size(), self.options.image_bytes_max);
        if size > limit {
            return Err(PullError::ImageTooLarge { size, limit });
        }
        let wanted = self.wanted(&manifest).await?;
        let layers: Vec<_> = wanted.into_iter().map(|layer| self.layer(layer)).collect();
        stream::iter(layers)
            .buffer_unordered(LAYERS_AT_ONCE)
            .try_collect::<()>()
            .await?;
        self.layout
            .finish(self.name, &descriptor, &self.options.platform)?;
        self.report(Stage::Finished, None, (size, Some(size)));
        Ok((resolved, descriptor, manifest))
    }

    /// The manifest for the platform, and the digest of what the name stands for.
    async fn manifest(&self) -> Result<(Digest, Descriptor, Manifest), PullError> {
        let part = Part::Manifest {
            image: self.name.to_string(),
        };
        let expected = Expected {
            digest: self.name.digest().cloned(),
            size: None,
        };
        let url = self.connection.address.manifest(&self.name.reference());
        let fetched = self.document(&part, &url, expected).await?;
        let resolved = fetched.digest.clone();
        let entries = match fetched.parse(&part)? {
            Document::Manifest(manifest) => return self.keep(resolved, fetched, manifest),
            Document::Index(entries) => entries,
        };
        let chosen = documents::choose(&part, &entries, &self.options.platform)?;
        let part = Part::PlatformManifest {
            digest: chosen.digest.clone(),
        };
        let url = self.connection.address.manifest(&chosen.digest.to_string());
        let fetched = self.document(&part, &url, chosen.into()).await?;
        match fetched.parse(&part)? {
            Document::Manifest(manifest) => self.keep(resolved, fetched, manifest),
            Document::Index(_) => Err(documents::invalid(&part, "it is an index in an index")),
        }
    }

    fn keep(
        &self,
        resolved: Digest,
        fetched: Fetched,
        manifest: Manifest,
    ) -> Result<(Digest, Descriptor, Manifest), PullError> {
        self.layout.put(&fetched.digest, &fetched.text)?;
        let descriptor = Descriptor {
            media_type: manifest.media_type.to_owned(),
            digest: fetched.digest,
            size: fetched.text.len() as u64,
        };
        Ok((resolved, descriptor, manifest))
    }

    /// Fetches the configuration, which says whether the layers are worth it, and which of them
    /// are there.
    async fn wanted<'m>(&self, manifest: &'m Manifest) -> Result<Vec<&'m Descriptor>, PullError> {
        let configuration = &manifest.configuration;
        let part = Part::Configuration {
            digest: configuration.digest.clone(),
        };
        let url = self.connection.address.blob(&configuration.digest);
        let expected = configuration.clone().into();
        let fetched = self.document(&part, &url, expected).await?;
        let platform = &self.options.platform;
        let diff_ids = documents::read_configuration(&part, &fetched.text, platform)?;
        self.layout.put(&fetched.digest, &fetched.text)?;
        manifest.wanted(&part, &diff_ids, |diff_id| {
            let has = self.options.have.is_some_and(|have| have(diff_id));
            if has {
                self.report(Stage::Shared, Some(diff_id), (0, None));
            }
            has
        })
    }

    async fn layer(&self, layer: &Descriptor) -> Result<(), PullError> {
        let report = |received| {
            let done = (received, Some(layer.size));
            self.report(Stage::Downloading, Some(&layer.digest), done);
        };
        report(0);
        let patience = &self.options.patience;
        blob::fetch(&self.connection, patience, &self.layout, layer, report).await
    }

    async fn document(
        &self,
        part: &Part,
        url: &Url,
        expected: Expected,
    ) -> Result<Fetched, PullError> {
        let mut tries = Tries::new(&self.options.patience);
        loop {
            match self.try_document(part, url, &expected).await {
                Ok(fetched) => return Ok(fetched),
                Err(failure) => tries.again(failure).await?,
            }
        }
    }

    async fn try_document(
        &self,
        part: &Part,
        url: &Url,
        expected: &Expected,
    ) -> Result<Fetched, PullError> {
        let wanted = Wanted {
            part,
            url,
            accept: accepted(part),
            skip: 0,
        };
        let response = self.connection.get(wanted).await?;
        let announced = match &expected.digest {
            Some(digest) => Some(digest.clone()),
            None => announced_digest(part, response.headers())?,
        };
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let content_type = content_type.map(str::to_owned);
        let text = read_body(part, response, DOCUMENT_BYTES_MAX).await?;
        let digest = checked(part, &text, announced, expected.size)?;
        Ok(Fetched {
            text,
            digest,
            content_type,
        })
    }

    fn report(&self, stage: Stage, digest: Option<&Digest>, (done, total): (u64, Option<u64>)) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        (*progress)(Progress {
            stage,
            digest: digest.cloned(),
            done_bytes: done,
            total_bytes: total,
        });
    }
}

impl Fetched {
    fn parse(&self, part: &Part) -> Result<Document, PullError> {
        Document::parse(part, self.content_type.as_deref(), &self.text)
    }
}

impl From<Descriptor> for Expected {
    fn from(descriptor: Descriptor) -> Self {
        Self {
            digest: Some(descriptor.digest),
            size: Some(descriptor.size),
        }
    }
}

fn accepted(part: &Part) -> &'static str {
    match part {
        Part::Manifest { .. } | Part::PlatformManifest { .. } => ACCEPTED,
        Part::Configuration { .. } | Part::Layer { .. } | Part::Token { .. } => "*/*",
    }
}

/// What the registry says that it sends; a way of saying it that cannot be checked is refused.
fn announced_digest(part: &Part, headers: &HeaderMap) -> Result<Option<Digest>, PullError> {
    let Some(header) = headers.get(CONTENT_DIGEST) else {
        return Ok(None);
    };
    let text = header.to_str().unwrap_or_default();
    documents::digest(part, text).map(Some)
}

/// The digest of a document, if it is the document that it should be.
fn checked(
    part: &Part,
    text: &[u8],
    expected: Option<Digest>,
    size: Option<u64>,
) -> Result<Digest, PullError> {
    let received = text.len() as u64;
    if let Some(declared) = size.filter(|declared| *declared != received) {
        return Err(PullError::SizeMismatch {
            part: part.clone(),
            declared,
            received,
        });
    }
    let actual = Digest::of(text);
    match expected {
        Some(expected) if expected != actual => Err(PullError::DigestMismatch {
            part: part.clone(),
            expected,
            actual,
        }),
        _ => Ok(actual),
    }
}
