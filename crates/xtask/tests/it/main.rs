//! Runs `xtask` as the scripts do.

#![cfg(target_os = "linux")]

mod census;
