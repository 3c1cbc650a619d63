//! Which servers are there, where several share a log.
//!
//! Each writes a document of its own again and again. Whoever sees the same version of it for too
//! long takes that server for gone and its sessions over: no two clocks are compared for that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;
use zareba_eventlog::{DocumentName, Expected, LogError};

use crate::{
    conductor::Common,
    live::Live,
    recover::{self, Whose},
};

/// The kind of documents that servers are.
const KIND: &str = "server";
/// How often a server shows that it is there.
const RENEWED_EVERY: Duration = Duration::from_secs(5);
/// How long one may be silent.
const EXPIRES_AFTER: Duration = Duration::from_secs(20);

/// A name for a server that no other has.
pub(crate) fn random_holder() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Says that this server is there, and returns which others are.
pub(crate) async fn begin(common: &Common) -> Result<BTreeSet<String>, LogError> {
    if !common.log.is_shared() {
        return Ok(BTreeSet::new());
    }
    renew(common).await?;
    let servers = common.log.store().list(KIND).await?;
    let names = servers.into_iter().map(|server| server.name.name);
    Ok(names.filter(|name| *name != common.holder).collect())
}

/// Says that this server is gone, in order: nobody has to wait for that to be noticed.
pub(crate) async fn end(common: &Common) {
    if common.log.is_shared()
        && let Err(error) = common.log.store().delete(name(&common.holder)).await
    {
        tracing::warn!(%error, "others will notice only later that this server has ended");
    }
}

/// Shows that this server is there and takes over from those that are not, until nobody has the
/// sessions any more.
pub(crate) async fn keep(common: Arc<Common>, live: Weak<Live>) {
    let mut seen = BTreeMap::new();
    let mut ending = common.ending.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep(RENEWED_EVERY) => {}
            _ = ending.wait_for(|ending| *ending != crate::conductor::Ending::No) => return,
        }
        let Some(live) = live.upgrade() else {
            return;
        };
        if let Err(error) = look(&common, &live, &mut seen).await {
            tracing::warn!(%error, "cannot tell the other servers that this one is there");
        }
    }
}

/// The version of each server's document, and since when it is that.
type Seen = BTreeMap<String, (u64, Instant)>;

async fn look(common: &Arc<Common>, live: &Arc<Live>, seen: &mut Seen) -> Result<(), LogError> {
    let mut servers = common.log.store().list(KIND).await?;
    if !servers
        .iter()
        .any(|server| server.name.name == common.holder)
    {
        let_go(live);
    }
    renew(common).await?;
    servers.retain(|server| server.name.name != common.holder);
    let now = Instant::now();
    seen.retain(|name, _| servers.iter().any(|server| server.name.name == *name));
    for server in servers {
        let (holder, version) = (server.name.name, server.version);
        if !is_silent(seen, &holder, version, now) {
            continue;
        }
        tracing::warn!(
            server = holder,
            "another server is gone; taking over its sessions"
        );
        match recover::all(Whose::Of(&holder), common, live).await {
            Ok(_) => common.log.store().delete(name(&holder)).await?,
            Err(error) => {
                tracing::error!(%error, "cannot take over the sessions of another server");
            }
        }
    }
    Ok(())
}

/// Whether a server has not written for too long.
fn is_silent(seen: &mut Seen, holder: &str, version: u64, now: Instant) -> bool {
    let (known, since) = seen.entry(holder.to_owned()).or_insert((version, now));
    if *known != version {
        (*known, *since) = (version, now);
    }
    now.duration_since(*since) >= EXPIRES_AFTER
}

/// Others have taken this server for gone, and its sessions over: they are theirs now.
fn let_go(live: &Live) {
    tracing::error!("this server was silent for too long, and others have taken its sessions over");
    for session in live.all() {
        session.elsewhere.store(true, Ordering::Relaxed);
        live.withdraw(&session.id);
        session.take_sandbox();
    }
}

async fn renew(common: &Common) -> Result<(), LogError> {
    let store = common.log.store();
    let written = store.put(name(&common.holder), json!({}), Expected::Anything);
    written.await.map(drop)
}

fn name(holder: &str) -> DocumentName {
    DocumentName {
        kind: KIND,
        name: holder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_gone_when_its_version_stays_the_same_for_too_long() {
        let mut seen = Seen::new();
        let begun = Instant::now();
        let mut silent = |version, seconds| {
            is_silent(
                &mut seen,
                "a",
                version,
                begun + Duration::from_secs(seconds),
            )
        };
        assert!(!silent(1, 0));
        assert!(!silent(1, 19));
        assert!(silent(1, 20));
        assert!(!silent(2, 25), "it writes again");
        assert!(!silent(2, 44));
        assert!(silent(2, 45));
    }
}
