//! Tools of a session over HTTP.

use std::sync::Arc;

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, StatusCode};
use serde::Deserialize as _;
use serde_json::Value;
use zareba_api::{self as api, Access, RunQuery, ToolFormat, ToolPage, ToolsQuery};
use zareba_protocol::{Action, ActionEvent, UseTool};
use zareba_session::{NewTools, Surface};
use zareba_tools::{
    CommandParameter, CommandToolSpec, Entrypoint, Origin, ToolDefinition, ToolError, ToolName,
};
use zareba_wire::strict::Strict;

use super::{actions, json};
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    request::{Json, LargeJson, Place, Query},
};

pub(super) async fn add(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Json(asked): Json<api::AddTools>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let requester = principal.requester(Surface::Api);
    let tools = session.tools().on_behalf_of(requester);
    let added = tools.add(new_tools(asked)?).await?;
    let failures = added.failures.into_iter().map(|it| api::ToolLoadFailure {
        entrypoint: it.entrypoint,
        kind: it.kind,
        message: it.message,
        traceback: it.traceback,
    });
    let added = api::ToolsAdded {
        tools: added.tools.into_iter().map(told).collect(),
        toolkits: added.toolkits,
        failures: failures.collect(),
    };
    Ok(json(StatusCode::CREATED, &added))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
    Query(query): Query<ToolsQuery>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let tools = session.tools();
    // Servers of tools are started in the sandbox, which not everybody who reads may wake.
    if principal.may(Access::Session) {
        tools.sourced().await;
    }
    let all = tools.list();
    let shown = all.into_iter().map(|tool| match query.format {
        ToolFormat::Openai => tool.openai(),
        ToolFormat::Mcp => tool.mcp(),
        ToolFormat::Full => serde_json::to_value(told(tool)).unwrap_or(Value::Null),
    });
    let page = ToolPage {
        tools: shown.collect(),
        toolkits: tools.toolkits(),
    };
    Ok(json(StatusCode::OK, &page))
}

pub(super) async fn call(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, tool)): Place<(String, String)>,
    Query(query): Query<RunQuery>,
    headers: HeaderMap,
    LargeJson(asked, place): LargeJson,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let asked = api::CallTool::deserialize(Strict(asked))
        .map_err(|error| ApiError::invalid(format!("the body: {error}")))?;
    let action = Action::CallTool(UseTool {
        positional: asked.positional,
        unchecked: asked.unchecked,
        ..UseTool::new(tool, asked.arguments)
    });
    let action = ActionEvent {
        timeout: asked.timeout.map(f64::from),
        ..action.into()
    };
    actions::run_event(&app, &principal, &session, (action, place), query, &headers).await
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place((session, tool)): Place<(String, String)>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let requester = principal.requester(Surface::Api);
    let tools = session.tools().on_behalf_of(requester);
    tools.remove(&name(tool)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn reset(
    State(app): State<Arc<App>>,
    principal: Principal,
    Place(session): Place<String>,
) -> Result<Response, ApiError> {
    let session = app.session(&principal, &session).await?;
    let requester = principal.requester(Surface::Api);
    session.tools().on_behalf_of(requester).reset().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn new_tools(asked: api::AddTools) -> Result<NewTools, ApiError> {
    let entrypoints = asked.entrypoints.iter().map(|text| {
        let entrypoint: Result<Entrypoint, _> = text.parse();
        entrypoint.map_err(|error| ApiError::invalid(error.to_string()))
    });
    Ok(NewTools {
        entrypoints: entrypoints.collect::<Result<_, _>>()?,
        python: asked.python,
        environment: asked.environment.into_iter().collect(),
        directory: asked.directory,
        threads: asked.threads.map(usize::from),
        commands: asked
            .commands
            .into_iter()
            .map(command)
            .collect::<Result<_, _>>()?,
    })
}

fn command(asked: api::CommandTool) -> Result<CommandToolSpec, ApiError> {
    let parameters = asked.parameters.into_iter().map(|it| CommandParameter {
        name: it.name,
        description: it.description,
        schema: it.schema.map(Value::Object),
        optional: it.optional,
    });
    Ok(CommandToolSpec {
        name: name(asked.name)?,
        description: asked.description,
        argv: asked.argv,
        shell: asked.shell,
        parameters: parameters.collect(),
        directory: asked.directory,
    })
}

fn name(name: String) -> Result<ToolName, ApiError> {
    let name = ToolName::try_from(name);
    name.map_err(|error| ApiError::from(zareba_session::SessionError::Tool(ToolError::Name(error))))
}

fn told(tool: ToolDefinition) -> api::Tool {
    let (kind, name) = match tool.origin {
        Origin::Rust => ("rust", None),
        Origin::Python { entrypoint } => ("python", Some(entrypoint)),
        Origin::Command { command } => ("command", Some(command)),
        Origin::Mcp { server } => ("mcp", Some(server)),
    };
    api::Tool {
        name: tool.name.to_string(),
        description: tool.description,
        parameters: tool.parameters,
        accepts: tool.accepts,
        origin: api::ToolOrigin {
            kind: kind.to_owned(),
            name,
        },
    }
}
