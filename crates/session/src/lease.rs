//! Which servers are there, where several share a log.
//!
//! Each writes a document of its own again and again. Whoever sees the same version of it for too
//! long takes that server for gone and its sessions over: no two clocks are compared for that.
//! A server keeps its name over its lives, so that its own sessions do not wait for that when it
//! was killed and comes back.
//!
//! Design: docs/design/lease.md.

mod takeover;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};
use zareba_eventlog::{Document, DocumentName, Expected, LogError};

use self::takeover::{Due, Left, take_over_all};
use crate::{
    Home,
    conductor::{Common, Ending},
    live::Live,
};

/// The kind of documents that servers are.
const KIND: &str = "server";
/// How often a server shows that it is there.
const RENEWED_EVERY: Duration = Duration::from_secs(5);
/// How long one may be silent.
const EXPIRES_AFTER: Duration = Duration::from_secs(20);

/// How often a server tries to say that it is there, when others write the same document.
const ATTEMPTS_MAX: usize = 8;

/// In a server's document: which of its lives it is in. A server that finds another one there has
/// been taken for gone, or runs on a copy of somebody's directory.
const LIFE: &str = "life";
/// In a server's document: which server takes its sessions over.
const TAKEN_BY: &str = "taken_by";

/// This server among those that share the log.
#[derive(Debug)]
pub(crate) struct Lease {
    /// The name that its sessions are written down with.
    holder: Mutex<String>,
    /// Names of this server, now or before, under which there may be sessions that nobody has.
    left: Mutex<BTreeSet<String>>,
    life: String,
}

impl Lease {
    /// With the name that the server had before, or a new one.
    pub(crate) async fn new(home: Option<&Home>) -> Self {
        let known = match home {
            Some(home) => home.name().await,
            None => None,
        };
        let lease = Self {
            holder: Mutex::new(random()),
            left: Mutex::default(),
            life: random(),
        };
        match known {
            Some(name) => *lease.lock() = name,
            None => keep_name(&lease, home).await,
        }
        lease
    }

    /// The name that sessions of this server are written down with.
    pub(crate) fn holder(&self) -> String {
        self.lock().clone()
    }

    /// Has the sessions with a name looked for again, some of which could not be taken up.
    pub(crate) fn look_again(&self, holder: String) {
        self.left().insert(holder);
    }

    fn document(&self) -> Value {
        json!({ LIFE: self.life })
    }

    /// Whether a document says that this server has its sessions.
    fn is_ours(&self, document: &Document) -> bool {
        document.value == self.document()
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 random bits: no other has them.
fn random() -> String {
    format!("{:032x}", rand::random::<u128>())
}

async fn keep_name(lease: &Lease, home: Option<&Home>) {
    if let Some(home) = home {
        home.set_name(&lease.holder()).await;
    }
}

/// Goes on under another name, after the old one came to mean somebody else.
async fn change_name(common: &Common) {
    let before = std::mem::replace(&mut *common.lease.lock(), random());
    // A session may have got it after whoever took the others over had looked.
    common.lease.look_again(before);
    keep_name(&common.lease, common.home.as_ref()).await;
}

/// Says that this server is there, and returns which others are.
pub(crate) async fn begin(common: &Common) -> Result<BTreeSet<String>, LogError> {
    if !common.log.is_shared() {
        return Ok(BTreeSet::new());
    }
    let mut written = step_in(common).await;
    for _ in 1..ATTEMPTS_MAX {
        if !matches!(written, Err(LogError::Conflict { .. })) {
            break;
        }
        written = step_in(common).await;
    }
    written?;
    let holder = common.lease.holder();
    let servers = common.log.store().list(KIND).await?;
    let names = servers.into_iter().map(|server| server.name.name);
    Ok(names.filter(|name| *name != holder).collect())
}

/// Begins a life under the server's name, which is its last life's, too: so its sessions need not
/// wait. Where another server is just taking those over, it gets a new name, and they are left.
async fn step_in(common: &Common) -> Result<(), LogError> {
    let store = common.log.store();
    let mut found = store.get(name(&common.lease.holder())).await?;
    if found.as_ref().is_some_and(is_claimed) {
        change_name(common).await;
        found = None;
    }
    let expected = found.map_or(Expected::Absent, |found| Expected::Version(found.version));
    let name = name(&common.lease.holder());
    let written = store.put(name, common.lease.document(), expected).await;
    written.map(drop)
}

/// Says that this server is gone, in order: nobody has to wait for that to be noticed.
pub(crate) async fn end(common: &Common) {
    if common.log.is_shared()
        && let Err(error) = step_out(common).await
    {
        tracing::warn!(%error, "others will notice only later that this server has ended");
    }
}

async fn step_out(common: &Common) -> Result<(), LogError> {
    let (store, name) = (common.log.store(), name(&common.lease.holder()));
    let found = store.get(name.clone()).await?;
    match found.filter(|found| common.lease.is_ours(found)) {
        Some(_) => store.delete(name).await,
        None => Ok(()),
    }
}

/// Shows that this server is there and takes over from those that are not, until nobody has the
/// sessions any more. Taking over may last, and goes on beside the showing.
pub(crate) async fn keep(common: Arc<Common>, live: Weak<Live>) {
    let mut seen = Seen::new();
    let mut ending = common.ending.subscribe();
    let mut ticks = interval_at(Instant::now() + RENEWED_EVERY, RENEWED_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // One at a time; whoever drops it ends what is under way.
    let mut taking_over = JoinSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(done) = taking_over.join_next() => match done {
                // Others may have fallen silent meanwhile.
                Ok(Left::Nothing) => {}
                // What could not be done is tried again when it is time to look.
                Ok(Left::Something) | Err(_) => continue,
            },
            _ = ending.wait_for(|ending| *ending != Ending::No) => return,
        }
        let Some(live) = live.upgrade() else {
            return;
        };
        match look(&common, &live, &mut seen).await {
            Ok(due) if taking_over.is_empty() && !due.is_empty() => {
                taking_over.spawn(take_over_all(due, Arc::clone(&common), live));
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot tell the other servers that this one is there");
                // Nobody could write meanwhile, so that nobody's silence means anything.
                seen.clear();
            }
        }
    }
}

/// The version of each server's document, and since when it is that.
type Seen = BTreeMap<String, (u64, Instant)>;

/// Shows that this server is there, and returns whose sessions are to be taken over.
async fn look(common: &Common, live: &Live, seen: &mut Seen) -> Result<Due, LogError> {
    let mut servers = common.log.store().list(KIND).await?;
    let holder = common.lease.holder();
    let own = servers.iter().find(|server| server.name.name == holder);
    renew(own, common, live).await?;
    let holder = common.lease.holder();
    servers.retain(|server| server.name.name != holder);
    let left = left_behind(&common.lease, &servers);
    let now = Instant::now();
    seen.retain(|name, _| servers.iter().any(|server| server.name.name == *name));
    servers.retain(|server| {
        let is_silent = is_silent(seen, &server.name.name, server.version, now);
        is_silent || is_claimed_by(server, &holder)
    });
    let gone = servers;
    Ok(Due { gone, left })
}

/// The names under which this server looks for sessions that nobody has. Those of a former name
/// are somebody's as long as that stands for a server, or one takes them over.
fn left_behind(lease: &Lease, others: &[Document]) -> Vec<String> {
    let other = |name: &String| others.iter().find(|other| other.name.name == *name);
    let mut left = lease.left();
    left.retain(|name| other(name).is_none_or(is_claimed));
    let unclaimed = left.iter().filter(|name| other(name).is_none());
    unclaimed.cloned().collect()
}

/// Shows that this server is there, as long as nobody else has its name.
async fn renew(own: Option<&Document>, common: &Common, live: &Live) -> Result<(), LogError> {
    let expected = match own.filter(|own| common.lease.is_ours(own)) {
        Some(own) => Expected::Version(own.version),
        None => {
            // The name first: what is taken up meanwhile is let go by whoever takes it up.
            change_name(common).await;
            let_go(common, live);
            Expected::Absent
        }
    };
    let (store, name) = (common.log.store(), name(&common.lease.holder()));
    match store.put(name, common.lease.document(), expected).await {
        // Somebody has written it since it was read; what that means is seen next time.
        Err(LogError::Conflict { .. }) => Ok(()),
        written => written.map(drop),
    }
}

/// Whether a server has begun to take another one's sessions over.
fn is_claimed_by(server: &Document, holder: &str) -> bool {
    server.value.get(TAKEN_BY).and_then(Value::as_str) == Some(holder)
}

/// Whether somebody has begun to take a server's sessions over.
fn is_claimed(server: &Document) -> bool {
    server.value.get(TAKEN_BY).is_some()
}

/// Whether a server has not written for too long.
fn is_silent(seen: &mut Seen, holder: &str, version: u64, now: Instant) -> bool {
    let (known, since) = seen.entry(holder.to_owned()).or_insert((version, now));
    if *known != version {
        (*known, *since) = (version, now);
    }
    now.duration_since(*since) >= EXPIRES_AFTER
}

/// Others have taken this server for gone, and its sessions over: they are theirs now, but for
/// those that have got its new name.
fn let_go(common: &Common, live: &Live) {
    tracing::error!("this server was silent for too long, and others have taken its sessions over");
    let holder = common.lease.holder();
    for session in live.all() {
        if !session.is_held_by(&holder) {
            session.let_go(live);
        }
    }
}

/// Whether a server is there, or somebody takes its sessions over.
pub(crate) async fn is_there(holder: &str, common: &Common) -> Result<bool, LogError> {
    let found = common.log.store().get(name(holder)).await?;
    Ok(found.is_some())
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

    #[test]
    fn sessions_of_a_former_name_are_looked_for_when_nobody_has_it() {
        let lease = Lease {
            holder: Mutex::new("now".to_owned()),
            left: Mutex::default(),
            life: random(),
        };
        for name in ["now", "free", "claimed", "living"] {
            lease.look_again(name.to_owned());
        }
        let other = |holder, value| Document {
            name: name(holder),
            version: 1,
            value,
        };
        let claimed = other("claimed", json!({ TAKEN_BY: "another" }));
        let living = other("living", json!({ LIFE: "another" }));
        assert_eq!(left_behind(&lease, &[claimed, living]), ["free", "now"]);
        let later = ["claimed", "free", "now"];
        assert_eq!(
            left_behind(&lease, &[]),
            later,
            "a living one keeps its own"
        );
    }
}
