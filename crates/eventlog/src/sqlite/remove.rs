//! Removing a session: its name at once, its records bit by bit when nothing else is to be done.

use rusqlite::{Connection, OptionalExtension};
use zareba_protocol::SessionId;

use super::write::run;

/// How many records go in one transaction, so that no append waits long for it.
const RECORDS_MAX: i64 = 500;

/// Takes a session's name away, in the caller's transaction.
pub(super) fn hide(connection: &Connection, session: &SessionId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE sessions SET name = NULL WHERE name = ?1")?
        .execute([session.as_str()])
        .map(drop)
}

/// Removes some records of a session without a name, and says whether there are more.
pub(super) fn some(connection: &Connection) -> rusqlite::Result<bool> {
    let hidden: Option<i64> = connection
        .prepare_cached("SELECT id FROM sessions WHERE name IS NULL LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(id) = hidden else {
        return Ok(false);
    };
    run(connection, "BEGIN IMMEDIATE")?;
    let end: Option<i64> = connection
        .prepare_cached(
            "SELECT max(sequence) FROM
            (SELECT sequence FROM events WHERE session = ?1 ORDER BY sequence LIMIT ?2)",
        )?
        .query_row([id, RECORDS_MAX], |row| row.get(0))?;
    match end {
        Some(end) => remove_up_to(connection, id, end)?,
        None => {
            connection
                .prepare_cached("DELETE FROM sessions WHERE id = ?1")?
                .execute([id])?;
        }
    }
    run(connection, "COMMIT")?;
    Ok(true)
}

fn remove_up_to(connection: &Connection, id: i64, end: i64) -> rusqlite::Result<()> {
    let digests: Vec<String> = connection
        .prepare_cached("SELECT digest FROM blob_uses WHERE session = ?1 AND sequence <= ?2")?
        .query_map([id, end], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for statement in [
        "DELETE FROM blob_uses WHERE session = ?1 AND sequence <= ?2",
        "DELETE FROM events WHERE session = ?1 AND sequence <= ?2",
    ] {
        connection.prepare_cached(statement)?.execute([id, end])?;
    }
    let mut unused = connection.prepare_cached(
        "DELETE FROM blobs WHERE digest = ?1
        AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE digest = ?1)",
    )?;
    for digest in digests {
        unused.execute([digest])?;
    }
    Ok(())
}
