//! Images for OpenHands' clients: those that were imported here, those of the Docker Engine, and building more.

use std::{error::Error, fs::File, io, path::PathBuf, sync::Arc};

use jiff::Timestamp;
use zareba_facades::openhands::{
    BuildService, ImageCatalog, ImageFacts, RemoteBuild, RemoteBuildError, RemoteBuildFault,
};
use zareba_image::{ImageError, ImageStore};
use zareba_protocol::ErrorClass;
use zareba_runtime_docker::{
    BuildError, BuildEvent, BuildListener, BuildManner, BuildOrder, BuildSource, ImageBuilder,
};
use zareba_session::Owner;
use zareba_wire::BoxFuture;

/// Images of this directory, which sandboxes of the runtime `native` have.
pub(super) struct StoredImages(pub(super) PathBuf);

impl ImageCatalog for StoredImages {
    fn find<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Option<ImageFacts>> {
        let (directory, name) = (self.0.clone(), image.to_owned());
        Box::pin(async move {
            let look = move || -> Result<Option<ImageFacts>, ImageError> {
                // Nothing was ever imported.
                if !directory.is_dir() {
                    return Ok(None);
                }
                let found = ImageStore::open(&directory)?.find(&name)?;
                let built = found.created.and_then(|created| created.parse().ok());
                Ok(Some(ImageFacts {
                    since: built.unwrap_or_else(Timestamp::now),
                    bytes: found.size_bytes,
                }))
            };
            let looked = tokio::task::spawn_blocking(look).await;
            looked.ok()?.unwrap_or_else(|error| {
                tracing::debug!(image, error = %chain(&error), "an image cannot be looked up");
                None
            })
        })
    }
}

/// Images of the Engine that sessions run on.
pub(super) struct EngineImages(pub(super) ImageBuilder);

impl ImageCatalog for EngineImages {
    fn find<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Option<ImageFacts>> {
        Box::pin(async move {
            let found = self.look(image).await;
            found.unwrap_or_else(|error| {
                // What may not be named looks like what is not there.
                tracing::debug!(image, error = %chain(&error), "an image cannot be looked up");
                None
            })
        })
    }
}

impl EngineImages {
    async fn look(&self, image: &str) -> Result<Option<ImageFacts>, BuildError> {
        if let Some(found) = self.0.find(image).await? {
            let since = found.created.parse().unwrap_or_else(|_| Timestamp::now());
            let bytes = found.bytes;
            return Ok(Some(ImageFacts { since, bytes }));
        }
        let is_to_be_had = self.0.may_fetch() && self.0.is_in_registry(image).await?;
        // A registry tells neither.
        let facts = ImageFacts {
            since: Timestamp::now(),
            bytes: 0,
        };
        Ok(is_to_be_had.then_some(facts))
    }
}

impl BuildService for EngineImages {
    fn scratch(&self) -> io::Result<File> {
        self.0.scratch()
    }

    fn build(
        &self,
        owner: &Owner,
        order: RemoteBuild,
    ) -> BoxFuture<'static, Result<String, RemoteBuildError>> {
        let builder = self.0.on_behalf_of(&owner.0);
        Box::pin(async move {
            let order = BuildOrder {
                source: BuildSource::Archive(order.context),
                names: order.names,
                platform: None,
                arguments: Vec::new(),
                manner: BuildManner::default(),
            };
            let listener: BuildListener = Arc::new(|event: &BuildEvent| {
                if let Some(message) = event.sentence() {
                    tracing::debug!(message, "an image is built");
                }
            });
            let built = builder.build(order, &listener).await;
            let built = built.map_err(|error| told(&error))?;
            Ok(built.names.into_iter().next().unwrap_or_default())
        })
    }
}

fn told(error: &BuildError) -> RemoteBuildError {
    let kind = match error.class() {
        _ if matches!(error, BuildError::Failed { .. }) => RemoteBuildFault::Failure,
        ErrorClass::Invalid | ErrorClass::Permission | ErrorClass::NotFound => {
            RemoteBuildFault::Failure
        }
        ErrorClass::Timeout => RemoteBuildFault::Timeout,
        _ => RemoteBuildFault::Internal,
    };
    let reason = chain(error);
    if kind == RemoteBuildFault::Internal {
        tracing::warn!(error = reason, "an image was not built");
    }
    RemoteBuildError { reason, kind }
}

/// An error with everything that led to it.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
