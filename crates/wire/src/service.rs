//! What the HTTP surface asks of the executor behind it.

use std::{future::Future, path::PathBuf, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_core::Stream;
use zareba_protocol::{ActionEvent, ObservationEvent};

use crate::files::FileService;
use crate::output::{OutputPiece, OutputRequest, StopRequest};
use crate::program::{ProgramConnection, ProgramRequest, StartProgramError};
use crate::tool_servers::ToolServers;
use crate::variables::{InvalidVariable, VariableChanges};

/// A future that a `dyn` service returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Bytes that arrive or leave piece by piece.
pub type ByteStream = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// The executor, as its HTTP server sees it.
///
/// Every method may be called from many connections at once. Dropping a returned future means
/// that the client went away: what it had started goes on, and nothing is left half written.
pub trait ActionService: Send + Sync + 'static {
    /// Runs one action and returns its one observation.
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, ObservationEvent>;

    /// Names in a directory: directories first with a trailing slash, then files.
    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Vec<String>>;

    /// Stores an uploaded file, or unpacks an uploaded archive.
    fn upload(&self, request: Upload, body: ByteStream)
    -> BoxFuture<'_, Result<(), TransferError>>;

    /// Packs a file or directory and streams the archive.
    fn download(&self, request: Download) -> BoxFuture<'_, Result<ByteStream, TransferError>>;

    /// Starts a program with streams of its own. Unlike what an action starts, it ends when its
    /// connection is dropped.
    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, StartProgramError>> {
        let _ = request;
        Box::pin(std::future::ready(Err(StartProgramError::unsupported())))
    }

    /// Some of the output of an action, as soon as there is something new; `None` when output is
    /// not kept here.
    fn read_output(&self, request: OutputRequest) -> BoxFuture<'_, Option<OutputPiece>> {
        let _ = request;
        Box::pin(std::future::ready(None))
    }

    /// Brings an action to its end before its time. The answer says whether it was under way, and
    /// is `None` when that cannot be done here. What comes of the action is told to its caller.
    fn stop_action(&self, request: StopRequest) -> BoxFuture<'_, Option<bool>> {
        let _ = request;
        Box::pin(std::future::ready(None))
    }

    /// Changes the variables of all shells, programs and terminals. A shell that is there gets them
    /// with its next command, a program that runs keeps what it has. `None` when that cannot be
    /// done here.
    fn set_variables(
        &self,
        changes: VariableChanges,
    ) -> BoxFuture<'_, Option<Result<(), InvalidVariable>>> {
        let _ = changes;
        Box::pin(std::future::ready(None))
    }

    /// Files as bytes; `None` when there is no such thing here.
    fn files(&self) -> Option<&dyn FileService> {
        None
    }

    /// Servers of tools that clients push; `None` when there is no such thing here.
    fn tool_servers(&self) -> Option<Arc<dyn ToolServers>> {
        None
    }

    /// Actions can run now. `/alive` answers 200 only when this is true.
    fn is_ready(&self) -> bool;
}

/// Where an upload goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The name the client gave the file; only its last component is used.
    pub file_name: String,
    /// The directory it goes to, made when missing.
    pub destination: PathBuf,
    /// What is done with it.
    pub treatment: UploadTreatment,
    /// What all that comes of it may take; without one, only the disk bounds it.
    pub room: Option<UploadRoom>,
}

/// What an upload may take, with all that is unpacked from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadRoom {
    /// Bytes on the disk, those of the archive itself included.
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
}

/// What is done with an uploaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadTreatment {
    /// It is stored; a `.zip` is unpacked all the same, as OpenHands does.
    Store,
    /// It is an archive (`.zip` or `.tar`) and is unpacked.
    Unpack,
}

/// What to pack and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// The file or directory.
    pub path: PathBuf,
    /// The archive format.
    pub format: ArchiveFormat,
}

/// An archive format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// Zip, as OpenHands' client expects.
    #[default]
    Zip,
    /// Tar, which keeps modes and links.
    Tar,
}

/// Why a file could not be moved in or out.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The request makes no sense; the text is for the client.
    #[error("{message}")]
    Invalid {
        /// What was wrong, in the words of the contract.
        message: String,
    },
    /// There is nothing at that path.
    #[error("File not found")]
    NotFound,
    /// The archive is broken or hostile, and nothing of it was kept.
    #[error("{message}")]
    BadArchive {
        /// Which entry, and what is wrong with it.
        message: String,
    },
    /// The file system refused; the text has the form `[Errno 20] Not a directory: '/a/b'`.
    #[error("{message}")]
    Io {
        /// The whole text.
        message: String,
        /// The cause.
        source: std::io::Error,
    },
}
