//! Making a session: what is asked for is checked, written down and begun.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::json;
use zareba_eventlog::{LogError, Patience};
use zareba_protocol::{RuntimeStatus, SessionId};
use zareba_runtime::{Grant, Runtime, SandboxSpec};

use crate::{
    NewSession, Owner, Secret, SessionError, SessionState, check,
    conductor::{Beginning, Common, Conductor},
    document::{self, SessionDocument},
    event,
    live::Live,
    mask::Mask,
    permit,
    start::Ingredients,
    update, workspace,
};

/// Writes a session down and has it started.
pub(crate) async fn session(
    mut new: NewSession,
    owner: Owner,
    common: Arc<Common>,
    live: Arc<Live>,
) -> Result<Arc<Conductor>, SessionError> {
    let (name, runtime) = chosen_runtime(&new, &common)?;
    check::all(&new)?;
    // What no caller can have here is told before what this caller may not.
    runtime.grant(&new.request)?;
    new.parts.clone().require(&name, &mut new).await?;
    new.request = permit::permitted(&new, &*runtime, &common.options.permissions)?;
    let grant = runtime.grant(&new.request)?;
    new.reach.require_held(&grant)?;
    let age = Duration::ZERO;
    update::require_permitted(new.limits, &common.options, new.life_max, age)?;
    new.limits = new.limits.bounded(&common.options, new.life_max);
    if let Some(workspace) = &new.workspace {
        new.workspace = Some(workspace::allowed(workspace, &common.options.workspaces).await?);
    }
    let id = match &new.id {
        Some(id) => id.clone(),
        None => choose_name(&new, &common)?,
    };
    let own = new.secrets.iter().map(|(_, secret)| secret);
    let mask = Mask::new(own.chain(&common.options.hidden));
    let beginning = Beginning {
        id: id.clone(),
        document: describe(&new, grant, owner, name, &mask),
        version: None,
        mask: Some(mask),
    };
    let session = Conductor::new(beginning, Arc::clone(&common), Arc::downgrade(&live)).await?;
    let session = Arc::new(session);
    live.insert(&session, &common.options, new.quota)?;
    let begun = match keep_secrets(&session, &new.secrets).await {
        Ok(are_kept) => {
            let recorded = record(&session).await;
            // Only what was kept just now: a session of that name may be there, and have its own.
            if let (Err(_), true, Some(home)) = (&recorded, are_kept, &common.home) {
                home.forget(&id).await;
            }
            recorded
        }
        Err(error) => Err(error),
    };
    if let Err(error) = begun {
        live.withdraw(&id);
        // Whoever waits for the end of its start has waited long enough.
        session.state.send_replace(SessionState::Failed);
        return Err(error);
    }
    let options = &common.options;
    let ingredients = Ingredients {
        runtime,
        environment: new.environment,
        secrets: new.secrets,
        no_change_timeout: new.no_change_timeout.unwrap_or(options.no_change_timeout),
        timeout: new.timeout.unwrap_or(options.timeout),
        setup: new.setup,
    };
    tokio::spawn(Arc::clone(&session).start(ingredients));
    Ok(session)
}

/// Keeps what must be hidden, before anything of it can be seen.
async fn keep_secrets(
    session: &Conductor,
    secrets: &[(String, Secret)],
) -> Result<bool, SessionError> {
    let Some(home) = session.common.home.as_ref().filter(|_| !secrets.is_empty()) else {
        return Ok(false);
    };
    let kept = home.keep(&session.id, secrets).await;
    kept.map(|()| true).map_err(|source| match source.kind() {
        std::io::ErrorKind::StorageFull => LogError::Full.into(),
        std::io::ErrorKind::AlreadyExists => SessionError::Exists {
            session: session.id.clone(),
        },
        _ => SessionError::Secrets {
            session: session.id.clone(),
            source,
        },
    })
}

/// Writes down that there shall be a session, before anything is done about it. It is live by
/// then: whoever changes the server's name afterwards finds it there.
async fn record(session: &Conductor) -> Result<(), SessionError> {
    let store = session.common.log.store();
    match session.write_down().await {
        Ok(()) => {}
        Err(LogError::Conflict { .. }) => return Err(taken(session).await),
        Err(error) => return Err(error.into()),
    }
    let facts = json!({
        "runtime": session.facts.runtime,
        "image": session.facts.image,
        "request": session.facts.request,
        "in_force": session.facts.grant,
    });
    let note = event::note_entry(None, "created", event::object(facts));
    let noted = store.append(session.id.clone(), note, Patience::None).await;
    if let Err(error) = noted {
        // What was not begun must not keep the name.
        let _ = store.delete(document::name(&session.id)).await;
        return Err(error.into());
    }
    Ok(())
}

/// Why a name cannot be had.
async fn taken(session: &Conductor) -> SessionError {
    let id = || session.id.clone();
    let found = session.common.log.store().get(document::name(&session.id));
    match found.await {
        Ok(Some(found)) if document::is_tombstone(&found.value) => {
            SessionError::NameRemoved { session: id() }
        }
        _ => SessionError::Exists { session: id() },
    }
}

fn chosen_runtime(
    new: &NewSession,
    common: &Common,
) -> Result<(String, Arc<dyn Runtime>), SessionError> {
    let options = &common.options;
    let name = new.runtime.as_ref().unwrap_or(&options.default_runtime);
    match options.runtimes.get(name) {
        Some(runtime) => Ok((name.clone(), Arc::clone(runtime))),
        None => {
            let known: Vec<&str> = options.runtimes.keys().map(String::as_str).collect();
            Err(SessionError::Invalid {
                message: format!(
                    "there is no runtime `{name}` here; there are: {}",
                    known.join(", ")
                ),
            })
        }
    }
}

fn describe(
    new: &NewSession,
    grant: Grant,
    owner: Owner,
    runtime: String,
    mask: &Mask,
) -> SessionDocument {
    let now = Timestamp::now();
    let labels = new.labels.iter();
    let labels = labels.map(|(name, label)| (name.clone(), mask.text(label).into_owned()));
    SessionDocument {
        owner,
        name: new.name.clone(),
        runtime,
        image: new.image.clone(),
        workspace: new.workspace.clone(),
        directory: String::new(),
        labels: labels.collect(),
        created: now,
        last_active: now,
        limits: new.limits,
        request: new.request.clone(),
        grant,
        state: SessionState::Starting,
        status: RuntimeStatus::Stopped,
        message: String::new(),
        secret_names: new.secrets.iter().map(|(name, _)| name.clone()).collect(),
        holder: None,
        tools: Vec::new(),
    }
}

/// A name that nobody has: that of a sandbox that waits for somebody, or a random one.
pub(crate) fn choose_name(new: &NewSession, common: &Common) -> Result<SessionId, SessionError> {
    let (name, runtime) = chosen_runtime(new, common)?;
    // One that the key may not ask for must not be taken from those who may.
    new.parts.require_names(&name, new)?;
    started_ahead(new, &*runtime, common).map_or_else(random_id, Ok)
}

/// The name of a sandbox that waits for somebody, which then is the session's name, too.
fn started_ahead(new: &NewSession, runtime: &dyn Runtime, common: &Common) -> Option<SessionId> {
    let options = &common.options;
    let request = permit::permitted(new, runtime, &options.permissions).ok()?;
    let reserved = runtime.reserve(&SandboxSpec {
        id: None,
        image: new.image.clone(),
        workspace: new.workspace.clone(),
        environment: new.environment.clone(),
        no_change_timeout: new.no_change_timeout.unwrap_or(options.no_change_timeout),
        timeout: new.timeout.unwrap_or(options.timeout),
        request,
        on_status: None,
    })?;
    SessionId::new(reserved.as_str()).ok()
}

/// 128 random bits: never guessed, and never used again.
fn random_id() -> Result<SessionId, SessionError> {
    let number = rand::random::<u128>();
    SessionId::new(format!("{number:032x}")).map_err(|error| SessionError::Invalid {
        message: error.to_string(),
    })
}
