//! What any HTTP server of ours is made of: a listener, an accept loop with caps and deadlines,
//! bodies that cannot drip for ever, and the headers that every answer has.
//!
//! A server implements [`Respond`], gets a [`Listener`] and lets [`accept_until`] run. An answer
//! that carries a [`Takeover`] goes on as something else than HTTP in the same task, so that it
//! counts among the connections and ends with the server.

pub use crate::limiter::{Limiter, Rate};
pub use crate::server::{
    BindError, HEADER_BYTES_MAX, ServerLimits, URI_BYTES_MAX,
    accept::{Peer, Respond, accept_until},
    answer::harden,
    body::{BodyError, TimedBody, linger, read_body},
    census::{Admission, Recognised},
    gate::{host_is_loopback, names_loopback, origin_is_own_loopback},
    lent::{Lender, LentBody},
    listener::Listener,
    programs::relay::{PlainVoice, Voice, carry_program},
    takeover::{RawConnection, Secure, Stream, Takeover, TakeoverEnd},
};
pub use crate::wrong_keys::WrongKeys;
