//! `zareba key`: who may use the server.

use serde_json::json;
use tokio::runtime;
use zareba_client::{Bytes, Client, Cpus, CreateKey, CreatedKey, Key, KeyQuota, KeyScope, Seconds};
use zareba_egress::Rule;
use zareba_eventlog::{EventLog, LogError};
use zareba_server::Keys;

use super::serve::{local_client, open_log_if_free};
use crate::{
    arguments::{
        CreateKeyArguments, KeyArguments, KeyCommand, OutputFormat, RemoveKeyArguments,
        ScopeArgument,
    },
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::Place,
    say,
    table::table,
};

/// Does what was asked for.
pub(crate) fn perform(context: &Context, arguments: &KeyArguments) -> Result<Exit, Failure> {
    let configuration = context.configuration(Vec::new())?;
    let place = Place::new(context, &configuration.settings);
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    runtime.block_on(async {
        // Whoever writes to the log is the one to ask.
        let ring = match open_log_if_free(&configuration.settings, place.state()).await? {
            Some(log) => Ring::Log(log),
            None => Ring::Server(local_client(place.state())?),
        };
        let outcome = match &arguments.command {
            KeyCommand::Create(arguments) => create(context, &ring, arguments).await,
            KeyCommand::Ls => list(context, &ring).await,
            KeyCommand::Rm(arguments) => remove(&ring, arguments).await,
        };
        ring.close()
            .await
            .or_fail(Exit::Failure, "cannot close the event log")?;
        outcome
    })
}

/// Where keys are: in the log, or in that of a server that runs.
enum Ring {
    Log(EventLog),
    Server(Client),
}

impl Ring {
    async fn create(&self, new: CreateKey) -> Result<CreatedKey, Failure> {
        let deed = "cannot make a key";
        match self {
            Self::Log(log) => Keys::new(log.clone())
                .create(new)
                .await
                .or_fail(Exit::Failure, deed),
            Self::Server(client) => client.create_key(&new).await.or_fail(Exit::Failure, deed),
        }
    }

    async fn list(&self) -> Result<Vec<Key>, Failure> {
        let deed = "cannot list the keys";
        match self {
            Self::Log(log) => Keys::new(log.clone())
                .list()
                .await
                .or_fail(Exit::Failure, deed),
            Self::Server(client) => {
                let page = client.keys().await.or_fail(Exit::Failure, deed)?;
                Ok(page.keys)
            }
        }
    }

    async fn remove(&self, id: &str) -> Result<(), Failure> {
        let deed = format!("cannot remove the key `{id}`");
        match self {
            Self::Log(log) => Keys::new(log.clone())
                .remove(id)
                .await
                .or_fail(Exit::Failure, deed),
            Self::Server(client) => client.delete_key(id).await.or_fail(Exit::Failure, deed),
        }
    }

    async fn close(&self) -> Result<(), LogError> {
        match self {
            Self::Log(log) => log.store().close().await,
            Self::Server(_) => Ok(()),
        }
    }
}

async fn create(
    context: &Context,
    ring: &Ring,
    arguments: &CreateKeyArguments,
) -> Result<Exit, Failure> {
    let expires_in = arguments.expires_in.map(Seconds::try_from).transpose();
    let cpus_max = arguments.cpus_max.map(Cpus::try_from).transpose();
    let life_max = arguments.life_max.map(Seconds::try_from).transpose();
    let new = CreateKey {
        owner: arguments.owner.clone(),
        scope: match arguments.scope {
            ScopeArgument::Read => KeyScope::Read,
            ScopeArgument::Session => KeyScope::Session,
            ScopeArgument::Admin => KeyScope::Admin,
        },
        session: None,
        expires_in: expires_in.or_fail(Exit::Usage, "`--expires-in` makes no sense")?,
        quota: KeyQuota {
            sessions: arguments.sessions,
            actions_per_minute: arguments.actions_per_minute,
            memory_max: arguments.memory_max.map(Bytes),
            cpus_max: cpus_max.or_fail(Exit::Usage, "`--cpus-max` makes no sense")?,
            pids_max: arguments.pids_max,
            disk_max: arguments.disk_max.map(Bytes),
            life_max: life_max.or_fail(Exit::Usage, "`--life-max` makes no sense")?,
            networks: listed(&arguments.networks),
            hosts: hosts(&arguments.hosts)?,
            runtimes: listed(&arguments.runtimes),
            images: listed(&arguments.images),
            workspaces: listed(&arguments.workspaces),
        },
    };
    let created = ring.create(new).await?;
    match context.globals.output {
        OutputFormat::Text => {
            say::line(&created.secret.0)?;
            say::note(format_args!(
                "the key `{}` is shown this once",
                created.key.id
            ));
        }
        OutputFormat::Json => say::line(json!(created))?,
    }
    Ok(Exit::Success)
}

/// Rules for hosts, as a filtered network reads them.
fn hosts(rules: &[String]) -> Result<Option<Vec<String>>, Failure> {
    for rule in rules {
        if let Err(error) = Rule::parse(rule) {
            let message = format!("`--hosts`: {error}: {}", error.fault);
            return Err(Failure::new(Exit::Usage, message));
        }
    }
    Ok(listed(rules))
}

/// A flag that is not given sets no bound.
fn listed(texts: &[String]) -> Option<Vec<String>> {
    (!texts.is_empty()).then(|| texts.to_vec())
}

async fn list(context: &Context, ring: &Ring) -> Result<Exit, Failure> {
    let keys = ring.list().await?;
    if context.globals.output == OutputFormat::Json {
        for key in keys {
            say::line(json!(key))?;
        }
        return Ok(Exit::Success);
    }
    let rows: Vec<[String; 5]> = keys
        .into_iter()
        .map(|key| {
            let text = |value: serde_json::Value| value.as_str().unwrap_or("-").to_owned();
            [
                key.id.clone(),
                key.owner.clone(),
                text(json!(key.scope)),
                text(json!(key.session)),
                text(json!(key.expires)),
            ]
        })
        .collect();
    say::text(&table(
        ["ID", "OWNER", "SCOPE", "SESSION", "EXPIRES"],
        &rows,
    ))?;
    Ok(Exit::Success)
}

async fn remove(ring: &Ring, arguments: &RemoveKeyArguments) -> Result<Exit, Failure> {
    for id in &arguments.ids {
        ring.remove(id).await?;
    }
    Ok(Exit::Success)
}
