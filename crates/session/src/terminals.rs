//! The terminals of a session: programs that people look at and type into, several at once.
//!
//! A terminal is kept by the session and not by whoever looks at it. Its output goes into a ring
//! ([`output`](self)), from which every viewer reads at its own pace by the number of the byte it
//! has got to; so a slow viewer holds nobody up, and one that has fallen too far behind is told
//! from where it can go on. Output passes the session's mask. A terminal ends with its program,
//! when it is closed, or with the server.

mod output;
mod terminal;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Mutex as Exclusive;
use zareba_protocol::ErrorClass;
use zareba_runtime::{RuntimeError, Sandbox as _};
use zareba_wire::program::{ProgramLine, ProgramRequest, ProgramStdin, TerminalSize};

use crate::{AdmittedSandbox, Deed, Door, Mask, ProgramPurpose};

pub use output::{TerminalOutput, Viewer};
pub use terminal::{Terminal, TerminalEnd, TerminalInfo};

/// Terminals of one session, those that have ended included.
pub const TERMINALS_MAX: usize = 16;

const NAME_LENGTH_MAX: usize = 64;

/// What a program on a terminal may assume of it.
const TERMINAL_KIND: &str = "xterm-256color";

/// The shell that people are given: one with line editing where there is one.
const DEFAULT_SHELL: &str = "if command -v bash >/dev/null 2>&1; then exec bash -i; fi; exec sh -i";

/// What a terminal shall be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTerminal {
    /// Its name; `None` takes the lowest number that is free.
    pub name: Option<String>,
    /// What runs on it; `None` is a shell.
    pub program: Option<ProgramLine>,
    /// Where that starts; `None` is the workspace.
    pub directory: Option<String>,
    /// Variables beside those that every shell of the session has.
    pub environment: Vec<(String, String)>,
    /// Its size.
    pub size: TerminalSize,
}

/// Why something could not be done with a terminal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// There is none with that name.
    #[error("there is no terminal `{name}`")]
    NotFound {
        /// The name.
        name: String,
    },
    /// There is one with that name already, and its program runs.
    #[error("there is a terminal `{name}` already; close it first")]
    Exists {
        /// The name.
        name: String,
    },
    /// There are too many.
    #[error("a session has at most {TERMINALS_MAX} terminals; close one first")]
    TooMany,
    /// The name cannot be one.
    #[error(
        "a terminal's name has 1 to {NAME_LENGTH_MAX} letters, digits, `-` and `_`, not `{name}`"
    )]
    InvalidName {
        /// The name.
        name: String,
    },
    /// Its program has ended.
    #[error("the program on the terminal `{name}` has ended")]
    Ended {
        /// The name.
        name: String,
    },
    /// The sandbox could not start the program.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl TerminalError {
    /// The class that callers act on.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound { .. } => ErrorClass::NotFound,
            Self::Exists { .. } | Self::TooMany | Self::Ended { .. } => ErrorClass::Busy,
            Self::InvalidName { .. } => ErrorClass::Invalid,
            Self::Runtime(error) => error.class(),
        }
    }
}

/// The terminals of one session. Dropping it ends their programs.
#[derive(Debug)]
pub struct Terminals {
    mask: Mask,
    /// Held while one is opened, so that a name is given once.
    opening: Exclusive<()>,
    open: Mutex<BTreeMap<String, Arc<Terminal>>>,
}

impl Terminals {
    pub(crate) fn new(mask: Mask) -> Self {
        Self {
            mask,
            opening: Exclusive::default(),
            open: Mutex::default(),
        }
    }

    /// Starts a program on a terminal of its own. One of the same name that has ended is
    /// replaced, and where there are too many the one that ended first makes room.
    ///
    /// # Errors
    /// A name that is none or is taken, too many terminals, a program that does not start.
    pub async fn open(
        &self,
        sandbox: &AdmittedSandbox,
        new: NewTerminal,
    ) -> Result<Arc<Terminal>, TerminalError> {
        let _opening = self.opening.lock().await;
        let name = self.reserve(new.name)?;
        let program = new
            .program
            .unwrap_or_else(|| ProgramLine::Shell(DEFAULT_SHELL.to_owned()));
        let mut environment = vec![("TERM".to_owned(), TERMINAL_KIND.to_owned())];
        environment.extend(new.environment);
        let request = ProgramRequest {
            program,
            directory: new.directory,
            environment,
            terminal: Some(new.size),
            stdin: ProgramStdin::Open,
        };
        let sandbox = sandbox.with_purpose(ProgramPurpose::Terminal { name: name.clone() });
        let connection = sandbox.start_program(request).await?;
        let stream = self.mask.stream();
        let terminal = Arc::new(Terminal::new(name.clone(), new.size, connection, stream));
        self.terminals().insert(name, Arc::clone(&terminal));
        Ok(terminal)
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<TerminalInfo> {
        let terminals = self.terminals();
        terminals.values().map(|terminal| terminal.info()).collect()
    }

    /// The one with a name, also one whose program has ended.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&self, name: &str) -> Result<Arc<Terminal>, TerminalError> {
        let found = self.terminals().get(name).cloned();
        found.ok_or_else(|| not_found(name))
    }

    /// Ends a terminal's program for the client behind a door, tells its viewers and forgets it.
    ///
    /// # Errors
    /// When there is none, or the guard denies it.
    pub async fn close(&self, door: &Door, name: &str) -> Result<(), TerminalError> {
        let name = self.get(name)?.name().to_owned();
        let deed = Deed::CloseTerminal { name: name.clone() };
        let word = |error: &TerminalError| error.class().as_str();
        let close = async {
            let found = self.terminals().remove(&name);
            found.ok_or_else(|| not_found(&name))?.close();
            Ok(())
        };
        door.carry_out(deed, word, close).await
    }

    /// A name that is free, and room for one more.
    fn reserve(&self, name: Option<String>) -> Result<String, TerminalError> {
        let mut terminals = self.terminals();
        let is_valid = |name: &str| {
            (1..=NAME_LENGTH_MAX).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        let name = match name {
            Some(name) if !is_valid(&name) => return Err(TerminalError::InvalidName { name }),
            Some(name) => match terminals.get(&name) {
                Some(terminal) if !terminal.has_ended() => {
                    return Err(TerminalError::Exists { name });
                }
                _ => name,
            },
            None => (1..)
                .map(|number: usize| number.to_string())
                .find(|name| !terminals.contains_key(name))
                .unwrap_or_default(),
        };
        terminals.remove(&name);
        if terminals.len() >= TERMINALS_MAX {
            let ended = terminals
                .iter()
                .filter_map(|(name, terminal)| Some((terminal.ended_at()?, name.clone())))
                .min();
            let (_, oldest) = ended.ok_or(TerminalError::TooMany)?;
            terminals.remove(&oldest);
        }
        Ok(name)
    }

    fn terminals(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Terminal>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        for terminal in self.terminals().values() {
            terminal.close();
        }
    }
}

fn not_found(name: &str) -> TerminalError {
    let name: String = name.chars().take(NAME_LENGTH_MAX).collect();
    TerminalError::NotFound {
        name: name.escape_debug().to_string(),
    }
}
