//! What the commands of a server's session have written, read from its event log.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};
use zareba_client::{Client, ClientError, Event, EventKind};
use zareba_protocol::SessionId;

use super::DEED;
use crate::{
    arguments::{LogsArguments, OutputFormat},
    commands::{Context, server_client},
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{Fleet, Place},
    say,
};

/// What the note of a session's end begins with.
const CLOSED: &str = "closed";

/// Prints the outputs that are recorded, and goes on if that is wanted.
pub(super) fn perform(
    context: &Context,
    url: &str,
    arguments: &LogsArguments,
) -> Result<Exit, Failure> {
    if arguments.executor {
        let message = "the log of a session's executor stays on its server";
        return Err(Failure::new(Exit::Usage, message)
            .hint("leave out `--executor` for the outputs of its actions"));
    }
    let configuration = context.configuration(Vec::new())?;
    let place = Place::new(context, &configuration.settings);
    let key = context.environment.get("ZAREBA_API_KEY");
    let client = server_client(url, key, place.state())?;
    Fleet::visit(context, async |fleet| {
        let session = find(&client, fleet, &arguments.id).await?;
        let mut outputs = Outputs::new(&client, &session, context.globals.output, arguments.tail);
        let shown = outputs.show(arguments.follow).await?;
        if shown == 0 && !arguments.follow {
            say::note(format_args!(
                "no action has run in `{session}`; what `zareba exec` runs there is not recorded"
            ));
        }
        Ok(Exit::Success)
    })
}

/// A session, also one that is closed and whose log is left.
async fn find(client: &Client, fleet: &Fleet, name: &str) -> Result<SessionId, Failure> {
    let failure = match fleet.find(name).await {
        Ok(member) => {
            return SessionId::new(member.summary.id.as_str()).or_fail(Exit::Usage, DEED);
        }
        Err(failure) => failure,
    };
    let Ok(session) = SessionId::new(name) else {
        return Err(failure);
    };
    match client.session(&session).await {
        Ok(found) => Ok(found.id),
        Err(_) => Err(failure),
    }
}

/// The outputs of one session on their way to standard output.
struct Outputs<'a> {
    client: &'a Client,
    session: &'a SessionId,
    format: OutputFormat,
    /// The last lines, when only those are wanted.
    last: Option<(usize, VecDeque<String>)>,
    /// Actions whose observation has not come yet.
    asked: HashMap<u64, Value>,
    shown: usize,
}

impl<'a> Outputs<'a> {
    fn new(
        client: &'a Client,
        session: &'a SessionId,
        format: OutputFormat,
        tail: Option<u32>,
    ) -> Self {
        let lines = tail.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX));
        Self {
            client,
            session,
            format,
            last: lines.map(|lines| (lines, VecDeque::new())),
            asked: HashMap::new(),
            shown: 0,
        }
    }

    /// Shows what is recorded, and what comes until the session is closed. Returns how many
    /// actions that were.
    async fn show(&mut self, follow: bool) -> Result<usize, Failure> {
        let mut next = 0;
        let mut is_closed = false;
        loop {
            let page = self.client.events(self.session, next, None).await;
            let page = page.or_fail(Exit::Failure, DEED)?;
            if page.events.is_empty() {
                break;
            }
            next = page.next;
            for event in page.events {
                is_closed |= is_end(&event);
                self.take(event).await?;
            }
        }
        if let Some((_, lines)) = self.last.take() {
            let text: String = lines.into_iter().collect();
            say::data(text.as_bytes())?;
        }
        if follow && !is_closed {
            let mut stream = self.client.event_stream(self.session, next);
            loop {
                let event = stream.next().await.or_fail(Exit::Failure, DEED)?;
                if is_end(&event) {
                    break;
                }
                self.take(event).await?;
            }
        }
        Ok(self.shown)
    }

    async fn take(&mut self, event: Event) -> Result<(), Failure> {
        match (event.kind, event.cause) {
            (EventKind::Action, _) => {
                self.asked.insert(event.sequence, event.payload);
            }
            (EventKind::Observation, Some(action)) => {
                let Some(asked) = self.asked.remove(&action) else {
                    return Ok(());
                };
                let output = self.output(&event).await.or_fail(Exit::Failure, DEED)?;
                self.shown += 1;
                self.print(match self.format {
                    OutputFormat::Text => in_words(&asked, &event.payload, &output),
                    OutputFormat::Json => as_json(action, &asked, &event, &output),
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What an observation says. A very long text is kept apart from its event.
    async fn output(&self, event: &Event) -> Result<String, ClientError> {
        match event.payload.get("content") {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Object(apart)) => {
                let digest = apart.get("$blob").and_then(Value::as_str);
                let Some(digest) = digest else {
                    return Ok(String::new());
                };
                let bytes = self.client.blob(self.session, event.sequence, digest);
                Ok(String::from_utf8_lossy(&bytes.await?).into_owned())
            }
            _ => Ok(String::new()),
        }
    }

    fn print(&mut self, text: String) -> Result<(), Failure> {
        let Some((lines, last)) = &mut self.last else {
            return say::data(text.as_bytes());
        };
        last.extend(text.split_inclusive('\n').map(str::to_owned));
        let more = last.len().saturating_sub(*lines);
        last.drain(..more);
        Ok(())
    }
}

fn is_end(event: &Event) -> bool {
    let note = event.payload["note"].as_str().unwrap_or_default();
    let state = event.payload["state"].as_str().unwrap_or_default();
    match event.kind {
        EventKind::Note => note.starts_with(CLOSED),
        EventKind::Status => matches!(state, "closed" | "lost" | "failed"),
        _ => false,
    }
}

/// The kind of an action, and what it is about.
fn subject(asked: &Value) -> (&str, Option<&str>) {
    let kind = asked["action"].as_str().unwrap_or("action");
    let subject = ["command", "code", "path", "url", "pattern", "name"]
        .iter()
        .find_map(|name| asked["args"][name].as_str());
    (kind, subject)
}

/// A command as it was typed with its output; of other actions what was done, and why it failed.
fn in_words(asked: &Value, answer: &Value, output: &str) -> String {
    let (kind, subject) = subject(asked);
    let is_command = matches!(kind, "run" | "run_ipython");
    let first = match (is_command, subject) {
        (true, Some(command)) => format!("$ {}", command.replace('\n', "\n> ")),
        (_, Some(subject)) => format!("# {kind} {}", say::printable_line(subject)),
        (_, None) => format!("# {kind}"),
    };
    let mut text = format!("{first}\n");
    if is_command || answer["observation"] == "error" {
        text.push_str(output);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    match answer["extras"]["metadata"]["exit_code"].as_i64() {
        Some(code) if code != 0 && is_command => text.push_str(&format!("[exit code {code}]\n")),
        _ => {}
    }
    say::printable(&text).into_owned()
}

fn as_json(action: u64, asked: &Value, event: &Event, output: &str) -> String {
    let (kind, subject) = subject(asked);
    let line = json!({
        "action": action,
        "time": event.time,
        "kind": kind,
        "subject": subject,
        "output": output,
        "exit_code": event.payload["extras"]["metadata"]["exit_code"],
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_with_its_output_and_how_it_ended() {
        let asked = json!({ "action": "run", "args": { "command": "a\nb" } });
        let answer = json!({ "observation": "run", "extras": { "metadata": { "exit_code": 2 } } });
        assert_eq!(
            in_words(&asked, &answer, "out"),
            "$ a\n> b\nout\n[exit code 2]\n"
        );
        let answer = json!({ "observation": "run", "extras": { "metadata": { "exit_code": 0 } } });
        assert_eq!(in_words(&asked, &answer, ""), "$ a\n> b\n");
        let asked = json!({ "action": "read", "args": { "path": "/a" } });
        let answer = json!({ "observation": "read" });
        assert_eq!(in_words(&asked, &answer, "content"), "# read /a\n");
        let answer = json!({ "observation": "error" });
        assert_eq!(in_words(&asked, &answer, "no file"), "# read /a\nno file\n");
    }
}
