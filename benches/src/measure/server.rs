//! The server that many agents share, with its sessions and its event log.

pub(super) mod commands;
pub(super) mod events;
pub(super) mod processors;
pub(super) mod read;
pub(super) mod sessions;
