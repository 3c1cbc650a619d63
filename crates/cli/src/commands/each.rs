//! The same for each of several sandboxes.

use serde_json::json;

use crate::{
    arguments::OutputFormat,
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::{Fleet, Member},
    say,
};

/// Does something to each sandbox and prints those for which it was done. One that it cannot be
/// done to does not keep the others from it; the first failure decides how we end.
pub(super) fn each(
    context: &Context,
    ids: &[String],
    state: &'static str,
    deed: impl AsyncFn(&Fleet, Member<'_>) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    Fleet::visit(context, async |fleet| {
        let mut exit = Exit::Success;
        for id in ids {
            let done = match fleet.find(id).await {
                Ok(member) => {
                    let id = member.summary.id.clone();
                    deed(fleet, member).await.map(|()| id)
                }
                Err(failure) => Err(failure),
            };
            match (done, context.globals.output) {
                (Ok(id), OutputFormat::Text) => say::line(id)?,
                (Ok(id), OutputFormat::Json) => {
                    say::line(json!({ "id": id.as_str(), "state": state }))?
                }
                (Err(failure), _) => {
                    say::failure(&failure);
                    if exit == Exit::Success {
                        exit = failure.exit();
                    }
                }
            }
        }
        Ok(exit)
    })
}
