//! The part of the remote runtime API about images. Nothing is built here, and that is said.

use std::sync::Arc;

use axum::{
    extract::{Query, Request},
    response::Response,
};
use http::{StatusCode, Uri};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use zareba_wire::serving::{TimedBody, linger};

use super::{ImageFacts, OpenHands, Principal, UnknownImage, answer::Refusal, answer::json_answer};

/// What clients put before the names of images that they would have built.
const REGISTRY_PREFIX: &str = "zareba";
/// The one build that there ever is.
const BUILD: &str = "no-builder";

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

/// Takes note of a build that will not happen; its status says why.
pub(super) async fn build(
    facade: Arc<OpenHands>,
    _: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let stall = facade.settings.limits.body_stall;
    // The build context is read away, so that its sender gets to read the answer.
    linger(TimedBody::new(request.into_body(), stall)).await;
    Ok(json_answer(&json!({ "build_id": BUILD })))
}

pub(super) async fn build_status(
    _: Arc<OpenHands>,
    _: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let WhichBuild { build_id } = query(request.uri())?;
    if build_id != BUILD {
        return Err(Refusal::not_found());
    }
    Ok(json_answer(&json!({
        "status": "FAILURE",
        "error": "this server builds no images: import one, or set \
                  `sandbox.runtime_container_image` to one that it has",
    })))
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
