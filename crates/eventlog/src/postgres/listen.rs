//! Hears what other servers have written.

use std::{collections::HashSet, future::poll_fn, sync::Arc, time::Duration};

use tokio_postgres::{AsyncMessage, Client, Connection, Error, Socket, tls::NoTlsStream};
use zareba_protocol::SessionId;

use super::{
    link::{Address, describe},
    read,
    write::CHANNEL,
};
use crate::writer::Shared;

/// The first and the longest wait before another connection is tried.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Listens until it is aborted. After a break it asks for what it may have missed.
pub(super) async fn listen(address: Address, shared: Arc<Shared>) {
    let mut wait = RETRY_FIRST;
    loop {
        let error = match address.dial().await {
            Ok((client, connection)) => {
                let (ready, heard) = (
                    catch_up(client, &address, &shared),
                    hear(connection, &shared),
                );
                tokio::select! {
                    Err(error) = ready => Some(error),
                    outcome = heard => {
                        wait = RETRY_FIRST;
                        outcome.err()
                    }
                }
            }
            Err(error) => Some(error),
        };
        let reason = error.as_ref().map(describe);
        tracing::debug!(reason, "news of other servers are not heard");
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
}

/// Begins to listen and then reads where the watched logs end, so that nothing falls between.
/// It does not return while all is well: its client keeps the connection.
async fn catch_up(client: Client, address: &Address, shared: &Shared) -> Result<(), Error> {
    client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
    let watched = shared.ends.watched();
    if !watched.is_empty() {
        let link = address.connect().await?;
        let heads = read::heads(&link, &watched).await?;
        let there: HashSet<&SessionId> = heads.iter().map(|(session, _)| session).collect();
        for session in watched.iter().filter(|session| !there.contains(session)) {
            shared.ends.remove_begun(session);
        }
        for (session, next) in heads {
            shared.ends.advance(&session, next);
        }
    }
    std::future::pending().await
}

/// Passes on what comes until the connection ends.
async fn hear(
    mut connection: Connection<Socket, NoTlsStream>,
    shared: &Shared,
) -> Result<(), Error> {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(news) = message? {
            tell(news.payload(), shared);
        }
    }
    Ok(())
}

fn tell(news: &str, shared: &Shared) {
    let Some((name, what)) = news.split_once(' ') else {
        return;
    };
    let Ok(session) = SessionId::new(name) else {
        return;
    };
    match what.parse() {
        Ok(next) => shared.ends.advance(&session, next),
        Err(_) if what == "removed" => shared.ends.remove(&session),
        Err(_) => {}
    }
}
