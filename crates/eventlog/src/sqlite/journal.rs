//! [`Journal`]: how long the file beside the database has become, and when it is folded in.
//!
//! The library would do that within whichever write makes it too long. Here it is done behind that
//! write, by the thread that may wait for the disk.

use std::sync::{
    Arc,
    atomic::{AtomicI32, Ordering},
};

use rusqlite::{Connection, hooks::Wal};

/// 16 MiB: folding the journal in costs two syncs, which many records then share.
const PAGES_MAX: i32 = 4096;

/// The journal of one connection.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pages: Arc<AtomicI32>,
}

impl Journal {
    /// Watches what a connection writes.
    pub(super) fn watch(connection: &mut Connection) -> rusqlite::Result<Self> {
        let journal = Self::default();
        let pages = Arc::clone(&journal.pages);
        connection.wal_hook(Some(move |_: &mut Wal, written| {
            pages.store(written, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(journal)
    }

    /// Whether it is to be folded in.
    pub(super) fn is_long(&self) -> bool {
        self.pages.load(Ordering::Relaxed) >= PAGES_MAX
    }

    /// Folds in what nobody reads. What is left is for the next time.
    pub(super) fn fold(&self, connection: &Connection) {
        let folded = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = folded {
            tracing::debug!(%error, "the journal of the event log stays as long as it is");
        }
    }
}
