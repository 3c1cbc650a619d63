//! What the program ends with: one number for each kind of end, written down in `docs/cli.md`.

use std::process::ExitCode;

use zareba_protocol::CommandMetadata;

/// How the program ends.
///
/// Our own failures are numbers that ordinary programs do not use, so that whoever runs a
/// command with `zareba run` can tell its failures from ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Success,
    /// It was done, and the answer is no: an action failed, or the machine lacks something.
    Negative,
    /// What a command ended with.
    Command(u8),
    /// The command line makes no sense.
    Usage,
    /// The configuration has a mistake.
    Configuration,
    /// The sandbox or the executor did not start.
    Start,
    /// The sandbox went away or did not answer.
    Lost,
    /// A command took longer than it may.
    Timeout,
    /// Anything else that should have worked.
    Failure,
}

impl Exit {
    /// The end of a command with this exit code; one that never ended took too long.
    pub(crate) fn of_command(exit_code: i64) -> Self {
        match exit_code {
            CommandMetadata::NO_EXIT_CODE => Self::Timeout,
            // What the system keeps of an exit code.
            code => Self::Command(u8::try_from(code.rem_euclid(256)).unwrap_or(u8::MAX)),
        }
    }

    /// The number.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Negative => 1,
            Self::Command(status) => status,
            Self::Usage => 120,
            Self::Configuration => 121,
            Self::Start => 122,
            Self::Lost => 123,
            Self::Timeout => 124,
            Self::Failure => 125,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}
