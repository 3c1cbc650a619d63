//! Sandboxes that the kernel holds, from their creation to their end.

pub(super) mod burst;
pub(super) mod create;
pub(super) mod destroy;
pub(super) mod exec;
pub(super) mod idle;
pub(super) mod pause;
pub(super) mod processors;
pub(super) mod warm;
