//! Persistent shells: commands in, observations out.
//!
//! [`Shell`] is a handle; the shell itself belongs to a task (`actor`), which drives it by the
//! protocol of `dialect`. A turn with the shell ends when the command does, when patience
//! ends, or when it cannot begin; `observe` puts it into the words of the contract.

mod actor;
mod dialect;
mod heard;
mod keys;
mod observe;
mod process;
mod recording;
mod report;
mod spill;
mod split;
mod start;
mod state;
mod texts;
mod turn;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use actor::Actor;
use bytes::Bytes;
pub(crate) use dialect::{find_program, find_shell};
use observe::Context;
pub(crate) use observe::chain;
pub use process::StartShellError;
pub(crate) use process::{ShellSpec, search_path};
pub(crate) use recording::Recording;
use state::PATIENCE_MAX;
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};
use turn::{Ask, Outcome, Patience, Request, Turn};
use zareba_protocol::{Observation, RunCommand};
use zareba_terminal::Size;

use crate::outputs::ActionOutput;

/// Turns that may wait for one shell.
const QUEUE: usize = 64;

/// The longest command text.
const COMMAND_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Who and where a shell's user is, for metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) username: String,
    pub(crate) hostname: String,
}

/// How long a command may be waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Without new output, unless the action says that it blocks.
    pub(crate) no_change: Duration,
    /// In all.
    pub(crate) hard: Duration,
}

/// A running shell. When the last clone of the handle goes, the shell is killed with
/// everything that it started in its session.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    requests: mpsc::Sender<Request>,
    output: broadcast::Sender<Bytes>,
    place: watch::Receiver<PathBuf>,
    identity: Identity,
    closing: Arc<Notify>,
    /// Reaches its end when the task has ended and the shell is gone.
    gone: watch::Receiver<()>,
}

impl Shell {
    /// Starts a shell in `directory` and returns once it can take commands. `ready` is called a
    /// little earlier, as soon as it is certain that it will. Dropping the future ends the shell.
    pub(crate) async fn start(
        spec: ShellSpec,
        name: &str,
        directory: &Path,
        identity: Identity,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Self, StartShellError> {
        let (requests, receiver) = mpsc::channel(QUEUE);
        let mut actor = Actor::new(spec, name, directory.to_owned(), receiver);
        let (output, place) = (actor.output.clone(), actor.place.subscribe());
        let closing = Arc::clone(&actor.closing);
        let (alive, gone) = watch::channel(());
        let (mut tell, told) = oneshot::channel();
        let process = actor.spawn_shell()?;
        tokio::spawn(async move {
            let taken_over = tokio::select! {
                taken_over = actor.take_over(process, ready) => taken_over,
                () = tell.closed() => return,
            };
            let is_there = taken_over.is_ok();
            let _ = tell.send(taken_over);
            if is_there {
                actor.serve().await;
            }
            drop(alive);
        });
        // Without an answer the runtime is about to end, and the shell with it.
        told.await
            .map_err(|gone| StartShellError::Channels(io::Error::other(gone)))??;
        Ok(Self {
            requests,
            output,
            place,
            identity,
            closing,
            gone,
        })
    }

    /// The shell's directory after the last command that ended.
    pub(crate) fn directory(&self) -> PathBuf {
        self.place.borrow().clone()
    }

    /// What programs write, as it comes. A reader that falls behind misses the oldest pieces
    /// and is told how many.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Bytes> {
        self.output.subscribe()
    }

    /// Gives the shell's terminal another size.
    pub(crate) async fn resize(&self, size: Size) {
        let _ = self.requests.send(Request::Resize(size)).await;
    }

    /// Ends the shell, also for those who wait for a command in it, and returns when it is gone.
    pub(crate) async fn close(&self) {
        self.closing.notify_one();
        let mut gone = self.gone.clone();
        while gone.changed().await.is_ok() {}
    }

    /// Runs one action. Dropping the future leaves the command running, as after a timeout, and
    /// so does `enough`, with an observation of what there is until then.
    pub(crate) async fn run(
        &self,
        action: &RunCommand,
        timeouts: Timeouts,
        enough: &Notify,
        heard: Option<&Arc<ActionOutput>>,
    ) -> Observation {
        let command = action.command.trim();
        let ask = ask(action, command);
        let context = Context {
            action,
            command,
            ask: &ask,
            identity: &self.identity,
        };
        if command.contains('\0') {
            return context
                .failure("ERROR: The command contains a NUL character, which no shell can take.");
        }
        if command.len() > COMMAND_MAX_BYTES {
            let (length, limit) = (command.len(), COMMAND_MAX_BYTES);
            return context.failure(&format!(
                "ERROR: The command has {length} bytes; the limit is {limit}. Write it to a file and run that."
            ));
        }
        if let Ask::Run(command) = &ask
            && let Some(parts) = split::several_commands(command)
        {
            return context.failure(&texts::several_commands(&parts));
        }
        let patience = Patience {
            silence: (!action.blocking).then_some(timeouts.no_change),
            total: Some(timeouts.hard.min(PATIENCE_MAX)),
        };
        match self.take_turn(ask.clone(), patience, enough, heard).await {
            Some(turn) => context.observe(turn),
            None => context.failure("ERROR: The shell is gone."),
        }
    }

    /// Takes a turn, which is cut short when it is `enough`. `None` when the shell is gone.
    async fn take_turn(
        &self,
        ask: Ask,
        patience: Patience,
        enough: &Notify,
        heard: Option<&Arc<ActionOutput>>,
    ) -> Option<Turn> {
        let since = Instant::now();
        let mut answer = self.ask(ask, patience, heard.cloned()).await?;
        tokio::select! {
            biased;
            turn = &mut answer => return turn.ok(),
            () = enough.notified() => {}
        }
        answer.close();
        if let Ok(turn) = answer.try_recv() {
            return Some(turn);
        }
        // Without anybody who waits, the turn ends. This one comes right behind it.
        let at_once = Patience {
            silence: None,
            total: Some(Duration::ZERO),
        };
        let mut turn = self.ask(Ask::Wait, at_once, None).await?.await.ok()?;
        if let Outcome::TimedOut(_) = turn.outcome {
            let lasted = since.elapsed().as_millis();
            let lasted = Duration::from_millis(lasted.try_into().unwrap_or(u64::MAX));
            turn.outcome = Outcome::TimedOut(lasted);
        }
        Some(turn)
    }

    async fn ask(
        &self,
        ask: Ask,
        patience: Patience,
        heard: Option<Arc<ActionOutput>>,
    ) -> Option<oneshot::Receiver<Turn>> {
        let (reply, answer) = oneshot::channel();
        let request = Request::Turn {
            ask,
            patience,
            reply,
            heard,
        };
        self.requests.send(request).await.ok()?;
        Some(answer)
    }
}

fn ask(action: &RunCommand, command: &str) -> Ask {
    if let Some(key) = keys::control_key(command) {
        return Ask::Press(key);
    }
    match (command, action.is_input) {
        ("", _) => Ask::Wait,
        (_, true) => {
            keys::named_key(command).map_or_else(|| Ask::Type(command.to_owned()), Ask::Press)
        }
        (_, false) => Ask::Run(command.to_owned()),
    }
}
