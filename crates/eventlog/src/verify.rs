//! The check of a whole log: numbers, digests, links, and what is kept apart.

use std::sync::Arc;

use zareba_protocol::SessionId;

use crate::{
    Digest, LogError, Recovery, Usage,
    chain::{Row, origin},
    store::Rows,
};

/// How many records are looked at in one go.
const PAGE: usize = 512;
/// How many of a session's last records are looked at when a log is opened.
pub(crate) const TAIL: u64 = 16;
/// How many sessions' last records are looked at then.
const TAILS_MAX: usize = 64;
/// How many damages are listed; the others are counted.
const DAMAGE_MAX: usize = 100;

/// What a check of a whole log found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "unread, damage stays unknown"]
pub struct Verified {
    /// How many records there are.
    pub records: u64,
    /// The digest of the last one; of the session's name if there is none.
    pub last: Digest,
    /// What is wrong, in order; the first hundred.
    pub damage: Vec<Damage>,
    /// How many more damages there are than are listed.
    pub more: u64,
}

/// Something wrong in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Whose log.
    pub session: SessionId,
    /// Which record.
    pub sequence: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Bytes kept apart that are missing or are not what their digest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostBlob {
    pub(crate) sequence: u64,
    pub(crate) digest: String,
}

impl Verified {
    /// Whether everything is as it was written.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Goes from record to record and notes what is wrong.
#[derive(Debug)]
pub(crate) struct Walk {
    session: SessionId,
    next: u64,
    /// The digest that the next record has to name; unknown behind a bad one.
    previous: Option<Digest>,
    pub(crate) damage: Vec<Damage>,
    more: u64,
}

impl Walk {
    pub(crate) fn new(session: &SessionId, from: u64) -> Self {
        Self {
            session: session.clone(),
            next: from,
            previous: (from == 0).then(|| origin(session)),
            damage: Vec::new(),
            more: 0,
        }
    }

    /// Looks at the next record; its digest if it is good.
    pub(crate) fn step(&mut self, row: &Row) -> Option<Digest> {
        while self.next < row.sequence {
            self.note(self.next, "it is missing".to_owned());
            self.previous = None;
            self.next += 1;
            if self.damage.len() >= DAMAGE_MAX {
                self.more += row.sequence - self.next;
                self.next = row.sequence;
            }
        }
        self.next = row.sequence + 1;
        let expected = self.previous.take();
        let digest = match row.check() {
            Ok(digest) => digest,
            Err(reason) => {
                self.note(row.sequence, reason);
                return None;
            }
        };
        self.previous = Some(digest);
        if expected.is_some_and(|expected| expected.to_string() != row.previous) {
            self.note(
                row.sequence,
                "it does not name the record before it".to_owned(),
            );
            return None;
        }
        Some(digest)
    }

    fn note(&mut self, sequence: u64, reason: String) {
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(Damage {
                session: self.session.clone(),
                sequence,
                reason,
            });
        } else {
            self.more += 1;
        }
    }
}

/// Checks the last records of the sessions that changed last, and changes nothing: other servers
/// may be writing to them.
pub(crate) async fn tails(store: &dyn Rows) -> Result<Recovery, LogError> {
    let mut usages = store.usage().await?;
    usages.sort_by_key(|usage| std::cmp::Reverse(usage.changed));
    usages.truncate(TAILS_MAX);
    let mut recovery = Recovery::default();
    for Usage {
        session, records, ..
    } in usages
    {
        let from = records.saturating_sub(TAIL);
        let rows = store.rows(session.clone(), from, TAIL as usize).await?;
        let mut walk = Walk::new(&session, from);
        for row in &rows {
            walk.step(row);
        }
        recovery.checked += 1;
        recovery.damage.extend(walk.damage);
    }
    if !recovery.damage.is_empty() {
        tracing::warn!(?recovery, "the event log is damaged");
    }
    Ok(recovery)
}

/// Checks a whole log.
pub(crate) async fn verify(
    store: &Arc<dyn Rows>,
    session: &SessionId,
) -> Result<Verified, LogError> {
    // Before the records: what is written meanwhile lies behind it and does no harm.
    let head = store.head(session.clone()).await?;
    let mut walk = Walk::new(session, 0);
    let mut records = 0;
    let mut last = origin(session);
    loop {
        let rows = store.rows(session.clone(), walk.next, PAGE).await?;
        if rows.is_empty() {
            break;
        }
        records += rows.len() as u64;
        for row in &rows {
            last = walk.step(row).unwrap_or(last);
        }
    }
    if let Some(head) = head
        && (walk.next < head.next
            || walk.next == head.next && walk.damage.is_empty() && head.last != last.to_string())
    {
        let reason = format!("the log should reach to {} and ends elsewhere", head.next);
        walk.note(walk.next.min(head.next), reason);
    }
    for blob in store.lost_blobs(session.clone()).await? {
        let reason = format!("what it keeps apart as {} is lost", blob.digest);
        walk.note(blob.sequence, reason);
    }
    walk.damage.sort_by_key(|damage| damage.sequence);
    Ok(Verified {
        records,
        last,
        damage: walk.damage,
        more: walk.more,
    })
}
