//! [`Subscription`]: records of a session as they come.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::watch;
use zareba_protocol::SessionId;

use crate::{Digest, EventLog, LogError, Record};

/// How many records are read in one go.
const PAGE: usize = 64;

/// Records of a session as they come. It reads when it is asked and holds one page at most, so a
/// slow reader costs nothing and hinders nobody.
#[derive(Debug)]
pub struct Subscription {
    log: EventLog,
    session: SessionId,
    next: u64,
    /// The digest of the record in front of the cursor, when that was read.
    last: Option<Digest>,
    page: VecDeque<Arc<Record>>,
    end: Option<watch::Receiver<u64>>,
}

impl Subscription {
    pub(crate) fn new(log: EventLog, session: SessionId, from: u64) -> Self {
        Self {
            log,
            session,
            next: from,
            last: None,
            page: VecDeque::new(),
            end: None,
        }
    }

    /// The number of the record that comes next: where to go on after a break.
    pub fn cursor(&self) -> u64 {
        self.next
    }

    /// The next record, once it is there. May be dropped and called again. A damaged record is
    /// an error once; the call after that goes on behind it.
    ///
    /// # Errors
    /// When the log cannot be read, or is closed, or the session was removed.
    pub async fn next(&mut self) -> Result<Arc<Record>, LogError> {
        loop {
            if let Some(record) = self.page.pop_front() {
                self.next = record.sequence + 1;
                self.last = Some(record.digest);
                return Ok(record);
            }
            if self.is_behind().await? {
                let store = self.log.store();
                let page = store.read(self.session.clone(), self.next, PAGE).await;
                if let Err(LogError::Damaged { sequence, .. }) = &page {
                    self.next = sequence + 1;
                    self.last = None;
                }
                let page = page?;
                self.check_same(&page)?;
                self.page = page.into();
                if !self.page.is_empty() {
                    continue;
                }
            }
            if let Some(end) = &mut self.end {
                end.changed().await.map_err(|_| LogError::Closed)?;
            }
        }
    }

    /// Whether a page still belongs to the log that this began with. One that was removed since may
    /// have made room for another of the same name, perhaps somebody else's.
    fn check_same(&mut self, page: &[Arc<Record>]) -> Result<(), LogError> {
        let is_removed = (self.end.as_ref()).is_some_and(|end| end.has_changed().is_err());
        let goes_on = match (page.first(), self.last) {
            (Some(first), Some(last)) => first.previous == last,
            _ => true,
        };
        if is_removed || !goes_on {
            self.page.clear();
            return Err(LogError::Closed);
        }
        Ok(())
    }

    /// Whether there are records from the cursor on. What comes after this look wakes us.
    async fn is_behind(&mut self) -> Result<bool, LogError> {
        if self.end.is_none() {
            self.end = Some(self.log.store().end(self.session.clone()).await?);
        }
        let end = (self.end.as_mut()).map_or(0, |end| *end.borrow_and_update());
        Ok(end > self.next)
    }
}
