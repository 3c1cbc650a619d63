//! Programs with streams of their own: started on request, ended with their connection.
//!
//! Unlike the shells they know nothing of actions. `start` finds the program and starts it as a
//! shell would be; `task` owns it from then on and is the only one to wait for it; `output` and
//! `input` are its streams.

mod input;
mod output;
mod start;
mod task;

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use tokio::sync::{Semaphore, watch};
use zareba_terminal::Credentials;
use zareba_wire::program::{ProgramConnection, ProgramRequest, StartFailure, StartProgramError};

use self::task::Running;
use crate::variables::SharedVariables;

/// Programs of one executor at once.
const PROGRAMS_MAX: u32 = 64;

/// What every program of an executor is started with: the same as its shells.
#[derive(Clone, Debug)]
pub(crate) struct ProgramSpec {
    /// The shell that is set; `None` looks for bash and then for sh.
    pub(crate) shell: Option<PathBuf>,
    /// The environment, to which a request may add.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What clients have set since, which wins over the environment.
    pub(crate) variables: SharedVariables,
    /// Who it runs as; `None` is who we are.
    pub(crate) credentials: Option<Credentials>,
    /// Where it starts when the request does not say.
    pub(crate) directory: PathBuf,
}

/// Starts programs, and ends them when the executor ends. Each belongs to a task of its own.
#[derive(Debug)]
pub(crate) struct Programs {
    spec: ProgramSpec,
    /// A permit for every program that may still be started.
    places: Arc<Semaphore>,
    closing: watch::Sender<bool>,
}

impl Programs {
    pub(crate) fn new(spec: ProgramSpec) -> Self {
        Self {
            spec,
            places: Arc::new(Semaphore::new(PROGRAMS_MAX as usize)),
            closing: watch::Sender::new(false),
        }
    }

    /// Starts a program. Must be called inside a tokio runtime.
    pub(crate) fn start(
        &self,
        request: &ProgramRequest,
    ) -> Result<ProgramConnection, StartProgramError> {
        request.check()?;
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(self.no_place());
        };
        let (child, streams) = start::start(&self.spec, request)?;
        let (connection, side) = ProgramConnection::pair();
        let running = Running {
            child,
            streams,
            side,
            closing: self.closing.subscribe(),
        };
        tokio::spawn(async move {
            running.serve().await;
            drop(place);
        });
        Ok(connection)
    }

    /// Kills all programs with what they started in their sessions, and returns when they are
    /// gone. Those that are asked for later are refused.
    pub(crate) async fn close(&self) {
        self.closing.send_replace(true);
        if let Ok(all) = self.places.acquire_many(PROGRAMS_MAX).await {
            all.forget();
        }
    }

    fn no_place(&self) -> StartProgramError {
        let message = if *self.closing.borrow() {
            "the executor is shutting down".to_owned()
        } else {
            format!("{PROGRAMS_MAX} programs run already; end one of them first")
        };
        StartProgramError::new(StartFailure::Busy, message)
    }
}
