//! What an import or a pull is doing, told to whoever waits for it.

use std::{
    collections::{HashMap, HashSet},
    io::{self, IsTerminal as _},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use zareba_image::{Progress, Stage};

use crate::{arguments::OutputFormat, say, table::size};

/// A bar for each layer; known only to us, so it is right or the tests fail.
const TEMPLATE: &str = "{prefix:12} {msg:11} [{bar:30}] {bytes:>10} / {total_bytes}";

/// How many letters of a digest tell layers apart.
const SHORT_DIGEST: usize = 12;

/// Tells of each step: on a terminal with bars, otherwise in lines, and to programs nothing.
pub(super) enum Reporter {
    Bars {
        all: MultiProgress,
        bars: HashMap<String, ProgressBar>,
    },
    Lines(HashSet<(String, &'static str)>),
    Silent,
}

impl Reporter {
    pub(super) fn new(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Json => Self::Silent,
            OutputFormat::Text if io::stderr().is_terminal() => Self::Bars {
                all: MultiProgress::new(),
                bars: HashMap::new(),
            },
            OutputFormat::Text => Self::Lines(HashSet::new()),
        }
    }

    /// Takes one step. What concerns no layer passes too quickly to be told.
    pub(super) fn tell(&mut self, step: &Progress) {
        let Some(digest) = &step.digest else { return };
        let layer: String = digest.hex().chars().take(SHORT_DIGEST).collect();
        let word = word(step.stage);
        match self {
            Self::Silent => {}
            Self::Lines(told) => {
                if told.insert((layer.clone(), word)) {
                    let of = step.total_bytes.map(size).unwrap_or_default();
                    say::note(format!("{layer} {word} {of}").trim_end());
                }
            }
            Self::Bars { all, bars } => {
                let bar = bars.entry(layer.clone()).or_insert_with(|| {
                    all.add(ProgressBar::new(0).with_style(style()).with_prefix(layer))
                });
                bar.set_message(word);
                bar.set_length(step.total_bytes.unwrap_or(step.done_bytes));
                bar.set_position(step.done_bytes);
            }
        }
    }
}

/// Bars stay where they are, so that one can see what was done.
impl Drop for Reporter {
    fn drop(&mut self) {
        if let Self::Bars { bars, .. } = self {
            bars.values().for_each(ProgressBar::abandon);
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn word(stage: Stage) -> &'static str {
    match stage {
        Stage::Resolving => "resolving",
        Stage::Downloading => "downloading",
        Stage::Unpacking => "unpacking",
        Stage::Shared => "is here",
        Stage::Finished => "done",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_one() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
