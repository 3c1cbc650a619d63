//! What can stand at the end of a command line, told from the declarations of the arguments.
//!
//! Nothing is looked up here: where names of sandboxes or images fit, that is the answer.

use clap::{Arg, Command, ValueHint};
use zareba_config::RuntimeKind;

/// The runtimes of this version.
const RUNTIMES: [RuntimeKind; 4] = [
    RuntimeKind::Native,
    RuntimeKind::Docker,
    RuntimeKind::Cli,
    RuntimeKind::Local,
];
const WORKSPACE_MODES: [&str; 3] = ["copy-on-write", "read-write", "read-only"];
const NETWORKS: [&str; 5] = ["none", "filtered", "host", "machine", "internet"];
const BUILD_NETWORKS: [&str; 3] = ["none", "internet", "host"];

/// What fits at the end of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fitting {
    /// One of these words, with what it means.
    Words(Vec<(String, String)>),
    Sandbox,
    /// `ID:PATH`, or a file of this machine.
    SandboxOrFile,
    Image,
    File,
    Directory,
    Anything,
}

/// A command line that is being typed.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) fitting: Fitting,
    /// What is there of the last word, or of the value in it.
    pub(super) begun: String,
    /// Values of flags that every command takes.
    pub(super) globals: Vec<(String, String)>,
}

impl Line {
    /// Reads the words after the program's name. The last one is being typed.
    pub(super) fn read(root: &Command, words: &[String]) -> Self {
        let words = whole(words);
        let (last, before) = match words.split_last() {
            Some((last, before)) => (last.as_str(), before),
            None => ("", &[][..]),
        };
        let mut walk = Walk::new(root);
        for word in before {
            walk.step(word);
        }
        let (fitting, begun) = walk.fitting(last);
        Self {
            fitting,
            begun: begun.to_owned(),
            globals: walk.globals,
        }
    }
}

/// Bash cuts words at `=` and `:`. The pieces come as words of their own and are put together.
fn whole(words: &[String]) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in words {
        let is_sign = match word.as_str() {
            "=" => whole.last().is_some_and(|last| last.starts_with("--")),
            ":" => !whole.is_empty(),
            _ => false,
        };
        match whole.last_mut() {
            Some(last) if is_sign || is_open => last.push_str(word),
            _ => whole.push(word.clone()),
        }
        is_open = is_sign;
    }
    whole
}

/// The way through the declarations, word by word.
struct Walk<'a> {
    root: &'a Command,
    command: &'a Command,
    /// The option whose value comes next.
    pending: Option<&'a Arg>,
    positions: usize,
    /// Behind `--`, or within the command line of a program.
    only_positions: bool,
    globals: Vec<(String, String)>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Command) -> Self {
        Self {
            root,
            command: root,
            pending: None,
            positions: 0,
            only_positions: false,
            globals: Vec::new(),
        }
    }

    fn step(&mut self, word: &str) {
        if let Some(option) = self.pending.take() {
            return self.note(option, word);
        }
        if self.only_positions {
            self.positions += 1;
        } else if word == "--" {
            self.only_positions = true;
        } else if let Some(long) = word.strip_prefix("--") {
            match long.split_once('=') {
                Some((name, value)) => {
                    if let Some(option) = self.option(name) {
                        self.note(option, value);
                    }
                }
                None => self.pending = self.option(long).filter(|option| needs_value(option)),
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            self.pending = self.short(letters);
        } else if let Some(command) = self.command.find_subcommand(word) {
            self.command = command;
        } else {
            // What follows the first word of a program is the program's.
            self.only_positions |= self.position().is_some_and(Arg::is_trailing_var_arg_set);
            self.positions += 1;
        }
    }

    fn note(&mut self, option: &Arg, value: &str) {
        if option.is_global_set() {
            self.globals
                .push((option.get_id().to_string(), value.to_owned()));
        }
    }

    fn options(&self) -> impl Iterator<Item = &'a Arg> {
        let of_all = self
            .root
            .get_arguments()
            .filter(|option| option.is_global_set());
        let own = self
            .command
            .get_arguments()
            .filter(|option| !option.is_global_set());
        own.chain(of_all).filter(|option| !option.is_positional())
    }

    fn option(&self, name: &str) -> Option<&'a Arg> {
        self.options().find(|option| {
            let others = option.get_all_aliases().unwrap_or_default();
            option.get_long() == Some(name) || others.contains(&name)
        })
    }

    /// The option whose value comes next after these letters.
    fn short(&self, letters: &str) -> Option<&'a Arg> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let option = self
                .options()
                .find(|option| option.get_short() == Some(letter))?;
            if needs_value(option) {
                return rest.as_str().is_empty().then_some(option);
            }
        }
        None
    }

    /// The argument at this position; the last one may take many words.
    fn position(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let at = all.get(self.positions).or_else(|| {
            all.last()
                .filter(|last| last.get_action().takes_values() && takes_many(last))
        });
        at.copied()
    }

    /// What fits as the last word, and what there is of it.
    fn fitting<'w>(&self, last: &'w str) -> (Fitting, &'w str) {
        if let Some(option) = self.pending {
            return (self.value(option), last);
        }
        if !self.only_positions && last.starts_with('-') {
            let value = last
                .strip_prefix("--")
                .and_then(|long| long.split_once('='));
            return match value {
                Some((name, value)) => {
                    let fitting = self.option(name).map(|option| self.value(option));
                    (fitting.unwrap_or(Fitting::Anything), value)
                }
                None => (Fitting::Words(self.flags()), last),
            };
        }
        if self.command.has_subcommands() && !self.only_positions {
            return (Fitting::Words(commands(self.command)), last);
        }
        let fitting = match self.position() {
            Some(position) => self.value(position),
            None => Fitting::Anything,
        };
        (fitting, last)
    }

    fn flags(&self) -> Vec<(String, String)> {
        let shown = self.options().filter(|option| !option.is_hide_set());
        let flags = shown.filter_map(|option| {
            let help = option.get_help().map(ToString::to_string);
            Some((
                format!("--{}", option.get_long()?),
                help.unwrap_or_default(),
            ))
        });
        let help = ("--help".to_owned(), "Print help".to_owned());
        flags.chain([help]).collect()
    }

    fn value(&self, argument: &Arg) -> Fitting {
        let possible = argument.get_possible_values();
        if !possible.is_empty() && argument.get_action().takes_values() {
            let shown = possible.iter().filter(|value| !value.is_hide_set());
            let words = shown.map(|value| {
                let help = value.get_help().map(ToString::to_string);
                (value.get_name().to_owned(), help.unwrap_or_default())
            });
            return Fitting::Words(words.collect());
        }
        let names = argument.get_value_names().unwrap_or_default();
        let name = names.first().map_or("", |name| name.as_str());
        match (self.command.get_name(), argument.get_id().as_str(), name) {
            (_, "runtime", _) => plain(&RUNTIMES.map(RuntimeKind::as_str)),
            (_, "workspace_mode", _) => plain(&WORKSPACE_MODES),
            ("build", "network", _) => plain(&BUILD_NETWORKS),
            (_, "network" | "networks", _) => plain(&NETWORKS),
            ("rm", "names", _) | (_, "image", _) => Fitting::Image,
            (_, "source" | "destination", "SRC" | "DST") => Fitting::SandboxOrFile,
            (_, "session", _) => Fitting::Sandbox,
            // Keys of a server are looked up nowhere.
            ("rm", "ids", "ID") if self.is_below("key") => Fitting::Anything,
            (_, _, "ID") => Fitting::Sandbox,
            (_, _, "CMD") => Fitting::File,
            _ => by_kind(argument, name),
        }
    }

    fn is_below(&self, name: &str) -> bool {
        let above = self.root.find_subcommand(name);
        let own = above.and_then(|above| above.find_subcommand(self.command.get_name()));
        own.is_some_and(|own| std::ptr::eq(own, self.command))
    }
}

fn needs_value(option: &Arg) -> bool {
    let least = option.get_num_args().map_or(1, |range| range.min_values());
    option.get_action().takes_values() && least > 0
}

fn takes_many(argument: &Arg) -> bool {
    argument
        .get_num_args()
        .is_some_and(|range| range.max_values() > 1)
}

fn commands(command: &Command) -> Vec<(String, String)> {
    let shown = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let words = shown.map(|command| {
        let about = command.get_about().map(ToString::to_string);
        (command.get_name().to_owned(), about.unwrap_or_default())
    });
    words.collect()
}

fn plain(words: &[&str]) -> Fitting {
    let words = words.iter().map(|word| ((*word).to_owned(), String::new()));
    Fitting::Words(words.collect())
}

/// Paths of this machine have a type of their own.
fn by_kind(argument: &Arg, name: &str) -> Fitting {
    match (argument.get_value_hint(), name) {
        (ValueHint::AnyPath, "DIR" | "DIRECTORY") => Fitting::Directory,
        (ValueHint::AnyPath, _) => Fitting::File,
        _ => Fitting::Anything,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    fn line(text: &str) -> Line {
        let mut root = Arguments::command();
        root.build();
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Line::read(&root, &words)
    }

    fn words(text: &str) -> Vec<String> {
        match line(text).fitting {
            Fitting::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn commands_flags_and_values_are_known() {
        let commands = words("");
        for shown in ["run", "exec", "completions"] {
            assert!(commands.iter().any(|word| word == shown), "{commands:?}");
        }
        assert!(!commands.iter().any(|word| word == "supervise"));
        assert_eq!(
            words("completions "),
            ["bash", "elvish", "fish", "powershell", "zsh"]
        );
        assert!(words("--server u run --").contains(&"--workspace-mode".to_owned()));
        assert!(words("image ").contains(&"import".to_owned()));
        assert_eq!(
            words("run --runtime "),
            ["native", "docker", "cli", "local"]
        );
        assert_eq!(words("run --workspace-mode = r"), WORKSPACE_MODES);
        assert_eq!(words("create --network="), NETWORKS);
        assert_eq!(words("image build --network "), BUILD_NETWORKS);
        assert_eq!(words("update --when-idle "), ["pause", "close", "stay"]);
        assert_eq!(words("ps -o "), ["text", "json"]);
        assert_eq!(words("ps -qo "), ["text", "json"]);
    }

    #[test]
    fn names_and_paths_are_told_apart() {
        for (text, fitting) in [
            ("exec ", Fitting::Sandbox),
            ("exec -it --workdir / ", Fitting::Sandbox),
            ("stop a ", Fitting::Sandbox),
            ("mcp --session ", Fitting::Sandbox),
            ("exec build ", Fitting::File),
            ("exec build tar --", Fitting::File),
            ("run ls -", Fitting::File),
            ("cp ", Fitting::SandboxOrFile),
            ("cp a : b c", Fitting::SandboxOrFile),
            ("image rm ", Fitting::Image),
            ("run --image ", Fitting::Image),
            ("run --workspace ", Fitting::Directory),
            ("action ", Fitting::File),
            ("--config ", Fitting::File),
            ("key rm ", Fitting::Anything),
            ("run --memory ", Fitting::Anything),
            ("run --nonsense=", Fitting::Anything),
        ] {
            assert_eq!(line(text).fitting, fitting, "{text}");
        }
    }

    #[test]
    fn what_is_begun_and_what_every_command_takes_is_read() {
        let typed = line("--server = http : //a exec --set a=b al");
        assert_eq!(typed.begun, "al");
        let globals = [("server", "http://a"), ("set", "a=b")];
        let globals = globals.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(typed.globals, globals);
        assert_eq!(line("cp box : /w").begun, "box:/w");
        assert_eq!(line("run --runtime = na").begun, "na");
    }
}
