//! Functions that agents call. A [`Tool`] is a name, a description, a JSON schema and a call; a
//! [`Registry`] holds those of one session.
//!
//! There are [functions of Rust](FunctionTool), [commands](CommandTool) and functions of Python,
//! which a [`PythonHost`] runs in a [`Place`], that is in a sandbox. Whatever comes from there is
//! hostile: it is bounded, checked and never trusted to be what our own worker would send.
#![deny(missing_docs)]

mod call;
mod definition;
mod error;
mod name;
mod tool;

mod check;
mod json;
mod outcome;
mod registry;

mod command;
mod function;
mod python;

pub use call::{Arguments, Call, OUTPUT_BYTES_MAX, RESULT_DEPTH_MAX, RESULT_VALUES_MAX, Returned};
pub use command::{CommandParameter, CommandTool, CommandToolSpec};
pub use definition::{Origin, ToolDefinition};
pub use error::{Exception, NotJson, ToolError};
pub use function::FunctionTool;
pub use json::JsonShape;
pub use name::{InvalidToolName, ToolName};
pub use outcome::observation;
pub use python::{Entrypoint, InvalidEntrypoint, LoadFailure, Loaded, PythonHost, PythonOptions};
pub use registry::{CALL_TIMEOUT, Registry, TOOLS_MAX};
pub use tool::{Host, Tool};
/// Where hosts of tools run, such as a sandbox.
pub use zareba_wire::program::{Place, PlaceError};

/// What [`tool!`] makes schemas with.
#[doc(hidden)]
pub use schemars;
/// What [`tool!`] reads arguments with.
#[doc(hidden)]
pub use serde;
