//! The tables in PostgreSQL, in a schema of their own.

use tokio_postgres::Client;

/// The version that this program writes. An older one is brought up to it, a newer one refused.
pub(super) const VERSION: i64 = 1;

/// Any number will do, so long as every server takes the same.
const MIGRATION_LOCK: i64 = 0x7a61_7265_6261;

/// Times are text in both databases, because the digest of a record is made of that text.
const TABLES: &str = "
CREATE TABLE zareba.sessions (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT UNIQUE,
    next BIGINT NOT NULL DEFAULT 0,
    last TEXT NOT NULL DEFAULT '',
    bytes BIGINT NOT NULL DEFAULT 0,
    changed TEXT NOT NULL DEFAULT ''
);
COMMENT ON TABLE zareba.sessions IS
    'One row for each session. Without a name it is removed, and its records go bit by bit.';

CREATE TABLE zareba.events (
    session BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    cause BIGINT,
    key TEXT,
    payload TEXT,
    blob TEXT,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (session, sequence),
    CHECK ((payload IS NULL) <> (blob IS NULL))
);
CREATE UNIQUE INDEX events_by_key ON zareba.events (session, key) WHERE key IS NOT NULL;
CREATE INDEX events_by_cause ON zareba.events (session, cause) WHERE kind = 'observation';

CREATE TABLE zareba.blobs (digest TEXT PRIMARY KEY, content BYTEA NOT NULL);
CREATE TABLE zareba.blob_uses (
    digest TEXT NOT NULL,
    session BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    PRIMARY KEY (digest, session, sequence)
);
CREATE INDEX blob_uses_by_session ON zareba.blob_uses (session, sequence);

CREATE TABLE zareba.documents (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE VIEW zareba.log AS
    SELECT sessions.name AS session, sequence, time, kind, cause, key,
        coalesce(payload, convert_from(blobs.content, 'UTF8')) AS payload,
        previous, events.digest AS digest
    FROM zareba.events
    JOIN zareba.sessions ON sessions.id = events.session
    LEFT JOIN zareba.blobs ON blobs.digest = events.blob
    WHERE sessions.name IS NOT NULL;
";

/// Makes the tables if there are none, one server at a time. Returns the version that was found
/// or made.
pub(super) async fn ensure(client: &mut Client) -> Result<i64, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
        .await?;
    transaction
        .batch_execute(
            "CREATE SCHEMA IF NOT EXISTS zareba;
            CREATE TABLE IF NOT EXISTS zareba.meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
        )
        .await?;
    let version = "SELECT value FROM zareba.meta WHERE name = 'version'";
    let found = transaction.query_opt(version, &[]).await?;
    let version = match found {
        Some(row) => row.try_get(0)?,
        None => {
            transaction.batch_execute(TABLES).await?;
            let insert = "INSERT INTO zareba.meta (name, value) VALUES ('version', $1)";
            transaction.execute(insert, &[&VERSION]).await?;
            VERSION
        }
    };
    transaction.commit().await?;
    Ok(version)
}
