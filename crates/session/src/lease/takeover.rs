//! Taking over the sessions of servers that are gone.

use std::{pin::pin, sync::Arc};

use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use zareba_eventlog::{Document, DocumentName, Expected, LogError};

use super::{RENEWED_EVERY, TAKEN_BY, is_claimed_by};
use crate::{
    SessionError,
    conductor::Common,
    event,
    live::Live,
    recover::{self, Whose},
};

/// Whose sessions are to be taken over.
pub(super) struct Due {
    /// Who has been silent for too long, and whoever this server has begun with and not finished.
    pub(super) gone: Vec<Document>,
    /// Names of this server, now or before.
    pub(super) left: Vec<String>,
}

impl Due {
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.left.is_empty()
    }
}

/// Whether all that was to be taken over is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Something,
}

/// Takes the sessions of servers over, one server after the other.
pub(super) async fn take_over_all(due: Due, common: Arc<Common>, live: Arc<Live>) -> Left {
    // Those of our own last life are another's to take up, and must be before anybody can tell
    // what is left of them.
    if !*common.taken_up.borrow() {
        return Left::Something;
    }
    let mut left = Left::Nothing;
    let mut count = |taken_over: Result<Left, SessionError>| match taken_over {
        Ok(Left::Nothing) => {}
        Ok(Left::Something) => left = Left::Something,
        Err(error) => {
            let error = event::chain(&error);
            tracing::error!(error, "cannot take over the sessions of another server yet");
            left = Left::Something;
        }
    };
    for name in due.left {
        count(take_up_left(name, &common, &live).await);
    }
    for server in due.gone {
        count(take_over(&server, &common, &live).await);
    }
    left
}

/// Takes up what was left with one of our own names.
async fn take_up_left(
    name: String,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Left, SessionError> {
    common.lease.left().remove(&name);
    let taken_up = take_up(&name, common, live).await;
    if !matches!(taken_up, Ok(Left::Nothing)) {
        common.lease.look_again(name);
    }
    taken_up
}

/// Takes the sessions of a server over that has been silent for too long, unless it writes again
/// or another one is faster. The claim stays until all of them are taken up, and whoever has it
/// tries again.
async fn take_over(
    server: &Document,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Left, SessionError> {
    let mut claim = Claim {
        common,
        server: server.name.clone(),
        version: server.version,
    };
    let holder = server.name.name.as_str();
    if claim.renew().await? == Claimed::ByAnother {
        return Ok(Left::Nothing);
    }
    if !is_claimed_by(server, &common.lease.holder()) {
        tracing::warn!(
            server = holder,
            "another server is gone; taking over its sessions"
        );
    }
    if claim.hold_during(take_up(holder, common, live)).await? == Left::Something {
        return Ok(Left::Something);
    }
    // Whoever has claimed it meanwhile removes it; and nobody does while it is removed.
    if claim.renew().await? == Claimed::ByUs {
        common.log.store().delete(claim.server).await?;
    }
    Ok(Left::Nothing)
}

/// Takes up the sessions with a name.
async fn take_up(name: &str, common: &Arc<Common>, live: &Arc<Live>) -> Result<Left, SessionError> {
    let taken_up = recover::all(Whose::Of(name), common, live).await;
    if taken_up.as_ref().is_ok_and(|taken_up| taken_up.failed == 0) {
        return Ok(Left::Nothing);
    }
    // Some may have got our name before they could not be taken up.
    common.lease.look_again(common.lease.holder());
    taken_up.map(|_| Left::Something)
}

/// That this server takes another one's sessions over, as it is written in that one's document.
struct Claim<'a> {
    common: &'a Common,
    server: DocumentName,
    version: u64,
}

/// Who takes a server's sessions over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claimed {
    ByUs,
    /// Or the server itself writes again.
    ByAnother,
}

impl Claim<'_> {
    /// Writes it, unless the document has changed since.
    async fn renew(&mut self) -> Result<Claimed, LogError> {
        let claim = json!({ TAKEN_BY: self.common.lease.holder() });
        let expected = Expected::Version(self.version);
        let store = self.common.log.store();
        match store.put(self.server.clone(), claim, expected).await {
            Err(LogError::Conflict { .. }) => Ok(Claimed::ByAnother),
            written => {
                self.version = written?.version;
                Ok(Claimed::ByUs)
            }
        }
    }

    /// Writes it again and again until some work is done: others take one that is silent for gone.
    async fn hold_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut ticks = interval_at(Instant::now() + RENEWED_EVERY, RENEWED_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = ticks.tick() => {}
            }
            // Work that is half done is finished even so: each session is whose name it got.
            if let Err(error) = self.renew().await {
                tracing::warn!(%error, "cannot show yet that a server is being taken over");
            }
        }
    }
}
