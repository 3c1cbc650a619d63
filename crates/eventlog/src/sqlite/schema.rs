//! The tables, made to be read with `sqlite3` as well.

use rusqlite::{Connection, OptionalExtension};

/// The version that this program writes. An older one is brought up to it, a newer one refused.
pub(super) const VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

-- One row for each session. Without a name it is removed, and its records go bit by bit.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name TEXT UNIQUE,
    next INTEGER NOT NULL,
    last TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    changed TEXT NOT NULL,
    generation INTEGER NOT NULL
);

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    cause INTEGER,
    key TEXT,
    payload TEXT,
    blob TEXT,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    CHECK ((payload IS NULL) <> (blob IS NULL))
);
CREATE UNIQUE INDEX events_by_sequence ON events (session, sequence);
CREATE UNIQUE INDEX events_by_key ON events (session, key) WHERE key IS NOT NULL;
CREATE INDEX events_by_cause ON events (session, cause) WHERE kind = 'observation';

CREATE TABLE blobs (digest TEXT PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE blob_uses (
    digest TEXT NOT NULL,
    session INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (digest, session, sequence)
) WITHOUT ROWID;
CREATE INDEX blob_uses_by_session ON blob_uses (session, sequence);

CREATE TABLE documents (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- Damaged records that were cut off, as they were found.
CREATE TABLE torn (
    found TEXT NOT NULL,
    session TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    reason TEXT NOT NULL,
    row TEXT NOT NULL
);

CREATE VIEW log AS
    SELECT sessions.name AS session, sequence, time, kind, cause, key,
        coalesce(payload, CAST(blobs.content AS TEXT)) AS payload, previous, events.digest AS digest
    FROM events
    JOIN sessions ON sessions.id = events.session
    LEFT JOIN blobs ON blobs.digest = events.blob
    WHERE sessions.name IS NOT NULL;
";

/// Makes the tables if there are none. Returns the version that was found or made.
pub(super) fn ensure(connection: &Connection) -> rusqlite::Result<i64> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let is_made: Option<i64> = connection
        .query_row(
            "SELECT 1 FROM sqlite_schema WHERE name = 'meta'",
            [],
            |row| row.get(0),
        )
        .optional()?;
    if is_made.is_none() {
        connection.execute_batch(TABLES)?;
        let mut insert = connection.prepare("INSERT INTO meta (name, value) VALUES (?1, ?2)")?;
        insert.execute(("version", VERSION))?;
        insert.execute(("generation", 0))?;
        insert.execute(("closed", 1))?;
    }
    connection.execute_batch("COMMIT")?;
    meta(connection, "version")
}

/// A number in `meta`.
pub(super) fn meta(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
}

/// Counts up a number in `meta`, which is there from then on.
pub(super) fn count_meta(connection: &Connection, name: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (name, value) VALUES (?1, 1) \
               ON CONFLICT (name) DO UPDATE SET value = value + 1";
    connection.prepare_cached(sql)?.execute([name]).map(drop)
}

/// Writes a number into `meta`.
pub(super) fn set_meta(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE meta SET value = ?2 WHERE name = ?1")?
        .execute((name, value))
        .map(drop)
}
