//! The supervisor: one small process per sandbox, outside of it, with a single thread.
//!
//! It makes the sandbox, holds its limits, and ends with it. It parses nothing that comes from
//! inside: the executor there gets a socket that listens under a name outside, its key through a
//! pipe, and our own standard output to say on it that it is ready.

use std::{
    ffi::{CString, OsString},
    fs::{self, File},
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{ffi::OsStringExt as _, fs::PermissionsExt as _, net::UnixListener},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid},
};
use zareba_confine::{
    Bounds, Confined, Hooks, Identity, LaunchError, MemoryCap, Network, PathPolicy, Permissions,
    Policy, Program, Reach, ResourceLimits, RestrictError, Ruleset, SeccompProfile, Step,
    cgroup::{CgroupError, Demand, Group, Host, LeafLimits, Limits, OomScope},
    drop_all_capabilities, launch,
};

use super::view::{self, HOME, Places, USER, WORKSPACE, WorkspaceMode};

/// Who the agent is inside.
const UID_INSIDE: u32 = 1000;

/// Users beyond those that directories and container managers give away by default: an escape
/// lands on nobody, and two sandboxes share nothing.
const UIDS_OUTSIDE: std::ops::Range<u32> = 2_000_300_000..2_147_000_000;

/// Numbers of the executor's channels.
const LISTEN_FD: i32 = 3;
const KEY_FD: i32 = 4;

/// What `/tmp` and `/dev/shm` may take.
const TMP_CAP: MemoryCap = MemoryCap {
    bytes: 1024 * 1024 * 1024,
    inodes: 100_000,
};
const SHM_CAP: MemoryCap = MemoryCap {
    bytes: 256 * 1024 * 1024,
    inodes: 10_000,
};

/// How long what is left of a sandbox may take to be gone.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Where the new root is put together: a directory that everyone can enter and that nothing
/// inside comes from.
const STAGE: &str = "/sys";

/// Where programs are inside.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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
    /// A directory of this machine to work in; `None` is an empty one.
    pub workspace: Option<PathBuf>,
    /// How it appears.
    pub mode: WorkspaceMode,
    /// What can be reached over the network.
    pub network: Network,
    /// What the sandbox may use.
    pub limits: Usage,
    /// Variables of the executor and its shells.
    pub environment: Vec<(OsString, OsString)>,
    /// More arguments for the executor.
    pub arguments: Vec<OsString>,
    /// Its end means that nobody wants the sandbox any more.
    pub lifeline: Option<OwnedFd>,
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
    /// The sandbox itself.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

trait Preparing<T> {
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
    let identity = choose_identity();
    let places =
        make_places(&supervision.directory, identity).preparing("the sandbox's directories")?;
    let entries = view::entries(
        &places,
        identity,
        supervision.workspace.as_deref(),
        supervision.mode,
    )
    .preparing("what the sandbox sees")?;
    let policy = Policy {
        hostname: "sandbox".to_owned(),
        identity,
        stage: PathBuf::from(STAGE),
        entries,
        tmp: TMP_CAP,
        shm: SHM_CAP,
        network: supervision.network,
    };
    let group = make_group(&supervision)?;
    let ended = start(&supervision, &policy, &group)
        .map(|confined| wait(&confined, supervision.lifeline.as_ref()));
    // Whatever happened, nothing of it stays.
    let _ = fs::remove_file(&supervision.socket);
    if group.is_available() {
        let _ = group.kill(END_WITHIN);
        let _ = group.remove(END_WITHIN);
    }
    ended
}

fn choose_identity() -> Identity {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let (uid_outside, gid_outside) = if uid.is_root() {
        let own = rand::random_range(UIDS_OUTSIDE);
        (own, own)
    } else {
        (uid.as_raw(), gid.as_raw())
    };
    Identity {
        uid_inside: UID_INSIDE,
        gid_inside: UID_INSIDE,
        uid_outside,
        gid_outside,
    }
}

/// The sandbox's user must reach its layers, and nothing else of ours.
fn make_places(directory: &Path, identity: Identity) -> io::Result<Places> {
    let make = |name: &str| {
        let path = directory.join(name);
        fs::create_dir(&path)?;
        std::os::unix::fs::chown(
            &path,
            Some(identity.uid_outside),
            Some(identity.gid_outside),
        )?;
        Ok::<_, io::Error>(path)
    };
    let places = Places {
        files: make("files")?,
        layer: make("layer")?,
        empty: make("empty")?,
    };
    make("layer/upper")?;
    make("layer/work")?;
    Ok(places)
}

fn make_group(supervision: &Supervision) -> Result<Group, SuperviseError> {
    let Usage {
        memory_bytes,
        pids,
        cpu_millis,
    } = supervision.limits;
    let limits = Limits {
        memory_bytes: Some(memory_bytes),
        pids: Some(pids),
        cpu_millis: Some(cpu_millis),
        io: Vec::new(),
        // A user without delegated groups has the limits of each process only, and is told.
        demand: if rustix::process::geteuid().is_root() {
            Demand::Enforced
        } else {
            Demand::BestEffort
        },
    };
    Ok(Group::create(&Host::detect()?, &supervision.id, &limits)?)
}

/// Kills and removes what is left of a sandbox's control groups, when its supervisor could not.
pub(crate) fn forget_group(id: &str) {
    let Ok(host) = Host::detect() else { return };
    let Ok(Some(group)) = Group::open(&host, id) else {
        return;
    };
    let removed = group
        .kill(END_WITHIN)
        .and_then(|()| group.remove(END_WITHIN));
    if let Err(error) = removed {
        tracing::warn!(sandbox = id, %error, "cannot remove a sandbox's control groups");
    }
}

fn start(
    supervision: &Supervision,
    policy: &Policy,
    group: &Group,
) -> Result<Confined, SuperviseError> {
    let leaf = group.leaf(
        "all",
        &LeafLimits {
            memory_bytes: None,
            pids: None,
            oom: OomScope::OneProcess,
        },
    )?;
    let program = program(supervision)?;
    let filter = SeccompProfile::builtin(Permissions {
        debugging: false,
        user_namespaces: false,
    })
    .map_err(|error| LaunchError::of(Step::Seccomp, error.raw_os_error()))?;
    let executable = program
        .executable
        .as_fd()
        .try_clone_to_owned()
        .preparing("our own program")?;
    let restrict = move || {
        let failed = |step, errno: Option<i32>| RestrictError {
            step,
            errno: errno.unwrap_or(0),
        };
        limits_of_each()
            .apply()
            .map_err(|error| failed(Step::ResourceLimits, error.raw_os_error()))?;
        drop_all_capabilities()
            .map_err(|error| failed(Step::Capabilities, error.raw_os_error()))?;
        let rules = Ruleset::prepare(&paths())
            .and_then(|rules| rules.allow_program(executable.as_fd()))
            .and_then(Ruleset::enforce);
        // Enforced in full at the ABI of this kernel, or this is an error.
        let _report = rules.map_err(|error| failed(Step::Landlock, error.raw_os_error()))?;
        filter
            .install()
            .map_err(|error| failed(Step::Seccomp, error.raw_os_error()))
    };
    let admit = |pid: i32| match Pid::from_raw(pid) {
        Some(pid) => leaf.attach(pid).map_err(io::Error::other),
        None => Err(io::ErrorKind::InvalidInput.into()),
    };
    Ok(launch(
        policy,
        program,
        &Hooks {
            admit: &admit,
            restrict: &restrict,
        },
    )?)
}

/// Our own program, as the executor inside.
fn program(supervision: &Supervision) -> Result<Program, SuperviseError> {
    let executable = File::open("/proc/self/exe").preparing("our own program")?;
    let _ = fs::remove_file(&supervision.socket);
    let listener = UnixListener::bind(&supervision.socket).preparing("the executor's socket")?;
    fs::set_permissions(&supervision.socket, fs::Permissions::from_mode(0o600))
        .preparing("the executor's socket")?;
    let (key, write_key) = pipe_with(PipeFlags::CLOEXEC).preparing("the executor's key")?;
    rustix::io::write(&write_key, supervision.key.as_bytes()).preparing("the executor's key")?;
    let mut arguments: Vec<OsString> = [
        "zareba",
        "executor",
        "--working-dir",
        WORKSPACE,
        "--no-enable-browser",
    ]
    .map(OsString::from)
    .to_vec();
    let channels = [
        ("--listen-fd", LISTEN_FD.to_string()),
        ("--key-fd", KEY_FD.to_string()),
        ("--ready-fd", "1".to_owned()),
        ("--username", USER.to_owned()),
    ];
    for (flag, value) in channels {
        arguments.extend([OsString::from(flag), OsString::from(value)]);
    }
    arguments.extend(supervision.arguments.iter().cloned());
    let environment = [("PATH", SEARCH_PATH), ("HOME", HOME), ("LANG", "C.UTF-8")]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .into_iter()
        .chain(supervision.environment.iter().cloned())
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        });
    Ok(Program {
        executable: executable.into(),
        arguments: c_strings(arguments).preparing("the executor's arguments")?,
        environment: c_strings(environment).preparing("the executor's environment")?,
        directory: WORKSPACE.into(),
        descriptors: vec![(listener.into(), LISTEN_FD), (key, KEY_FD)],
    })
}

fn c_strings(strings: impl IntoIterator<Item = OsString>) -> io::Result<Vec<CString>> {
    strings
        .into_iter()
        .map(|string| Ok(CString::new(string.into_vec())?))
        .collect()
}

/// A floor that holds also where there are no control groups.
fn limits_of_each() -> ResourceLimits {
    ResourceLimits {
        open_files: Bounds {
            soft: 4096,
            hard: 4096,
        },
        processes: Some(Bounds::fixed(2048)),
        file_bytes: None,
        stack_bytes: Bounds {
            soft: 8 * 1024 * 1024,
            hard: 64 * 1024 * 1024,
        },
        locked_bytes: Bounds::fixed(64 * 1024),
        pending_signals: Bounds::fixed(4096),
        message_queue_bytes: Bounds::fixed(800 * 1024),
    }
}

/// What may be opened inside, beyond what the mounts say already.
fn paths() -> PathPolicy {
    let there = |paths: &[&str]| {
        paths
            .iter()
            .map(PathBuf::from)
            .filter(|path| path.exists())
            .collect()
    };
    PathPolicy {
        read_only: there(&["/"]),
        read_write: there(&[WORKSPACE, HOME, "/tmp", "/var", "/run", "/dev", "/proc"]),
        execute: there(&[
            "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", WORKSPACE,
            HOME, "/tmp", "/var",
        ]),
        tcp: None,
        reach: Reach::Inside,
    }
}

/// Waits for the end of the sandbox, or for nobody to want it any more.
fn wait(confined: &Confined, lifeline: Option<&OwnedFd>) -> i32 {
    let mut wanted = lifeline;
    loop {
        let mut fds = vec![PollFd::new(&confined.pidfd, PollFlags::IN)];
        fds.extend(wanted.map(|lifeline| PollFd::new(lifeline, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => {
                let _ = pidfd_send_signal(&confined.pidfd, Signal::KILL);
                return reap(confined);
            }
        }
        let ended = !fds[0].revents().is_empty();
        let stirred = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if let Some(lifeline) = wanted.filter(|_| stirred)
            && has_ended(lifeline)
        {
            wanted = None;
            let _ = pidfd_send_signal(&confined.pidfd, Signal::KILL);
        }
        if ended {
            return reap(confined);
        }
    }
}

/// What is written to a lifeline means nothing.
fn has_ended(lifeline: &OwnedFd) -> bool {
    !matches!(
        rustix::io::read(lifeline, &mut [0; 256]),
        Ok(1..) | Err(Errno::INTR | Errno::AGAIN)
    )
}

fn reap(confined: &Confined) -> i32 {
    match waitid(WaitId::PidFd(confined.pidfd.as_fd()), WaitIdOptions::EXITED) {
        Ok(Some(status)) => status
            .exit_status()
            .unwrap_or(128 + status.terminating_signal().unwrap_or(0)),
        Ok(None) | Err(_) => 1,
    }
}
