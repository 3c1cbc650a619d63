//! The real program, driven as users and parents drive it.

mod support;

mod action;
mod executor_end;
mod executor_start;
mod run;
mod shell;
mod words;
