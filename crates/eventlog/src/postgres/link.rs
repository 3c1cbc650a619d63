//! Connections to PostgreSQL: how they are made, what they prepare, what their errors mean.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::task::AbortHandle;
use tokio_postgres::{
    Client, Config, Connection, NoTls, Row, Socket, Statement,
    config::{Host, SslMode},
    error::SqlState,
    tls::NoTlsStream,
    types::ToSql,
};

use crate::{Durability, LogError, writer::Failure};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After this long without a sign of life the other side is taken for lost.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// What every connection is told first. A server that stands still in a transaction would hold
/// up others that share a session with it, so the database ends its transaction.
const GREETING: &str = "SET idle_in_transaction_session_timeout = '10s';
    SET lock_timeout = '10s';
    SET statement_timeout = '60s';
    SET client_min_messages = 'warning'";

/// Values for a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What connections are made from.
#[derive(Clone, Debug)]
pub(super) struct Address {
    config: Config,
    durability: Durability,
}

/// A connection with the statements it has prepared.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: Client,
    prepared: Mutex<HashMap<&'static str, Statement>>,
    driver: AbortHandle,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it is no address of a PostgreSQL database, as in `postgresql://user@host/database`")]
    Address { source: tokio_postgres::Error },
    #[error(
        "it asks for TLS, which is not supported: use a Unix socket or a network that others \
         cannot read, with `sslmode=disable`"
    )]
    Tls,
    #[error("it has version {found}, this program knows {known}; use a newer program")]
    Version { found: i64, known: i64 },
}

impl Address {
    pub(super) fn parse(url: &str, durability: Durability) -> Result<Self, LogError> {
        let mut config: Config = url.parse().map_err(|source| LogError::Open {
            // A text that is no address may still hold a password.
            place: "at the given address".to_owned(),
            source: Box::new(Unusable::Address { source }),
        })?;
        config
            .application_name("zareba")
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(SILENCE_MAX)
            .keepalives_idle(SILENCE_MAX);
        let address = Self { config, durability };
        let wants_tls = !matches!(
            address.config.get_ssl_mode(),
            SslMode::Disable | SslMode::Prefer
        );
        if wants_tls {
            return Err(address.error(Unusable::Tls));
        }
        Ok(address)
    }

    /// The address without its password.
    pub(super) fn place(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<_> = hosts.collect();
        let database = self.config.get_dbname().unwrap_or_default();
        format!("`{database}` at {}", hosts.join(", "))
    }

    pub(super) fn error(
        &self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> LogError {
        LogError::Open {
            place: self.place(),
            source: source.into(),
        }
    }

    /// A connection whose messages the caller drives.
    pub(super) async fn dial(
        &self,
    ) -> Result<(Client, Connection<Socket, NoTlsStream>), tokio_postgres::Error> {
        self.config.connect(NoTls).await
    }

    /// A connection that is ready to be used.
    pub(super) async fn connect(&self) -> Result<Link, tokio_postgres::Error> {
        let (client, connection) = self.dial().await?;
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the event log ended");
            }
        });
        let link = Link {
            client,
            prepared: Mutex::default(),
            driver: driver.abort_handle(),
        };
        let synchronous = match self.durability {
            // What the database has taken survives the end of this process either way.
            Durability::Process => "SET synchronous_commit = off",
            Durability::Disk => "SET synchronous_commit = on",
        };
        let greeting = format!("{GREETING}; {synchronous}");
        link.client.batch_execute(&greeting).await?;
        Ok(link)
    }
}

impl Link {
    pub(super) async fn query(
        &self,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.prepared(statement).await?;
        self.client.query(&statement, values).await
    }

    pub(super) async fn query_opt(
        &self,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<Option<Row>, tokio_postgres::Error> {
        let statement = self.prepared(statement).await?;
        self.client.query_opt(&statement, values).await
    }

    pub(super) async fn execute(
        &self,
        statement: &'static str,
        values: Values<'_>,
    ) -> Result<u64, tokio_postgres::Error> {
        let statement = self.prepared(statement).await?;
        self.client.execute(&statement, values).await
    }

    /// Statements are few and fixed, so what is prepared stays.
    async fn prepared(&self, text: &'static str) -> Result<Statement, tokio_postgres::Error> {
        let lock = || self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(statement) = lock().get(text) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(text).await?;
        lock().insert(text, statement.clone());
        Ok(statement)
    }

    /// Ends the connection without another word.
    pub(super) fn cut(&self) {
        self.driver.abort();
    }
}

/// Whether the connection or the server is gone, so that another connection may help.
pub(super) fn is_away(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else {
        // Without a code the server has not said it: the connection broke, or we did.
        return error.is_closed() || std::error::Error::source(error).is_some_and(is_io);
    };
    let class = code.code().get(..2).unwrap_or_default();
    // Connection, resources, intervention of an operator, system; and a server that only reads.
    ["08", "53", "57", "58", "XX"].contains(&class) || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}

fn is_io(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<std::io::Error>()
}

/// Whether the same transaction may work when it is tried again.
pub(super) fn is_worth_another_try(error: &tokio_postgres::Error) -> bool {
    [
        &SqlState::T_R_SERIALIZATION_FAILURE,
        &SqlState::T_R_DEADLOCK_DETECTED,
        &SqlState::UNIQUE_VIOLATION,
    ]
    .iter()
    .any(|code| error.code() == Some(code))
}

/// What an error means for a group, and whether it was the commit that failed.
pub(super) fn failure(error: tokio_postgres::Error, is_commit: bool) -> Failure {
    let reason = describe(&error);
    // Also a server that says why it ends may have committed just before.
    let in_doubt = is_commit && is_away(&error);
    if error.code() == Some(&SqlState::DISK_FULL) && !in_doubt {
        Failure::Full(reason)
    } else if is_away(&error) || error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        Failure::Lost { reason, in_doubt }
    } else {
        Failure::Refused(reason.into())
    }
}

/// What an error of a question means.
pub(super) fn unread(error: tokio_postgres::Error) -> LogError {
    if is_away(&error) {
        LogError::Unavailable {
            reason: describe(&error),
        }
    } else {
        LogError::Read {
            source: Box::new(error),
        }
    }
}

/// The error with its cause, because the error alone says only "db error".
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("PostgreSQL: {error}: {source}"),
        None => format!("PostgreSQL: {error}"),
    }
}
