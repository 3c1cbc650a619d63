//! Acts: one module per action family, action in, observation out.
//!
//! [`Executor`] is the whole of it: it runs in a sandbox (or, without walls, in any process),
//! takes [`ActionEvent`](zareba_protocol::ActionEvent)s and answers each with one observation.
//! Actions on different shells run at once, on one shell in order; file actions wait for no
//! shell. It is served over HTTP by `zareba-wire`, and knows nothing of it beyond the trait.

mod acting;
mod editor;
mod environment;
mod executor;
mod files;
mod lint;
mod once;
mod oom;
mod outputs;
mod owner;
mod programs;
mod raw;
mod search;
mod service;
mod shell;
mod shells;
mod transfer;
mod user;
mod variables;

pub use environment::{DEFAULT_LOCALE, sets_locale, shell_environment};
pub use executor::{Executor, ExecutorOptions, FileScope, StartExecutorError};
pub use files::{OpenWorkspaceError, meant_path, printable_path};
pub use lint::Linting;
pub use owner::Owner;
pub use shell::StartShellError;
pub use shells::OpenShellError;
pub use transfer::Transfers;
pub use user::{User, UserError};
pub use zareba_terminal::Size;
