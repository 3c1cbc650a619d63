//! `zareba key`: who may use the server.

use crate::{arguments::KeyArguments, commands::Context, exit::Exit, failure::Failure};

pub(crate) fn perform(_context: &Context, _arguments: &KeyArguments) -> Result<Exit, Failure> {
    Ok(Exit::Success)
}
