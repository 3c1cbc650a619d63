//! The side that writes: connected to the file, or waiting for the space to connect.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    open,
    readers::Alone,
    reserve::Reserve,
    write::{self, Connected},
};
use crate::{
    LogError, Options, Recovery,
    writer::{Backend, Deed, Done, Failure, Prompt, Settled},
};

/// The one that may write to a file, as it holds the lock.
#[derive(Debug)]
pub(super) enum Side {
    Connected(Box<Connected>),
    Waiting(Waiting),
}

/// One that could not connect, because there was no space.
#[derive(Debug)]
pub(super) struct Waiting {
    path: PathBuf,
    options: Options,
    lock: Arc<File>,
    alone: Alone,
    reason: String,
}

/// A side as it was opened.
pub(super) struct Opened {
    pub(super) side: Side,
    pub(super) recovery: Recovery,
    /// Why it is only waiting.
    pub(super) unopened: Option<String>,
}

impl Side {
    /// Opens a file. Where there is no space for that, and something to read, it waits.
    pub(super) fn open(path: &Path, options: Options, alone: &Alone) -> Result<Opened, LogError> {
        let lock = Arc::new(open::lock(path)?);
        let mut opened = Connected::open(path, options, Arc::clone(&lock));
        if opened.as_ref().is_err_and(open::is_for_space)
            && Reserve::give_up(&open::beside(path, "reserve"))
        {
            opened = Connected::open(path, options, Arc::clone(&lock));
        }
        let error = match opened {
            Ok((connected, recovery)) => {
                return Ok(Opened {
                    side: Self::Connected(Box::new(connected)),
                    recovery,
                    unopened: None,
                });
            }
            Err(error) => error,
        };
        if !open::is_for_space(&error) || !alone.can_read(path) {
            return Err(error);
        }
        tracing::error!(error = chain(&error), "the event log can only be read");
        let reason = chain(&error);
        Ok(Opened {
            side: Self::Waiting(Waiting {
                path: path.to_owned(),
                options,
                lock,
                alone: alone.clone(),
                reason: reason.clone(),
            }),
            recovery: Recovery::default(),
            unopened: Some(reason),
        })
    }
}

impl Waiting {
    fn failure(&self) -> Failure {
        Failure::Lost {
            reason: self.reason.clone(),
            in_doubt: false,
        }
    }

    fn connect(&mut self) -> Result<Connected, Failure> {
        let lock = Arc::clone(&self.lock);
        // A reader that is alone with the file would keep us out.
        let opened = (self.alone).put_aside(|| Connected::open(&self.path, self.options, lock));
        match opened {
            Ok((connected, recovery)) => {
                tracing::info!(?recovery, "the event log can be written");
                Ok(connected)
            }
            Err(error) => {
                self.reason = chain(&error);
                if open::is_for_space(&error) || write::is_held(&error) {
                    Err(self.failure())
                } else {
                    Err(Failure::Broken(self.reason.clone()))
                }
            }
        }
    }
}

impl Backend for Side {
    async fn write(
        &mut self,
        deeds: &mut [&mut Deed],
    ) -> Result<Vec<Result<Done, LogError>>, Failure> {
        match self {
            Self::Connected(connected) => connected.write(deeds).await,
            Self::Waiting(waiting) => Err(waiting.failure()),
        }
    }

    async fn settle(&mut self, deed: &Deed) -> Result<Settled, Failure> {
        match self {
            Self::Connected(connected) => connected.settle(deed).await,
            Self::Waiting(waiting) => Err(waiting.failure()),
        }
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        match self {
            Self::Connected(connected) => connected.reopen().await,
            Self::Waiting(waiting) => {
                let connected = waiting.connect()?;
                *self = Self::Connected(Box::new(connected));
                Ok(())
            }
        }
    }

    fn open_reserve(&mut self) -> bool {
        match self {
            Self::Connected(connected) => connected.open_reserve(),
            Self::Waiting(_) => false,
        }
    }

    fn refill_reserve(&mut self) -> Result<(), Failure> {
        match self {
            Self::Connected(connected) => connected.refill_reserve(),
            Self::Waiting(waiting) => Err(waiting.failure()),
        }
    }

    async fn tidy(&mut self) -> bool {
        match self {
            Self::Connected(connected) => connected.tidy().await,
            Self::Waiting(_) => false,
        }
    }

    fn keep_up(&mut self) {
        match self {
            Self::Connected(connected) => connected.keep_up(),
            Self::Waiting(_) => {}
        }
    }

    async fn close(&mut self) -> Result<(), LogError> {
        match self {
            Self::Connected(connected) => connected.close().await,
            // Nothing was opened.
            Self::Waiting(_) => Ok(()),
        }
    }
}

impl Prompt for Side {
    fn write_now(&mut self, deed: &mut Deed) -> Result<Option<Result<Done, LogError>>, Failure> {
        match self {
            Self::Connected(connected) => connected.write_now(deed),
            Self::Waiting(_) => Ok(None),
        }
    }

    fn is_behind(&self) -> bool {
        match self {
            Self::Connected(connected) => connected.is_behind(),
            Self::Waiting(_) => false,
        }
    }

    fn is_synced(&self) -> bool {
        match self {
            Self::Connected(connected) => connected.is_synced(),
            Self::Waiting(_) => true,
        }
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
