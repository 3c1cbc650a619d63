//! `zareba pause` and `zareba resume`.

use super::each::each;
use crate::{
    arguments::{PauseArguments, ResumeArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox,
};

/// Freezes each of them.
pub(crate) fn pause(context: &Context, arguments: &PauseArguments) -> Result<Exit, Failure> {
    each(context, &arguments.ids, "paused", async |_, member| {
        let paused = member.attach().await?.pause().await;
        paused.map_err(|error| sandbox::failure(&error))
    })
}

/// Lets each of them go on.
pub(crate) fn resume(context: &Context, arguments: &ResumeArguments) -> Result<Exit, Failure> {
    each(context, &arguments.ids, "running", async |_, member| {
        let resumed = member.attach().await?.resume().await;
        resumed.map_err(|error| sandbox::failure(&error))
    })
}
