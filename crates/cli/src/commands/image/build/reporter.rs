//! What a build is doing, told to whoever waits for it.

use std::{
    io::{self, IsTerminal as _},
    sync::{Arc, Mutex, PoisonError},
};

use indicatif::{ProgressBar, ProgressStyle};
use zareba_runtime_docker::{BuildEvent, BuildListener, StepState};

use crate::{arguments::OutputFormat, say, table::size};

/// Known only to us, so it is right or the tests fail.
const TEMPLATE: &str = "{spinner} [{bar:30}] {pos}/{len} {wide_msg}";

/// Tells of each step: on a terminal with a bar, otherwise in lines, and to programs nothing.
pub(super) struct Reporter {
    way: Arc<Way>,
}

enum Way {
    Bar(ProgressBar),
    Lines(Mutex<Told>),
    Silent,
}

/// What was said already and is not worth saying twice.
#[derive(Debug, Default)]
struct Told {
    fetched: Option<String>,
}

impl Reporter {
    pub(super) fn new(format: OutputFormat) -> Self {
        let way = match format {
            OutputFormat::Json => Way::Silent,
            OutputFormat::Text if io::stderr().is_terminal() => {
                Way::Bar(ProgressBar::new(0).with_style(style()))
            }
            OutputFormat::Text => Way::Lines(Mutex::default()),
        };
        Self { way: Arc::new(way) }
    }

    pub(super) fn listener(&self) -> BuildListener {
        let way = Arc::clone(&self.way);
        Arc::new(move |event| match &*way {
            Way::Silent => {}
            Way::Lines(told) => {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                for line in lines(event, &mut told) {
                    say::words(line);
                }
            }
            Way::Bar(bar) => show(bar, event),
        })
    }

    /// Takes the bar away: what is left to say is said by others.
    pub(super) fn end(&self) {
        if let Way::Bar(bar) = &*self.way {
            bar.finish_and_clear();
        }
    }
}

fn show(bar: &ProgressBar, event: &BuildEvent) {
    match event {
        BuildEvent::Sending { bytes, of } => {
            bar.set_message(format!("sending {} of {}", size(*bytes), size(*of)));
        }
        BuildEvent::Fetching { image, status } => {
            bar.set_message(printable(&format!("fetching {image}: {status}")));
        }
        BuildEvent::Reusing { image } => bar.set_message(printable(image)),
        BuildEvent::Step {
            position,
            text,
            state,
        } => {
            if let Some((number, of)) = position {
                bar.set_length((*of).into());
                let done = if *state == StepState::Begun {
                    number.saturating_sub(1)
                } else {
                    *number
                };
                bar.set_position(bar.position().max(done.into()));
            }
            bar.set_message(printable(text));
        }
        BuildEvent::Output { text } => {
            for line in text.lines() {
                bar.println(printable(line));
            }
        }
        _ => {}
    }
    bar.tick();
}

fn lines(event: &BuildEvent, told: &mut Told) -> Vec<String> {
    match event {
        BuildEvent::Step {
            position: Some((number, of)),
            text,
            state: StepState::Begun | StepState::Cached,
        } => {
            let is_cached = matches!(
                event,
                BuildEvent::Step {
                    state: StepState::Cached,
                    ..
                }
            );
            let how = if is_cached { " (was there)" } else { "" };
            vec![format!("[{number}/{of}]{how} {}", printable(text))]
        }
        BuildEvent::Output { text } => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(|line| format!("  {}", printable(line))).collect()
        }
        BuildEvent::Fetching { image, .. } if told.fetched.as_ref() != Some(image) => {
            told.fetched = Some(image.clone());
            vec![format!("fetching {}", printable(image))]
        }
        BuildEvent::Reusing { .. } => event.sentence().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// What a step has written may be meant to move the cursor, and a bar is as wide as its letters.
fn printable(text: &str) -> String {
    let text = text.trim_end().replace('\t', " ");
    say::printable_line(&text).into_owned()
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_one() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }

    #[test]
    fn output_cannot_reach_the_terminal() {
        assert_eq!(printable("\u{1b}[2J\tred\u{7}\r\n"), "\\u{1b}[2J red\\u{7}");
        let text = "one\n\n\u{1b}]0;title\u{7}two\n".to_owned();
        let told = lines(&BuildEvent::Output { text }, &mut Told::default());
        assert_eq!(told, ["  one", "  \\u{1b}]0;title\\u{7}two"]);
    }

    #[test]
    fn steps_are_told_when_they_begin() {
        let step = |state| BuildEvent::Step {
            position: Some((2, 3)),
            text: "RUN a".to_owned(),
            state,
        };
        let told = |state| lines(&step(state), &mut Told::default());
        assert_eq!(told(StepState::Begun), ["[2/3] RUN a"]);
        assert_eq!(told(StepState::Cached), ["[2/3] (was there) RUN a"]);
        assert_eq!(told(StepState::Done), [""; 0]);
    }
}
