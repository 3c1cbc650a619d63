//! `zareba update`: how long sandboxes of a server live.

use zareba_client::{Idle, Seconds, SessionLimits, UpdateSession};
use zareba_protocol::SessionId;

use super::{each::each, serve::server_client};
use crate::{
    arguments::UpdateArguments,
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::Place,
};

/// Changes each of them.
pub(crate) fn perform(context: &Context, arguments: &UpdateArguments) -> Result<Exit, Failure> {
    let Some(url) = context.server() else {
        let message = "sandboxes of this machine live until they are stopped";
        return Err(Failure::new(Exit::Usage, message)
            .hint("use `--server` for sandboxes of a server, or `zareba stop` to end one"));
    };
    let update = wanted(arguments);
    if update == UpdateSession::default() {
        let message = "nothing is to be changed";
        return Err(Failure::new(Exit::Usage, message)
            .hint("use `--ends-in`, `--life-max`, `--idle-timeout`, `--when-idle` or `--label`"));
    }
    let configuration = context.configuration(Vec::new())?;
    let place = Place::new(context, &configuration.settings);
    let key = context.environment.get("ZAREBA_API_KEY");
    let client = server_client(url, key, place.state())?;
    each(context, &arguments.ids, "changed", async |_, member| {
        let name = member.summary.id.as_str();
        let deed = format!("cannot change the sandbox `{name}`");
        let session = SessionId::new(name).or_fail(Exit::Usage, deed.clone())?;
        let changed = client.update_session(&session, &update).await;
        changed.map(drop).or_fail(Exit::Failure, deed)
    })
}

fn wanted(arguments: &UpdateArguments) -> UpdateSession {
    let labels = arguments.labels.iter().cloned();
    UpdateSession {
        limits: SessionLimits {
            idle_timeout: arguments.idle_timeout.map(Seconds::from),
            when_idle: arguments.when_idle.map(Idle::from),
            life_max: arguments.life_max.map(Seconds::from),
        },
        ends_in: arguments.ends_in.map(Seconds::from),
        labels: (!arguments.labels.is_empty()).then(|| labels.collect()),
    }
}
