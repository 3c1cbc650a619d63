//! `zareba rm`: away with what is left of sandboxes.

use zareba_runtime::SandboxState;

use super::{each::each, stop};
use crate::{arguments::RmArguments, commands::Context, exit::Exit, failure::Failure};

/// Removes each of them.
pub(crate) fn perform(context: &Context, arguments: &RmArguments) -> Result<Exit, Failure> {
    each(context, &arguments.ids, "gone", async |fleet, member| {
        if member.summary.state != SandboxState::Lost && !arguments.force {
            let id = &member.summary.id;
            let message = format!("the sandbox `{id}` still runs");
            return Err(Failure::new(Exit::Failure, message)
                .hint(format!("`zareba stop {id}` ends it, and so does `--force`")));
        }
        stop::end(fleet, member).await
    })
}
