//! What a server has left for its next life: sessions to take up, and secrets to hide.

use std::{collections::BTreeSet, sync::Arc};

use zareba_eventlog::{Health, LogError};
use zareba_protocol::SessionId;

use crate::{
    Recovery, SessionError,
    conductor::{Common, Ending},
    document::{self, SessionDocument},
    event,
    live::Live,
    mask::Mask,
    recover::{self, Whose},
};

/// Takes up the sessions of this server's last life, and those that nobody has. While the log
/// cannot be written, it waits for that.
pub(crate) async fn take_up(
    others: BTreeSet<String>,
    common: Arc<Common>,
    live: Arc<Live>,
) -> Result<Recovery, SessionError> {
    let mut health = common.log.store().health();
    let mut ending = common.ending.subscribe();
    loop {
        tokio::select! {
            _ = health.wait_for(|health| *health == Health::Durable) => {}
            _ = ending.wait_for(|ending| *ending != Ending::No) => {
                return Err(SessionError::ShuttingDown);
            }
        }
        match recover::all(Whose::NotOf(&others), &common, &live).await {
            Ok(taken_up) => {
                if taken_up.failed > 0 {
                    common.lease.look_again(common.lease.holder());
                }
                common.taken_up.send_replace(true);
                if let Err(error) = forget_ended(&common, &live).await {
                    tracing::warn!(%error, "secrets of sessions that have ended may still be there");
                }
                return Ok(taken_up.recovery);
            }
            Err(SessionError::Log(
                error @ (LogError::Full | LogError::NoSpace | LogError::Unavailable { .. }),
            )) => {
                tracing::warn!(%error, "sessions are taken up later");
                // The log says so, too, and only then its health is worth waiting for.
                let _ = health.wait_for(|health| *health != Health::Durable).await;
            }
            Err(error) => {
                tracing::error!(
                    error = event::chain(&error),
                    "cannot take up the sessions of the log"
                );
                return Err(error);
            }
        }
    }
}

/// What hides its secrets; `None` when they are not known here.
pub(crate) async fn mask(
    id: &SessionId,
    written: &SessionDocument,
    common: &Common,
) -> Option<Mask> {
    if written.secret_names.is_empty() {
        return Some(Mask::new(&common.options.hidden));
    }
    let home = common.home.as_ref()?;
    match home.recall(id).await {
        Ok(secrets) => secrets.map(|own| Mask::new(own.iter().chain(&common.options.hidden))),
        Err(error) => {
            tracing::error!(session = %id, %error, "cannot read the secrets of a session");
            None
        }
    }
}

/// Removes secrets of sessions that have ended while nobody was there to do it.
async fn forget_ended(common: &Common, live: &Live) -> Result<(), LogError> {
    let Some(home) = &common.home else {
        return Ok(());
    };
    let kept = home.kept().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot look for secrets of sessions that have ended");
        Vec::new()
    });
    for id in kept {
        if live.get(&id).is_some() {
            continue;
        }
        let found = common.log.store().get(document::name(&id)).await?;
        let written = found.and_then(|found| SessionDocument::from_value(found.value).ok());
        if written.is_none_or(|written| written.state.has_ended()) {
            home.forget(&id).await;
        }
    }
    Ok(())
}
