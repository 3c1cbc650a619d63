//! The handler that changes the variables of an executor.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use serde_json::json;

use super::{
    answer::{self, Refusal},
    body::read_json,
    handlers::Surface,
};
use crate::variables::{InvalidVariable, VariableChanges};

/// Where variables are set and removed.
pub(crate) const ROUTE: &str = "/variables";

/// Sets and removes variables, for everything that is started from now on and for the next
/// command of every shell.
pub(super) async fn set(
    State(surface): State<Arc<Surface>>,
    request: Request,
) -> Result<Response, Refusal> {
    let body = read_json(request, &surface.limits).await?;
    let changes = VariableChanges::from_json(&body).map_err(refusal)?;
    surface.note_action();
    let set = surface.service.set_variables(changes).await;
    let set = set.ok_or_else(|| {
        let detail = "this executor takes no variables once it runs";
        Refusal::new(StatusCode::NOT_IMPLEMENTED, detail)
    })?;
    set.map_err(refusal)?;
    Ok(answer::json(&json!({})))
}

fn refusal(error: InvalidVariable) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, error.message)
}
