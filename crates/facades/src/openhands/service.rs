//! A session as an executor: its actions go the whole path, its files go to its sandbox.

use std::{path::Path, sync::Arc};

use serde_json::Value;
use tokio::task::futures::TaskLocalFuture;
use zareba_eventlog::{EventLog, LogError};
use zareba_protocol::{
    Action, ActionEvent, CommandOutput, ErrorClass, Observation, ObservationEvent,
};
use zareba_runtime::{RuntimeError, Sandbox as _};
use zareba_session::{
    ActionRequest, AdmittedSandbox, IdempotencyKey, ProgramPurpose, Record, Requester, Session,
    SessionError, SessionId, Sessions, Surface,
};
use zareba_tools::{Place, PlaceError};
use zareba_wire::{
    ActionService, BoxFuture, ByteStream, Download, TransferError, Upload,
    program::{ProgramConnection, ProgramRequest, StartFailure, StartProgramError},
    tool_servers::ToolServers,
    variables::{InvalidVariable, VariableChanges},
};

use super::{Principal, ToolProxies, answer::chain, unfold};

/// The label with the directory that the client works in, when that is not the workspace.
pub(super) const WORKING_DIRECTORY_LABEL: &str = "openhands.working_dir";

tokio::task_local! {
    /// The client whose request is answered. The routes of a session are shared by all its clients.
    static CLIENT: Requester;
}

/// Answers a request in the name of a client.
pub(super) fn on_behalf_of<F: Future>(
    client: &Principal,
    answer: F,
) -> TaskLocalFuture<Requester, F> {
    CLIENT.scope(client.requester(), answer)
}

/// The client whose request is answered; outside of requests the session itself, by its owner.
fn requester(session: &Session) -> Requester {
    CLIENT.try_with(Clone::clone).unwrap_or_else(|_| Requester {
        owner: session.info().owner,
        key: None,
        scope: None,
        surface: Surface::OpenHands,
    })
}

/// A session as an executor. It holds no handle, so that it keeps nothing alive.
pub(super) struct SessionService {
    sessions: Sessions,
    id: SessionId,
    tools: Option<Arc<dyn ToolServers>>,
}

/// A session's sandbox as the place where servers of tools run.
struct Inside {
    sessions: Sessions,
    id: SessionId,
}

impl SessionService {
    pub(super) fn new(
        sessions: Sessions,
        id: SessionId,
        tools: Option<&Arc<dyn ToolProxies>>,
    ) -> Self {
        let tools = tools.map(|proxies| {
            proxies.make(Arc::new(Inside {
                sessions: sessions.clone(),
                id: id.clone(),
            }))
        });
        Self {
            sessions,
            id,
            tools,
        }
    }

    async fn session(&self) -> Result<Arc<Session>, SessionError> {
        self.sessions.get(&self.id).await
    }

    async fn sandbox(&self) -> Result<AdmittedSandbox, SessionError> {
        let session = self.session().await?;
        session.access(requester(&session)).await
    }

    async fn run(&self, mut action: ActionEvent) -> Result<ObservationEvent, Failure> {
        // The name under which a client wants it to run once is the session's to keep.
        let key = action.once.take();
        let key = key.map(IdempotencyKey::new).transpose();
        let key = key.map_err(|error| Failure(error.to_string()))?;
        let session = self.session().await?;
        let record = session
            .run(ActionRequest {
                action,
                key,
                requester: Some(requester(&session)),
            })
            .await?;
        observation_of(self.sessions.log(), &record).await
    }

    async fn names(&self, path: Option<String>) -> Result<Vec<String>, SessionError> {
        let session = self.session().await?;
        let info = session.info();
        let base = info.labels.get(WORKING_DIRECTORY_LABEL);
        let base = base.filter(|base| **base != info.workspace);
        let sandbox = session.access(requester(&session)).await?;
        let names = match (path, base) {
            (Some(path), Some(base)) if Path::new(&path).is_relative() => {
                sandbox.list_files(Some(format!("{base}/{path}"))).await?
            }
            (None, Some(base)) => sandbox.list_files(Some(base.clone())).await?,
            (path, _) => sandbox.list_files(path).await?,
        };
        Ok(names)
    }
}

/// Why an action has no observation of its own, in words for the agent.
pub(super) struct Failure(String);

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        tracing::warn!(error = %chain(&error), "an action was not taken");
        Self(error.to_string())
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        SessionError::from(error).into()
    }
}

impl ActionService for SessionService {
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, ObservationEvent> {
        Box::pin(async move {
            let hidden = hidden_command(&action.action);
            match self.run(action).await {
                Ok(observation) => observation,
                Err(Failure(text)) => failure(text, hidden).into(),
            }
        })
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            self.names(path).await.unwrap_or_else(|error| {
                // The contract knows no error here.
                tracing::warn!(error = %chain(&error), "files of a session cannot be listed");
                Vec::new()
            })
        })
    }

    fn upload(
        &self,
        request: Upload,
        body: ByteStream,
    ) -> BoxFuture<'_, Result<(), TransferError>> {
        Box::pin(async move {
            let sandbox = self.sandbox().await.map_err(transfer_failed)?;
            let files = sandbox
                .files()
                .map_err(|error| transfer_failed(error.into()))?;
            let stored = files.upload(request, body).await;
            stored.map_err(|error| transfer_failed(error.into()))
        })
    }

    fn download(&self, request: Download) -> BoxFuture<'_, Result<ByteStream, TransferError>> {
        Box::pin(async move {
            let sandbox = self.sandbox().await.map_err(transfer_failed)?;
            let files = sandbox
                .files()
                .map_err(|error| transfer_failed(error.into()))?;
            let packed = files.download(request).await;
            packed.map_err(|error| transfer_failed(error.into()))
        })
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, StartProgramError>> {
        let purpose = ProgramPurpose::Streams;
        Box::pin(start_program(&self.sessions, &self.id, request, purpose))
    }

    fn set_variables(
        &self,
        changes: VariableChanges,
    ) -> BoxFuture<'_, Option<Result<(), InvalidVariable>>> {
        Box::pin(set_variables(&self.sessions, &self.id, changes))
    }

    fn tool_servers(&self) -> Option<Arc<dyn ToolServers>> {
        self.tools.clone()
    }

    /// Requests come this far only while it is.
    fn is_ready(&self) -> bool {
        true
    }
}

impl Place for Inside {
    fn start(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, PlaceError>> {
        let purpose = ProgramPurpose::ToolHost;
        Box::pin(
            async move { Ok(start_program(&self.sessions, &self.id, request, purpose).await?) },
        )
    }
}

/// `None` when they cannot be set: the client has a way of its own then, by an action, which tells
/// it the reason.
async fn set_variables(
    sessions: &Sessions,
    id: &SessionId,
    changes: VariableChanges,
) -> Option<Result<(), InvalidVariable>> {
    let session = sessions.get(id).await.ok()?;
    let sandbox = session.access(requester(&session)).await.ok()?;
    match sandbox.set_variables(changes).await {
        Ok(()) => Some(Ok(())),
        Err(RuntimeError::Invalid { message }) => Some(Err(InvalidVariable { message })),
        Err(error) => {
            tracing::warn!(session = %id, %error, "variables cannot be set");
            None
        }
    }
}

async fn start_program(
    sessions: &Sessions,
    id: &SessionId,
    request: ProgramRequest,
    purpose: ProgramPurpose,
) -> Result<ProgramConnection, StartProgramError> {
    let internal =
        |error: SessionError| StartProgramError::new(StartFailure::Internal, error.to_string());
    let session = sessions.get(id).await.map_err(internal)?;
    let sandbox = session.access(requester(&session)).await;
    let sandbox = sandbox.map_err(internal)?.with_purpose(purpose);
    match sandbox.start_program(request).await {
        Ok(program) => Ok(program),
        Err(RuntimeError::Program(error)) => Err(error),
        Err(error @ RuntimeError::Unsupported { .. }) => Err(StartProgramError::new(
            StartFailure::Unsupported,
            error.to_string(),
        )),
        Err(error) => Err(internal(error.into())),
    }
}

/// What a session recorded, as its executor would have said it: without number, time and cause,
/// which their client gives it. An event that has a number is refused by their event stream.
pub(super) async fn observation_of(
    log: &EventLog,
    record: &Record,
) -> Result<ObservationEvent, Failure> {
    let mut payload = Value::Object(record.payload.clone());
    unfold::put_back(log, &mut payload).await?;
    ObservationEvent::from_value(payload).map_err(|error| Failure(error.to_string()))
}

/// The text of a command whose observation the client marks as hidden.
fn hidden_command(action: &Action) -> Option<String> {
    match action {
        Action::Run(run) if run.hidden => Some(run.command.clone()),
        _ => None,
    }
}

/// Their client cannot take an error for a hidden command, which it marks by a field that errors
/// do not have.
fn failure(text: String, hidden: Option<String>) -> Observation {
    match hidden {
        Some(command) => Observation::run(text, CommandOutput::new(command)),
        None => Observation::error(text),
    }
}

/// In the words of the contract, whose texts have the status that is meant in front.
fn transfer_failed(error: SessionError) -> TransferError {
    tracing::debug!(error = %chain(&error), "a transfer failed");
    let class = error.class();
    let SessionError::Runtime(RuntimeError::Copy { source, .. }) = error else {
        let message = error.to_string();
        let source = std::io::Error::other(error);
        return TransferError::Io { message, source };
    };
    match class {
        ErrorClass::NotFound => TransferError::NotFound,
        ErrorClass::Invalid => TransferError::BadArchive {
            message: source.to_string(),
        },
        _ => TransferError::Io {
            message: source.to_string(),
            source: std::io::Error::other(source),
        },
    }
}
