//! Removing a session: its name at once, its records bit by bit when nothing else is to be done.

use tokio_postgres::Error;
use zareba_protocol::SessionId;

use super::link::Link;

/// How many records go in one transaction, so that no append waits long for it.
const RECORDS_MAX: i64 = 500;

/// Takes a session's name away, in the caller's transaction.
pub(super) async fn hide(link: &Link, session: &SessionId) -> Result<(), Error> {
    let statement = "UPDATE zareba.sessions SET name = NULL WHERE name = $1";
    link.execute(statement, &[&session.as_str()])
        .await
        .map(drop)
}

/// Removes some records of a session without a name, and says whether there are more. What
/// another server is busy with is left to it.
pub(super) async fn some(link: &Link) -> Result<bool, Error> {
    link.execute("BEGIN", &[]).await?;
    let hidden = "SELECT id FROM zareba.sessions WHERE name IS NULL LIMIT 1
        FOR UPDATE SKIP LOCKED";
    let Some(row) = link.query_opt(hidden, &[]).await? else {
        link.execute("COMMIT", &[]).await?;
        return Ok(false);
    };
    let id: i64 = row.try_get(0)?;
    let end = "SELECT max(sequence) FROM (SELECT sequence FROM zareba.events
        WHERE session = $1 ORDER BY sequence LIMIT $2) AS first";
    let end = link.query_opt(end, &[&id, &RECORDS_MAX]).await?;
    let end = end
        .map(|row| row.try_get::<_, Option<i64>>(0))
        .transpose()?;
    match end.flatten() {
        Some(end) => remove_up_to(link, id, end).await?,
        None => {
            let statement = "DELETE FROM zareba.sessions WHERE id = $1";
            link.execute(statement, &[&id]).await?;
        }
    }
    link.execute("COMMIT", &[]).await?;
    Ok(true)
}

async fn remove_up_to(link: &Link, id: i64, end: i64) -> Result<(), Error> {
    let uses = "DELETE FROM zareba.blob_uses WHERE session = $1 AND sequence <= $2
        RETURNING digest";
    let rows = link.query(uses, &[&id, &end]).await?;
    let digests: Vec<String> = rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?;
    let events = "DELETE FROM zareba.events WHERE session = $1 AND sequence <= $2";
    link.execute(events, &[&id, &end]).await?;
    // Locked first and looked at then: whoever uses one meanwhile holds its row until that shows.
    let lock = "SELECT digest FROM zareba.blobs WHERE digest = ANY($1)
        ORDER BY digest COLLATE \"C\" FOR UPDATE";
    link.query(lock, &[&digests]).await?;
    let unused = "DELETE FROM zareba.blobs WHERE digest = ANY($1)
        AND NOT EXISTS (SELECT 1 FROM zareba.blob_uses WHERE blob_uses.digest = blobs.digest)";
    link.execute(unused, &[&digests]).await.map(drop)
}
