//! Commands: run, waited for, typed at and interrupted.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rmcp::{RoleServer, service::RequestContext};
use tokio::time::timeout;
use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, CommandOutput, ErrorClass, LimitKind, ObservationEvent,
    ObservationKind, RunCommand, ShellName,
};

use super::{
    PlaceError, Workplace,
    answer::{Answer, failure_of},
    arguments, watch,
};

/// How long a command is waited for unless the call says otherwise. Clients give up on a call
/// after one to several minutes.
const COMMAND_PATIENCE: Duration = Duration::from_secs(120);
/// The same for more output of a command that runs.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a command in the background may take to fail at once, so that its mistake is told.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(1);
/// The longest that a call may wait.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);
/// How long a command may take to end after it was interrupted.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(5);

/// Shells for commands in the background.
#[derive(Debug)]
pub(super) struct Backgrounds {
    prefix: String,
    made: AtomicU32,
    /// Those whose command has ended and was told: there may only be so many shells.
    free: Mutex<Vec<ShellName>>,
}

impl Backgrounds {
    /// Several servers may work in one sandbox, so that names begin with something of our own.
    pub(super) fn new() -> Self {
        Self {
            prefix: format!("background-{:08x}-", rand::random::<u32>()),
            made: AtomicU32::new(1),
            free: Mutex::default(),
        }
    }

    fn take(&self) -> Result<ShellName, PlaceError> {
        if let Some(free) = self.free().pop() {
            return Ok(free);
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        shell_name(&format!("{}{number}", self.prefix))
    }

    fn give_back(&self, shell: &ShellName) {
        let mut free = self.free();
        if shell.as_str().starts_with(&self.prefix) && !free.contains(shell) {
            free.push(shell.clone());
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<ShellName>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who asks, and where.
pub(super) struct Commander<'a> {
    pub(super) place: &'a dyn Workplace,
    pub(super) backgrounds: &'a Backgrounds,
    pub(super) context: &'a RequestContext<RoleServer>,
}

impl Commander<'_> {
    pub(super) async fn run(&self, asked: arguments::RunCommand) -> Result<Answer, PlaceError> {
        let (shell, wait) = match (asked.background, &asked.shell) {
            (true, None) => (Some(self.backgrounds.take()?), BACKGROUND_PATIENCE),
            (true, Some(name)) => (Some(shell_name(name)?), BACKGROUND_PATIENCE),
            (false, name) => (
                name.as_deref().map(shell_name).transpose()?,
                patience(asked.timeout, COMMAND_PATIENCE),
            ),
        };
        self.perform(RunCommand::new(asked.command), shell, wait)
            .await
    }

    pub(super) async fn output(&self, asked: arguments::ReadOutput) -> Result<Answer, PlaceError> {
        let shell = asked.shell.as_deref().map(shell_name).transpose()?;
        let wait = patience(asked.timeout, OUTPUT_PATIENCE);
        self.perform(RunCommand::input(""), shell, wait).await
    }

    pub(super) async fn input(&self, asked: arguments::SendInput) -> Result<Answer, PlaceError> {
        if asked.text.is_empty() {
            let message = "there is nothing to type; `read_output` waits for output";
            return Err(invalid(message));
        }
        let shell = asked.shell.as_deref().map(shell_name).transpose()?;
        let wait = patience(asked.timeout, OUTPUT_PATIENCE);
        self.perform(RunCommand::input(asked.text), shell, wait)
            .await
    }

    pub(super) async fn interrupt(
        &self,
        asked: arguments::Interrupt,
    ) -> Result<Answer, PlaceError> {
        let shell = asked.shell.as_deref().map(shell_name).transpose()?;
        self.perform(RunCommand::input("C-c"), shell, OUTPUT_PATIENCE)
            .await
    }

    async fn perform(
        &self,
        command: RunCommand,
        shell: Option<ShellName>,
        wait: Duration,
    ) -> Result<Answer, PlaceError> {
        // The one limit is the one that the call knows, however silent the command is.
        let command = RunCommand {
            blocking: true,
            ..command
        };
        let action = in_shell(command, shell.as_ref()).with_timeout(wait.as_secs_f64());
        let event = self.watched(action, shell.as_ref()).await?;
        let observation = &event.observation;
        if let Some(failure) = failure_of(observation) {
            return Ok(failure);
        }
        let ObservationKind::Run(output) = &observation.kind else {
            return Ok(Answer::new(observation.content.as_str()));
        };
        let has_ended = output.metadata.exit_code != CommandMetadata::NO_EXIT_CODE;
        if let (true, Some(shell)) = (has_ended, &shell) {
            self.backgrounds.give_back(shell);
        }
        Ok(told(&observation.content, output, shell.as_ref()))
    }

    /// Waits for an action, and interrupts its command when the client does not want it any more.
    async fn watched(
        &self,
        action: ActionEvent,
        shell: Option<&ShellName>,
    ) -> Result<ObservationEvent, PlaceError> {
        let mut run = self.place.run(action);
        if let Some(answer) = watch::until_cancelled(&mut run, self.context).await {
            return answer;
        }
        let stop = in_shell(RunCommand::input("C-c"), shell);
        let stop = stop.with_timeout(INTERRUPT_PATIENCE.as_secs_f64());
        let stopped = async {
            let (_, answer) = tokio::join!(self.place.run(stop), run);
            answer
        };
        let cancelled = || PlaceError {
            class: ErrorClass::Timeout,
            message: "the call was cancelled, and its command does not end; `send_input` can \
                      press other keys"
                .to_owned(),
        };
        let answer = timeout(INTERRUPT_PATIENCE, stopped).await;
        answer.unwrap_or_else(|_| Err(cancelled()))
    }
}

fn in_shell(command: RunCommand, shell: Option<&ShellName>) -> ActionEvent {
    let action = ActionEvent::from(Action::Run(command));
    match shell {
        Some(shell) => action.with_shell(shell.clone()),
        None => action,
    }
}

/// The output, then one line in brackets for each thing to know about it.
fn told(content: &str, output: &CommandOutput, shell: Option<&ShellName>) -> Answer {
    let metadata = &output.metadata;
    let mut lines = Vec::new();
    if let (Some(bytes), Some(file)) = (metadata.output_bytes, &metadata.output_file) {
        let missing = match metadata.output_dropped {
            Some(dropped) => format!(", but for {dropped} bytes that were too many"),
            None => String::new(),
        };
        lines.push(format!(
            "The output has {bytes} bytes. All of it is in {file}{missing}; `read_file` and \
             `search_files` can look into it."
        ));
    }
    let limits = metadata.limits.iter();
    let told =
        limits.filter(|limit| !matches!(limit.kind, LimitKind::TimedOut | LimitKind::Truncated));
    lines.extend(told.map(|limit| limit.message.clone()));
    let has_ended = metadata.exit_code != CommandMetadata::NO_EXIT_CODE;
    let timed_out = metadata
        .limits
        .iter()
        .any(|limit| limit.kind == LimitKind::TimedOut);
    let suffix = metadata.suffix.trim().trim_matches(['[', ']']);
    match (has_ended, timed_out) {
        (true, _) => lines.push(format!("exit code {}", metadata.exit_code)),
        (false, true) => lines.push(still_running(shell)),
        // Why it was not run, in the words of the shell.
        (false, false) if !suffix.is_empty() => lines.push(suffix.to_owned()),
        (false, false) => {}
    }
    if metadata.shell_restarted {
        lines.push("The shell ended and was replaced by a new one: its variables are gone.".into());
    }
    if let Some(directory) = metadata
        .working_dir
        .as_deref()
        .filter(|name| !name.is_empty())
    {
        lines.push(format!("directory {directory}"));
    }
    let mut text = [metadata.prefix.as_str(), content].concat();
    for line in lines {
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        text.push_str(&format!("{gap}[{line}]"));
    }
    let answer = Answer::new(text).with("is_running", timed_out && !has_ended);
    let answer = match shell {
        Some(shell) => answer.with("shell", shell.as_str()),
        None => answer,
    };
    match has_ended {
        true => answer.with("exit_code", metadata.exit_code),
        false => answer,
    }
}

fn still_running(shell: Option<&ShellName>) -> String {
    let of_shell = match shell {
        Some(shell) => format!(" with shell `{shell}`"),
        None => String::new(),
    };
    format!(
        "The command still runs. `read_output`{of_shell} waits for it, `send_input` types at it, \
         `interrupt` stops it."
    )
}

fn patience(asked: Option<f64>, otherwise: Duration) -> Duration {
    let asked =
        asked.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(PATIENCE_MAX));
    asked.unwrap_or(otherwise).min(PATIENCE_MAX)
}

fn shell_name(name: &str) -> Result<ShellName, PlaceError> {
    ShellName::new(name).map_err(|error| invalid(format!("`{name}` cannot name a shell: {error}")))
}

fn invalid(message: impl Into<String>) -> PlaceError {
    PlaceError {
        class: ErrorClass::Invalid,
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str, metadata: CommandMetadata) -> String {
        let output = CommandOutput {
            metadata,
            ..CommandOutput::new("x")
        };
        let result = told(content, &output, None).into_result();
        let content = serde_json::to_value(result).unwrap();
        content["content"][0]["text"].as_str().unwrap().to_owned()
    }

    #[test]
    fn what_is_not_shown_is_told_with_the_place_where_it_is() {
        let metadata = CommandMetadata {
            exit_code: 0,
            output_bytes: Some(99_999),
            output_file: Some("/tmp/all".to_owned()),
            ..CommandMetadata::default()
        };
        let text = text("beginning ... end", metadata);
        assert!(
            text.contains("The output has 99999 bytes. All of it is in /tmp/all;"),
            "{text}"
        );
        assert!(text.ends_with("\n[exit code 0]"), "{text}");
    }

    #[test]
    fn waiting_has_bounds() {
        assert_eq!(patience(None, OUTPUT_PATIENCE), OUTPUT_PATIENCE);
        assert_eq!(patience(Some(-1.0), OUTPUT_PATIENCE), Duration::ZERO);
        assert_eq!(patience(Some(1e300), OUTPUT_PATIENCE), PATIENCE_MAX);
        assert_eq!(patience(Some(f64::NAN), OUTPUT_PATIENCE), Duration::ZERO);
    }

    #[test]
    fn shells_in_the_background_are_used_again_once_they_are_free() {
        let backgrounds = Backgrounds::new();
        let first = backgrounds.take().unwrap();
        let second = backgrounds.take().unwrap();
        assert_ne!(first, second);
        backgrounds.give_back(&first);
        backgrounds.give_back(&first);
        backgrounds.give_back(&ShellName::new("mine").unwrap());
        assert_eq!(backgrounds.take().unwrap(), first);
        let third = backgrounds.take().unwrap();
        assert!(third != first && third != second && third.as_str() != "mine");
    }
}
