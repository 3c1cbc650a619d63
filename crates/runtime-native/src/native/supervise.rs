//! The supervisor: one small process per sandbox, outside of it, with a single thread.
//!
//! It makes the sandbox, holds its limits, and ends with it. It parses nothing that comes from
//! inside: the executor there gets a socket that listens under a name outside, its key through a
//! pipe, and our own standard output to say on it that it is ready. There the supervisor says that
//! the sandbox is kept: described for others, and served. Whoever made it waits for both.
//!
//! Design: docs/design/processes.md.

use std::{
    cell::OnceCell,
    ffi::OsString,
    fs, io,
    net::IpAddr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::Mode,
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::value::to_raw_value;
use zareba_confine::{
    Confined, EndRequests, EnforcementReport, Evidence, Identity, LaunchError, MemoryCap, Network,
    Policy, ReadBackError,
    cgroup::{CgroupError, Group},
    ignore_broken_pipes, is_root_of_machine, limit_objects,
    network::{DNS_V4, DNS_V6},
    refuse_core_handlers, require_capabilities, reset_signals,
};
use zareba_image::{ImageError, ImageLease, ImageStore};
use zareba_runtime::Strictness;
use zareba_terminal::{Process, children, descendants};

use crate::{HomeTools, RunCommand};

use super::{
    Reachable,
    described::Description,
    disk::{DiskLimit, DiskWatch, Layers},
    doorman::Doorman,
    groups::{self, Groups},
    holds::{Hold, Holds, can_hold},
    lot,
    memory::MemoryWatch,
    proxy::Proxy,
    start::{Start, Started},
    view::{self, Resolver, SystemMode, View, WorkspaceMode},
    watch::Watch,
};
use crate::changes::ChangesPlace;

/// Who the agent is inside, among the programs of this machine and among those of an image,
/// where everything belongs to root; without a single capability that is a name like any other.
const UID_INSIDE: u32 = 1000;
const UID_IN_IMAGE: u32 = 0;

/// Users beyond those that directories and container managers give away by default: an escape
/// lands on nobody, and two sandboxes share nothing.
const UIDS_OUTSIDE: std::ops::Range<u32> = 2_000_300_000..2_147_000_000;

/// Where the new root is put together: a directory that everyone can enter and that nothing
/// inside comes from.
const STAGE: &str = "/sys";

/// What a supervisor writes to its standard output when all that belongs to the sandbox is there.
pub(crate) const KEPT_LINE: &[u8] = b"kept\n";

/// What a supervisor is told.
#[derive(Debug)]
pub struct Supervision {
    /// The sandbox's name.
    pub id: String,
    /// A private directory outside, which is there and is ours.
    pub directory: PathBuf,
    /// Where the executor is reached.
    pub socket: PathBuf,
    /// The executor's key.
    pub key: String,
    /// The image whose files it has, and the store that it is in.
    pub image: Option<(PathBuf, String)>,
    /// A directory of this machine to work in; `None` is an empty one.
    pub workspace: Option<PathBuf>,
    /// How it appears.
    pub mode: WorkspaceMode,
    /// What may be done to the machine's programs and settings, as seen inside.
    pub system: SystemMode,
    /// Names in a workspace that cannot be made or changed if changes reach the machine.
    pub guarded: Vec<String>,
    /// Whose programs it has beside those of the machine.
    pub home: Option<UserHome>,
    /// What can be reached over the network.
    pub reachable: Reachable,
    /// What the sandbox may use.
    pub limits: Usage,
    /// What becomes of limits that cannot be held.
    pub strictness: Strictness,
    /// Variables of the executor and its shells.
    pub environment: Vec<(OsString, OsString)>,
    /// More arguments for the executor.
    pub arguments: Vec<OsString>,
    /// How it is begun.
    pub executor: RunCommand,
    /// Its end means that nobody wants the sandbox any more.
    pub lifeline: Option<OwnedFd>,
}

/// The home of the user who starts a sandbox.
#[derive(Debug)]
pub struct UserHome {
    /// Where it is.
    pub directory: PathBuf,
    /// The `PATH` of its user, which says in which order programs are looked for.
    pub search_path: OsString,
}

/// What a sandbox may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Thousandths of a processor.
    pub cpu_millis: u32,
    /// What its changes to files may take, beside what it has in memory.
    pub disk: DiskLimit,
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// A directory, pipe or socket outside.
    #[error("cannot prepare {what}")]
    Prepare {
        /// Which.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A control group.
    #[error("cannot limit the sandbox")]
    Limit(#[from] CgroupError),
    /// The image that it should have.
    #[error("cannot use the image")]
    Image(#[from] ImageError),
    /// The sandbox itself.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// What stands around it is not what was asked for.
    #[error("the sandbox is not as strong as it should be")]
    Weaker(#[from] ReadBackError),
}

pub(super) trait Preparing<T> {
    fn preparing(self, what: &'static str) -> Result<T, SuperviseError>;
}

impl<T, E: Into<io::Error>> Preparing<T> for Result<T, E> {
    fn preparing(self, what: &'static str) -> Result<T, SuperviseError> {
        self.map_err(|error| SuperviseError::Prepare {
            what,
            source: error.into(),
        })
    }
}

/// Makes a sandbox with an executor in it, and returns its exit status when it has ended. The
/// calling process must have a single thread.
///
/// # Errors
/// When a layer cannot be put in place; nothing is left then.
pub fn supervise(supervision: Supervision) -> Result<i32, SuperviseError> {
    reset_signals().preparing("its signals")?;
    refuse_core_handlers().preparing("limits of core files")?;
    // A sandbox that failed half-way is told by what it wrote last.
    ignore_broken_pipes();
    // Whatever mask we were started with, what is made for the inside must be readable there.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    require_capabilities().preparing("a sandbox as root")?;
    require_layers(&supervision.directory).preparing("a place for the sandbox's layers")?;
    let requests = EndRequests::take().preparing("its signals")?;
    let (view, _lease) = find_view(&supervision)?;
    let identity = choose_identity(&view)?;
    let tools = find_tools(&supervision, &view);
    let seen = look(&supervision, &view, identity, tools.as_ref())?;
    let policy = Policy {
        hostname: "sandbox".to_owned(),
        identity,
        stage: PathBuf::from(STAGE),
        root: seen.root,
        entries: seen.entries,
        memory: files_in_memory(supervision.limits.memory_bytes),
        network: match &supervision.reachable {
            Reachable::Nothing => Network::None,
            Reachable::Listed(rules) => Network::Filtered {
                tcp_ports: rules.ports().into_iter().collect(),
            },
            Reachable::Everything => Network::Host,
        },
    };
    let plan = groups::Plan::of(&supervision)?;
    let groups = plan.begin()?;
    let holds = can_hold(supervision.strictness);
    let walls = Walls {
        view: &view,
        policy: &policy,
        groups: &groups,
        holds: &holds,
        tools: tools.as_ref(),
    };
    let ended = run(&supervision, &walls, &requests);
    drop(seen.lease);
    drop(seen.workspace_lock);
    view::remove_stand_ins(&supervision.directory);
    // Whatever happened, nothing of it stays.
    let _ = fs::remove_file(&supervision.socket);
    match groups.group() {
        Some(group) => groups::end(group),
        None => plan.let_go(),
    }
    match groups.into_error() {
        Some(error) => Err(error.into()),
        None => ended,
    }
}

fn look(
    supervision: &Supervision,
    view: &View,
    identity: Identity,
    tools: Option<&HomeTools>,
) -> Result<view::Seen, SuperviseError> {
    view::see(&view::Request {
        view,
        identity,
        directory: &supervision.directory,
        workspace: supervision.workspace.as_deref(),
        mode: supervision.mode,
        guarded: &supervision.guarded,
        tools,
        resolver: match supervision.reachable {
            Reachable::Nothing => Resolver::None,
            Reachable::Listed(_) => {
                Resolver::At(&const { [IpAddr::V4(DNS_V4), IpAddr::V6(DNS_V6)] })
            }
            Reachable::Everything => Resolver::LikeTheMachine,
        },
    })
    .preparing("what the sandbox sees")
}

/// Programs in the user's home, for a sandbox that has those of this machine. Those of an image have other
/// libraries.
fn find_tools(supervision: &Supervision, view: &View) -> Option<HomeTools> {
    let home = supervision.home.as_ref()?;
    let workspace = supervision.workspace.as_deref();
    match view {
        View::Machine { .. } => HomeTools::find(&home.directory, &home.search_path, workspace),
        View::Image { .. } => None,
    }
}

/// Whose programs the sandbox has. An image must not be removed as long as the lease is held.
fn find_view(supervision: &Supervision) -> Result<(View, Option<ImageLease>), SuperviseError> {
    let Some((store, image)) = &supervision.image else {
        let system = supervision.system;
        return Ok((View::Machine { system }, None));
    };
    let image = ImageStore::open(store)?.find(image)?;
    let lease = image.hold().preparing("the image")?;
    let layers = image.layers;
    Ok((View::Image { layers }, Some(lease)))
}

/// What stands around a sandbox.
struct Walls<'a> {
    view: &'a View,
    policy: &'a Policy,
    groups: &'a Groups<'a>,
    holds: &'a Holds,
    tools: Option<&'a HomeTools>,
}

fn run(
    supervision: &Supervision,
    walls: &Walls<'_>,
    requests: &EndRequests,
) -> Result<i32, SuperviseError> {
    let Walls {
        view,
        policy,
        groups,
        holds,
        tools,
    } = *walls;
    let disk = OnceCell::new();
    let Started {
        mut confined,
        key,
        landlock,
    } = Start {
        supervision,
        view,
        policy,
        groups,
        holds,
        tools,
        meanwhile: &|| {
            let directory = &supervision.directory;
            let layers = Layers::of(&policy.root, &policy.entries, directory.join("layer"));
            let limit = supervision.limits.disk;
            let _ = disk.set(DiskWatch::begin(directory, &layers, limit));
        },
    }
    .start()?;
    let disk = disk.into_inner();
    let mut disk = disk
        .unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
        .preparing("the watch over its files")
        .inspect_err(|_| confined.end())?;
    let made = groups.group().ok_or(io::ErrorKind::NotFound);
    let group = made
        .preparing("its control groups")
        .inspect_err(|_| confined.end())?;
    if let Some(used) = group.used_time() {
        disk.watch_activity(move || used.read());
    }
    let others = holds.others(&supervision.limits);
    let evidence = Evidence {
        policy,
        landlock: &landlock,
        control_groups: group.report(),
        others: &others,
    };
    limit_objects(&confined, policy)
        .preparing("limits of its System V objects")
        .inspect_err(|_| confined.end())?;
    let attended = check(&confined, evidence).and_then(|checked| {
        // Only now does the executor begin.
        key.send(&supervision.key).preparing("the executor's key")?;
        attend(
            supervision,
            walls,
            &mut confined,
            group,
            checked,
            disk.base(),
        )
    });
    let Attended {
        executor,
        doorman,
        proxy: _proxy,
    } = attended.inspect_err(|_| confined.end())?;
    disk.watch_processes(confined.pid, executor.0);
    let memory = match holds.memory {
        Hold::Watched { .. } => Some(
            MemoryWatch::begin(
                &supervision.directory,
                supervision.limits.memory_bytes,
                confined.pid,
                executor.0,
            )
            .preparing("the watch over its memory")
            .inspect_err(|_| confined.end())?,
        ),
        Hold::ControlGroup | Hold::ProcessLimit | Hold::No { .. } => None,
    };
    let watch = Watch {
        confined: &confined,
        group,
        executor,
        lifeline: supervision.lifeline.as_ref(),
        requests,
        disk,
        memory,
        doorman,
    };
    Ok(watch.until_the_end())
}

/// A sandbox that is as strong as it should be.
struct Checked {
    /// Its executor's number outside, and its descriptor.
    executor: (i32, OwnedFd),
    report: EnforcementReport,
}

/// Reads back what stands around a sandbox. The executor still waits for its key: the first process
/// has no other child yet.
fn check(confined: &Confined, evidence: Evidence<'_>) -> Result<Checked, SuperviseError> {
    let executor = children(confined.pid).first().copied();
    // Not every kernel keeps a list of children.
    let executor = executor
        .or_else(|| Some(descendants(confined.pid).first()?.id.pid))
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::NotFound)
        .preparing("the executor")?;
    let handle = pidfd_open(executor, PidfdFlags::empty()).preparing("the executor")?;
    let report = EnforcementReport::read(executor, evidence)?;
    Ok(Checked {
        executor: (executor.as_raw_nonzero().get(), handle),
        report,
    })
}

/// What a sandbox has beside itself.
struct Attended {
    executor: (i32, OwnedFd),
    doorman: Option<Doorman>,
    proxy: Option<Proxy>,
}

/// Writes down what was read back, starts what serves the sandbox outside, and tells whoever waits
/// that it is kept. The executor starts its shell meanwhile.
fn attend(
    supervision: &Supervision,
    walls: &Walls<'_>,
    confined: &mut Confined,
    group: &Group,
    checked: Checked,
    disk_base: DiskLimit,
) -> Result<Attended, SuperviseError> {
    let described = Process::read(confined.pid).and_then(|init| {
        let description = Description {
            init: init.id,
            groups: group.directories(),
            disk: supervision.limits.disk,
            disk_base,
            memory_bytes: Some(supervision.limits.memory_bytes),
            changes: changes_place(supervision),
            home_tools: walls
                .tools
                .map(|tools| tools.shown.iter().cloned().collect()),
            enforcement: to_raw_value(&checked.report)?,
        };
        description.write(&supervision.directory)
    });
    described.preparing("the description of the sandbox")?;
    let directory = &supervision.directory;
    let doorman = confined.doorway.take();
    let doorman = doorman.map(|doorway| Doorman::begin(directory, doorway));
    let proxy = match (&supervision.reachable, confined.network.take()) {
        (Reachable::Listed(rules), Some(sockets)) => Some(Proxy::start(directory, sockets, rules)),
        _ => None,
    };
    let attended = Attended {
        executor: checked.executor,
        doorman: doorman.transpose().preparing("the way in")?,
        proxy: proxy.transpose().preparing("the way out")?,
    };
    // Nobody may wait any more; then the lifeline tells.
    let _ = rustix::io::write(rustix::stdio::stdout(), KEPT_LINE);
    Ok(attended)
}

/// Where changes of the workspace go; unknown for a path that the description cannot hold.
fn changes_place(supervision: &Supervision) -> Option<ChangesPlace> {
    Some(match (&supervision.workspace, supervision.mode) {
        (None, _) => ChangesPlace::Own,
        (Some(lower), WorkspaceMode::CopyOnWrite) => ChangesPlace::Layer {
            lower: lower.to_str()?.into(),
        },
        (Some(_), WorkspaceMode::ReadOnly | WorkspaceMode::ReadWrite) => ChangesPlace::Direct,
    })
}

/// What files in memory may take, those of `/tmp`, `/dev/shm`, the home and other places together: half of
/// the memory that there is, as on any machine, so that whoever fills it is told and not killed.
fn files_in_memory(memory_bytes: u64) -> MemoryCap {
    const BYTES_PER_INODE: u64 = 8 * 1024;
    let bytes = memory_bytes / 2;
    MemoryCap {
        bytes,
        inodes: bytes / BYTES_PER_INODE,
    }
}

pub(super) fn choose_identity(view: &View) -> Result<Identity, SuperviseError> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let (uid_outside, gid_outside) = if is_root_of_machine() {
        let span = u128::from(UIDS_OUTSIDE.end - UIDS_OUTSIDE.start);
        let drawn = lot::draw().preparing("a user of its own")? % span;
        let own = UIDS_OUTSIDE.start + u32::try_from(drawn).unwrap_or_default();
        (own, own)
    } else {
        (uid.as_raw(), gid.as_raw())
    };
    let inside = match view {
        View::Machine { .. } => UID_INSIDE,
        View::Image { .. } => UID_IN_IMAGE,
    };
    Ok(Identity {
        uid_inside: inside,
        gid_inside: inside,
        uid_outside,
        gid_outside,
    })
}

/// An overlay cannot have its layer on another overlay, which is what containers often run on.
fn require_layers(directory: &Path) -> io::Result<()> {
    const OVERLAY: u64 = 0x794c_7630;
    let found = rustix::fs::statfs(directory)?;
    if u64::try_from(found.f_type).unwrap_or(0) == OVERLAY {
        let problem = "the state directory lies on an overlay file system, as in most containers, and \
                       cannot hold layers of another: set `state.directory` to a volume or a tmpfs";
        return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
    }
    Ok(())
}
