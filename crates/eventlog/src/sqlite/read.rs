//! Queries. What is read is text that nobody vouches for yet.

use bytes::Bytes;
use rusqlite::{
    CachedStatement, Connection, OptionalExtension, Params, Row as SqlRow, types::ValueRef,
};
use zareba_protocol::SessionId;

use crate::{
    Digest, Document, DocumentName, IdempotencyKey, LogError, Record, Selection,
    chain::Row,
    page,
    payload::Stored,
    store::{Head, Usage, integer},
    verify::LostBlob,
};

const COLUMNS: &str = "SELECT sequence, time, kind, cause, key, payload, blob, previous, digest
    FROM events WHERE session = (SELECT id FROM sessions WHERE name = ?1)";

/// An action has one answer, hardly ever more. With the plus sign they are put in order once they
/// are found; without it, all records of the session would be gone through in that order.
const ANSWER: &str = " AND cause = ?2 AND kind = 'observation' ORDER BY +sequence LIMIT 1";

/// A page of a session's records, as stored.
pub(super) fn rows(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Row>> {
    let mut statement = select(connection, " AND sequence >= ?2 ORDER BY sequence LIMIT ?3")?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut found = statement.query((session.as_str(), integer(from), limit))?;
    let mut rows = Vec::new();
    let mut bytes = 0;
    while let Some(row) = found.next()? {
        let row = event(session, row)?;
        bytes += row.bytes();
        rows.push(row);
        if bytes >= page::BYTES_MAX {
            break;
        }
    }
    Ok(rows)
}

/// A page of a session's records, checked.
pub(super) fn records(
    connection: &Connection,
    session: &SessionId,
    from: u64,
    limit: usize,
) -> rusqlite::Result<Result<Vec<Record>, LogError>> {
    let mut page = page::Page::new(session.clone(), from);
    for row in rows(connection, session, from, limit)? {
        let whole = whole(connection, &row.stored)?;
        if !page.push(row, whole.as_deref()) {
            break;
        }
    }
    Ok(page.finish())
}

/// The record with a key.
pub(super) fn by_key(
    connection: &Connection,
    session: &SessionId,
    key: &IdempotencyKey,
) -> rusqlite::Result<Result<Option<Record>, LogError>> {
    one(
        connection,
        session,
        " AND key = ?2",
        (session.as_str(), key.as_str()),
    )
}

/// The observation that an action led to.
pub(super) fn answer(
    connection: &Connection,
    session: &SessionId,
    action: u64,
) -> rusqlite::Result<Result<Option<Record>, LogError>> {
    one(
        connection,
        session,
        ANSWER,
        (session.as_str(), integer(action)),
    )
}

/// The record with a number.
pub(super) fn by_sequence(
    connection: &Connection,
    session: &SessionId,
    sequence: u64,
) -> rusqlite::Result<Result<Option<Record>, LogError>> {
    one(
        connection,
        session,
        " AND sequence = ?2",
        (session.as_str(), integer(sequence)),
    )
}

/// Actions without an observation.
pub(super) fn unanswered(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Vec<u64>> {
    connection
        .prepare_cached(
            "SELECT sequence FROM events AS asked
            WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND kind = 'action'
            AND NOT EXISTS (SELECT 1 FROM events WHERE session = asked.session
                AND cause = asked.sequence AND kind = 'observation')
            ORDER BY sequence",
        )?
        .query_map([session.as_str()], |row| row.get::<_, i64>(0))?
        .map(|number| number.map(i64::unsigned_abs))
        .collect()
}

/// How far a session's log should reach.
pub(super) fn head(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<Head>> {
    connection
        .prepare_cached("SELECT next, last FROM sessions WHERE name = ?1")?
        .query_row([session.as_str()], |row| {
            Ok(Head {
                next: row.get::<_, i64>(0)?.unsigned_abs(),
                last: text(row, 1)?,
            })
        })
        .optional()
}

/// What each session takes.
pub(super) fn usage(connection: &Connection) -> rusqlite::Result<Vec<Usage>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, next, bytes, changed FROM sessions WHERE name IS NOT NULL ORDER BY name",
    )?;
    let mut found = statement.query([])?;
    let mut usages = Vec::new();
    while let Some(row) = found.next()? {
        // A name that is none is damage that nothing here can mend; `sqlite3` shows it.
        if let Ok(session) = SessionId::new(text(row, 0)?) {
            usages.push(Usage {
                session,
                records: row.get::<_, i64>(1)?.unsigned_abs(),
                bytes: row.get::<_, i64>(2)?.unsigned_abs(),
                changed: text(row, 3)?.parse().unwrap_or_default(),
            });
        }
    }
    Ok(usages)
}

/// Stored bytes, as they are.
pub(super) fn blob(connection: &Connection, digest: &str) -> rusqlite::Result<Option<Bytes>> {
    connection
        .prepare_cached("SELECT content FROM blobs WHERE digest = ?1")?
        .query_row([digest], |row| row.get::<_, Vec<u8>>(0))
        .optional()
        .map(|content| content.map(Bytes::from))
}

/// Stored bytes if they are what their digest says.
pub(super) fn checked_blob(
    connection: &Connection,
    digest: Digest,
) -> rusqlite::Result<Option<Bytes>> {
    let content = blob(connection, &digest.to_string())?;
    Ok(content.filter(|bytes| Digest::of(bytes) == digest))
}

/// The digests of what a record keeps apart.
pub(super) fn blobs_of(
    connection: &Connection,
    session: &SessionId,
    sequence: u64,
) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached(
            "SELECT digest FROM blob_uses WHERE sequence = ?2
            AND session = (SELECT id FROM sessions WHERE name = ?1)",
        )?
        .query_map((session.as_str(), integer(sequence)), |row| row.get(0))?
        .collect()
}

/// What a session's records keep apart and is missing or wrong.
pub(super) fn lost_blobs(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Vec<LostBlob>> {
    let mut statement = connection.prepare_cached(
        "SELECT used.sequence, used.digest, content FROM (
            SELECT sequence, digest FROM blob_uses
            WHERE session = (SELECT id FROM sessions WHERE name = ?1)
            UNION SELECT sequence, blob FROM events
            WHERE session = (SELECT id FROM sessions WHERE name = ?1) AND blob IS NOT NULL
        ) AS used LEFT JOIN blobs ON blobs.digest = used.digest",
    )?;
    let mut found = statement.query([session.as_str()])?;
    let mut lost = Vec::new();
    while let Some(row) = found.next()? {
        let digest = text(row, 1)?;
        let is_sound = match row.get_ref(2)? {
            ValueRef::Blob(content) => Digest::of(content).to_string() == digest,
            _ => false,
        };
        if !is_sound {
            lost.push(LostBlob {
                sequence: row.get::<_, i64>(0)?.unsigned_abs(),
                digest,
            });
        }
    }
    Ok(lost)
}

/// A document.
pub(super) fn document(
    connection: &Connection,
    name: &DocumentName,
) -> rusqlite::Result<Option<Document>> {
    connection
        .prepare_cached("SELECT version, value FROM documents WHERE kind = ?1 AND name = ?2")?
        .query_row((name.kind, &name.name), |row| {
            Ok(Document {
                name: name.clone(),
                version: row.get::<_, i64>(0)?.unsigned_abs(),
                value: value(row, 1)?,
            })
        })
        .optional()
}

/// All documents of a kind.
pub(super) fn documents(
    connection: &Connection,
    kind: &'static str,
) -> rusqlite::Result<Vec<Document>> {
    connection
        .prepare_cached("SELECT name, version, value FROM documents WHERE kind = ?1 ORDER BY name")?
        .query_map([kind], |row| document_of(kind, row))?
        .collect()
}

/// Some documents of a kind.
pub(super) fn selected(
    connection: &Connection,
    selection: &Selection,
) -> rusqlite::Result<Vec<Document>> {
    let parameters = (
        selection.kind,
        selection.after.as_deref().unwrap_or_default(),
        format!("$.{}", selection.field),
        &selection.text,
        i64::try_from(selection.limit).unwrap_or(i64::MAX),
    );
    connection
        .prepare_cached(
            "SELECT name, version, value FROM documents WHERE kind = ?1 AND name > ?2
            AND json_type(value, ?3) = 'text' AND (?4 IS NULL OR json_extract(value, ?3) = ?4)
            ORDER BY name LIMIT ?5",
        )?
        .query_map(parameters, |row| document_of(selection.kind, row))?
        .collect()
}

fn document_of(kind: &'static str, row: &SqlRow<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        name: DocumentName {
            kind,
            name: row.get(0)?,
        },
        version: row.get::<_, i64>(1)?.unsigned_abs(),
        value: value(row, 2)?,
    })
}

fn select<'a>(connection: &'a Connection, rest: &str) -> rusqlite::Result<CachedStatement<'a>> {
    connection.prepare_cached(&format!("{COLUMNS}{rest}"))
}

fn one(
    connection: &Connection,
    session: &SessionId,
    condition: &str,
    parameters: impl Params,
) -> rusqlite::Result<Result<Option<Record>, LogError>> {
    let mut statement = select(connection, condition)?;
    let found = statement.query_row(parameters, |row| event(session, row));
    let Some(row) = found.optional()? else {
        return Ok(Ok(None));
    };
    let whole = whole(connection, &row.stored)?;
    Ok(page::checked(row, whole.as_deref()).map(Some))
}

fn whole(connection: &Connection, stored: &Stored) -> rusqlite::Result<Option<Bytes>> {
    match stored {
        Stored::Inline(_) => Ok(None),
        Stored::Apart(digest) => blob(connection, digest),
    }
}

fn event(session: &SessionId, row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        session: session.clone(),
        sequence: row.get::<_, i64>(0)?.unsigned_abs(),
        time: text(row, 1)?,
        kind: text(row, 2)?,
        cause: match row.get_ref(3)? {
            ValueRef::Integer(cause) => Some(cause.unsigned_abs()),
            _ => None,
        },
        key: optional_text(row, 4)?,
        stored: match optional_text(row, 5)? {
            Some(payload) => Stored::Inline(payload),
            None => Stored::Apart(text(row, 6)?),
        },
        previous: text(row, 7)?,
        digest: text(row, 8)?,
    })
}

/// A text, whatever is stored: what is none does not fit the digest, and that is reported.
fn text(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(optional_text(row, column)?.unwrap_or_default())
}

fn optional_text(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

fn value(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<serde_json::Value> {
    serde_json::from_str(&text(row, column)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::{
        super::{open, schema},
        *,
    };

    #[test]
    fn an_answer_is_found_without_going_through_a_session() {
        let connection = Connection::open_in_memory().unwrap();
        schema::ensure(&connection).unwrap();
        let plan: Vec<String> = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {COLUMNS}{ANSWER}"))
            .unwrap()
            .query_map(("s", 1), |row| row.get("detail"))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        let wanted = "SEARCH events USING INDEX events_by_cause (session=? AND cause=?)";
        assert!(plan.iter().any(|step| step == wanted), "{plan:#?}");
    }

    #[test]
    fn a_statement_is_made_once_for_all_values() {
        let connection = Connection::open_in_memory().unwrap();
        schema::ensure(&connection).unwrap();
        open::keep_statements(&connection, 4).unwrap();
        let mut statement = select(&connection, ANSWER).unwrap();
        for action in 0..3 {
            assert!(!statement.exists(("s", action)).unwrap());
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
