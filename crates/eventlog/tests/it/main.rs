//! The log from outside: one suite for both databases, and what is peculiar to each.

mod postgres;
mod sqlite;
mod suite;
mod support;
