//! Commands that are started for every sandbox, read without describing all others.
//!
//! To describe every command with its flags and help takes a millisecond, which is more than
//! these have time for.

mod plain;

use std::ffi::OsString;

use clap::{Args, Parser};

use super::{Arguments, Command, GlobalArguments};

/// A command by itself, with what every command takes.
#[derive(Debug, Parser)]
#[command(name = "zareba", disable_help_flag = true)]
struct Alone<T: Args> {
    #[command(flatten)]
    globals: GlobalArguments,
    #[command(flatten)]
    own: T,
}

/// The command line, when it is that of such a command and nothing is wrong with it. Everything
/// else, help and mistakes included, is for whoever knows all commands.
pub(super) fn parse(arguments: &[OsString]) -> Option<Arguments> {
    let [program, name, rest @ ..] = arguments else {
        return None;
    };
    let name = name.to_str()?;
    if let Some(arguments) = plain::read(name, rest) {
        return Some(arguments);
    }
    match name {
        "supervise" => read(program, rest, Command::Supervise),
        "spawner" => read(program, rest, Command::Spawner),
        "executor" => read(program, rest, Command::Executor),
        "egress" => read(program, rest, Command::Egress),
        "dial" => read(program, rest, Command::Dial),
        _ => None,
    }
}

fn read<T: Args>(
    program: &OsString,
    rest: &[OsString],
    command: impl FnOnce(T) -> Command,
) -> Option<Arguments> {
    let Alone { globals, own } =
        Alone::<T>::try_parse_from(std::iter::once(program).chain(rest)).ok()?;
    Some(Arguments {
        globals,
        command: command(own),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn what_is_read_alone_is_what_is_read_among_all() {
        for line in [
            "zareba executor 3000 --working-dir /w --plugins a b --username me --user-id 7 \
             --no-enable-browser -o json",
            "zareba executor --unix /s --working-dir /w",
            "zareba supervise --id a --directory /d --unix /s --memory 1 --pids 2 --cpu-millis 3 \
             --disk 4 --inodes 5 --set a=b -- --shell sh",
            "zareba egress --policy {} --decisions /d --counters /c --tcp-fd 5 --tcp-fd 6",
        ] {
            let words = words(line);
            let alone = parse(&words).expect(line);
            let among_all = Arguments::try_parse_from(&words).expect(line);
            assert_eq!(format!("{alone:?}"), format!("{among_all:?}"), "{line}");
        }
    }

    #[test]
    fn what_we_write_ourselves_is_read_like_what_people_type() {
        for line in [
            "zareba supervise --id a --unix /d/s --directory /d --workspace-mode copy-on-write \
             --network none --memory 1 --pids 2 --cpu-millis 3 --disk 4 --inodes 5 \
             --system copy-on-write --lifeline",
            "zareba supervise --id a --unix /d/s --directory /d --workspace-mode read-only \
             --network filtered --memory 1 --pids 2 --cpu-millis 3 --disk 4 --inodes 5 \
             --system read-only --workspace /w --egress {} --image i --image-store /i --home-tools /h --home-path /h/bin:/bin --lifeline",
            "zareba executor --working-dir /workspace --no-enable-browser --listen-fd 3 \
             --key-fd 4 --ready-fd 1 --username agent --state-dir /run/zareba",
        ] {
            let words = words(line);
            let [_, name, rest @ ..] = words.as_slice() else {
                panic!("{line}");
            };
            let plain = plain::read(name.to_str().unwrap(), rest).expect(line);
            let among_all = Arguments::try_parse_from(&words).expect(line);
            assert_eq!(format!("{plain:?}"), format!("{among_all:?}"), "{line}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_whoever_knows_what_is_wrong_with_it() {
        let whole = "supervise --id a --directory /d --unix /s --memory 1 --pids 2 --cpu-millis 3 \
                     --disk 4 --inodes 5";
        assert!(plain::read("supervise", &words(whole)[1..]).is_some());
        for more in [
            "--network filtered",
            "--image i",
            "--memory 2",
            "--nonsense 1",
            "--system sometimes",
            "--workspace",
            "--workspace --lifeline",
            "--workspace=/w",
            "-o json",
            "-- --shell sh",
            "word",
        ] {
            let words = words(&format!("{whole} {more}"));
            assert!(plain::read("supervise", &words[1..]).is_none(), "{more}");
        }
        assert!(plain::read("executor", &words("--working-dir /w")).is_none());
        assert!(plain::read("run", &[]).is_none());
    }

    #[test]
    fn help_mistakes_and_other_commands_are_left_to_others() {
        for line in [
            "zareba",
            "zareba executor --help",
            "zareba executor --nonsense",
            "zareba supervise",
            "zareba run -- true",
        ] {
            assert!(parse(&words(line)).is_none(), "{line}");
        }
    }
}
