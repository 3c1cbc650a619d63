//! `/start`: what a client asks for, and as much of it as our runtimes can give.

use std::{collections::BTreeMap, num::NonZeroU8, sync::Arc, time::Duration};

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use zareba_protocol::{Action, ActionEvent, EventSource, ObservationKind, RunCommand};
use zareba_runtime::{Grant, Isolation, SandboxRequest};
use zareba_session::{ActionRequest, NewSession, Session, SessionError, SessionId, Setup};

use super::{
    OpenHands, Principal, UnknownImage,
    answer::{Refusal, has_ended},
    names::Name,
    runtimes::NAME_LABEL,
    service::{WORKING_DIRECTORY_LABEL, observation_of},
    user::Wanted,
};

/// The variable that tells the original's server how long a command may be silent.
const SILENCE: &str = "NO_CHANGE_TIMEOUT_SECONDS";
/// Starts of one name that may end while another begins.
const ROUNDS_MAX: usize = 4;

/// The body of `/start`, as far as we look at it.
#[derive(Debug, Deserialize)]
pub(super) struct StartRequest {
    session_id: String,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    command: Words,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    resource_factor: Option<f64>,
    #[serde(default)]
    runtime_class: Option<String>,
    /// Newer clients name users outside of the command line.
    #[serde(default)]
    run_as_user: Option<u32>,
    #[serde(default)]
    run_as_group: Option<u32>,
    #[serde(default)]
    fs_group: Option<u32>,
}

/// A command line: words, or one text as newer clients send it.
#[derive(Debug, Default)]
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Self::default()),
            Value::String(text) => Ok(Self(text.split_whitespace().map(str::to_owned).collect())),
            Value::Array(words) => {
                let words = words.into_iter().map(|word| match word {
                    Value::String(word) => Ok(word),
                    _ => Err(serde::de::Error::custom("a command is a list of texts")),
                });
                words.collect::<Result<_, _>>().map(Self)
            }
            _ => Err(serde::de::Error::custom("a command is a list of texts")),
        }
    }
}

/// A session that was started, or was there already.
pub(super) struct Started {
    pub(super) session: Arc<Session>,
    /// Which image was asked for and which files it has.
    pub(super) image: Value,
    /// What was asked for and is not so.
    pub(super) not_applied: Vec<String>,
}

/// The files that a session gets.
struct ImageChoice {
    used: Option<String>,
    told: Value,
}

impl StartRequest {
    /// The value of an option of the command line.
    fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.command.0.iter();
        words.find(|word| *word == name)?;
        words.next().map(String::as_str)
    }

    /// Who commands shall run as.
    fn user(&self) -> Result<Wanted, Refusal> {
        let mut wanted = Wanted::default();
        wanted.name("--username", self.option("--username"))?;
        wanted.id("--user-id", self.option("--user-id"))?;
        wanted.number("run_as_user", self.run_as_user);
        wanted.group("run_as_group", self.run_as_group);
        wanted.group("fs_group", self.fs_group);
        Ok(wanted)
    }

    fn silence(&self) -> Option<Duration> {
        let seconds = self.environment.get(SILENCE)?.parse::<u64>().ok()?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }
}

impl OpenHands {
    /// Finds the session that a client means by its name, or makes it.
    pub(super) async fn start(
        &self,
        principal: &Principal,
        request: &StartRequest,
    ) -> Result<Started, Refusal> {
        if principal.session.is_some() {
            let detail = "a key for one session cannot start another";
            return Err(Refusal::new(StatusCode::FORBIDDEN, detail));
        }
        let user = request.user()?;
        let name = Name::new(&principal.owner, &request.session_id)?;
        let mut generation = name.generation(self.sessions.log()).await?;
        for _ in 0..ROUNDS_MAX {
            let id = name.session(generation)?;
            match self.sessions.get(&id).await {
                Ok(session) if has_ended(session.info().state) => {
                    generation = name.renew(self.sessions.log(), generation).await?;
                }
                Ok(session) => return Ok(there_already(session)),
                Err(SessionError::NotFound { .. }) => {
                    if let Some(started) = self.make(principal, request, &user, id).await? {
                        return Ok(started);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        let detail = "sessions of this name end as soon as they are started";
        Err(Refusal::new(StatusCode::CONFLICT, detail))
    }

    /// Makes a session and waits until it is ready; nothing when somebody else was faster.
    async fn make(
        &self,
        principal: &Principal,
        request: &StartRequest,
        user: &Wanted,
        id: SessionId,
    ) -> Result<Option<Started>, Refusal> {
        let image = self.choose_image(request.image.as_deref()).await?;
        let new = NewSession {
            quota: principal.sessions_max,
            maxima: principal.maxima,
            parts: principal.parts.clone(),
            reach: principal.reach.clone(),
            life_max: principal.life_max,
            ..self.wanted(request, id.clone(), image.used)
        };
        let create = self.sessions.create_ready(new, principal.owner.clone());
        let created = tokio::time::timeout(self.settings.start_patience, create).await;
        let session = match created {
            Ok(Ok(session)) => session,
            Ok(Err(SessionError::Exists { .. } | SessionError::NameRemoved { .. })) => {
                return Ok(None);
            }
            Ok(Err(error)) => return Err(error.into()),
            // It goes on to start, and the client asks how it is.
            Err(_) => self.sessions.get(&id).await?,
        };
        Ok(Some(self.apply(request, user, session, image.told).await))
    }

    /// Does what a runtime was not asked for when the session was made, and says what it cannot.
    async fn apply(
        &self,
        request: &StartRequest,
        user: &Wanted,
        session: Arc<Session>,
        image: Value,
    ) -> Started {
        let mut not_applied = Vec::new();
        if let Some(directory) = request.option("--working-dir") {
            not_applied.extend(self.enter(&session, directory).await.err());
        }
        not_applied.extend(user.not_applied(&session, self.sessions.log()).await);
        not_applied.extend(self.scale(request).err());
        if let Some(class) = &request.runtime_class {
            let runtime = session.info().runtime;
            not_applied.push(format!(
                "runtime_class {class}: this is the runtime {runtime}"
            ));
        }
        if !not_applied.is_empty() {
            tracing::info!(session = %session.id(), ?not_applied, "parts of a start were not applied");
        }
        Started {
            session,
            image,
            not_applied,
        }
    }

    /// Puts the default shell into the directory that the client works in.
    async fn enter(&self, session: &Session, directory: &str) -> Result<(), String> {
        let info = session.info();
        let directory = directory.trim_end_matches('/');
        if directory == info.workspace || directory.is_empty() {
            return Ok(());
        }
        let refused = |reason: &str| format!("--working-dir {directory}: {reason}");
        if !self.has_walls(&info.runtime) {
            return Err(refused(
                "without walls a session keeps to its own workspace",
            ));
        }
        let quoted = format!("'{}'", directory.replace('\'', r"'\''"));
        let command = RunCommand {
            hidden: true,
            blocking: true,
            ..RunCommand::new(format!("mkdir -p -- {quoted} && cd -- {quoted}"))
        };
        let action = ActionEvent {
            source: Some(EventSource::Environment),
            ..Action::Run(command).into()
        };
        let request = ActionRequest {
            action,
            key: None,
            requester: None,
        };
        let record = session.run(request).await;
        let record = record.map_err(|error| refused(&error.to_string()))?;
        let answer = observation_of(self.sessions.log(), &record).await;
        match answer.map(|event| event.observation.kind) {
            Ok(ObservationKind::Run(output)) if output.metadata.exit_code == 0 => Ok(()),
            _ => Err(refused("it cannot be made or entered")),
        }
    }

    /// How many times the usual memory and processors a session gets, or why not as many as
    /// were asked for.
    fn scale(&self, request: &StartRequest) -> Result<Option<NonZeroU8>, String> {
        let Some(factor) = request.resource_factor.filter(|factor| *factor != 1.0) else {
            return Ok(None);
        };
        let refused = |reason: String| Err(format!("resource_factor {factor}: {reason}"));
        let most = self.settings.resource_factor_max;
        let Some(times) = (1..=most.get()).find(|times| f64::from(*times) == factor) else {
            return refused(format!("it is a whole number from 1 to {most}"));
        };
        let options = self.sessions.options();
        let runtime = options.runtimes.get(&options.default_runtime);
        let times = NonZeroU8::new(times);
        let usual = runtime.map(|runtime| runtime.grant(&SandboxRequest::default()));
        match usual {
            Some(Ok(Grant {
                memory_bytes: Some(_),
                ..
            })) => Ok(times),
            Some(Err(error)) => refused(error.to_string()),
            _ => refused("this runtime limits neither memory nor processors".to_owned()),
        }
    }

    /// Whether directories of a sandbox are its own to make.
    fn has_walls(&self, runtime: &str) -> bool {
        let runtime = self.sessions.options().runtimes.get(runtime);
        runtime.is_some_and(|runtime| runtime.capabilities().isolation != Isolation::None)
    }

    fn wanted(&self, request: &StartRequest, id: SessionId, image: Option<String>) -> NewSession {
        let mut labels = BTreeMap::from([(NAME_LABEL.to_owned(), request.session_id.clone())]);
        let directory = request.option("--working-dir");
        let directory =
            directory.filter(|_| self.has_walls(&self.sessions.options().default_runtime));
        if let Some(directory) = directory {
            labels.insert(WORKING_DIRECTORY_LABEL.to_owned(), directory.to_owned());
        }
        NewSession {
            id: Some(id),
            image,
            environment: request.environment.clone().into_iter().collect(),
            labels,
            no_change_timeout: request.silence(),
            // Their client does that itself once it is connected.
            setup: Setup::Nothing,
            scale: self.scale(request).ok().flatten(),
            ..NewSession::default()
        }
    }

    async fn choose_image(&self, asked: Option<&str>) -> Result<ImageChoice, Refusal> {
        let choice = |used: Option<&str>, files: &str| ImageChoice {
            used: used.map(str::to_owned),
            told: json!({ "asked": asked, "used": used, "files": files }),
        };
        let Some(image) = asked else {
            return Ok(choice(None, "those of the runtime"));
        };
        if self.find_image(image).await.is_some() {
            return Ok(choice(Some(image), "those of the image"));
        }
        match self.settings.unknown_image {
            UnknownImage::SystemView => Ok(choice(
                None,
                "those of the runtime, because the server does not have the image",
            )),
            UnknownImage::AskRuntime => Ok(choice(Some(image), "those of the image")),
            UnknownImage::Refuse => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                format!("this server does not have the image `{image}`"),
            )),
        }
    }
}

fn there_already(session: Arc<Session>) -> Started {
    let used = session.info().image;
    Started {
        session,
        image: json!({ "used": used }),
        not_applied: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(document: Value) -> StartRequest {
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn options_are_found_in_a_command_line_of_words_and_of_text() {
        let words = json!([
            "python",
            "60000",
            "--working-dir",
            "/w",
            "--plugins",
            "a",
            "b",
            "--user-id"
        ]);
        for command in [words, json!("python 60000 --working-dir /w --user-id")] {
            let request = request(json!({ "session_id": "s", "command": command }));
            assert_eq!(request.option("--working-dir"), Some("/w"));
            assert_eq!(request.option("--user-id"), None);
            assert_eq!(request.option("--username"), None);
        }
    }

    #[test]
    fn the_silence_that_a_command_may_keep_is_a_variable_of_theirs() {
        let with = |value: &str| {
            request(json!({ "session_id": "s", "environment": { SILENCE: value } })).silence()
        };
        assert_eq!(with("2"), Some(Duration::from_secs(2)));
        assert_eq!(with("0"), None);
        assert_eq!(with("soon"), None);
    }

    #[test]
    fn a_command_that_is_no_list_of_texts_is_refused() {
        for command in [json!(7), json!([1]), json!({})] {
            let document = json!({ "session_id": "s", "command": command });
            assert!(serde_json::from_value::<StartRequest>(document).is_err());
        }
    }
}
