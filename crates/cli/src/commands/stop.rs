//! `zareba stop`: the end of sandboxes, with everything in them.

use zareba_runtime::SandboxState;

use super::each::each;
use crate::{
    arguments::StopArguments,
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::{self, Fleet, Member},
};

/// Ends each of them.
pub(crate) fn perform(context: &Context, arguments: &StopArguments) -> Result<Exit, Failure> {
    each(context, &arguments.ids, "gone", end)
}

/// Ends one; of one that has ended already, removes what is left.
pub(super) async fn end(fleet: &Fleet, member: Member<'_>) -> Result<(), Failure> {
    if member.summary.state == SandboxState::Lost {
        return remove_rest(fleet, member).await;
    }
    let sandbox = member.attach().await?;
    sandbox
        .close()
        .await
        .map_err(|error| sandbox::failure(&error))
}

/// Removes what is left of one that has ended, and of all others like it.
pub(super) async fn remove_rest(fleet: &Fleet, member: Member<'_>) -> Result<(), Failure> {
    fleet.reap().await?;
    let id = member.summary.id.as_str();
    let members = fleet.members().await?;
    if members.iter().any(|other| other.summary.id.as_str() == id) {
        let message = format!("cannot remove the sandbox `{id}`: somebody still holds it");
        return Err(Failure::new(Exit::Failure, message)
            .hint("end the command that made it, which removes it"));
    }
    Ok(())
}
