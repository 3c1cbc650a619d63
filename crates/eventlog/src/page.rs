//! [`Page`]: checks stored records one after the other and stops at the first that is wrong.

use std::sync::Arc;

use zareba_protocol::SessionId;

use crate::{LogError, Record, chain::Row};

/// How large a page's payloads are together, unless one alone is larger.
pub(crate) const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Records of a session from a number on.
#[derive(Debug)]
pub(crate) struct Page {
    session: SessionId,
    next: u64,
    records: Vec<Record>,
    bytes: usize,
    trouble: Option<LogError>,
}

impl Page {
    pub(crate) fn new(session: SessionId, from: u64) -> Self {
        Self {
            session,
            next: from,
            records: Vec::new(),
            bytes: 0,
            trouble: None,
        }
    }

    /// Takes the next record and says whether there is room for another.
    pub(crate) fn push(&mut self, row: Row, whole: Option<&[u8]>) -> bool {
        if row.sequence != self.next {
            let reason = "it is missing".to_owned();
            self.trouble = Some(damaged(&self.session, self.next, reason));
            return false;
        }
        self.next += 1;
        self.bytes += row.bytes() + whole.map_or(0, <[u8]>::len);
        match checked(row, whole) {
            Ok(record) => self.records.push(record),
            Err(error) => self.trouble = Some(error),
        }
        self.trouble.is_none() && self.bytes < BYTES_MAX
    }

    /// The records; the damage only if it comes first.
    pub(crate) fn finish(self) -> Result<Vec<Record>, LogError> {
        match self.trouble {
            Some(error) if self.records.is_empty() => Err(error),
            _ => Ok(self.records),
        }
    }
}

/// A stored record, if it is what was once written.
pub(crate) fn checked(row: Row, whole: Option<&[u8]>) -> Result<Record, LogError> {
    let (session, sequence) = (row.session.clone(), row.sequence);
    row.into_record(whole)
        .map_err(|reason| damaged(&session, sequence, reason))
}

/// Records as they are handed out.
pub(crate) fn shared(records: Vec<Record>) -> Vec<Arc<Record>> {
    records.into_iter().map(Arc::new).collect()
}

fn damaged(session: &SessionId, sequence: u64, reason: String) -> LogError {
    LogError::Damaged {
        session: session.clone(),
        sequence,
        reason,
    }
}
