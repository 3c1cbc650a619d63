//! The ways into the queue, one for each thing that can be written.

use serde_json::Value;
use zareba_protocol::SessionId;

use super::{Append, Deed, Done, Imported, Writer};
use crate::{Appended, Document, DocumentName, Entry, Expected, LogError, Patience, payload};

/// How large a document may be: it is read whole, and often.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;
/// What a document's name may have in bytes.
const NAME_BYTES_MAX: usize = 256;

impl Writer {
    pub(crate) async fn append(
        &self,
        session: SessionId,
        entry: Entry,
        patience: Patience,
    ) -> Result<Appended, LogError> {
        let append = Append {
            session,
            kind: entry.kind,
            cause: entry.cause,
            key: entry.key,
            folded: payload::fold(entry.payload).await?,
            patience,
            opens: true,
            attempt: None,
        };
        match self.write(Deed::Append(Box::new(append))).await? {
            Done::Appended(appended) => Ok(appended),
            Done::Document(_) | Done::Nothing => Err(LogError::Closed),
        }
    }

    pub(crate) async fn put(
        &self,
        name: DocumentName,
        value: Value,
        expected: Expected,
    ) -> Result<Document, LogError> {
        let text = value.to_string();
        check_size("a document", text.len(), DOCUMENT_BYTES_MAX)?;
        check_size("a document's name", name.name.len(), NAME_BYTES_MAX)?;
        let deed = Deed::Put {
            name,
            value,
            text,
            expected,
        };
        match self.write(deed).await? {
            Done::Document(document) => Ok(document),
            Done::Appended(_) | Done::Nothing => Err(LogError::Closed),
        }
    }

    pub(crate) async fn delete(&self, name: DocumentName) -> Result<(), LogError> {
        self.write(Deed::Delete(name)).await.map(drop)
    }

    pub(crate) async fn remove(&self, session: SessionId) -> Result<(), LogError> {
        self.write(Deed::Remove(session)).await.map(drop)
    }

    pub(crate) async fn import(&self, records: Vec<Imported>) -> Result<(), LogError> {
        self.write(Deed::Import(records)).await.map(drop)
    }
}

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<(), LogError> {
    if bytes > limit {
        return Err(LogError::TooLarge { what, bytes, limit });
    }
    Ok(())
}
