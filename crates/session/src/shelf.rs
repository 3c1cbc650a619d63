//! Sessions as they are written down: found, listed, and removed.

use std::sync::{Arc, Weak, atomic::Ordering};

use futures_util::future::BoxFuture;
use zareba_eventlog::{Document, LogError, Selection};
use zareba_protocol::SessionId;

use crate::{
    Owner, SessionError, SessionInfo,
    conductor::{Beginning, Common, Conductor},
    document::{self, SessionDocument},
    lifecycle::Why,
    live::Live,
    mask::Mask,
};

/// Documents that are read in one go.
pub(crate) const PAGE: usize = 100;

/// How often a removal is tried that meets other changes of the same session.
const REMOVALS_MAX: usize = 4;

/// The session with a name, also one that has ended.
pub(crate) async fn find(
    id: &SessionId,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Arc<Conductor>, SessionError> {
    if let Some(session) = live.get(id) {
        return Ok(session);
    }
    let found = common.log.store().get(document::name(id)).await?;
    let found = found.filter(|found| !document::is_tombstone(&found.value));
    let Some(found) = found else {
        let session = id.clone();
        return Err(SessionError::NotFound { session });
    };
    let written = SessionDocument::from_value(found.value)?;
    Ok(revive(id.clone(), written, found.version, common, live).await?)
}

/// The session that one of the owners calls so; none when several do.
pub(crate) async fn named(
    name: &SessionId,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Option<Arc<Conductor>>, SessionError> {
    let selection = Selection {
        kind: document::KIND,
        field: document::NAME,
        text: Some(name.to_string()),
        after: None,
        limit: 2,
    };
    let mut found = common.log.store().select(selection).await?;
    let (Some(one), true) = (found.pop(), found.is_empty()) else {
        return Ok(None);
    };
    let Ok(id) = SessionId::new(one.name.name) else {
        return Ok(None);
    };
    find(&id, common, live).await.map(Some)
}

/// A page of documents of sessions, those that are removed left out.
pub(crate) async fn page(
    owner: Option<&Owner>,
    after: Option<String>,
    limit: usize,
    common: &Common,
) -> Result<Vec<Document>, LogError> {
    let selection = Selection {
        kind: document::KIND,
        field: document::OWNER,
        text: owner.map(|owner| owner.0.clone()),
        after,
        limit,
    };
    common.log.store().select(selection).await
}

/// Sessions by name: of one owner or of everyone, behind a name, at most `limit`.
pub(crate) async fn list(
    owner: Option<&Owner>,
    after: Option<&SessionId>,
    limit: usize,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Vec<SessionInfo>, LogError> {
    let mut listed = Vec::new();
    let mut after = after.map(ToString::to_string);
    while listed.len() < limit {
        let wanted = PAGE.min(limit - listed.len());
        let documents = page(owner, after.take(), wanted, common).await?;
        let is_last = documents.len() < wanted;
        after = documents.last().map(|last| last.name.name.clone());
        for document in documents {
            listed.extend(info(document, common, live).await);
        }
        if is_last {
            break;
        }
    }
    Ok(listed)
}

async fn info(document: Document, common: &Arc<Common>, live: &Arc<Live>) -> Option<SessionInfo> {
    let id = SessionId::new(document.name.name).ok()?;
    let written = SessionDocument::from_value(document.value).ok()?;
    match revive(id, written, document.version, common, live).await {
        Ok(session) => Some(session.info()),
        Err(error) => {
            tracing::error!(%error, "cannot list a session that has ended");
            None
        }
    }
}

/// Closes a session and removes its log. What is left is a tombstone.
pub(crate) async fn remove(
    id: &SessionId,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<(), SessionError> {
    for _ in 0..REMOVALS_MAX {
        let session = find(id, common, live).await?;
        match bury(&session).await {
            // Somebody else has changed it meanwhile, perhaps by removing it.
            Err(SessionError::Log(LogError::Conflict { .. })) => {}
            done => return done,
        }
    }
    Err(SessionError::Log(LogError::Conflict {
        name: document::name(id),
    }))
}

async fn bury(session: &Arc<Conductor>) -> Result<(), SessionError> {
    session.close(Why::Asked).await?;
    // While the document is there nobody can take the name, so that this is the old log.
    session
        .common
        .log
        .store()
        .remove(session.id.clone())
        .await?;
    session.leave_tombstone().await?;
    Ok(())
}

/// Removes sessions that are not worth keeping, when there is time for it.
pub(crate) fn remove_later(ids: Vec<SessionId>, common: Arc<Common>, live: Weak<Live>) {
    // A future without a type of its own: the end of a session may lead to the end of others.
    let removal: BoxFuture<'static, ()> = Box::pin(async move {
        for id in ids {
            let Some(live) = live.upgrade() else {
                return;
            };
            if let Err(error) = remove(&id, &common, &live).await {
                tracing::warn!(session = %id, %error, "cannot remove a session that failed long ago");
            }
        }
    });
    tokio::spawn(removal);
}

/// The session that is live, or else one that has ended as it is written down.
async fn revive(
    id: SessionId,
    document: SessionDocument,
    version: u64,
    common: &Arc<Common>,
    live: &Arc<Live>,
) -> Result<Arc<Conductor>, LogError> {
    if let Some(session) = live.get(&id) {
        return Ok(session);
    }
    let beginning = Beginning {
        id,
        document,
        version: Some(version),
        mask: Some(Mask::default()),
    };
    let (common, live) = (Arc::clone(common), Arc::downgrade(live));
    let session = Conductor::new(beginning, common, live).await?;
    // Whatever of ours has not ended is live.
    session
        .elsewhere
        .store(!session.state().has_ended(), Ordering::Relaxed);
    Ok(Arc::new(session))
}
