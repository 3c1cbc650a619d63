//! The command lines that we write ourselves, read word by word.
//!
//! clap describes a command before it reads anything, in some hundred allocations. What is started
//! for every sandbox has no time for that: here are just the forms that a runtime and a supervisor
//! use. Whatever is not of such a form, mistakes included, is left to clap.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use clap::ValueEnum;

use crate::arguments::{
    Arguments, Command, ExecutorArguments, GlobalArguments, ModeArgument, NetworkArgument,
    OutputFormat, SuperviseArguments, SystemArgument,
    executor::{BrowserArguments, Eval, OwnArguments, SupervisedArguments},
};

/// The user number that the executor's command line has when none is given.
const DEFAULT_USER_ID: u32 = 1000;

/// A whole command line of such a form.
pub(super) fn read(name: &str, rest: &[OsString]) -> Option<Arguments> {
    let command = match name {
        "supervise" => Command::Supervise(supervise(rest)?),
        "executor" => Command::Executor(executor(rest)?),
        _ => return None,
    };
    Some(Arguments {
        globals: GlobalArguments {
            server: None,
            config: None,
            set: Vec::new(),
            output: OutputFormat::Text,
        },
        command,
    })
}

fn supervise(rest: &[OsString]) -> Option<SuperviseArguments> {
    let mut flags = Flags::read(rest, &["--best-effort", "--lifeline"])?;
    let arguments = SuperviseArguments {
        id: flags.parsed("--id")??,
        directory: flags.path("--directory")?,
        unix: flags.path("--unix")?,
        workspace: flags.path("--workspace"),
        workspace_mode: flags
            .choice("--workspace-mode")?
            .unwrap_or(ModeArgument::CopyOnWrite),
        image: flags.parsed("--image")?,
        image_store: flags.path("--image-store"),
        system: flags
            .choice("--system")?
            .unwrap_or(SystemArgument::CopyOnWrite),
        guarded: flags.parsed("--guarded")?.map_or_else(Vec::new, names),
        home_tools: flags.path("--home-tools"),
        home_path: flags.path("--home-path").map(PathBuf::into_os_string),
        network: flags.choice("--network")?.unwrap_or(NetworkArgument::None),
        egress: flags.parsed("--egress")?,
        memory: flags.parsed("--memory")??,
        pids: flags.parsed("--pids")??,
        cpu_millis: flags.parsed("--cpu-millis")??,
        disk: flags.parsed("--disk")??,
        inodes: flags.parsed("--inodes")??,
        best_effort: flags.switch("--best-effort"),
        lifeline: flags.switch("--lifeline"),
        executor: Vec::new(),
    };
    let is_whole = (arguments.image.is_none() || arguments.image_store.is_some())
        && (arguments.home_path.is_none() || arguments.home_tools.is_some())
        && (arguments.network != NetworkArgument::Filtered || arguments.egress.is_some());
    (is_whole && flags.are_all_taken()).then_some(arguments)
}

fn names(joined: String) -> Vec<String> {
    joined.split('/').map(str::to_owned).collect()
}

/// The executor of a sandbox, which listens on a descriptor.
fn executor(rest: &[OsString]) -> Option<ExecutorArguments> {
    let mut flags = Flags::read(rest, &["--no-enable-browser"])?;
    let arguments = ExecutorArguments {
        port: None,
        working_dir: flags.path("--working-dir"),
        plugins: Vec::new(),
        username: flags.parsed("--username")?,
        user_id: DEFAULT_USER_ID,
        browser: BrowserArguments {
            enable_browser: false,
            no_enable_browser: flags.switch("--no-enable-browser"),
            eval: Eval { task: Vec::new() },
        },
        ours: OwnArguments {
            unix: None,
            host: None,
            allow_network_without_key: false,
            state_dir: flags.path("--state-dir"),
            shell: None,
            scope: None,
            ready_fd: flags.parsed("--ready-fd")?,
            lifeline_fd: None,
            supervised: SupervisedArguments {
                listen_fd: Some(flags.parsed("--listen-fd")??),
                key_fd: flags.parsed("--key-fd")?,
                hold_working_dir: false,
            },
        },
    };
    flags.are_all_taken().then_some(arguments)
}

/// Flags in the form `--name value`, and those without a value.
struct Flags<'a> {
    valued: Vec<(&'a str, &'a OsString)>,
    switches: Vec<&'a str>,
}

impl<'a> Flags<'a> {
    /// Every flag once, and nothing else.
    fn read(words: &'a [OsString], switches: &[&str]) -> Option<Self> {
        let mut flags = Self {
            valued: Vec::new(),
            switches: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let name = word.to_str()?;
            let is_known_already =
                flags.switches.contains(&name) || flags.valued.iter().any(|(it, _)| *it == name);
            if is_known_already || !name.starts_with("--") {
                return None;
            }
            if switches.contains(&name) {
                flags.switches.push(name);
            } else {
                let value = words.next()?;
                // It could be a flag whose value is missing.
                if value.is_empty() || value.as_encoded_bytes().starts_with(b"-") {
                    return None;
                }
                flags.valued.push((name, value));
            }
        }
        Some(flags)
    }

    fn take(&mut self, name: &str) -> Option<&'a OsString> {
        let at = self.valued.iter().position(|(it, _)| *it == name)?;
        Some(self.valued.swap_remove(at).1)
    }

    fn switch(&self, name: &str) -> bool {
        self.switches.contains(&name)
    }

    fn path(&mut self, name: &str) -> Option<PathBuf> {
        self.take(name).map(PathBuf::from)
    }

    /// Nothing at all when there is a value that cannot be read.
    #[expect(clippy::option_option, reason = "absent, or there and unreadable")]
    fn parsed<T: FromStr>(&mut self, name: &str) -> Option<Option<T>> {
        match self.take(name) {
            None => Some(None),
            Some(value) => Some(Some(value.to_str()?.parse().ok()?)),
        }
    }

    #[expect(clippy::option_option, reason = "absent, or there and unreadable")]
    fn choice<T: ValueEnum>(&mut self, name: &str) -> Option<Option<T>> {
        match self.take(name) {
            None => Some(None),
            Some(value) => Some(Some(T::from_str(value.to_str()?, false).ok()?)),
        }
    }

    fn are_all_taken(&self) -> bool {
        self.valued.is_empty()
    }
}
