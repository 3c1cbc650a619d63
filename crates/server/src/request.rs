//! What handlers take out of a request, with our errors and our limits.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_TYPE, request::Parts};
use http_body::Body as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use zareba_api::ErrorCode;
use zareba_facades::openhands::Reserved;
use zareba_wire::{
    serving::read_body,
    strict::{self, Strict},
};

use crate::{app::App, auth::Principal, error::ApiError, usage::Part};

/// Levels of a JSON body.
pub(crate) const JSON_DEPTH_MAX: usize = 64;

/// The query, of which no part may be unknown.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        serde_urlencoded::from_str(query)
            .map(Self)
            .map_err(|error| ApiError::invalid(format!("the query: {error}")))
    }
}

/// Parts of the path. Those that cannot be read name nothing that exists.
pub(crate) struct Place<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Place<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(place)) => Ok(Self(place)),
            Err(_) => Err(ApiError::new(
                ErrorCode::NotFound,
                "there is nothing at this path",
            )),
        }
    }
}

/// Whoever asks; the route's check has put it there.
impl<S: Sync> FromRequestParts<S> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        // A route without a check has no principal, and a handler that wants one then fails.
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(ApiError::internal)
    }
}

/// What a connection of its own keeps: the owner's place among those that are open.
impl<S: Sync> FromRequestParts<S> for Open {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let reserved = parts.extensions.get::<Reserved>().cloned();
        let place = reserved.ok_or_else(ApiError::internal)?;
        Ok(Self { _place: place })
    }
}

/// A place among the requests that are open.
pub(crate) struct Open {
    _place: Reserved,
}

/// A JSON body of a known type, of which no part may be unknown.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let limits = &app.settings.limits;
        require_json(request.headers())?;
        let bytes = read_body(request, limits.json_bytes, limits.body_stall).await?;
        check_depth(&bytes)?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(Strict(&mut reader)).map_err(|error| {
            let path = error.path().to_string();
            let problem = error.into_inner();
            ApiError::invalid(match path.as_str() {
                _ if problem.is_syntax() || problem.is_eof() => {
                    format!("the body is not JSON: {problem}")
                }
                // The path ends before a key that is none.
                "." | "?" => format!("the body: {problem}"),
                field => format!("the field `{field}`: {problem}"),
            })
        })?;
        reader
            .end()
            .map_err(|error| ApiError::invalid(format!("the body: {error}")))?;
        Ok(Self(value))
    }
}

/// A JSON body that may be large, with its place among all large bodies, which is to be kept
/// until nothing of the body is needed any more.
pub(crate) struct LargeJson(pub(crate) Value, pub(crate) Option<Part>);

impl FromRequest<Arc<App>> for LargeJson {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let limits = &app.settings.limits;
        require_json(request.headers())?;
        let announced = request.body().size_hint().exact();
        let expected = announced.map_or(limits.action_bytes, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX)
        });
        let principal = request.extensions().get::<Principal>();
        let owner = principal.ok_or_else(ApiError::internal)?.owner.clone();
        // What is too large anyway is refused by reading it, without a place.
        let mut place = match expected <= limits.action_bytes {
            true => app.usage().body(&owner, expected)?,
            false => None,
        };
        let bytes = read_body(request, limits.action_bytes, limits.body_stall).await?;
        if let Some(place) = &mut place {
            place.shrink_to(bytes.len());
        }
        Ok(Self(parse(&bytes)?, place))
    }
}

fn parse(bytes: &Bytes) -> Result<Value, ApiError> {
    check_depth(bytes)?;
    let invalid = |error: serde_json::Error| ApiError::invalid(format!("the body: {error}"));
    strict::from_slice(bytes).map_err(invalid)
}

/// A page in a browser can send other types to any address without asking first.
fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    let essence = content_type
        .and_then(|text| text.split(|&byte| byte == b';').next())
        .unwrap_or_default()
        .trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorCode::UnsupportedMediaType,
        "the body must be sent as `application/json`",
    ))
}

/// Counts levels before anything is built: brackets outside of strings.
fn check_depth(json: &[u8]) -> Result<(), ApiError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > JSON_DEPTH_MAX {
            let message = format!("the body has more than {JSON_DEPTH_MAX} levels");
            return Err(ApiError::new(ErrorCode::LimitExceeded, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_counted_outside_of_strings() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert_eq!(check_depth(nested(64).as_bytes()), Ok(()));
        assert!(check_depth(nested(65).as_bytes()).is_err());
        let flat = format!(r#"["{}\"[", {}]"#, "[".repeat(99), "[],".repeat(99));
        assert_eq!(check_depth(flat.as_bytes()), Ok(()));
    }
}
