//! What one session may take.

use crate::{EntryKind, LogError, Patience, writer::Append};

/// Whether an entry still gets in. Actions stop at the limit, and so do deeds whose record is
/// written before they begin; what tells of things that have happened gets in for another eighth
/// of it.
pub(crate) fn check(append: &Append, bytes: u64, limit: Option<u64>) -> Result<(), LogError> {
    let Some(limit) = limit else {
        return Ok(());
    };
    let room = match (append.kind, append.patience) {
        (EntryKind::Action, _) | (EntryKind::Note, Patience::None) => limit,
        (EntryKind::Observation | EntryKind::Status | EntryKind::Note, _) => limit + limit / 8,
    };
    if bytes.saturating_add(append.folded.bytes() as u64) > room {
        return Err(LogError::Quota {
            session: append.session.clone(),
            limit,
        });
    }
    Ok(())
}
