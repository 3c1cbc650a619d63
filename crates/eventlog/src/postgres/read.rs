//! Queries. What is read is text that nobody vouches for yet.

use bytes::Bytes;
use tokio_postgres::{Error, Row as SqlRow};
use zareba_protocol::SessionId;

use super::link::{Link, Values, unread};
use crate::{
    Digest, Document, DocumentName, LogError, Record, Selection,
    chain::Row,
    page,
    payload::Stored,
    store::{Head, Usage, integer},
    verify::LostBlob,
};

/// The columns of a record, for the session whose name is the first value.
macro_rules! events {
    ($rest:literal) => {
        concat!(
            "SELECT sequence, time, kind, cause, key, payload, blob, previous, digest
            FROM zareba.events
            WHERE session = (SELECT id FROM zareba.sessions WHERE name = $1)",
            $rest
        )
    };
}
/// A page ends with the record whose payload makes it large enough.
const PAGE: &str = "SELECT sequence, time, kind, cause, key, payload, blob, previous, digest
    FROM (
        SELECT *, sum(coalesce(octet_length(payload), 0)) OVER (ORDER BY sequence)
            - coalesce(octet_length(payload), 0) AS bytes_before
        FROM zareba.events
        WHERE session = (SELECT id FROM zareba.sessions WHERE name = $1) AND sequence >= $2
        ORDER BY sequence LIMIT $3
    ) AS page WHERE bytes_before < $4::bigint ORDER BY sequence";
pub(super) const BY_KEY: &str = events!(" AND key = $2");
pub(super) const BY_SEQUENCE: &str = events!(" AND sequence = $2");
pub(super) const ANSWER: &str =
    events!(" AND cause = $2 AND kind = 'observation' ORDER BY sequence LIMIT 1");
/// How many records one question asks for at most.
const PAGE_RECORDS_MAX: usize = 1024;

/// A page of a session's records, as stored.
pub(super) async fn rows(
    link: &Link,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<Row>, Error> {
    let limit = limit.min(PAGE_RECORDS_MAX) as i64;
    let bytes = page::BYTES_MAX as i64;
    let values: Values<'_> = &[&session.as_str(), &integer(from), &limit, &bytes];
    let found = link.query(PAGE, values).await?;
    found.iter().map(|row| event(session, row)).collect()
}

/// A page of a session's records, checked.
pub(super) async fn records(
    link: &Link,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> Result<Vec<Record>, LogError> {
    let mut page = page::Page::new(session.clone(), from);
    for row in rows(link, session, from, limit).await.map_err(unread)? {
        let whole = whole(link, &row.stored).await.map_err(unread)?;
        if !page.push(row, whole.as_deref()) {
            break;
        }
    }
    page.finish()
}

/// The one record that a statement finds.
pub(super) async fn one(
    link: &Link,
    session: &SessionId,
    statement: &'static str,
    values: Values<'_>,
) -> Result<Result<Option<Record>, LogError>, Error> {
    let Some(row) = link.query_opt(statement, values).await? else {
        return Ok(Ok(None));
    };
    let row = event(session, &row)?;
    let whole = whole(link, &row.stored).await?;
    Ok(page::checked(row, whole.as_deref()).map(Some))
}

/// Actions without an observation.
pub(super) async fn unanswered(link: &Link, session: &SessionId) -> Result<Vec<u64>, Error> {
    let statement = "SELECT sequence FROM zareba.events AS asked
        WHERE session = (SELECT id FROM zareba.sessions WHERE name = $1) AND kind = 'action'
        AND NOT EXISTS (SELECT 1 FROM zareba.events WHERE session = asked.session
            AND cause = asked.sequence AND kind = 'observation')
        ORDER BY sequence";
    let rows = link.query(statement, &[&session.as_str()]).await?;
    rows.iter().map(|row| number(row, 0)).collect()
}

/// How far a session's log should reach.
pub(super) async fn head(link: &Link, session: &SessionId) -> Result<Option<Head>, Error> {
    let statement = "SELECT next, last FROM zareba.sessions WHERE name = $1 AND next > 0";
    let row = link.query_opt(statement, &[&session.as_str()]).await?;
    let head = row.map(|row| {
        Ok(Head {
            next: number(&row, 0)?,
            last: row.try_get(1)?,
        })
    });
    head.transpose()
}

/// How far the logs of many sessions should reach.
pub(super) async fn heads(
    link: &Link,
    sessions: &[SessionId],
) -> Result<Vec<(SessionId, u64)>, Error> {
    let names: Vec<&str> = sessions.iter().map(SessionId::as_str).collect();
    let statement = "SELECT name, next FROM zareba.sessions WHERE name = ANY($1)";
    let rows = link.query(statement, &[&names]).await?;
    let mut heads = Vec::with_capacity(rows.len());
    for row in &rows {
        if let Ok(session) = SessionId::new(row.try_get::<_, String>(0)?) {
            heads.push((session, number(row, 1)?));
        }
    }
    Ok(heads)
}

/// What each session takes.
pub(super) async fn usage(link: &Link) -> Result<Vec<Usage>, Error> {
    let statement = "SELECT name, next, bytes, changed FROM zareba.sessions
        WHERE name IS NOT NULL AND next > 0 ORDER BY name COLLATE \"C\"";
    let mut usages = Vec::new();
    for row in &link.query(statement, &[]).await? {
        if let Ok(session) = SessionId::new(row.try_get::<_, String>(0)?) {
            usages.push(Usage {
                session,
                records: number(row, 1)?,
                bytes: number(row, 2)?,
                changed: row.try_get::<_, &str>(3)?.parse().unwrap_or_default(),
            });
        }
    }
    Ok(usages)
}

/// Stored bytes, as they are.
pub(super) async fn blob(link: &Link, digest: &str) -> Result<Option<Bytes>, Error> {
    let statement = "SELECT content FROM zareba.blobs WHERE digest = $1";
    let row = link.query_opt(statement, &[&digest]).await?;
    let content = row.map(|row| row.try_get::<_, Vec<u8>>(0));
    Ok(content.transpose()?.map(Bytes::from))
}

/// The digests of what a record keeps apart.
pub(super) async fn blobs_of(
    link: &Link,
    session: &SessionId,
    sequence: u64,
) -> Result<Vec<String>, Error> {
    let statement = "SELECT digest FROM zareba.blob_uses WHERE sequence = $2
        AND session = (SELECT id FROM zareba.sessions WHERE name = $1) ORDER BY digest";
    let values: Values<'_> = &[&session.as_str(), &integer(sequence)];
    let rows = link.query(statement, values).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// What a session's records keep apart and is missing or wrong.
pub(super) async fn lost_blobs(link: &Link, session: &SessionId) -> Result<Vec<LostBlob>, Error> {
    let statement = "SELECT used.sequence, used.digest FROM (
            SELECT sequence, digest FROM zareba.blob_uses
            WHERE session = (SELECT id FROM zareba.sessions WHERE name = $1)
            UNION SELECT sequence, blob FROM zareba.events
            WHERE session = (SELECT id FROM zareba.sessions WHERE name = $1)
            AND blob IS NOT NULL
        ) AS used LEFT JOIN zareba.blobs ON blobs.digest = used.digest
        WHERE content IS NULL OR encode(sha256(content), 'hex') <> used.digest
        ORDER BY 1";
    let rows = link.query(statement, &[&session.as_str()]).await?;
    let lost = rows.iter().map(|row| {
        Ok(LostBlob {
            sequence: number(row, 0)?,
            digest: row.try_get(1)?,
        })
    });
    lost.collect()
}

/// Stored bytes if they are what their digest says.
pub(super) async fn checked_blob(link: &Link, digest: Digest) -> Result<Option<Bytes>, Error> {
    let content = blob(link, &digest.to_string()).await?;
    Ok(content.filter(|bytes| Digest::of(bytes) == digest))
}

/// A document.
pub(super) async fn document(
    link: &Link,
    name: &DocumentName,
) -> Result<Option<Document>, LogError> {
    let statement = "SELECT name, version, value FROM zareba.documents
        WHERE kind = $1 AND name = $2";
    let row = link.query_opt(statement, &[&name.kind, &name.name]).await;
    let row = row.map_err(unread)?;
    row.map(|row| document_of(name.kind, &row)).transpose()
}

/// All documents of a kind.
pub(super) async fn documents(link: &Link, kind: &'static str) -> Result<Vec<Document>, LogError> {
    let statement = "SELECT name, version, value FROM zareba.documents
        WHERE kind = $1 ORDER BY name COLLATE \"C\"";
    let rows = link.query(statement, &[&kind]).await.map_err(unread)?;
    rows.iter().map(|row| document_of(kind, row)).collect()
}

/// Some documents of a kind. A NUL character, which PostgreSQL refuses to read, is read as another.
pub(super) async fn selected(
    link: &Link,
    selection: &Selection,
) -> Result<Vec<Document>, LogError> {
    let statement = "SELECT name, version, value FROM zareba.documents,
            LATERAL (SELECT replace(value, '\\u0000', '\\ufffd')::json AS read) AS parsed
        WHERE kind = $1 AND name COLLATE \"C\" > $2 AND json_typeof(read -> $3::text) = 'string'
        AND ($4::text IS NULL OR read ->> $3::text = $4)
        ORDER BY name COLLATE \"C\" LIMIT $5";
    let after = selection.after.as_deref().unwrap_or_default();
    let limit = i64::try_from(selection.limit).unwrap_or(i64::MAX);
    let (kind, field) = (selection.kind, selection.field);
    let values: Values<'_> = &[&kind, &after, &field, &selection.text, &limit];
    let rows = link.query(statement, values).await.map_err(unread)?;
    rows.iter().map(|row| document_of(kind, row)).collect()
}

fn document_of(kind: &'static str, row: &SqlRow) -> Result<Document, LogError> {
    let name = row.try_get(0).map_err(unread)?;
    let value: &str = row.try_get(2).map_err(unread)?;
    Ok(Document {
        name: DocumentName { kind, name },
        version: number(row, 1).map_err(unread)?,
        value: serde_json::from_str(value).map_err(|error| LogError::Read {
            source: Box::new(error),
        })?,
    })
}

async fn whole(link: &Link, stored: &Stored) -> Result<Option<Bytes>, Error> {
    match stored {
        Stored::Inline(_) => Ok(None),
        Stored::Apart(digest) => blob(link, digest).await,
    }
}

fn number(row: &SqlRow, column: usize) -> Result<u64, Error> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn event(session: &SessionId, row: &SqlRow) -> Result<Row, Error> {
    let payload: Option<String> = row.try_get(5)?;
    Ok(Row {
        session: session.clone(),
        sequence: number(row, 0)?,
        time: row.try_get(1)?,
        kind: row.try_get(2)?,
        cause: row.try_get::<_, Option<i64>>(3)?.map(i64::unsigned_abs),
        key: row.try_get(4)?,
        stored: match payload {
            Some(text) => Stored::Inline(text),
            None => Stored::Apart(row.try_get::<_, Option<String>>(6)?.unwrap_or_default()),
        },
        previous: row.try_get(7)?,
        digest: row.try_get(8)?,
    })
}
