//! An executor in a directory of its own, and what its observations should be.

use std::{
    ffi::OsString,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::sync::broadcast::{self, error::RecvError};
use zareba_executor::{
    Executor, ExecutorOptions, FileScope, Linting, Size, User, shell_environment,
};
use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, CommandOutput, LimitHit, LimitKind, Observation,
    ObservationKind, RunCommand, ShellName,
};

/// Longer than anything takes here; a test that waits for it fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How long a command may be silent in these tests.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// How to go on with a command that still runs, as clients know it.
pub(crate) const ADVICE: &str = "You may wait longer to see additional output by sending empty \
    command '', send other commands to interact with the current process, send keys (\"C-c\", \
    \"C-z\", \"C-d\") to interrupt/kill the previous command before sending your new command, or use \
    the timeout parameter in execute_bash for future commands.";

/// Says `here` when keys reach it. Bash itself would miss a key between two commands.
pub(crate) const SLEEPER: &str = "sh -c 'echo here; exec sleep 1000'";

pub(crate) const BELOW: &str = "[Below is the output of the previous command.]\n";

/// An executor with a working directory, a home and a program named `python` of its own.
pub(crate) struct Place {
    pub(crate) executor: Arc<Executor>,
    pub(crate) directory: PathBuf,
    pub(crate) home: TempDir,
    _keep: TempDir,
}

impl Place {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// A place whose options were changed.
    pub(crate) async fn with(change: impl FnOnce(&mut ExecutorOptions)) -> Self {
        Self::in_home(tempfile::tempdir().unwrap(), change).await
    }

    /// A place whose home was prepared.
    pub(crate) async fn in_home(home: TempDir, change: impl FnOnce(&mut ExecutorOptions)) -> Self {
        let bin = home.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("python"), "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(bin.join("python"), std::fs::Permissions::from_mode(0o755))
            .unwrap();
        let keep = tempfile::tempdir().unwrap();
        let user = User {
            home: home.path().to_owned(),
            ..User::current().unwrap()
        };
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        let inherited = [
            ("PATH", path.as_str()),
            ("SESSION_API_KEY", "key"),
            ("ZAREBA_LOG", "debug"),
        ];
        let inherited =
            inherited.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut options = ExecutorOptions {
            working_dir: keep.path().join("workspace"),
            environment: shell_environment(inherited, [], &user),
            user,
            shell: None,
            no_change_timeout: SILENCE,
            timeout: LONG,
            scope: FileScope::WholeFilesystem,
            linting: Linting::Off,
            state_dir: None,
        };
        change(&mut options);
        let directory = options.working_dir.clone();
        let executor = Arc::new(Executor::start(options).await.unwrap());
        Self {
            executor,
            directory: directory.canonicalize().unwrap(),
            home,
            _keep: keep,
        }
    }

    pub(crate) async fn event(&self, event: impl Into<ActionEvent>) -> Observation {
        let answer = tokio::time::timeout(2 * LONG, self.executor.execute(event.into()));
        answer.await.expect("no answer").observation
    }

    /// Runs a command and waits for its end, however silent it is.
    pub(crate) async fn run(&self, command: &str) -> Observation {
        self.event(blocking(command)).await
    }

    /// Types a line, or presses a key, and waits for the command's end.
    pub(crate) async fn input(&self, text: &str) -> Observation {
        self.event(Action::Run(RunCommand {
            blocking: true,
            ..RunCommand::input(text)
        }))
        .await
    }

    /// Runs a command for so many seconds at most.
    pub(crate) async fn run_for(&self, seconds: f64, command: &str) -> Observation {
        self.event(blocking(command).with_timeout(seconds)).await
    }

    /// Starts a command and returns when its output has `mark` in it, while it runs on. Without
    /// a mark it returns at once.
    pub(crate) async fn start(&self, command: &str, mark: &str) -> String {
        self.start_in(&ShellName::default(), command, mark).await
    }

    pub(crate) async fn start_in(&self, shell: &ShellName, command: &str, mark: &str) -> String {
        let receiver = self.executor.follow(shell).await.unwrap();
        let mut stream = Stream {
            receiver,
            seen: String::new(),
        };
        let event = blocking(command).with_shell(shell.clone());
        if mark.is_empty() {
            assert_eq!(exit_code(&self.event(event.with_timeout(0.0)).await), -1);
            return String::new();
        }
        tokio::select! {
            biased;
            () = stream.until(mark) => stream.seen,
            end = self.executor.execute(event) => panic!("ended: {:?}", end.observation),
        }
    }

    /// Gives the default shell's terminal the size of a person's. A program that draws all of the
    /// usual one, which has a million places, writes more than a slow reader gets to see.
    pub(crate) async fn resize_for_a_person(&self) {
        let size = Size {
            rows: 24,
            columns: 80,
        };
        let resized = self.executor.resize(&ShellName::default(), size).await;
        resized.unwrap();
    }

    /// What the programs in the default shell write from now on.
    pub(crate) async fn stream(&self) -> Stream {
        let receiver = self.executor.follow(&ShellName::default()).await.unwrap();
        Stream {
            receiver,
            seen: String::new(),
        }
    }

    /// The content of a command that is expected to end well.
    pub(crate) async fn text(&self, command: &str) -> String {
        let observation = self.run(command).await;
        assert_eq!(exit_code(&observation), 0, "{command:?}: {observation:?}");
        observation.content
    }

    /// What a command that ended is observed as, with nothing special about it.
    pub(crate) fn ended(&self, command: &str, content: &str, exit_code: i64) -> Observation {
        self.ended_in(&self.directory, command, content, exit_code)
    }

    pub(crate) fn ended_in(
        &self,
        directory: &Path,
        command: &str,
        content: &str,
        exit_code: i64,
    ) -> Observation {
        let suffix = format!("\n[The command completed with exit code {exit_code}.]");
        let metadata = CommandMetadata {
            exit_code,
            suffix,
            ..self.metadata(directory)
        };
        observed(command, content, metadata)
    }

    /// What a key is observed as that ended a command.
    pub(crate) fn pressed(&self, key: &str, content: &str, exit_code: i64) -> Observation {
        let letter = key.chars().last().unwrap().to_ascii_uppercase();
        let suffix = format!(
            "\n[The command completed with exit code {exit_code}. CTRL+{letter} was sent.]"
        );
        observed(
            key,
            content,
            CommandMetadata {
                exit_code,
                suffix,
                ..self.metadata(&self.directory)
            },
        )
    }

    /// What is known of a shell in `directory`.
    pub(crate) fn metadata(&self, directory: &Path) -> CommandMetadata {
        CommandMetadata {
            username: Some(User::current().unwrap().name),
            hostname: Some(
                rustix::system::uname()
                    .nodename()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            ),
            working_dir: Some(directory.to_str().unwrap().to_owned()),
            py_interpreter_path: Some(
                self.home
                    .path()
                    .join("bin/python")
                    .to_str()
                    .unwrap()
                    .to_owned(),
            ),
            ..CommandMetadata::default()
        }
    }
}

/// The output of a shell as it comes.
pub(crate) struct Stream {
    receiver: broadcast::Receiver<Bytes>,
    pub(crate) seen: String,
}

impl Stream {
    /// Waits until `mark` was written. It must not be among what a reader misses who falls behind.
    pub(crate) async fn until(&mut self, mark: &str) {
        let watching = async {
            while !self.seen.contains(mark) {
                match self.receiver.recv().await {
                    Ok(chunk) => self.seen.push_str(&String::from_utf8_lossy(&chunk)),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => panic!("the shell is gone"),
                }
            }
        };
        if tokio::time::timeout(LONG, watching).await.is_err() {
            panic!("`{mark}` never came, but {:?}", self.seen);
        }
    }
}

/// A command that may be silent as long as it likes.
pub(crate) fn blocking(command: &str) -> ActionEvent {
    ActionEvent::from(Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::new(command)
    }))
}

pub(crate) fn observed(command: &str, content: &str, metadata: CommandMetadata) -> Observation {
    Observation::run(
        content,
        CommandOutput {
            metadata,
            ..CommandOutput::new(command)
        },
    )
}

/// What a command that has not ended is observed as.
pub(crate) fn running(command: &str, content: &str, prefix: &str, suffix: String) -> Observation {
    let due = suffix
        .strip_prefix("\n[The command timed out after ")
        .and_then(|rest| rest.split_once(" seconds."));
    let limit = due.map(|(seconds, _)| LimitHit {
        kind: LimitKind::TimedOut,
        message: format!("the answer was due after {seconds} s and the command goes on"),
    });
    let metadata = CommandMetadata {
        prefix: prefix.to_owned(),
        limits: limit.into_iter().collect(),
        suffix,
        ..CommandMetadata::default()
    };
    observed(command, content, metadata)
}

pub(crate) fn timed_out(seconds: &str) -> String {
    format!("\n[The command timed out after {seconds} seconds. {ADVICE}]")
}

pub(crate) fn silent(seconds: u64) -> String {
    format!("\n[The command has no new output after {seconds} seconds. {ADVICE}]")
}

pub(crate) fn metadata(observation: &Observation) -> &CommandMetadata {
    match &observation.kind {
        ObservationKind::Run(output) => &output.metadata,
        other => panic!("not of a command: {other:?} {:?}", observation.content),
    }
}

pub(crate) fn exit_code(observation: &Observation) -> i64 {
    metadata(observation).exit_code
}
