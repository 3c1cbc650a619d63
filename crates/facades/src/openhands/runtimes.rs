//! The remote runtime API: runtimes are started, looked up, paused, resumed and stopped.

use std::{sync::Arc, time::Duration};

use axum::{RequestExt as _, extract::Path, extract::Request, response::Response};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, HOST},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use zareba_session::{Session, SessionError, SessionId, SessionInfo, SessionState};
use zareba_wire::strict;

use super::{
    OpenHands, Principal,
    answer::{Refusal, json_answer},
    names::Name,
    start::StartRequest,
};

/// The label with the client's name for a session.
pub(super) const NAME_LABEL: &str = "openhands.session_id";
/// A request of this API: a command line and some variables.
const BODY_BYTES_MAX: usize = 1024 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Runtimes in a list; the API has no pages.
const LIST_MAX: usize = 1000;
/// What a host's name and port may have in characters.
const HOST_CHARS_MAX: usize = 255;

#[derive(Deserialize)]
struct Which {
    runtime_id: String,
}

pub(super) async fn start(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let base = facade.base_url(request.headers())?;
    let wanted: StartRequest = read_json(request).await?;
    let started = facade.start(&principal, &wanted).await?;
    let mut document = facade.describe(&started.session.info(), &principal, &base);
    document["zareba"]["image"] = started.image;
    document["zareba"]["not_applied"] = Value::from(started.not_applied);
    Ok(json_answer(&document))
}

pub(super) async fn stop(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let session = facade.named_in(&principal, request).await?;
    session.close_for(&principal.requester()).await?;
    facade.executors.note_awake(session.id());
    Ok(json_answer(&json!({})))
}

pub(super) async fn pause(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let session = facade.named_in(&principal, request).await?;
    session.pause_for(&principal.requester()).await?;
    facade.note_asleep(session.id()).await;
    Ok(json_answer(&json!({})))
}

pub(super) async fn resume(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let session = facade.named_in(&principal, request).await?;
    session.resume_for(&principal.requester()).await?;
    facade.executors.note_awake(session.id());
    Ok(json_answer(&json!({})))
}

pub(super) async fn list(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let base = facade.base_url(request.headers())?;
    let owner = Some(&principal.owner);
    let infos = facade.sessions.list(owner, None, LIST_MAX).await;
    let runtimes: Vec<Value> = infos
        .iter()
        .filter(|info| principal.may_use(info) && info.state != SessionState::Closed)
        .map(|info| facade.describe(info, &principal, &base))
        .collect();
    Ok(json_answer(&json!({ "runtimes": runtimes })))
}

/// By the client's name, and only what is its owner's.
pub(super) async fn by_name(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let base = facade.base_url(request.headers())?;
    let name = Name::new(&principal.owner, &path_parameter(request).await?)?;
    let generation = name.generation(facade.sessions.log()).await?;
    let session = facade
        .session(&principal, &name.session(generation)?)
        .await?;
    Ok(json_answer(&facade.describe(
        &session.info(),
        &principal,
        &base,
    )))
}

pub(super) async fn by_id(
    facade: Arc<OpenHands>,
    principal: Principal,
    request: Request,
) -> Result<Response, Refusal> {
    let id = session_id(&path_parameter(request).await?)?;
    let info = facade.session(&principal, &id).await?.info();
    Ok(json_answer(&json!({
        "runtime_id": info.id.as_str(),
        "pod_status": pod_status(info.state),
        "status": status(info.state),
        "restart_count": 0,
        "restart_reasons": [],
    })))
}

impl OpenHands {
    /// A session that somebody may use; all others do not exist.
    pub(super) async fn session(
        &self,
        principal: &Principal,
        id: &SessionId,
    ) -> Result<Arc<Session>, Refusal> {
        let session = match self.sessions.get(id).await {
            Ok(session) if principal.may_use(&session.info()) => session,
            Ok(_) | Err(SessionError::NotFound { .. }) => return Err(Refusal::not_found()),
            Err(error) => return Err(error.into()),
        };
        Ok(session)
    }

    /// The session that a request names in its body.
    async fn named_in(
        &self,
        principal: &Principal,
        request: Request,
    ) -> Result<Arc<Session>, Refusal> {
        let which: Which = read_json(request).await?;
        self.session(principal, &session_id(&which.runtime_id)?)
            .await
    }

    /// Where this server is for the one who asks.
    fn base_url(&self, headers: &HeaderMap) -> Result<String, Refusal> {
        if let Some(url) = &self.settings.public_url {
            return Ok(url.trim_end_matches('/').to_owned());
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        // The server's list of names has let it in; this keeps a URL a URL without one.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        match host {
            Some(host) if host.len() <= HOST_CHARS_MAX && host.bytes().all(is_plain) => {
                Ok(format!("{}://{host}", self.settings.scheme.as_str()))
            }
            _ => Err(Refusal::invalid("the Host header names no host")),
        }
    }

    /// What the client reads of a runtime, and what is ours.
    fn describe(&self, info: &SessionInfo, principal: &Principal, base: &str) -> Value {
        let id = info.id.as_str();
        let name = info.labels.get(NAME_LABEL).map_or(id, String::as_str);
        json!({
            "session_id": name,
            "runtime_id": id,
            "url": format!("{base}/sessions/{id}"),
            "work_hosts": {},
            "session_api_key": self.session_keys.key_of(info, &principal.key),
            "status": status(info.state),
            "pod_status": pod_status(info.state),
            "restart_count": 0,
            "restart_reasons": [],
            "zareba": {
                "runtime": info.runtime,
                "workspace": info.workspace,
                "message": info.message,
            },
        })
    }
}

const fn status(state: SessionState) -> &'static str {
    match state {
        SessionState::Starting => "starting",
        SessionState::Ready => "running",
        SessionState::Paused => "paused",
        SessionState::Closed => "stopped",
        SessionState::Failed | SessionState::Lost => "error",
    }
}

const fn pod_status(state: SessionState) -> &'static str {
    match state {
        SessionState::Starting => "pending",
        SessionState::Ready => "ready",
        SessionState::Paused => "paused",
        SessionState::Closed => "not found",
        SessionState::Failed | SessionState::Lost => "failed",
    }
}

fn session_id(text: &str) -> Result<SessionId, Refusal> {
    // A name that none can have is one that none has.
    SessionId::new(text).map_err(|_| Refusal::not_found())
}

async fn path_parameter(mut request: Request) -> Result<String, Refusal> {
    let parameter = request.extract_parts::<Path<String>>().await;
    let Path(text) = parameter.map_err(|_| Refusal::not_found())?;
    Ok(text)
}

pub(super) async fn read_json<T: DeserializeOwned>(request: Request) -> Result<T, Refusal> {
    let content_type = request.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let media_type = content_type.map(|text| text.split(';').next().unwrap_or_default());
    if !media_type.is_some_and(|text| text.trim().eq_ignore_ascii_case("application/json")) {
        let detail = "send the request as application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let body = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX);
    let body = match tokio::time::timeout(BODY_TIMEOUT, body).await {
        Err(_) => {
            let detail = "the request did not arrive in time";
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, detail));
        }
        Ok(Err(_)) => {
            let detail = format!("the request is incomplete or larger than {BODY_BYTES_MAX} bytes");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        Ok(Ok(body)) => body,
    };
    strict::from_slice(&body).map_err(|error| {
        let detail = format!("the request makes no sense: {error}");
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    })
}
