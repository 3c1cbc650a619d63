//! What the runtime `docker` is started with.
//!
//! Everything here is an operator's choice: nothing of it can be changed by a request or from
//! inside a sandbox. [`DockerOptions::hardened`] is the strictest set; each field that makes it
//! weaker says so, and [`Sandbox::inspect`](zareba_runtime::Sandbox::inspect) lists those that are
//! in force.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};

use serde_json::{Map, Value};
use zareba_executor::{FileScope, Linting};

use crate::{EngineAddress, EnginePlace, volumes::VolumeRequest};

const MIB: u64 = 1024 * 1024;

/// What the runtime needs to know.
#[derive(Clone)]
pub struct DockerOptions {
    /// Where the Engine is.
    pub engine: EngineAddress,
    /// Whether it sees the files of this machine. One that does not gets our program sent, and no
    /// directory of this machine can be mounted.
    pub place: EnginePlace,
    /// Where sandboxes have their private directories, made when missing.
    pub state_dir: PathBuf,
    /// The `zareba` program, which runs in every container and must therefore be static.
    pub program: PathBuf,
    /// The image of sandboxes that name none.
    pub image: Option<String>,
    /// The platform of images, such as `linux/amd64`; `None` is the Engine's own.
    pub platform: Option<String>,
    /// What becomes of an image that the Engine does not have.
    pub pull: PullPolicy,
    /// Who programs inside run as.
    pub user: SandboxUser,
    /// Where the workspace is inside.
    pub workspace_path: PathBuf,
    /// What becomes of a given workspace whose owner is somebody else.
    pub ownership: WorkspaceOwnership,
    /// Names directly in a given workspace that can be neither made nor changed inside, beside those that
    /// git acts on (NS-6).
    pub guarded_names: Vec<String>,
    /// Directories and volumes beside the workspace.
    pub volumes: Vec<VolumeRequest>,
    /// Where the changes of volumes with the mode `overlay` are kept; without it they are refused.
    pub overlays: Option<PathBuf>,
    /// Variables of all shells, beside those of the spec.
    pub environment: Vec<(String, String)>,
    /// What a sandbox may use.
    pub usage: Usage,
    /// Graphics processors.
    pub gpu: GpuRequest,
    /// What can be reached.
    pub network: NetworkChoice,
    /// Networks that are joined beside it.
    pub additional_networks: Vec<String>,
    /// Names with an address of their own, as `name:address`.
    pub extra_hosts: Vec<String>,
    /// Ports inside that are published.
    pub ports: Vec<PortRequest>,
    /// The address on which they are published.
    pub bind_address: IpAddr,
    /// What is weaker than it could be.
    pub relaxed: Relaxed,
    /// More options of the Engine, by the names that docker-py gives them; each is checked.
    pub extra: Map<String, Value>,
    /// What a request may name.
    pub allowed: Allowed,
    /// How long sandboxes live.
    pub lifetime: Lifetime,
    /// Sandboxes that are started ahead.
    pub warm: Warm,
    /// The shell; `None` looks for bash and then for sh.
    pub shell: Option<PathBuf>,
    /// What file actions may reach.
    pub scope: FileScope,
    /// Whether edited files are checked.
    pub linting: Linting,
}

impl DockerOptions {
    /// The strictest set: no network, no rights, nothing of this machine but a given workspace.
    pub fn hardened(engine: EngineAddress, state_dir: PathBuf, program: PathBuf) -> Self {
        Self {
            place: engine.usual_place(),
            engine,
            state_dir,
            program,
            image: None,
            platform: None,
            pull: PullPolicy::Never,
            user: SandboxUser::Unprivileged,
            workspace_path: PathBuf::from("/workspace"),
            ownership: WorkspaceOwnership::Kept,
            guarded_names: Vec::new(),
            volumes: Vec::new(),
            overlays: None,
            environment: Vec::new(),
            usage: Usage::usual(),
            gpu: GpuRequest::None,
            network: NetworkChoice::Nothing,
            additional_networks: Vec::new(),
            extra_hosts: Vec::new(),
            ports: Vec::new(),
            bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            relaxed: Relaxed::nothing(),
            extra: Map::new(),
            allowed: Allowed::anything(),
            lifetime: Lifetime::WithUs,
            warm: Warm {
                sandboxes: 0,
                no_change_timeout: Duration::from_secs(30),
            },
            shell: None,
            scope: FileScope::WholeFilesystem,
            linting: Linting::Off,
        }
    }
}

/// What becomes of an image that the Engine does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullPolicy {
    /// There is no sandbox.
    Never,
    /// The Engine fetches it. One that it has is never fetched again, so that a name does not come
    /// to mean another image silently.
    Missing,
}

/// Who programs inside run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxUser {
    /// The owner of the given workspace, otherwise us, and never root: in place of root it is
    /// number 1000.
    Unprivileged,
    /// These numbers. Root has no capabilities either, but it is root on this machine for every
    /// file that it can reach.
    Numbers {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
}

/// What becomes of a given workspace whose owner is not who programs inside run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceOwnership {
    /// It keeps its owner, and a sandbox that could not write to it is refused.
    Kept,
    /// The directory is given to the user inside, as OpenHands does; what is in it is not.
    Given,
}

/// What a sandbox may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Memory, with everything that lies in the temporary file systems; there is no swap.
    pub memory_bytes: u64,
    /// Thousandths of a processor.
    pub cpu_millis: u64,
    /// Processes and threads.
    pub pids: u64,
    /// An empty workspace.
    pub workspace_bytes: u64,
    /// Each of the home directory, `/tmp` and other places for passing files.
    pub scratch_bytes: u64,
    /// Shared memory of programs.
    pub shm_bytes: u64,
    /// Limits of each process beside [`Usage::usual`]'s; of equal names the last one counts.
    pub ulimits: Vec<Ulimit>,
}

impl Usage {
    /// What is usual for one agent.
    pub fn usual() -> Self {
        Self {
            memory_bytes: 2048 * MIB,
            cpu_millis: 2000,
            pids: 512,
            workspace_bytes: 1024 * MIB,
            scratch_bytes: 512 * MIB,
            shm_bytes: 64 * MIB,
            ulimits: vec![
                Ulimit::of("nofile", 4096),
                // With 0 the kernel still starts the machine's program for crashes (NS-7).
                Ulimit::of("core", 1),
                Ulimit::of("memlock", 64 * 1024),
                // Counted for each user of the machine, whichever container they are in: with more, one
                // sandbox could leave others and the user none (NS-15).
                Ulimit::of("msgqueue", 100 * 1024),
                Ulimit::of("sigpending", 1024),
            ],
        }
    }
}

/// A limit of each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ulimit {
    /// Its name, such as `nofile`.
    pub name: String,
    /// What holds at first.
    pub soft: i64,
    /// Up to where a process may raise it.
    pub hard: i64,
}

impl Ulimit {
    /// One that cannot be raised.
    pub fn of(name: &str, value: i64) -> Self {
        Self {
            name: name.to_owned(),
            soft: value,
            hard: value,
        }
    }
}

/// Graphics processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuRequest {
    /// None.
    None,
    /// All that there are.
    All,
    /// Those with these ids.
    Devices(Vec<String>),
}

/// What can be reached from inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkChoice {
    /// Nothing but itself.
    Nothing,
    /// A bridge that no other sandbox is on. This machine can reach programs inside, and programs
    /// inside can reach what listens on all of its addresses: weaker.
    Own(Reach),
    /// A network of the Engine that is there. Whatever else is on it can be reached: weaker.
    Named(String),
    /// The machine's own, with all that listens on it: much weaker.
    Host,
}

/// How far a bridge of one's own reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To this machine.
    Inside,
    /// Everywhere: weaker.
    Everywhere,
}

/// A port that is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRequest {
    /// What programs inside listen on, and which port outside leads there.
    pub choice: PortChoice,
    /// A variable that tells programs inside which port it is.
    pub variable: Option<String>,
}

/// Which ports belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// Any free one outside.
    Any {
        /// The port inside.
        inside: u16,
    },
    /// This one outside.
    Fixed {
        /// The port inside.
        inside: u16,
        /// The port outside.
        outside: u16,
    },
    /// A free one of a range, the same inside and outside, as OpenHands has it.
    Same {
        /// The lowest.
        first: u16,
        /// The highest.
        last: u16,
    },
}

/// What is weaker than it could be. Every item is shown by `inspect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relaxed {
    /// Whether the image's own files can be changed inside; what is written has no bound then.
    pub root: RootMode,
    /// Capabilities that are left, by names such as `NET_BIND_SERVICE`.
    pub capabilities: Vec<String>,
    /// Whether debuggers may look into other processes of the sandbox.
    pub debugging: Debugging,
}

impl Relaxed {
    /// Nothing is.
    pub fn nothing() -> Self {
        Self {
            root: RootMode::ReadOnly,
            capabilities: Vec::new(),
            debugging: Debugging::Refused,
        }
    }
}

/// Whether the image's own files can be changed inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootMode {
    /// They cannot.
    ReadOnly,
    /// They can, in a layer that goes with the sandbox.
    Writable,
}

/// Whether processes may trace others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Debugging {
    /// They may not.
    Refused,
    /// They may.
    Allowed,
}

/// What a request may name; a request is the spec of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Images, with `*` for any characters; `None` allows all.
    pub images: Option<Vec<String>>,
    /// Directories of this machine that may be mounted, with all below; `None` allows all but
    /// those that never are.
    pub mounts: Option<Vec<PathBuf>>,
}

impl Allowed {
    /// Whatever is not refused on principle.
    pub fn anything() -> Self {
        Self {
            images: None,
            mounts: None,
        }
    }
}

/// How long sandboxes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// As long as their handle. What a killed process left is removed by the next one.
    WithUs,
    /// Until somebody closes them; dropping the handle leaves them running, and
    /// [`attach`](zareba_runtime::Runtime::attach) finds them.
    KeptAlive {
        /// After so long without an action [`reap`](crate::DockerRuntime::reap) ends them.
        idle_timeout: Option<Duration>,
    },
}

/// Sandboxes that are started ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warm {
    /// How many wait.
    pub sandboxes: usize,
    /// The silence that a command of theirs may keep. A spec that asks for another gets a new
    /// one, because an executor is told when it starts.
    pub no_change_timeout: Duration,
}

impl fmt::Debug for DockerOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values of variables may be secrets, and extra options may hold some.
        let names: Vec<&String> = self.environment.iter().map(|(name, _)| name).collect();
        let extra: Vec<&String> = self.extra.keys().collect();
        formatter
            .debug_struct("DockerOptions")
            .field("engine", &self.engine)
            .field("state_dir", &self.state_dir)
            .field("program", &self.program)
            .field("image", &self.image)
            .field("user", &self.user)
            .field("volumes", &self.volumes)
            .field("environment", &names)
            .field("usage", &self.usage)
            .field("network", &self.network)
            .field("ports", &self.ports)
            .field("relaxed", &self.relaxed)
            .field("extra", &extra)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}
