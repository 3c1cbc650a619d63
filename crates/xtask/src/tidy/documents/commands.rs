//! Commands and flags of the program in documents: those of its help, as the snapshots of the
//! command line's tests have it.

mod help;
mod words;

use help::{Command, Help};

use super::{Marked, Marking, with_messages};
use crate::tidy::report::Finding;
use crate::tidy::repository::Repository;

/// Languages of blocks whose lines are commands.
const SHELLS: &[&str] = &["sh", "console", "bash"];

/// Flags that documents name alone and that belong to other programs.
const FLAGS_OF_OTHERS: &[&str] = &[
    // Of docker.
    "--security-opt",
    "--ulimit",
    // Of the measurements, of the runner of tests and of the tests of the Python package.
    "--check",
    "--only",
    "--quick",
    "--run-ignored",
    "--camel",
    "--docker",
    "--openhands",
    // Of programs that tools are hosted by.
    "--api-key",
    "--token",
];

pub(in crate::tidy) fn check(repository: &Repository) -> Vec<Finding> {
    let help = Help::of(repository);
    let mut findings = Vec::new();
    for (path, pieces) in with_messages(repository) {
        for piece in pieces {
            let faults = faults(&help, &piece).into_iter();
            findings.extend(faults.map(|(line, fault)| Finding::at_line(path, line, fault)));
        }
    }
    findings
}

/// What is wrong with the command lines of a piece, by line.
fn faults(help: &Help<'_>, piece: &Marked<'_>) -> Vec<(usize, String)> {
    let is_flag = |text: &str| text.starts_with("--") && text.len() > 2;
    match piece.place {
        Marking::Inline if is_flag(piece.text) => {
            let flag = help::flag_name(piece.text);
            let is_known = help.has_flag(flag) || FLAGS_OF_OTHERS.contains(&flag);
            let fault = format!("no command has the flag `{flag}`");
            (!is_known)
                .then_some((piece.line, fault))
                .into_iter()
                .collect()
        }
        Marking::Inline | Marking::Message => words::lines(piece.text)
            .filter(|(_, words)| words.first().is_some_and(|word| word == "zareba"))
            .filter_map(|(_, words)| Some((piece.line, fault(help, &words[1..])?)))
            .collect(),
        Marking::Block(language) if SHELLS.contains(&language) => words::lines(piece.text)
            .flat_map(|(at, words)| {
                let starts = words
                    .iter()
                    .enumerate()
                    .filter(|(_, word)| *word == "zareba");
                let faults = starts.filter_map(|(start, _)| fault(help, &words[start + 1..]));
                let faults: Vec<String> = faults.collect();
                faults
                    .into_iter()
                    .map(move |fault| (piece.line + at, fault))
            })
            .collect(),
        Marking::Block(_) => Vec::new(),
    }
}

/// What is wrong with one command line, given without `zareba` in front.
fn fault(help: &Help<'_>, words: &[String]) -> Option<String> {
    let (before, rest) = help.every_command.split_at_operand(words);
    if let Some(flag) = help.every_command.unknown_flag(before) {
        return Some(format!(
            "`zareba` has no flag `{flag}` in front of its command"
        ));
    }
    let name = rest.first().filter(|word| help::is_command_name(word))?;
    if !help.has_command(name) {
        return Some(format!("there is no command `zareba {name}`"));
    }
    let second = rest.get(1).filter(|word| help::is_command_name(word));
    let spelt = match second {
        Some(second) if help.is_group(name) => format!("{name} {second}"),
        _ => name.clone(),
    };
    let Some(command) = help.command(&spelt) else {
        let is_known = !help.is_group(name) || spelt == *name || help::is_without_page(&spelt);
        return (!is_known).then(|| format!("there is no command `zareba {spelt}`"));
    };
    let operands = &rest[spelt.split(' ').count()..];
    let own = command.before_its_program(operands);
    let flag = Command::unknown_flag(command, own)?;
    Some(format!("`zareba {spelt}` has no flag `{flag}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERVIEW: &str = "Usage: zareba\n\nCommands:\n  run    Run\n  image  Work\n  key    Keys\n\n\
        Options:\n  -h, --help     Print help\n  -V, --version  Print version\n\n\
        Every command:\n      --set <KEY=VALUE>  Set\n  -o, --output <FORMAT>  How\n";

    const PAGES: &str = "$ zareba run --help\nRun one\n\nUsage: zareba run [OPTIONS] <CMD>...\n\n\
        Options:\n  -i, --interactive    Pass\n      --name <NAME>    The\n                       \
        --not a flag [alias:\n                       --label]\n  -h, --help           Print\n\n\
        $ zareba image rm --help\nRemove\n\nUsage: zareba image rm [OPTIONS] <NAME>...\n\n\
        Options:\n      --force  Also\n";

    fn check_document(text: &str) -> Vec<(Option<usize>, String)> {
        let repository = Repository::of(&[
            (help::OVERVIEW, OVERVIEW),
            (help::PAGES, PAGES),
            ("docs/a.md", text),
        ]);
        let found = check(&repository).into_iter();
        found.map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn command_lines_that_exist_pass() {
        let text = "`zareba run --name web -i ls --all`, `zareba image rm --force a`, `zareba`, `--name`,\n\
                    `zareba key ls`, `zareba --set a.b=1 run -- ls -Z`, `--label web`, `--ulimit`,\n\
                    `zareba COMMAND`, `zareba image`, `zareba supervise`, `zareba --version`\n\
                    ```sh\nA=1 zareba run 'a --b' --c | grep --d; zareba run \\\n  --name x y --z # zareba --e\n\
                    ```\n```python\nzareba nothing\n```\nThe zareba nothing of prose is not judged.\n";
        assert_eq!(check_document(text), []);
    }

    #[test]
    fn commands_and_flags_that_do_not_exist_are_found() {
        let text = "`zareba walk` and\n`--nmae`\n`zareba image prune`\n```console\n$ zareba run -x ls\n\
                    $ true | zareba image rm a --forse\n$ zareba --name a run\n```\n";
        assert_eq!(
            check_document(text),
            [
                (1, "there is no command `zareba walk`"),
                (2, "no command has the flag `--nmae`"),
                (3, "there is no command `zareba image prune`"),
                (5, "`zareba run` has no flag `-x`"),
                (6, "`zareba image rm` has no flag `--forse`"),
                (7, "`zareba` has no flag `--name` in front of its command"),
            ]
            .map(|(line, fault)| (Some(line), fault.to_owned()))
        );
    }
}
