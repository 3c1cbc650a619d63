//! The check at the beginning: whether the last records of logs that were not closed in order
//! are sound.

use rusqlite::Connection;
use zareba_protocol::SessionId;

use super::{read, schema, write::run};
use crate::{
    Digest, Recovery,
    chain::{Row, now, origin, time_text},
    store::integer,
    verify::{Damage, TAIL, Walk},
};

/// How many sessions are looked at, those that changed last first.
const SESSIONS_MAX: i64 = 1024;

/// Begins a new generation: from here on whoever wrote before may not any more.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<(i64, Recovery)> {
    run(connection, "BEGIN IMMEDIATE")?;
    let generation = schema::meta(connection, "generation")?;
    let recovery = if schema::meta(connection, "closed")? == 1 {
        Recovery::default()
    } else {
        check(connection, generation)?
    };
    schema::set_meta(connection, "generation", generation + 1)?;
    schema::set_meta(connection, "closed", 0)?;
    run(connection, "COMMIT")?;
    Ok((generation + 1, recovery))
}

/// Checks the records of this generation once more.
pub(super) fn again(connection: &Connection, generation: i64) -> rusqlite::Result<Recovery> {
    run(connection, "BEGIN IMMEDIATE")?;
    let recovery = check(connection, generation)?;
    run(connection, "COMMIT")?;
    Ok(recovery)
}

fn check(connection: &Connection, generation: i64) -> rusqlite::Result<Recovery> {
    let names: Vec<String> = connection
        .prepare(
            "SELECT name FROM sessions WHERE name IS NOT NULL AND generation = ?1
            ORDER BY changed DESC LIMIT ?2",
        )?
        .query_map((generation, SESSIONS_MAX), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut recovery = Recovery::default();
    for session in names.into_iter().flat_map(SessionId::new) {
        recovery.checked += 1;
        check_tail(connection, &session, &mut recovery)?;
    }
    if recovery.cut > 0 || !recovery.damage.is_empty() {
        tracing::warn!(?recovery, "the event log was damaged");
    }
    Ok(recovery)
}

fn check_tail(
    connection: &Connection,
    session: &SessionId,
    recovery: &mut Recovery,
) -> rusqlite::Result<()> {
    let Some(head) = read::head(connection, session)? else {
        return Ok(());
    };
    let from = head.next.saturating_sub(TAIL);
    let rows = read::rows(connection, session, from, 2 * TAIL as usize)?;
    let mut walk = Walk::new(session, from);
    // The number behind the last good record, and its digest.
    let mut good = (from == 0).then(|| (0, origin(session)));
    for row in &rows {
        if let Some(digest) = walk.step(row) {
            good = Some((row.sequence + 1, digest));
        }
    }
    let Some((end, last)) = good else {
        // More than a tail is bad: that is no torn end, and nothing is cut.
        recovery.damage.extend(walk.damage);
        return Ok(());
    };
    for damage in walk.damage {
        let torn = (rows.iter()).find(|row| row.sequence == damage.sequence && row.sequence >= end);
        match torn {
            Some(row) => {
                set_aside(connection, row, &damage)?;
                recovery.cut += 1;
            }
            None => recovery.damage.push(damage),
        }
    }
    if head.next > end && rows.iter().all(|row| row.sequence < end) {
        recovery.damage.push(Damage {
            session: session.clone(),
            sequence: end,
            reason: format!("the records from here to {} are missing", head.next - 1),
        });
    }
    if (head.next, head.last.as_str()) != (end, &last.to_string()) {
        set_head(connection, session, end, last)?;
    }
    Ok(())
}

/// Moves a damaged record out of the log, into a table where a person can look at it.
fn set_aside(connection: &Connection, row: &Row, damage: &Damage) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO torn (found, session, sequence, reason, row) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            time_text(now()),
            row.session.as_str(),
            integer(row.sequence),
            &damage.reason,
            format!("{row:?}"),
        ))?;
    connection
        .prepare_cached(
            "DELETE FROM events WHERE sequence = ?2
            AND session = (SELECT id FROM sessions WHERE name = ?1)",
        )?
        .execute((row.session.as_str(), integer(row.sequence)))
        .map(drop)
}

fn set_head(
    connection: &Connection,
    session: &SessionId,
    next: u64,
    last: Digest,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE sessions SET next = ?2, last = ?3 WHERE name = ?1")?
        .execute((session.as_str(), integer(next), last.to_string()))
        .map(drop)
}
