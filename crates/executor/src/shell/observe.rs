//! Puts a turn into the words of the contract.

use std::path::Path;

use zareba_protocol::{
    CommandMetadata, CommandOutput, LimitHit, LimitKind, Observation, ObservationKind, RunCommand,
    truncate_middle,
};

use super::{
    Identity,
    dialect::find_program,
    texts,
    turn::{Ask, Ended, Outcome, Turn},
};

/// What an observation is made of beside the turn.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) action: &'a RunCommand,
    /// The command without surrounding blanks.
    pub(super) command: &'a str,
    pub(super) ask: &'a Ask,
    pub(super) identity: &'a Identity,
}

impl Context<'_> {
    /// The observation for a turn.
    pub(super) fn observe(&self, turn: Turn) -> Observation {
        let mut metadata = CommandMetadata::default();
        let content = match &turn.outcome {
            Outcome::NothingRunning => {
                let waits = matches!(self.ask, Ask::Wait);
                let text = if waits {
                    texts::NOTHING_TO_SHOW
                } else {
                    texts::NOTHING_TO_ANSWER
                };
                return self.run(text.to_owned(), metadata, "");
            }
            Outcome::Passed => return self.run(texts::PASSED_ON.to_owned(), metadata, ""),
            Outcome::NoShell(error) => return self.failure(&chain(error)),
            Outcome::Withdrawn if !self.action.hidden => {
                return Observation::named_error(texts::STOPPED_ID, texts::WITHDRAWN);
            }
            Outcome::Withdrawn => return self.failure(texts::WITHDRAWN),
            Outcome::LineTooLong { limit } => {
                return self.failure(&format!(
                    "ERROR: The input was NOT sent: it has a line of more than {limit} bytes, and the \
                     terminal would cut it. Send it in shorter lines, or through a file."
                ));
            }
            Outcome::IdleKey { .. } if self.action.is_input => {
                return self.run(texts::NOTHING_TO_ANSWER.to_owned(), metadata, "");
            }
            Outcome::IdleKey { control, shell } => return self.idle_key(*control, shell),
            Outcome::Ended(ended) => {
                self.fill_in(&mut metadata, ended);
                metadata.suffix = texts::completed(ended.status, self.control());
                self.tell_loss(&mut metadata, ended);
                self.content(&turn)
            }
            Outcome::EndedBefore(ended) => {
                self.fill_in(&mut metadata, ended);
                metadata.suffix = texts::completed(ended.status, None);
                metadata.prefix = texts::INPUT_TOO_LATE.to_owned();
                self.tell_loss(&mut metadata, ended);
                self.content(&turn)
            }
            Outcome::Silent(silence) => {
                metadata.suffix = texts::silent(*silence);
                self.content(&turn)
            }
            Outcome::TimedOut(total) => {
                metadata.suffix = texts::timed_out(*total);
                metadata.limits.push(LimitHit {
                    kind: LimitKind::TimedOut,
                    message: if self.action.is_static {
                        texts::ended_at_limit(*total)
                    } else {
                        texts::time_limit(*total)
                    },
                });
                self.content(&turn)
            }
            Outcome::Busy => {
                metadata.suffix = texts::not_executed(self.command);
                self.content(&turn)
            }
        };
        self.prefix(&mut metadata, &turn);
        self.shorten(content, metadata, &turn)
    }

    /// An error that must stay a `run` observation for hidden commands, which their client
    /// cannot read otherwise.
    pub(super) fn failure(&self, text: &str) -> Observation {
        if self.action.hidden {
            self.run(text.to_owned(), CommandMetadata::default(), self.command)
        } else {
            Observation::error(text)
        }
    }

    fn run(&self, content: String, metadata: CommandMetadata, command: &str) -> Observation {
        let output = CommandOutput {
            command: command.to_owned(),
            metadata,
            hidden: self.action.hidden,
        };
        Observation {
            content,
            kind: ObservationKind::Run(output),
        }
    }

    fn control(&self) -> Option<char> {
        match self.ask {
            Ask::Press(key) => key.control,
            _ => None,
        }
    }

    /// What was written, without what was typed when that comes first.
    fn content(&self, turn: &Turn) -> String {
        let text = turn.output.text.trim();
        let text = match self.ask {
            Ask::Type(typed) => text.strip_prefix(typed.trim()).unwrap_or(text).trim_start(),
            _ => text,
        };
        text.to_owned()
    }

    fn prefix(&self, metadata: &mut CommandMetadata, turn: &Turn) {
        let ended = matches!(turn.outcome, Outcome::Ended(_) | Outcome::EndedBefore(_));
        let mut prefix = String::new();
        if turn.replaced_before {
            prefix.push_str(texts::REPLACED_BEFORE);
        }
        if let Some(previous) = &turn.previous {
            prefix.push_str(&texts::previous_ended(previous.status, &previous.output));
        }
        prefix.push_str(&metadata.prefix);
        let busy = matches!(turn.outcome, Outcome::Busy);
        if (turn.continued && !ended) || busy {
            prefix.push_str(texts::BELOW_IS_PREVIOUS);
        } else if turn.output.truncated {
            prefix.push_str(&texts::lines_dropped(turn.output.lines));
        }
        metadata.prefix = prefix;
    }

    fn fill_in(&self, metadata: &mut CommandMetadata, ended: &Ended) {
        metadata.exit_code = ended.status;
        metadata.pid = ended.background.unwrap_or(-1);
        metadata.username = Some(self.identity.username.clone());
        metadata.hostname = Some(self.identity.hostname.clone());
        metadata.working_dir = Some(display(&ended.directory));
        let python = find_program("python", &ended.search_path);
        metadata.py_interpreter_path = Some(python.as_deref().map(display).unwrap_or_default());
    }

    fn tell_loss(&self, metadata: &mut CommandMetadata, ended: &Ended) {
        if let Some(lost) = ended.shell_lost {
            metadata.shell_restarted = true;
            metadata.signal = lost.signal.map(texts::signal_name);
            metadata
                .suffix
                .push_str(&texts::shell_replaced(lost.signal));
        }
    }

    fn idle_key(&self, control: char, shell: &Ended) -> Observation {
        let mut metadata = CommandMetadata::default();
        self.fill_in(&mut metadata, shell);
        let content = match control {
            'C' => {
                metadata.exit_code = 130;
                "^C"
            }
            'D' => "Use \"exit\" to leave the shell.",
            _ => "",
        };
        metadata.suffix = texts::completed(metadata.exit_code, Some(control));
        self.run(content.to_owned(), metadata, self.command)
    }

    /// Cuts a long content and says where the whole of it is.
    fn shorten(&self, content: String, mut metadata: CommandMetadata, turn: &Turn) -> Observation {
        let content = if self.action.hidden {
            content
        } else {
            match truncate_middle(&content) {
                std::borrow::Cow::Borrowed(_) if !turn.output.truncated => {
                    return self.run(content, metadata, self.command);
                }
                shortened => shortened.into_owned(),
            }
        };
        if turn.output.truncated || !self.action.hidden {
            metadata.output_bytes = Some(turn.full.bytes);
            metadata.output_file = turn.full.file.as_deref().map(display);
            metadata.output_dropped = (turn.full.dropped > 0).then_some(turn.full.dropped);
            metadata.limits.push(LimitHit {
                kind: LimitKind::Truncated,
                message: texts::output_limit(content.len(), turn.full.bytes),
            });
        }
        self.run(content, metadata, self.command)
    }
}

fn display(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
