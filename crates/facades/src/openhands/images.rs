//! The part of the remote runtime API about images. Where nobody builds any, that is said.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Query, Request},
    response::Response,
};
use http::{StatusCode, Uri};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use zareba_wire::serving::{TimedBody, linger};

use super::{
    BuildService, Denied, ImageFacts, OpenHands, Principal, UnknownImage,
    answer::{Refusal, json_answer},
    context,
};

/// What clients put before the names of images that they would have built.
const REGISTRY_PREFIX: &str = "zareba";
/// The one build that there ever is where nobody builds.
const NO_BUILD: &str = "no-builder";
/// When to try again where enough is built already.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// How long a question about a running build is left open. The client would otherwise sleep for
/// half a minute before it asks again; it gives up after five seconds without an answer.
const STATUS_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Deserialize)]
struct WhichImage {
    image: String,
}

#[derive(Deserialize)]
struct WhichBuild {
    build_id: String,
}

pub(super) async fn registry_prefix(
    _: Arc<OpenHands>,
    _: Principal,
    _: Request,
) -> Result<Response, Refusal> {
    Ok(json_answer(&json!({ "registry_prefix": REGISTRY_PREFIX })))
}

pub(super) async fn image_exists(
    facade: Arc<OpenHands>,
    _: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let WhichImage { image } = query(request.uri())?;
    let found = facade.find_image(&image).await;
    let used = match (found, facade.settings.unknown_image) {
        (Some(_), _) => image.as_str(),
        // The client then builds it.
        (None, _) if facade.settings.builder.is_some() => {
            return Ok(json_answer(&json!({ "exists": false })));
        }
        (None, UnknownImage::Refuse) => return Ok(json_answer(&json!({ "exists": false }))),
        (None, UnknownImage::SystemView) => "the runtime's own files",
        (None, UnknownImage::AskRuntime) => "whatever the runtime finds",
    };
    let facts = found.unwrap_or(ImageFacts {
        since: facade.started,
        bytes: 0,
    });
    Ok(json_answer(&json!({
        "exists": true,
        "image": {
            "upload_time": facts.since.to_string(),
            "image_size_bytes": facts.bytes,
        },
        "zareba": { "used": used },
    })))
}

/// Takes a context and begins to build it. Where nobody builds, it takes note of a build that will
/// not happen; its status says why.
pub(super) async fn build(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let stall = facade.settings.limits.body_stall;
    let Some(builder) = facade.settings.builder.clone() else {
        // The build context is read away, so that its sender gets to read the answer.
        linger(TimedBody::new(request.into_body(), stall)).await;
        return Ok(json_answer(&json!({ "build_id": NO_BUILD })));
    };
    if principal.session.is_some() {
        let detail = "this key is for one session, and an image is for all";
        return Err(Refusal::new(StatusCode::FORBIDDEN, detail));
    }
    let Some(slot) = facade.builds.slot(&principal.owner) else {
        linger(TimedBody::new(request.into_body(), stall)).await;
        let retry_after = RETRY_AFTER;
        return Err(Denied::TooMany { retry_after }.into());
    };
    let scratch = scratch(&*builder)?;
    let order = context::read(request, stall, scratch).await?;
    let id = facade.builds.start(&*builder, order, slot);
    Ok(json_answer(&json!({ "build_id": id })))
}

fn scratch(builder: &dyn BuildService) -> Result<std::fs::File, Refusal> {
    builder.scratch().map_err(|error| {
        tracing::warn!(%error, "there is no room for a build context");
        let detail = "there is no room for a build context";
        Refusal::new(StatusCode::INSUFFICIENT_STORAGE, detail)
    })
}

pub(super) async fn build_status(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let WhichBuild { build_id } = query(request.uri())?;
    if facade.settings.builder.is_none() && build_id == NO_BUILD {
        return Ok(json_answer(&json!({
            "status": "FAILURE",
            "error": "this server builds no images: import one, or set \
                      `sandbox.runtime_container_image` to one that it has",
        })));
    }
    let owner = &principal.owner;
    let status = facade.builds.status(&build_id, owner, STATUS_PATIENCE);
    let status = status.await.ok_or_else(Refusal::not_found)?;
    Ok(json_answer(&status))
}

impl OpenHands {
    pub(super) async fn find_image(&self, image: &str) -> Option<ImageFacts> {
        match &self.settings.images {
            Some(images) => images.find(image).await,
            None => None,
        }
    }
}

fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    let query = Query::try_from_uri(uri);
    let Query(query) =
        query.map_err(|error| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.body_text()))?;
    Ok(query)
}
