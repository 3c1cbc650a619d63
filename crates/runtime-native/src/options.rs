//! What the two runtimes are started with.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use zareba_executor::{FileScope, Linting};

/// What both runtimes need to know.
#[derive(Clone)]
pub struct NativeOptions {
    /// Where sandboxes have their private directories, made when missing. What a killed process
    /// left here is removed by the next one.
    pub state_dir: PathBuf,
    /// Where images are kept; used by `native` only.
    pub images: PathBuf,
    /// The environment that shells inherit, less what is ours.
    pub environment: Vec<(OsString, OsString)>,
    /// The shell; `None` looks for bash and then for sh.
    pub shell: Option<PathBuf>,
    /// What file actions may reach.
    pub scope: FileScope,
    /// Whether edited files are checked.
    pub linting: Linting,
}

/// What only `local` needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalOptions {
    /// The `zareba` program.
    pub program: PathBuf,
    /// How many executors are kept started for sandboxes to come.
    pub warm_servers: usize,
    /// The silence that a command of a warm executor may keep. A sandbox that asks for another
    /// starts its own, because an executor is told when it starts.
    pub warm_no_change_timeout: Duration,
    /// How long executors live.
    pub lifetime: ServerLifetime,
}

/// How long the executors of a `local` runtime live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLifetime {
    /// As long as their sandbox, and never longer than this process, however it ends.
    WithUs,
    /// Until somebody closes them; dropping the handle leaves them running, and
    /// [`attach`](zareba_runtime::Runtime::attach) finds them. None is kept warm.
    KeptAlive {
        /// After so long without an action the next runtime that starts here ends them.
        idle_timeout: Option<Duration>,
    },
}

impl fmt::Debug for NativeOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets.
        let names: Vec<&OsString> = self.environment.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("NativeOptions")
            .field("state_dir", &self.state_dir)
            .field("images", &self.images)
            .field("environment", &names)
            .field("shell", &self.shell)
            .field("scope", &self.scope)
            .field("linting", &self.linting)
            .finish()
    }
}
