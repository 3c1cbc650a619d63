//! Other projects' HTTP APIs over the same sessions, one module each.
//!
//! A facade translates: it has no sandboxes, keys or logs of its own. What it produces is a router
//! that a server puts behind its own accept loop, limits and names.
#![deny(missing_docs)]

pub mod camel;
pub mod openhands;
