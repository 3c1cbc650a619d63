//! The Docker Engine: where it is, what is asked of it, and why it may not answer.
//!
//! Every call has a deadline and an error that says what was attempted (DK-7). What may be sent
//! twice is sent again when the Engine is away for a moment; what makes something never is.

mod address;
mod calls;
mod elsewhere;
mod error;
mod ssh;

pub use address::{AddressError, EngineAddress, EnginePlace, EngineSources, SshHost, TlsFiles};
pub(crate) use calls::{Attached, Engine, EngineKind, ImageFound};
pub use error::{EngineError, EngineFault};
pub(crate) use ssh::{ENGINE as SSH_ENGINE, SentBody, SshHttp};
