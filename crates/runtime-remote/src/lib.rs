//! Reaches sandboxes of another server, as if they were here.
//!
//! [`ZarebaRuntime`] uses another server of ours, [`OpenHandsRuntime`] any that speaks OpenHands'
//! remote runtime API. A [`Sandbox`](zareba_runtime::Sandbox) is the same on both: a link that
//! carries what is asked for (`link`), and a life that ends once (`life`). What comes back is written by strangers: answers
//! have limits, redirects are not followed, and keys go to one origin only.
#![deny(missing_docs)]

mod copy;
mod files;
mod http;
mod life;
mod link;
mod openhands;
mod sandbox;
mod variables;
mod zareba;

pub use openhands::{OpenHandsOptions, OpenHandsRuntime};
pub use sandbox::{Farewell, VariableStore};
pub use zareba::{TimeLimit, ZarebaOptions, ZarebaRuntime};
pub use zareba_client::{ApiKey, InvalidAddress};
