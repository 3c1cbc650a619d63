//! A small service whose root directory stands for the sandbox's `/`, and a server around it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tempfile::TempDir;
use tokio::{sync::Semaphore, sync::oneshot, task::JoinHandle};
use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, CommandOutput, Observation, ObservationEvent,
    ObservationKind,
};
use zareba_wire::{
    ActionService, ArchiveFormat, BoxFuture, ByteStream, Download, Endpoint, SessionKey,
    TransferError, Upload,
    program::{
        ProgramConnection, ProgramEvent, ProgramExit, ProgramLine, ProgramRequest, ProgramSide,
        StartFailure, StartProgramError, StdinPiece,
    },
    server::{OpenAccess, Server, ServerLimits, ServerOptions},
    tool_servers::{ToolClient, ToolProgram, ToolServers},
};

/// Commands have meanings of their own here: `panic`, `wait` (until released), everything else
/// is echoed.
pub(crate) struct FakeService {
    pub(crate) root: TempDir,
    pub(crate) ready: AtomicBool,
    pub(crate) uploads: Mutex<Vec<(Upload, Result<usize, String>)>>,
    pub(crate) actions: Mutex<Vec<ActionEvent>>,
    /// A permit ends one `wait`.
    pub(crate) release: Semaphore,
    /// A permit for every `wait` that has begun.
    pub(crate) waiting: Semaphore,
    /// A permit for every `wait` whose client went away.
    pub(crate) abandoned: Arc<Semaphore>,
    /// What was asked for at `/programs`.
    pub(crate) programs: Mutex<Vec<ProgramRequest>>,
    /// A permit for every program that nobody wanted any more.
    pub(crate) unwanted: Arc<Semaphore>,
    /// A permit for every upload that is over, finished or dropped.
    pub(crate) uploads_over: Arc<Semaphore>,
    pub(crate) tools: Arc<FakeTools>,
}

/// Servers of tools that say every message again.
#[derive(Default)]
pub(crate) struct FakeTools {
    /// The set, once there was one.
    pub(crate) pushed: Mutex<Option<Vec<ToolProgram>>>,
}

impl ToolServers for FakeTools {
    fn replace(&self, programs: Vec<ToolProgram>) -> BoxFuture<'_, Result<(), String>> {
        let outcome = match programs.iter().any(|program| program.command == "broken") {
            true => Err("one is broken".to_owned()),
            false => Ok(()),
        };
        *self.pushed.lock().unwrap() = Some(programs);
        Box::pin(std::future::ready(outcome))
    }

    fn connect(&self) -> Option<ToolClient> {
        self.pushed.lock().unwrap().as_ref()?;
        let (ours, stream) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let (mut input, mut output) = tokio::io::split(ours);
            tokio::io::copy(&mut input, &mut output).await
        });
        Some(ToolClient { stream })
    }
}

/// Adds a permit when it is dropped, unless it was disarmed.
struct Signal(Option<Arc<Semaphore>>);

impl Drop for Signal {
    fn drop(&mut self) {
        if let Some(semaphore) = self.0.take() {
            semaphore.add_permits(1);
        }
    }
}

impl FakeService {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            root: tempfile::tempdir().unwrap(),
            ready: AtomicBool::new(true),
            uploads: Mutex::default(),
            actions: Mutex::default(),
            release: Semaphore::new(0),
            waiting: Semaphore::new(0),
            abandoned: Arc::new(Semaphore::new(0)),
            programs: Mutex::default(),
            unwanted: Arc::new(Semaphore::new(0)),
            uploads_over: Arc::new(Semaphore::new(0)),
            tools: Arc::default(),
        })
    }

    /// Where a path of the sandbox is on this machine.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        self.root
            .path()
            .join(path.strip_prefix("/").unwrap_or(path))
    }

    async fn wait(&self) {
        let mut guard = Signal(Some(Arc::clone(&self.abandoned)));
        self.waiting.add_permits(1);
        self.release.acquire().await.unwrap().forget();
        guard.0 = None;
    }
}

pub(crate) fn run_observation(command: &str, content: &str) -> ObservationEvent {
    let kind = ObservationKind::Run(CommandOutput {
        command: command.to_owned(),
        metadata: CommandMetadata {
            exit_code: 0,
            ..CommandMetadata::default()
        },
        hidden: false,
    });
    Observation {
        content: content.to_owned(),
        kind,
    }
    .into()
}

pub(crate) const ARCHIVE_PIECES: [&[u8]; 3] = [b"PK first ", b"second ", b"last"];

impl ActionService for FakeService {
    fn execute(&self, action: ActionEvent) -> BoxFuture<'_, ObservationEvent> {
        self.actions.lock().unwrap().push(action.clone());
        Box::pin(async move {
            match action.action {
                Action::Run(run) if run.command == "panic" => panic!("asked to"),
                Action::Run(run) => {
                    if run.command == "wait" {
                        self.wait().await;
                    }
                    run_observation(&run.command, &run.command)
                }
                _ => {
                    Observation::error("Browser functionality is not supported or disabled.").into()
                }
            }
        })
    }

    fn list_files(&self, path: Option<String>) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let directory = self.inside(Path::new(path.as_deref().unwrap_or("/workspace")));
            let (mut directories, mut files) = (Vec::new(), Vec::new());
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let name = entry.file_name().into_string().unwrap();
                match fs::metadata(entry.path()) {
                    Ok(metadata) if metadata.is_dir() => directories.push(format!("{name}/")),
                    Ok(_) => files.push(name),
                    Err(_) => {}
                }
            }
            directories.sort_by_key(|name| name.to_lowercase());
            files.sort_by_key(|name| name.to_lowercase());
            directories.extend(files);
            directories
        })
    }

    fn upload(
        &self,
        upload: Upload,
        mut body: ByteStream,
    ) -> BoxFuture<'_, Result<(), TransferError>> {
        let over = Signal(Some(Arc::clone(&self.uploads_over)));
        Box::pin(async move {
            let _over = over;
            let directory = self.inside(&upload.destination);
            if directory.is_file() {
                let shown = upload.destination.join(&upload.file_name);
                let message = format!("[Errno 20] Not a directory: '{}'", shown.display());
                let source = std::io::ErrorKind::NotADirectory.into();
                return Err(TransferError::Io { message, source });
            }
            let mut bytes = Vec::new();
            while let Some(piece) = body.next().await {
                match piece {
                    Ok(piece) => bytes.extend_from_slice(&piece),
                    Err(error) => {
                        let outcome = Err(error.to_string());
                        self.uploads.lock().unwrap().push((upload, outcome));
                        return Err(TransferError::Io {
                            message: "broken".into(),
                            source: error,
                        });
                    }
                }
            }
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(&upload.file_name), &bytes).unwrap();
            self.uploads.lock().unwrap().push((upload, Ok(bytes.len())));
            Ok(())
        })
    }

    fn download(&self, download: Download) -> BoxFuture<'_, Result<ByteStream, TransferError>> {
        Box::pin(async move {
            if !self.inside(&download.path).exists() {
                return Err(TransferError::NotFound);
            }
            let mut pieces: Vec<std::io::Result<Bytes>> = ARCHIVE_PIECES
                .iter()
                .map(|piece| Ok(Bytes::from_static(piece)))
                .collect();
            if download.format == ArchiveFormat::Tar {
                pieces.push(Ok(Bytes::from_static(b" tar")));
            }
            if download.path.ends_with("broken") {
                pieces.push(Err(std::io::Error::other("disk on fire")));
            }
            let archive: ByteStream = Box::pin(stream::iter(pieces));
            Ok(archive)
        })
    }

    fn start_program(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, StartProgramError>> {
        let name = match &request.program {
            ProgramLine::Argv(words) => words[0].clone(),
            ProgramLine::Shell(text) => text.clone(),
        };
        self.programs.lock().unwrap().push(request);
        Box::pin(async move {
            let (connection, side) = ProgramConnection::pair();
            let unwanted = Arc::clone(&self.unwanted);
            match name.as_str() {
                "echo" => drop(tokio::spawn(echo(side, unwanted))),
                "deaf" => drop(tokio::spawn(deaf(side, unwanted))),
                "flood" => drop(tokio::spawn(flood(side, unwanted))),
                "busy" => {
                    let message = "64 programs run already";
                    return Err(StartProgramError::new(StartFailure::Busy, message));
                }
                _ => {
                    let message = format!("cannot find `{name}`");
                    return Err(StartProgramError::new(StartFailure::NotFound, message));
                }
            }
            Ok(connection)
        })
    }

    fn tool_servers(&self) -> Option<Arc<dyn ToolServers>> {
        Some(Arc::clone(&self.tools) as _)
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }
}

/// Writes what it reads, says each signal and size as an error, and ends with 7.
async fn echo(mut side: ProgramSide, unwanted: Arc<Semaphore>) {
    loop {
        let event = tokio::select! {
            biased;
            () = side.events.closed() => return unwanted.add_permits(1),
            Some(control) = side.control.recv() => {
                ProgramEvent::Stderr(format!("{control:?}").into())
            }
            piece = side.stdin.recv() => match piece {
                Some(StdinPiece::Bytes(bytes)) => ProgramEvent::Stdout(bytes),
                Some(StdinPiece::End) | None => ProgramEvent::Exit(ProgramExit::Code(7)),
            },
        };
        let is_over = matches!(event, ProgramEvent::Exit(_));
        side.events.send(event).await.unwrap();
        if is_over {
            return;
        }
    }
}

/// Reads nothing, and ends with the first signal.
async fn deaf(mut side: ProgramSide, unwanted: Arc<Semaphore>) {
    tokio::select! {
        () = side.events.closed() => unwanted.add_permits(1),
        Some(_) = side.control.recv() => {
            let exit = ProgramEvent::Exit(ProgramExit::Signal(15));
            side.events.send(exit).await.unwrap();
        }
    }
}

/// Writes for ever.
async fn flood(side: ProgramSide, unwanted: Arc<Semaphore>) {
    let piece = Bytes::from_static(&[b'y'; 65_536]);
    while side
        .events
        .send(ProgramEvent::Stdout(piece.clone()))
        .await
        .is_ok()
    {}
    unwanted.add_permits(1);
}

/// A server in this process, stopped by the test or with it.
pub(crate) struct Running {
    pub(crate) endpoint: Endpoint,
    pub(crate) service: Arc<FakeService>,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

pub(crate) fn keyed(key: &str) -> ServerOptions {
    ServerOptions {
        session_key: Some(SessionKey::new(key).unwrap()),
        ..keyless()
    }
}

pub(crate) fn keyless() -> ServerOptions {
    ServerOptions {
        session_key: None,
        open_access: OpenAccess::LoopbackOnly,
        limits: ServerLimits::default(),
    }
}

pub(crate) fn loopback() -> Endpoint {
    Endpoint::Tcp(([127, 0, 0, 1], 0).into())
}

pub(crate) fn start(options: ServerOptions) -> Running {
    start_at(&loopback(), options)
}

pub(crate) fn start_at(endpoint: &Endpoint, options: ServerOptions) -> Running {
    let server = Server::bind(endpoint, options).unwrap();
    let endpoint = server.endpoint().clone();
    let service = FakeService::new();
    let (stop, stopped) = oneshot::channel::<()>();
    let behind: Arc<FakeService> = Arc::clone(&service);
    // A test that ends without stopping drops the sender, which stops the server too.
    let task = tokio::spawn(server.serve(behind, async move { drop(stopped.await) }));
    Running {
        endpoint,
        service,
        stop,
        task,
    }
}
