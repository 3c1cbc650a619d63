//! The house rules that neither the compiler nor clippy can check, one module per rule.
//!
//! Each rule is a pure function from the [`Repository`] to its findings, so that a test can show
//! it failing on two lines of text. To add one: write the module, add it to `CHECKS` in
//! `report.rs`, and give it a test in which it finds something.

mod code;
mod crate_list;
mod documents;
mod environment;
mod forbidden;
mod headers;
mod layers;
mod links;
mod machine_paths;
mod manifests;
mod module_files;
mod report;
mod repository;
mod requirements;
mod size;
mod supply;
mod unsafety;

pub(crate) use report::run;
pub(crate) use repository::Repository;
