//! Actions and observations as a person reads them.
//!
//! Everything is readable without colour; a terminal that can show colours gets some, and obeys
//! nothing but those: what actions and observations hold was written by others.

mod heading;
mod style;

use std::{fmt::Write as _, time::Duration};

use zareba_protocol::{
    ActionEvent, CommandMetadata, LimitKind, Observation, ObservationEvent, ObservationKind,
};

use crate::say::printable;

pub(crate) use style::Style;

/// How an action ended, at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Good,
    Bad,
    Open,
}

/// Turns actions and observations into text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Play {
    style: Style,
}

impl Play {
    /// A play in this style.
    pub(crate) fn new(style: Style) -> Self {
        Self { style }
    }

    /// A remark between actions.
    pub(crate) fn remark(self, text: &str) -> String {
        format!("\n{}\n", self.style.strong(&printable(text)))
    }

    /// What is asked for.
    pub(crate) fn action(self, event: &ActionEvent) -> String {
        let mut lines = heading::of(event);
        let first = lines.remove(0);
        let mut text = format!("{} {}\n", self.style.accent("▶"), printable(&first));
        for line in lines {
            let _ = writeln!(text, "  {}", printable(&line));
        }
        text
    }

    /// What came of it, and how long it took.
    pub(crate) fn observation(self, event: &ObservationEvent, took: Duration) -> String {
        let observation = &event.observation;
        let mut text = String::new();
        for line in body(observation).lines() {
            let _ = writeln!(text, "  {}", self.body_line(observation, &printable(line)));
        }
        if let ObservationKind::Run(output) = &observation.kind {
            for limit in output
                .metadata
                .limits
                .iter()
                .filter(|limit| is_of_sandbox(limit.kind))
            {
                let _ = writeln!(
                    text,
                    "  {} {}",
                    self.style.bad("!"),
                    printable(&limit.message)
                );
            }
        }
        let (end, words) = end(observation);
        let mark = match end {
            End::Good => self.style.good("✓"),
            End::Bad => self.style.bad("✗"),
            End::Open => self.style.accent("…"),
        };
        let rest = self.style.faint(&format!("{words} · {}", duration(took)));
        let _ = writeln!(text, "  {mark} {rest}");
        text
    }

    fn body_line(self, observation: &Observation, line: &str) -> String {
        if !matches!(observation.kind, ObservationKind::Edit(_)) {
            return line.to_owned();
        }
        match line.as_bytes().first() {
            Some(b'+') => self.style.good(line),
            Some(b'-') => self.style.bad(line),
            _ => line.to_owned(),
        }
    }
}

/// Whether a limit is one of the sandbox, and not of the answer, whose text says so already.
fn is_of_sandbox(kind: LimitKind) -> bool {
    !matches!(kind, LimitKind::TimedOut | LimitKind::Truncated)
}

/// A time with three digits or less, in the unit that suits it.
pub(crate) fn duration(took: Duration) -> String {
    let seconds = took.as_secs_f64();
    match seconds {
        _ if seconds < 0.001 => format!("{:.2} ms", seconds * 1e3),
        _ if seconds < 0.01 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 100.0 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// What is worth showing: a diff where there is one, otherwise what the agent reads.
fn body(observation: &Observation) -> String {
    let content = observation.content.trim_end_matches('\n');
    match &observation.kind {
        ObservationKind::Run(output) => {
            let metadata = &output.metadata;
            let mut text = format!("{}{content}", metadata.prefix);
            if metadata.exit_code == CommandMetadata::NO_EXIT_CODE {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&first_sentence(&metadata.suffix));
            }
            text
        }
        ObservationKind::Edit(edited) => match edited.diff.as_deref() {
            Some(diff) if !diff.is_empty() => diff.trim_end_matches('\n').to_owned(),
            _ => content.to_owned(),
        },
        _ => content.to_owned(),
    }
}

fn end(observation: &Observation) -> (End, String) {
    match &observation.kind {
        ObservationKind::Run(output) => match output.metadata.exit_code {
            0 => (End::Good, "exit code 0".to_owned()),
            CommandMetadata::NO_EXIT_CODE => (End::Open, "still running".to_owned()),
            code => (End::Bad, format!("exit code {code}")),
        },
        ObservationKind::Error { .. } => (End::Bad, "error".to_owned()),
        // The editor answers in its own kind, also when it refuses.
        ObservationKind::Edit(_) | ObservationKind::Read { .. }
            if observation.content.starts_with("ERROR:") =>
        {
            (End::Bad, "refused".to_owned())
        }
        other => (End::Good, other.name().to_owned()),
    }
}

/// What happened. What an agent may do about it, which follows, is the same each time.
fn first_sentence(note: &str) -> String {
    let note = note.trim();
    match note.split_once(". ") {
        Some((first, _)) => format!("{first}. …]"),
        None => note.to_owned(),
    }
}

#[cfg(test)]
#[path = "play/play_tests.rs"]
mod play_tests;
