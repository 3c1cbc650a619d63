//! The event files of OpenHands: `events/{number}.json`, one envelope each.

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value};
use zareba_protocol::SessionId;

use super::export::unwritten;
use crate::{Digest, EntryKind, EventLog, LogError, Record};

/// How many records are read in one go.
const PAGE: usize = 64;

impl EventLog {
    /// Writes a session's actions and observations as OpenHands keeps them: into the folder
    /// `events` of a directory, a file for each with its number as name. Other records leave a
    /// gap. Returns how many were written.
    ///
    /// # Errors
    /// When the log cannot be read or a file cannot be written.
    pub async fn export_openhands(
        &self,
        session: &SessionId,
        directory: &Path,
    ) -> Result<u64, LogError> {
        let events = directory.join("events");
        fs::create_dir_all(&events).map_err(unwritten)?;
        let mut count = 0;
        let mut from = 0;
        loop {
            let page = self.store().read(session.clone(), from, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(count);
            };
            from = last.sequence + 1;
            for record in page {
                if let Some(envelope) = self.envelope(&record).await? {
                    let path = events.join(format!("{}.json", record.sequence));
                    let written = tokio::task::spawn_blocking(move || {
                        fs::write(path, serde_json::to_vec(&envelope)?)
                    });
                    (written.await.map_err(|_| LogError::Closed)?).map_err(unwritten)?;
                    count += 1;
                }
            }
        }
    }

    /// The record as OpenHands would have written it.
    async fn envelope(&self, record: &Arc<Record>) -> Result<Option<Value>, LogError> {
        let source = match record.kind {
            EntryKind::Action => "agent",
            EntryKind::Observation => "environment",
            EntryKind::Status | EntryKind::Note => return Ok(None),
        };
        let mut envelope = Map::new();
        envelope.insert("id".to_owned(), record.sequence.into());
        // Theirs has no zone.
        let time = record.time.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string();
        envelope.insert("timestamp".to_owned(), time.into());
        envelope.insert("source".to_owned(), source.into());
        if let (EntryKind::Observation, Some(cause)) = (record.kind, record.cause) {
            envelope.insert("cause".to_owned(), cause.into());
        }
        let blobs = self.blobs_of(record).await?;
        for (name, value) in &record.payload {
            let is_ours = ["id", "timestamp", "cause"].contains(&name.as_str());
            if !is_ours && !value.is_null() {
                envelope.insert(name.clone(), unfolded(value, &blobs));
            }
        }
        Ok(Some(Value::Object(envelope)))
    }

    async fn blobs_of(&self, record: &Record) -> Result<HashMap<String, Bytes>, LogError> {
        let mut blobs = HashMap::new();
        let names = self
            .rows()
            .blobs_of(record.session.clone(), record.sequence);
        for name in names.await? {
            let Some(digest) = Digest::from_hex(&name) else {
                continue;
            };
            if let Some(bytes) = self.store().blob(digest).await? {
                blobs.insert(name, bytes);
            }
        }
        Ok(blobs)
    }
}

/// The value with references replaced by what they stand for, those that the log itself made.
fn unfolded(value: &Value, blobs: &HashMap<String, Bytes>) -> Value {
    let referred = value.get("$blob").and_then(Value::as_str);
    if let Some(bytes) = referred.and_then(|name| blobs.get(name)) {
        let parsed = (value["form"] == "json").then(|| serde_json::from_slice(bytes).ok());
        let text = || String::from_utf8_lossy(bytes).into_owned().into();
        return parsed.flatten().unwrap_or_else(text);
    }
    match value {
        Value::Array(items) => items.iter().map(|item| unfolded(item, blobs)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), unfolded(field, blobs)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
