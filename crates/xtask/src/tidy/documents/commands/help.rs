//! What the help of the program says of its commands and their flags.

use std::collections::BTreeMap;

use crate::tidy::repository::Repository;

/// The help of the program.
pub(super) const OVERVIEW: &str = "crates/cli/tests/it/snapshots/help.snap";
/// The help of its commands, each after a line `$ zareba COMMAND --help`.
pub(super) const PAGES: &str = "crates/cli/tests/it/snapshots/help-of-commands.snap";

/// Commands that the overview does not list: the program starts them itself.
const INTERNAL: &[&str] = &["supervise", "egress", "spawner", "dial", "keep", "help"];

/// Commands below others whose help is not in the snapshots.
const WITHOUT_PAGE: &[&str] = &["key ls", "key rm", "log ls"];

/// Flags that the help does not show.
const HIDDEN_FLAGS: &[(&str, &[&str])] =
    &[("executor", &["--ready-fd", "--lifeline-fd", "--threads"])];

/// The flags of one command.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Each flag as it is written, `--name` or `-n`, and whether a value follows it.
    flags: BTreeMap<String, bool>,
    /// How many operands stand in front of a program and its arguments, which are not ours.
    operands_before_program: Option<usize>,
}

/// All of the help.
#[derive(Debug, Default)]
pub(super) struct Help<'a> {
    /// What may stand in front of every command.
    pub(super) every_command: Command,
    names: Vec<&'a str>,
    commands: BTreeMap<&'a str, Command>,
}

impl<'a> Help<'a> {
    pub(super) fn of(repository: &'a Repository) -> Self {
        let overview = repository.text(OVERVIEW).unwrap_or_default();
        let listed = overview
            .split_once("\nCommands:\n")
            .map_or("", |(_, rest)| rest);
        let listed = listed.split("\n\n").next().unwrap_or_default();
        let names = listed
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let pages = repository.text(PAGES).unwrap_or_default();
        let commands = pages.split("$ zareba ").filter_map(|page| {
            let (name, page) = page.split_once(" --help\n")?;
            Some((name, Command::of(name, page)))
        });
        Self {
            every_command: Command::of("", overview),
            names: names.collect(),
            commands: commands.collect(),
        }
    }

    pub(super) fn has_command(&self, name: &str) -> bool {
        self.names.contains(&name) || INTERNAL.contains(&name)
    }

    /// Whether commands follow `name`.
    pub(super) fn is_group(&self, name: &str) -> bool {
        let mut with_pages = self.commands.keys().copied();
        let is_below = |command: &str| {
            command
                .split_once(' ')
                .is_some_and(|(first, _)| first == name)
        };
        with_pages.any(is_below) || WITHOUT_PAGE.iter().any(|command| is_below(command))
    }

    pub(super) fn command(&self, name: &str) -> Option<&Command> {
        self.commands.get(name)
    }

    /// Whether any command has the flag.
    pub(super) fn has_flag(&self, flag: &str) -> bool {
        let mut all = self.commands.values().chain([&self.every_command]);
        all.any(|command| command.flags.contains_key(flag))
    }
}

impl Command {
    /// The flags that lines such as `  -t, --tail <N>  …` of a page introduce.
    fn of(name: &str, page: &str) -> Self {
        let mut command = Self::default();
        for line in page.lines() {
            let text = line.trim_start();
            let indent = line.len() - text.len();
            if matches!(indent, 2 | 6) && text.starts_with('-') {
                command.add(text);
            } else if let Some(aliases) = text.split("--").nth(1).filter(|_| indent > 6) {
                // `[alias: --tty]`, also when it is broken after the colon.
                let alias = aliases.split([']', ',']).next().unwrap_or_default();
                command.flags.insert(format!("--{alias}"), false);
            }
            let usage = text.strip_prefix("Usage: zareba ").unwrap_or_default();
            if let Some(operands) = usage.strip_suffix("<CMD>...") {
                command.operands_before_program = Some(operands.matches(" <").count());
            }
        }
        let hidden = HIDDEN_FLAGS.iter().filter(|(of, _)| *of == name);
        let hidden = hidden.flat_map(|(_, flags)| flags.iter());
        command
            .flags
            .extend(hidden.map(|flag| ((*flag).to_owned(), true)));
        command
    }

    /// Adds the names at the beginning of a line of help.
    fn add(&mut self, text: &str) {
        let names = text.split("  ").next().unwrap_or_default();
        let takes_value = names.contains(" <");
        let names = names.split([',', ' ']).filter(|name| name.starts_with('-'));
        self.flags
            .extend(names.map(|name| (name.to_owned(), takes_value)));
    }

    /// Cuts at the first word that is neither a flag nor the value of one.
    pub(super) fn split_at_operand<'w>(&self, words: &'w [String]) -> (&'w [String], &'w [String]) {
        let mut at = 0;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            at += 1 + usize::from(self.takes_next(word));
        }
        words.split_at(at.min(words.len()))
    }

    /// What of `words` is for this command, when the rest is a program with its own flags.
    pub(super) fn before_its_program<'w>(&self, words: &'w [String]) -> &'w [String] {
        let end = words.iter().position(|word| word == "--");
        let words = &words[..end.unwrap_or(words.len())];
        let Some(operands) = self.operands_before_program else {
            return words;
        };
        let mut at = 0;
        for _ in 0..=operands {
            let (flags, rest) = self.split_at_operand(&words[at..]);
            at += flags.len() + usize::from(!rest.is_empty());
        }
        &words[..at]
    }

    /// The first flag that the command does not have.
    pub(super) fn unknown_flag(&self, words: &[String]) -> Option<String> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let unknown = names(word).find(|name| !self.flags.contains_key(name));
            if unknown.is_some() {
                return unknown;
            }
            if self.takes_next(word) {
                words.next();
            }
        }
        None
    }

    /// Whether the value of a flag is the word after it.
    fn takes_next(&self, word: &str) -> bool {
        let last = names(word).last().unwrap_or_default();
        !word.contains('=') && self.flags.get(&last) == Some(&true)
    }
}

/// The flags in one word: `--name=value` is one, `-it` are two, and a lone dash is none.
fn names(word: &str) -> impl Iterator<Item = String> {
    let (long, short) = match word.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => (Some(flag_name(word).to_owned()), ""),
        Some(rest) => (None, rest),
        None => (None, ""),
    };
    let letters = short
        .chars()
        .take_while(|letter| letter.is_ascii_alphabetic());
    long.into_iter()
        .chain(letters.map(|letter| format!("-{letter}")))
}

/// `--name` of `--name=value`, `--name VALUE` and `--name…`.
pub(super) fn flag_name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    &text[..end.unwrap_or(text.len())]
}

pub(super) fn is_without_page(command: &str) -> bool {
    WITHOUT_PAGE.contains(&command)
}

/// Whether a word can be the name of a command, other than `COMMAND` or `…`.
pub(super) fn is_command_name(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        && !word.starts_with('-')
}
