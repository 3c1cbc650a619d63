//! The tools of a session. Each call is an action: it is judged and recorded like any other.

use std::sync::Arc;

use serde_json::Value;
use zareba_eventlog::EventLog;
use zareba_protocol::{
    Action, ActionEvent, ErrorClass, ObservationEvent, ObservationKind, ToolFailure, ToolOutcome,
    UseTool,
};
use zareba_session::{ActionRequest, Record, Requester, Session, SessionError};
use zareba_tools::{Call, Exception, LoadFailure, NotJson, Returned, ToolDefinition, ToolError};
use zareba_wire::BoxFuture;

use super::Toolbox;
use crate::openhands::put_back;

/// The tools of a session. A call is stopped when nobody waits for it any more.
#[derive(Debug)]
pub struct ToolsOfSession {
    session: Arc<Session>,
    log: EventLog,
    requester: Requester,
}

impl ToolsOfSession {
    /// The tools of `session`, whose records are in `log`, for one client.
    pub fn new(session: Arc<Session>, log: EventLog, requester: Requester) -> Self {
        Self {
            session,
            log,
            requester,
        }
    }

    async fn run(&self, name: &str, call: Call) -> Result<Returned, ToolError> {
        let Call {
            arguments,
            timeout,
            is_validated,
        } = call;
        let action = Action::CallTool(UseTool {
            positional: arguments.positional,
            unchecked: !is_validated,
            ..UseTool::new(name, arguments.named)
        });
        let mut event = ActionEvent::from(action);
        if let Some(limit) = timeout {
            event = event.with_timeout(limit.as_secs_f64());
        }
        let request = ActionRequest {
            action: event,
            key: None,
            requester: Some(self.requester.clone()),
        };
        let record = self.session.run(request).await.map_err(not_run)?;
        let observation = self.observation(&record).await?;
        match observation.observation.kind {
            ObservationKind::Tool(outcome) => returned(*outcome),
            // A refusal, or what became of the session.
            _ => Err(ToolError::Unavailable {
                message: observation.observation.content,
                class: ErrorClass::Internal,
            }),
        }
    }

    async fn observation(&self, record: &Record) -> Result<ObservationEvent, ToolError> {
        let mut payload = Value::Object(record.payload.clone());
        let whole = put_back(&self.log, &mut payload).await;
        whole.map_err(|error| not_run(error.into()))?;
        ObservationEvent::from_value(payload).map_err(|error| ToolError::Unavailable {
            message: format!("what the session recorded cannot be read: {error}"),
            class: ErrorClass::Internal,
        })
    }
}

impl Toolbox for ToolsOfSession {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.session.tools().list()
    }

    fn has(&self, name: &str) -> bool {
        self.session.tools().registry().get(name).is_some()
    }

    fn toolkits(&self) -> Vec<String> {
        self.session.tools().toolkits()
    }

    /// Whoever added an entrypoint was told.
    fn failures(&self) -> Vec<LoadFailure> {
        Vec::new()
    }

    fn call<'a>(&'a self, name: &'a str, call: Call) -> BoxFuture<'a, Result<Returned, ToolError>> {
        Box::pin(self.run(name, call))
    }
}

fn not_run(error: SessionError) -> ToolError {
    ToolError::Unavailable {
        message: error.to_string(),
        class: error.class(),
    }
}

/// What was recorded, as the tool itself would have said it.
fn returned(outcome: ToolOutcome) -> Result<Returned, ToolError> {
    let ToolOutcome {
        name: tool,
        result,
        raw,
        stdout,
        stderr,
        truncated: is_truncated,
        error,
    } = outcome;
    let Some(ToolFailure {
        kind,
        class,
        message,
        traceback,
    }) = error
    else {
        return Ok(Returned {
            json: raw.unwrap_or_else(|| result.to_string()),
            stdout,
            stderr,
            is_truncated,
        });
    };
    let is_exception = traceback.is_some();
    let exception = Exception {
        tool: tool.clone(),
        kind: kind.clone(),
        message: message.clone(),
        traceback: traceback.unwrap_or_default(),
        stdout,
        stderr,
        is_truncated,
    };
    Err(match kind.as_str() {
        _ if is_exception => ToolError::Raised(Box::new(exception)),
        "exited" => ToolError::Exited(Box::new(exception)),
        "not_json" => ToolError::NotJson(Box::new(NotJson {
            tool,
            message,
            ..NotJson::default()
        })),
        "not_found" => ToolError::NotFound {
            name: tool,
            known: Vec::new(),
        },
        "invalid_arguments" => ToolError::Invalid {
            tool,
            problems: vec![message],
        },
        _ => ToolError::Unavailable { message, class },
    })
}
