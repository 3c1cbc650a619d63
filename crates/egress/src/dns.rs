//! The sandbox's resolver: addresses of allowed names, and nothing else (EG-5).
//!
//! A question is never forwarded. What leaves this machine is an allowed name in canonical form,
//! asked for by our own resolver, so that no other record, flag, case or option can carry data
//! out. What comes back is judged address by address, remembered and answered.
//!
//! A name that is not allowed does not exist: programs give up at once on `NXDOMAIN`, while they
//! retry on `REFUSED`. Who asks with EDNS also gets the reason as an extended error (RFC 8914).

mod message;
mod pace;
mod server;
mod service;

pub(crate) use pace::Pace;
pub(crate) use server::{serve_stream, serve_udp};
