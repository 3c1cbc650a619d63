//! Starting a sandbox with our own program in it, and taking every right from it.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::fs::{MemfdFlags, memfd_create};
use zareba_confine::{
    Bounds, CompiledFilter, Confined, Entry, EntryKind, Hooks, LandlockReport, LaunchError,
    PathPolicy, Permissions, Policy, Program, Reach, ResourceLimits, RestrictError, Ruleset,
    SeccompProfile, Step, drop_all_capabilities, is_root_of_machine, launch,
};

use crate::HomeTools;

use super::{
    SuperviseError, Supervision,
    groups::Groups,
    holds::{Hold, Holds},
    program::{Channels, Invocation, KeyPipe},
    supervise::{Preparing as _, Usage},
    view::{HOME, View, WORKSPACE, WorkspaceMode},
};

/// What a sandbox is started from.
pub(super) struct Start<'a> {
    pub(super) supervision: &'a Supervision,
    pub(super) view: &'a View,
    pub(super) policy: &'a Policy,
    pub(super) groups: &'a Groups<'a>,
    pub(super) holds: &'a Holds,
    pub(super) tools: Option<&'a HomeTools>,
    /// Done while the sandbox takes its rights from itself.
    pub(super) meanwhile: &'a dyn Fn(),
}

/// A sandbox whose executor waits for its key.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) confined: Confined,
    pub(super) key: KeyPipe,
    pub(super) landlock: LandlockReport,
}

impl Start<'_> {
    /// Where changes reach the machine, and we are root there, a file of the sandbox may be
    /// root's own outside.
    fn may_set_ids(&self) -> bool {
        let reaches_out = self.supervision.workspace.is_some()
            && self.supervision.mode == WorkspaceMode::ReadWrite;
        !(reaches_out && is_root_of_machine())
    }

    pub(super) fn start(&self) -> Result<Started, SuperviseError> {
        let invocation = Invocation {
            view: self.view,
            environment: &self.supervision.environment,
            arguments: &self.supervision.arguments,
            tools: self.tools,
        };
        let channels = Channels::open(&self.supervision.socket).preparing("the executor")?;
        let program = Program {
            shown: "zareba executor",
            run: &|| invocation.run(self.supervision.executor),
            directory: WORKSPACE.into(),
            descriptors: channels.inside,
        };
        let restriction = Restriction {
            limits: limits_of_each(&self.supervision.limits, self.holds),
            paths: paths(self.view, &self.policy.entries, self.tools),
            filter: filter(self.may_set_ids())?,
            told: Told::new().preparing("what Landlock will tell")?,
        };
        let confined = launch(
            self.policy,
            program,
            &Hooks {
                birthplace: self.groups.birthplace(),
                groups: &|| self.groups.make(),
                meanwhile: self.meanwhile,
                confirm: &|pid| self.groups.confirm(pid),
                restrict: &|| restriction.apply(),
            },
        )?;
        let landlock = restriction.told.report(&restriction.paths);
        Ok(Started {
            landlock: landlock.inspect_err(|_| confined.end())?,
            confined,
            key: channels.key,
        })
    }
}

/// Made once, before this process was copied if it is a copy.
pub(super) fn filter(set_id_files: bool) -> Result<&'static CompiledFilter, LaunchError> {
    static FILTERS: [OnceLock<CompiledFilter>; 2] = [OnceLock::new(), OnceLock::new()];
    let [without, with] = &FILTERS;
    let made = if set_id_files { with } else { without };
    if let Some(filter) = made.get() {
        return Ok(filter);
    }
    let filter = SeccompProfile::builtin(Permissions {
        debugging: false,
        user_namespaces: false,
        set_id_files,
    })
    .map_err(|error| LaunchError::of(Step::Seccomp, error.raw_os_error()))?;
    Ok(made.get_or_init(|| filter))
}

/// What is taken from a sandbox last, in its own process.
struct Restriction {
    limits: ResourceLimits,
    paths: PathPolicy,
    filter: &'static CompiledFilter,
    told: Told,
}

impl Restriction {
    fn apply(&self) -> Result<(), RestrictError> {
        let failed = |step, errno: Option<i32>| RestrictError {
            step,
            errno: errno.unwrap_or(0),
        };
        self.limits
            .apply()
            .map_err(|error| failed(Step::ResourceLimits, error.raw_os_error()))?;
        drop_all_capabilities()
            .map_err(|error| failed(Step::Capabilities, error.raw_os_error()))?;
        // Enforced in full at the ABI of this kernel, or this is an error.
        let report = Ruleset::prepare(&self.paths)
            .and_then(Ruleset::enforce)
            .map_err(|error| failed(Step::Landlock, error.raw_os_error()))?;
        self.told
            .tell(&report)
            .map_err(|error| failed(Step::Landlock, error.raw_os_error()))?;
        self.filter
            .install()
            .map_err(|error| failed(Step::Seccomp, error.raw_os_error()))
    }
}

/// What Landlock came to, from the sandbox's process to the supervisor. Its program never has
/// the descriptor.
struct Told(File);

impl Told {
    fn new() -> io::Result<Self> {
        Ok(Self(memfd_create("landlock", MemfdFlags::CLOEXEC)?.into()))
    }

    fn tell(&self, report: &LandlockReport) -> io::Result<()> {
        self.0.write_all_at(&report.abi.to_ne_bytes(), 0)
    }

    fn report(&self, paths: &PathPolicy) -> Result<LandlockReport, SuperviseError> {
        let mut abi = [0; 4];
        self.0
            .read_exact_at(&mut abi, 0)
            .preparing("what Landlock has told")?;
        Ok(LandlockReport::at(i32::from_ne_bytes(abi), paths))
    }
}

/// Where control groups count processes, this is only a floor below them: the kernel would ask for it
/// first, and tell nobody.
const PROCESSES_MAX: u64 = 2048;

/// A floor that holds also where there are no control groups.
fn limits_of_each(usage: &Usage, holds: &Holds) -> ResourceLimits {
    let processes = match holds.pids {
        Hold::ProcessLimit => u64::from(usage.pids).min(PROCESSES_MAX),
        _ => PROCESSES_MAX,
    };
    ResourceLimits {
        open_files: Bounds {
            soft: 4096,
            hard: 4096,
        },
        processes: Some(Bounds::fixed(processes)),
        file_bytes: Some(Bounds::fixed(usage.disk.bytes)),
        stack_bytes: Bounds {
            soft: 8 * 1024 * 1024,
            hard: 64 * 1024 * 1024,
        },
        locked_bytes: Bounds::fixed(64 * 1024),
        // The kernel counts them for the user outside as well.
        pending_signals: Bounds::fixed(1024),
        // Those of all sandboxes of an ordinary user together have 800 KiB on most machines.
        message_queue_bytes: Bounds::fixed(100 * 1024),
    }
}

/// What may be written to. Whether system directories can be changed is up to their mounts.
const PLACES: [&str; 16] = [
    WORKSPACE, HOME, "/tmp", "/var", "/run", "/dev", "/proc", "/usr", "/etc", "/opt", "/bin",
    "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
];

/// Those of them where programs can be started.
const WITH_PROGRAMS: [&str; 12] = [
    WORKSPACE, HOME, "/tmp", "/var", "/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
    "/libx32",
];

/// Those that are there whatever else is.
const ALWAYS_THERE: [&str; 3] = ["/tmp", "/dev", "/proc"];

/// What may be opened inside, beyond what the mounts say already.
fn paths(view: &View, entries: &[Entry], tools: Option<&HomeTools>) -> PathPolicy {
    if let View::Image { .. } = view {
        // All of it is the sandbox's own.
        let everything = || vec![PathBuf::from("/")];
        return PathPolicy {
            read_only: everything(),
            read_write: everything(),
            execute: everything(),
            tcp: None,
            reach: Reach::Inside,
        };
    }
    // A link leads to another of them, and what may be done there is said there.
    let is_there = |place: &&str| {
        let is_it = |entry: &Entry| {
            entry.inside == Path::new(place) && !matches!(entry.kind, EntryKind::Link { .. })
        };
        ALWAYS_THERE.contains(place) || entries.iter().any(is_it)
    };
    let there: Vec<PathBuf> = PLACES
        .into_iter()
        .filter(is_there)
        .map(PathBuf::from)
        .collect();
    let holds_programs = |path: &&PathBuf| WITH_PROGRAMS.contains(&path.to_str().unwrap_or(""));
    // The directory of the home is there as soon as anything in it is.
    let home = tools.filter(|tools| !tools.is_empty());
    let home = home.map(|tools| tools.home.clone());
    let programs = there.iter().filter(holds_programs).cloned();
    PathPolicy {
        read_only: vec![PathBuf::from("/")],
        execute: programs.chain(home).collect(),
        read_write: there,
        tcp: None,
        reach: Reach::Inside,
    }
}
