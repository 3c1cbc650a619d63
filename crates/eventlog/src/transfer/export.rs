//! Writing a session's log as JSON lines.

use tokio::io::{AsyncWrite, AsyncWriteExt};
use zareba_protocol::SessionId;

use super::line::{BlobLine, Line, RecordLine};
use crate::{Digest, EventLog, LogError, chain::Row};

/// How many records are read in one go.
const PAGE: usize = 64;

impl EventLog {
    /// Writes a session's log as JSON lines, one record a line, just as it is stored: damaged
    /// records too. Returns how many.
    ///
    /// # Errors
    /// When the log cannot be read or the lines cannot be written.
    pub async fn export(
        &self,
        session: &SessionId,
        into: &mut (dyn AsyncWrite + Unpin + Send),
    ) -> Result<u64, LogError> {
        let mut count = 0;
        let mut from = 0;
        loop {
            let rows = self.rows().rows(session.clone(), from, PAGE).await?;
            let Some(last) = rows.last() else {
                into.flush().await.map_err(unwritten)?;
                return Ok(count);
            };
            from = last.sequence + 1;
            for row in rows {
                self.export_row(row, into).await?;
                count += 1;
            }
        }
    }

    async fn export_row(
        &self,
        row: Row,
        into: &mut (dyn AsyncWrite + Unpin + Send),
    ) -> Result<(), LogError> {
        let (session, sequence) = (row.session.clone(), row.sequence);
        let mut blobs = Vec::new();
        for name in self.rows().blobs_of(session.clone(), sequence).await? {
            let Some(digest) = Digest::from_hex(&name) else {
                continue;
            };
            // One that is lost is missing in front of its record too, and an import says so.
            if let Some(bytes) = self.store().blob(digest).await? {
                write(into, &Line::Blob(BlobLine::new(name.clone(), &bytes))).await?;
            }
            blobs.push(name);
        }
        let line = RecordLine::new(row, blobs).map_err(|error| LogError::Damaged {
            session,
            sequence,
            reason: format!("its payload is no JSON: {error}"),
        })?;
        write(into, &Line::Record(Box::new(line))).await
    }
}

async fn write(into: &mut (dyn AsyncWrite + Unpin + Send), line: &Line) -> Result<(), LogError> {
    let text = serde_json::to_vec(line).map(|mut text| {
        text.push(b'\n');
        text
    });
    let text = text.map_err(|error| unwritten(error.into()))?;
    into.write_all(&text).await.map_err(unwritten)
}

pub(super) fn unwritten(source: std::io::Error) -> LogError {
    LogError::Export { source }
}
