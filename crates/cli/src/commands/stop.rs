//! `zareba stop`: the end of sandboxes, with everything in them.

use super::each::each;
use crate::{
    arguments::StopArguments,
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::{Fleet, Member},
};

/// Ends each of them.
pub(crate) fn perform(context: &Context, arguments: &StopArguments) -> Result<Exit, Failure> {
    each(context, &arguments.ids, "gone", end)
}

/// Ends one, whether or not it answers; of one that has ended already, removes what is left.
pub(super) async fn end(_: &Fleet, member: Member<'_>) -> Result<(), Failure> {
    member.destroy().await
}
