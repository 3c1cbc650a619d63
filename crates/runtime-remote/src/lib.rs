//! Reaches sandboxes of another server, as if they were here.
//!
//! [`OpenHandsRuntime`] speaks OpenHands' remote runtime API, which ours speaks as well. A
//! [`Sandbox`](zareba_runtime::Sandbox) is the same on both: a [`link`](link::Link) that carries
//! what is asked for, and a life that ends once. What comes back is written by strangers: answers
//! have limits, redirects are not followed, and keys go to one origin only.
#![deny(missing_docs)]

mod copy;
mod http;
mod life;
mod link;
mod openhands;
mod sandbox;
mod turns;

pub use openhands::{OpenHandsOptions, OpenHandsRuntime};
pub use sandbox::{Farewell, VariableStore};
pub use zareba_client::{ApiKey, InvalidAddress};
