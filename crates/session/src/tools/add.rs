//! Adding tools to a session: all of what was asked for, or nothing.

use std::sync::Arc;

use zareba_tools::{LoadFailure, Loaded, PythonHost, ToolError};

use super::{KeptTools, NewTools, SessionTools, ToolsAdded, commands, hidden, options};
use crate::{SessionError, conductor::Conductor};

/// How often tools can be added to one session: each time may start an interpreter.
pub const HOSTS_MAX: usize = 32;

/// What is kept of all tools of a session, as JSON: half of what its document may have.
const KEPT_BYTES_MAX: usize = 512 * 1024;

/// A place among those who may add tools, until it is filled or dropped.
struct Reserved {
    session: Arc<Conductor>,
}

impl Reserved {
    fn new(session: &Arc<Conductor>) -> Result<Self, SessionError> {
        let mut kept = session.tools.lock();
        if kept.tools.len() + kept.reserved >= HOSTS_MAX {
            return Err(SessionError::TooMany {
                message: format!(
                    "tools were added {HOSTS_MAX} times, which is the limit; add several at once, or remove some"
                ),
            });
        }
        kept.reserved += 1;
        Ok(Self {
            session: Arc::clone(session),
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.session.tools.lock().reserved -= 1;
    }
}

impl SessionTools {
    /// Adds tools: starts an interpreter when there are entrypoints, and keeps what was added with
    /// the session. Entrypoints that cannot be loaded are told; when none can, nothing is added.
    /// A caller who goes away changes nothing: it comes to its end, one way or the other.
    ///
    /// # Errors
    /// When a name is taken, nothing could be loaded, or what is asked for makes no sense.
    pub async fn add(&self, new: NewTools) -> Result<ToolsAdded, SessionError> {
        self.conductor.require_unclosed("take tools")?;
        self.check(&new)?;
        let reserved = Reserved::new(&self.conductor)?;
        let tools = self.clone();
        let adding = tokio::spawn(async move {
            let _in_use = tools.conductor.begin_use();
            let added = tools.add_all(new).await;
            drop(reserved);
            added
        });
        // It ends without an answer only if it panics or the program ends.
        adding.await.unwrap_or(Err(SessionError::ShuttingDown))
    }

    async fn add_all(&self, new: NewTools) -> Result<ToolsAdded, SessionError> {
        let mask = &self.conductor.mask;
        let masked = |error: ToolError| SessionError::from(hidden::error(mask, error));
        let mut tools = commands(&self.place(), &new.commands).map_err(masked)?;
        let mut loaded = Loaded::default();
        if !new.entrypoints.is_empty() {
            let host;
            (host, loaded) = self.start(&new).await?;
            tools.extend(host.tools());
        }
        let failures = loaded.failures.into_iter();
        let failures: Vec<_> = failures.map(|it| hidden::failure(mask, it)).collect();
        if tools.is_empty() {
            return Err(nothing_loaded(&failures));
        }
        let definitions = tools.iter().map(|tool| tool.definition().clone());
        let definitions: Vec<_> = definitions.collect();
        if definitions.iter().any(|it| mask.hides(it.name.as_str())) {
            let message = "a tool cannot have a secret as its name".to_owned();
            return Err(SessionError::Invalid { message });
        }
        let (definitions, toolkits) = (definitions.into_iter(), loaded.toolkits.iter());
        let added = ToolsAdded {
            tools: definitions.map(|it| hidden::definition(mask, it)).collect(),
            toolkits: toolkits.map(|it| mask.text(it).into_owned()).collect(),
            failures,
        };
        self.registry().add_all(tools).map_err(masked)?;
        self.keep(new, &added).await?;
        Ok(added)
    }

    /// Starts an interpreter, unless the session ends before it has loaded.
    async fn start(&self, new: &NewTools) -> Result<(Arc<PythonHost>, Loaded), SessionError> {
        let mut closing = self.conductor.closing.subscribe();
        let entrypoints = new.entrypoints.clone();
        tokio::select! {
            biased;
            started = PythonHost::start(self.place(), entrypoints, options(new)) => {
                Ok(started.map_err(|error| hidden::error(&self.conductor.mask, error))?)
            }
            _ = closing.wait_for(|closing| *closing) => {
                Err(self.conductor.wrong_state("take tools"))
            }
            () = self.conductor.letting_go() => Err(SessionError::ShuttingDown),
        }
    }

    fn check(&self, new: &NewTools) -> Result<(), SessionError> {
        let invalid = |message: String| Err(SessionError::Invalid { message });
        if new.entrypoints.is_empty() && new.commands.is_empty() {
            return invalid("there is nothing to add; name an entrypoint or a command".to_owned());
        }
        let mask = &self.conductor.mask;
        let mut variables = new.environment.iter();
        if let Some((name, _)) = variables.find(|(_, value)| mask.hides(value)) {
            return invalid(format!(
                "the variable `{}` holds a secret, which would be written down; have the tool read it from a file",
                mask.text(name)
            ));
        }
        let entrypoints = new.entrypoints.iter().map(|it| it.as_str());
        let others = [new.python.as_deref(), new.directory.as_deref()];
        let names = new.environment.iter().map(|(name, _)| name.as_str());
        let mut texts = entrypoints.chain(others.into_iter().flatten()).chain(names);
        if texts.any(|text| mask.hides(text)) {
            return invalid(
                "an entrypoint must not hold a secret, which would be written down; have the tool read it from a file".to_owned(),
            );
        }
        let mut commands = new.commands.iter();
        if let Some(command) = commands.find(|command| hidden::is_in(mask, command)) {
            return invalid(format!(
                "the command of `{}` must not hold a secret, which would be written down; have it read from a file",
                mask.text(command.name.as_str())
            ));
        }
        Ok(())
    }

    /// Writes down what was added; what cannot be kept is not added.
    async fn keep(&self, new: NewTools, added: &ToolsAdded) -> Result<(), SessionError> {
        let toolbox = &self.conductor.tools;
        let one = KeptTools {
            new,
            toolkits: added.toolkits.clone(),
            tools: added.tools.clone(),
        };
        toolbox.lock().tools.push(one);
        let bytes = serde_json::to_vec(&toolbox.kept()).map_or(usize::MAX, |text| text.len());
        let written = if bytes > KEPT_BYTES_MAX {
            Err(SessionError::TooMany {
                message: format!(
                    "the descriptions of all tools would have {bytes} bytes, and the limit is {KEPT_BYTES_MAX}"
                ),
            })
        } else {
            self.conductor.write_down().await.map_err(Into::into)
        };
        if written.is_err() {
            let is_other = |it: &KeptTools| it.tools != added.tools;
            toolbox.lock().tools.retain(is_other);
            for tool in &added.tools {
                toolbox.registry.remove(&tool.name);
            }
        }
        written
    }
}

fn nothing_loaded(failures: &[LoadFailure]) -> SessionError {
    let message = match failures.first() {
        None => "the entrypoints have no functions; name functions, tools or toolkits".to_owned(),
        Some(failure) => format!(
            "the entrypoint `{}` cannot be loaded: {}: {}",
            failure.entrypoint, failure.kind, failure.message
        ),
    };
    SessionError::Invalid { message }
}
