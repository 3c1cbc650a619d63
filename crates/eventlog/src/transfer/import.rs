//! Reading JSON lines into a log.

use std::collections::BTreeSet;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use zareba_protocol::SessionId;

use super::line::Line;
use crate::{EventLog, LogError, payload::Blob, writer::Imported};

/// The longest line: the largest blob in base64, and its frame.
const LINE_BYTES_MAX: u64 = 96 * 1024 * 1024;
/// What a record may have in front of it.
const BLOBS_MAX: usize = 8 * 1024;
/// How much is written in one go.
const BATCH_RECORDS_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What was read in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imports {
    /// How many records.
    pub records: u64,
    /// Of which sessions.
    pub sessions: BTreeSet<SessionId>,
}

impl EventLog {
    /// Reads the lines of an [`export`](Self::export) into this log, behind what their sessions
    /// have here, and checks that each record fits its digest and the one before it. What stood
    /// before a line that does not stays in the log.
    ///
    /// # Errors
    /// When a line is none of an export or does not fit, or the log cannot be written.
    pub async fn import(
        &self,
        from: &mut (dyn AsyncBufRead + Unpin + Send),
    ) -> Result<Imports, LogError> {
        let mut imports = Imports::default();
        let mut blobs: Vec<Blob> = Vec::new();
        let mut batch: Vec<Imported> = Vec::new();
        let mut bytes = 0;
        let mut number = 0;
        let mut text = Vec::new();
        loop {
            number += 1;
            let wrong = |reason| LogError::Import {
                line: number,
                reason,
            };
            if !read_line(from, &mut text).await.map_err(wrong)? {
                break;
            }
            let line = serde_json::from_slice(&text);
            match line.map_err(|error| wrong(format!("it is no line of an export: {error}")))? {
                Line::Blob(_) if blobs.len() >= BLOBS_MAX => {
                    return Err(wrong(format!(
                        "more than {BLOBS_MAX} blobs are in front of it"
                    )));
                }
                Line::Blob(line) => blobs.push(line.blob().map_err(wrong)?),
                Line::Record(line) => {
                    let record = Imported {
                        line: number,
                        row: line.row(&blobs).map_err(wrong)?,
                        blobs: std::mem::take(&mut blobs),
                    };
                    bytes += record.bytes();
                    batch.push(record);
                }
            }
            if batch.len() >= BATCH_RECORDS_MAX || bytes >= BATCH_BYTES_MAX {
                self.write_batch(std::mem::take(&mut batch), &mut imports)
                    .await?;
                bytes = 0;
            }
        }
        self.write_batch(batch, &mut imports).await?;
        Ok(imports)
    }

    async fn write_batch(
        &self,
        batch: Vec<Imported>,
        imports: &mut Imports,
    ) -> Result<(), LogError> {
        if batch.is_empty() {
            return Ok(());
        }
        let count = batch.len() as u64;
        let sessions: Vec<_> = batch.iter().map(|one| one.row.session.clone()).collect();
        self.rows().import(batch).await?;
        imports.records += count;
        imports.sessions.extend(sessions);
        Ok(())
    }
}

/// Reads a line without its end; `false` at the end of everything.
async fn read_line(
    from: &mut (dyn AsyncBufRead + Unpin + Send),
    line: &mut Vec<u8>,
) -> Result<bool, String> {
    line.clear();
    let read = from.take(LINE_BYTES_MAX + 1).read_until(b'\n', line).await;
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    match line.pop() {
        None => Ok(false),
        Some(b'\n') => Ok(true),
        // The last line may end without one, but a cut one is no JSON.
        Some(last) if (line.len() as u64) < LINE_BYTES_MAX => {
            line.push(last);
            Ok(true)
        }
        Some(_) => Err(format!("it is longer than {LINE_BYTES_MAX} bytes")),
    }
}
