//! The `edit` action: view, create, replace, insert and undo, with the texts that agents know.
//!
//! The editor answers every request with an observation; what goes wrong is a sentence in it.
//! `dispatch` checks a request and picks the command, `change` reads, computes and writes,
//! and the other files are pure functions over texts, except for `history`, which keeps what an
//! undo brings back.

mod change;
mod diff;
mod directory;
mod dispatch;
mod document;
mod history;
mod history_index;
mod insert;
mod listing;
mod matcher;
mod office;
mod refusal;
mod str_replace;
mod view;

pub(crate) use dispatch::{Editor, EditorSettings};

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod editor_tests;
#[cfg(test)]
mod examples_tests;
