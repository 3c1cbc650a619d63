//! One session of another server of ours.

use std::{cmp::Ordering, path::Path};

use serde_json::Value;
use tokio::net::TcpStream;
use zareba_client::{
    ArchiveFormat as PackedAs, Client, ClientError, ErrorCode, FileEntry, FileKind, ListFilesQuery,
    SecretText, SessionState, SetVariables,
};
use zareba_protocol::{ActionEvent, ErrorClass, ObservationEvent, SessionId};
use zareba_runtime::{ChangesRequest, WorkspaceChanges, WorkspacePatch};
use zareba_wire::{
    ArchiveFormat, BoxFuture, ByteStream, Download, Upload, UploadTreatment,
    program::{ProgramConnection, ProgramRequest},
    variables::VariableChanges,
};

use super::{port, programs};
use crate::link::{FileLink, Link, LinkError, Sent};

/// Names of one directory that are told; more are not looked at.
const NAMES_MAX: usize = 100_000;

/// The way to one session.
pub(super) struct ZarebaLink {
    pub(super) client: Client,
    pub(super) session: SessionId,
}

impl ZarebaLink {
    pub(super) fn new(client: Client, session: SessionId) -> Self {
        Self { client, session }
    }

    /// Under a name, so that it runs once however often it must be asked for.
    async fn run(&self, mut action: ActionEvent) -> Result<ObservationEvent, LinkError> {
        let name = action.once.take();
        let name = name.unwrap_or_else(|| format!("remote-{:032x}", rand::random::<u128>()));
        Ok(self.client.run_named(&self.session, action, &name).await?)
    }

    /// Waits for the session's events, and looks at it after each.
    async fn wait(&self) -> Result<(), LinkError> {
        let mut session = self.client.session(&self.session).await?;
        let mut events = self.client.event_stream(&self.session, session.next_event);
        while session.state == SessionState::Starting {
            events.next().await?;
            session = self.client.session(&self.session).await?;
        }
        match session.state {
            SessionState::Ready | SessionState::Paused => Ok(()),
            _ => Err(LinkError::Nonsense {
                problem: format!("the session did not start: {}", session.message),
            }),
        }
    }

    async fn names(&self, path: Option<String>) -> Result<Vec<String>, LinkError> {
        let mut entries = Vec::new();
        let mut page = ListFilesQuery {
            path: path.clone(),
            ..ListFilesQuery::default()
        };
        while entries.len() < NAMES_MAX {
            let found = match self.client.list_files(&self.session, &page).await {
                Err(error) if is_no_directory(&error) => return Ok(Vec::new()),
                result => result?,
            };
            entries.extend(found.entries);
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        let mut names = Vec::with_capacity(entries.len());
        for entry in entries {
            names.extend(self.shown(path.as_deref(), entry).await?);
        }
        names.sort_by(in_order);
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }

    /// What a link leads to decides what it counts as; one that leads nowhere is left out.
    async fn shown(
        &self,
        directory: Option<&str>,
        entry: FileEntry,
    ) -> Result<Option<(FileKind, String)>, LinkError> {
        let mut kind = entry.status.kind;
        if kind == FileKind::Link {
            let path = match directory {
                Some(directory) => format!("{directory}/{}", entry.name),
                None => entry.name.clone(),
            };
            match self.client.file_status(&self.session, &path).await {
                Ok(status) => kind = status.kind,
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(match kind {
            FileKind::Directory => (kind, format!("{}/", entry.name)),
            _ => (FileKind::File, entry.name),
        }))
    }

    async fn store(&self, upload: Upload, content: ByteStream) -> Result<(), LinkError> {
        let destination = text_of(&upload.destination)?;
        match upload.treatment {
            UploadTreatment::Unpack => {
                let format = if upload.file_name.ends_with(".zip") {
                    PackedAs::Zip
                } else {
                    PackedAs::Tar
                };
                let unpacked =
                    self.client
                        .unpack_files(&self.session, destination, format, content);
                Ok(unpacked.await?)
            }
            UploadTreatment::Store => {
                let path = format!("{destination}/{}", upload.file_name);
                let written = self.client.write_file(&self.session, &path, content);
                Ok(written.await.map(drop)?)
            }
        }
    }

    async fn pack(&self, download: Download) -> Result<ByteStream, LinkError> {
        let path = text_of(&download.path)?;
        let format = match download.format {
            ArchiveFormat::Tar => PackedAs::Tar,
            ArchiveFormat::Zip => PackedAs::Zip,
        };
        Ok(self.client.pack_files(&self.session, path, format).await?)
    }

    async fn start(&self, request: ProgramRequest) -> Result<ProgramConnection, LinkError> {
        request.check()?;
        let program = programs::asked(request);
        match self.client.start_program(&self.session, &program).await {
            Ok(connection) => Ok(programs::carried(connection)),
            Err(error) => match programs::fault(&error) {
                Some(fault) => Err(fault.into()),
                None => Err(error.into()),
            },
        }
    }

    async fn connect(&self, port: u16) -> Result<TcpStream, LinkError> {
        let connection = match self.client.connect_port(&self.session, port).await {
            // The sandbox is there; it is the program inside that is not.
            Err(error) if error.code() == Some(ErrorCode::BadGateway) => {
                return Err(LinkError::Invalid {
                    problem: error.to_string(),
                });
            }
            connected => connected?,
        };
        let socket = port::socket(connection).await;
        socket.map_err(|error| LinkError::Nonsense {
            problem: format!("no socket could be made for it here: {error}"),
        })
    }
}

impl Link for ZarebaLink {
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, Result<ObservationEvent, LinkError>> {
        Box::pin(self.run(action))
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Result<Vec<String>, LinkError>> {
        Box::pin(self.names(path))
    }

    fn set_variables(&self, changes: VariableChanges) -> BoxFuture<'_, Result<(), LinkError>> {
        let mut asked = SetVariables::default();
        for (name, value) in changes.iter() {
            match value {
                Some(value) => drop(
                    asked
                        .set
                        .insert(name.to_owned(), SecretText(value.to_owned())),
                ),
                None => asked.unset.push(name.to_owned()),
            }
        }
        Box::pin(async move { Ok(self.client.set_variables(&self.session, &asked).await?) })
    }

    fn upload(&self, upload: Upload, content: ByteStream) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.store(upload, content))
    }

    fn download(&self, download: Download) -> BoxFuture<'_, Result<ByteStream, LinkError>> {
        Box::pin(self.pack(download))
    }

    fn archives(&self) -> ArchiveFormat {
        ArchiveFormat::Tar
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(self.wait())
    }

    fn pause(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(async { Ok(self.client.pause_session(&self.session).await.map(drop)?) })
    }

    fn resume(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(async { Ok(self.client.resume_session(&self.session).await.map(drop)?) })
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), LinkError>> {
        Box::pin(async {
            match self.client.delete_session(&self.session).await {
                Err(error) if Client::is_missing(&error) => Ok(()),
                result => Ok(result?),
            }
        })
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, LinkError>> {
        Box::pin(self.start(request))
    }

    fn connect_port(&self, port: u16) -> BoxFuture<'_, Result<TcpStream, LinkError>> {
        Box::pin(self.connect(port))
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Value, LinkError>> {
        Box::pin(async { Ok(self.client.inspect_session(&self.session).await?) })
    }

    fn changes(
        &self,
        request: ChangesRequest,
    ) -> BoxFuture<'_, Result<WorkspaceChanges, LinkError>> {
        Box::pin(async move {
            let list = self.client.changes(&self.session, request.path.as_deref());
            Ok(super::changes::changes(list.await?))
        })
    }

    fn patch(&self, request: ChangesRequest) -> BoxFuture<'_, Result<WorkspacePatch, LinkError>> {
        Box::pin(async move {
            let patch = self.client.patch(&self.session, request.path.as_deref());
            let bytes = patch.await?;
            Ok(WorkspacePatch { bytes })
        })
    }

    fn files(&self) -> Option<&dyn FileLink> {
        Some(self)
    }
}

impl From<ClientError> for LinkError {
    fn from(error: ClientError) -> Self {
        let class = error.class();
        match error {
            ClientError::Timeout { waited } => Self::Timeout { waited },
            ClientError::Unreachable {
                place,
                sent,
                source,
            } => Self::Unreachable {
                place,
                sent: match sent {
                    zareba_client::Sent::No => Sent::No,
                    zareba_client::Sent::Perhaps => Sent::Perhaps,
                },
                source,
            },
            ClientError::Refused {
                status, message, ..
            } => Self::Refused {
                status,
                class,
                detail: message,
            },
            error if class == ErrorClass::Invalid => Self::Invalid {
                problem: error.to_string(),
            },
            error => Self::Nonsense {
                problem: error.to_string(),
            },
        }
    }
}

/// What is no directory has no names.
fn is_no_directory(error: &ClientError) -> bool {
    matches!(
        error.code(),
        Some(ErrorCode::NotFound | ErrorCode::NotADirectory)
    )
}

/// Directories first, each group by name without regard to case.
fn in_order(one: &(FileKind, String), other: &(FileKind, String)) -> Ordering {
    let key = |(kind, name): &(FileKind, String)| {
        let name = name.to_lowercase();
        (*kind != FileKind::Directory, name)
    };
    key(one).cmp(&key(other))
}

fn text_of(path: &Path) -> Result<&str, LinkError> {
    path.to_str().ok_or_else(|| LinkError::Invalid {
        problem: format!("the path `{}` is not UTF-8", path.display()),
    })
}
