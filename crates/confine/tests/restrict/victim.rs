//! A process that confines itself and then makes one attempt.

use std::{
    io::Read as _,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            net::{SocketAddr, UnixListener},
            process::ExitStatusExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use zareba_confine::{
    Bounds, PathPolicy, Permissions, Reach, ResourceLimits, Ruleset, SeccompProfile,
    drop_all_capabilities,
};

use crate::sys;

/// A victim that hangs is ended after this many seconds, so that the suite ends.
const DEADLINE_SECONDS: u32 = 60;

/// Descriptors that a victim may have open.
pub(crate) const OPEN_FILES_MAX: u64 = 256;

/// Bytes that a file of a victim may have.
pub(crate) const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One attempt, and what must come of it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) permissions: Permissions,
    pub(crate) attempt: fn(&Setting) -> Outcome,
    pub(crate) expected: Outcome,
    pub(crate) control: Control,
}

impl Case {
    /// An attempt that the layers must refuse with an error number, and nothing else would.
    pub(crate) fn refused(
        name: &'static str,
        errno: i32,
        attempt: fn(&Setting) -> Outcome,
    ) -> Self {
        Self {
            name,
            permissions: Permissions::NONE,
            attempt,
            expected: Outcome::Refused(errno),
            control: Control::Always,
        }
    }

    /// Something ordinary, which must still work.
    pub(crate) fn works(name: &'static str, attempt: fn(&Setting) -> Outcome) -> Self {
        let expected = Outcome::done("");
        let control = Control::Never;
        Self {
            name,
            permissions: Permissions::NONE,
            attempt,
            expected,
            control,
        }
    }

    pub(crate) fn with(self, permissions: Permissions) -> Self {
        Self {
            permissions,
            ..self
        }
    }

    pub(crate) fn control(self, control: Control) -> Self {
        Self { control, ..self }
    }
}

/// Whether the attempt is also made without the layers, where it must end otherwise.
#[derive(Clone, Copy)]
pub(crate) enum Control {
    Always,
    /// The kernel refuses an ordinary user in the same way.
    AsRoot,
    /// It must end the same way, or it would change the machine.
    Never,
}

impl Control {
    pub(crate) fn applies(self) -> bool {
        match self {
            Self::Always => true,
            Self::AsRoot => rustix::process::geteuid().is_root(),
            Self::Never => false,
        }
    }
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It worked; with what is worth comparing.
    Done(String),
    /// The kernel refused it with this error number.
    Refused(i32),
    /// The victim was ended by this signal.
    Killed(i32),
    /// The test itself did not work.
    Broken(String),
}

impl Outcome {
    pub(crate) fn done(text: &str) -> Self {
        Self::Done(text.to_owned())
    }

    pub(crate) fn of<T, E: Into<std::io::Error>>(result: Result<T, E>) -> Self {
        match result.map_err(Into::into) {
            Ok(_) => Self::done(""),
            Err(error) => match error.raw_os_error() {
                Some(errno) => Self::Refused(errno),
                None => Self::Broken(error.to_string()),
            },
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Done(text) => format!("done {text}"),
            Self::Refused(errno) => format!("refused {errno}"),
            Self::Killed(signal) => format!("killed {signal}"),
            Self::Broken(text) => format!("broken {text}"),
        }
    }

    fn read(text: &str) -> Self {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match (word, rest.parse()) {
            ("done", _) => Self::done(rest),
            ("refused", Ok(errno)) => Self::Refused(errno),
            ("killed", Ok(signal)) => Self::Killed(signal),
            _ => Self::Broken(text.to_owned()),
        }
    }
}

/// Whether a victim confines itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    Layers,
    None,
}

/// What a victim finds: `inside` is its own directory, the rest is out of bounds.
pub(crate) struct Setting {
    pub(crate) inside: PathBuf,
    pub(crate) outside: PathBuf,
    /// The process that started it, which it must not reach.
    pub(crate) watcher: i32,
}

impl Setting {
    /// The abstract socket that the watcher listens on.
    pub(crate) fn abstract_socket(&self) -> SocketAddr {
        abstract_socket(self.watcher)
    }
}

fn abstract_socket(watcher: i32) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("zareba-restrict-{watcher}")).unwrap()
}

/// How a victim is told what to do, on its command line.
pub(crate) struct Order {
    case: String,
    protection: Protection,
    setting: Setting,
}

impl Order {
    pub(crate) fn from_arguments(arguments: &[String]) -> Option<Self> {
        let [order, case, protection, directory, watcher] = arguments else {
            return None;
        };
        let protection = match order.as_str() {
            "--victim" if protection == "confined" => Protection::Layers,
            "--victim" => Protection::None,
            _ => return None,
        };
        let directory = Path::new(directory);
        let setting = Setting {
            inside: directory.join("inside"),
            outside: directory.join("outside"),
            watcher: watcher.parse().ok()?,
        };
        Some(Self {
            case: case.clone(),
            protection,
            setting,
        })
    }
}

/// Starts a victim and waits for what it tells.
pub(crate) fn watch(case: &Case, protection: Protection) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    for name in ["inside", "outside"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    std::fs::write(directory.path().join("outside/file"), "outside\n").unwrap();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let _listener = UnixListener::bind_addr(&abstract_socket(own)).unwrap();
    let protection = if protection == Protection::Layers {
        "confined"
    } else {
        "free"
    };
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--victim", case.name, protection])
        .arg(directory.path())
        .arg(own.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    victim
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    let status = victim.wait().unwrap();
    match status.signal() {
        Some(signal) => Outcome::Killed(signal),
        None => Outcome::read(told.trim_end_matches('\n')),
    }
}

/// The victim's side.
pub(crate) fn obey(order: &Order, cases: &[Case]) -> ExitCode {
    sys::alarm(DEADLINE_SECONDS);
    let case = cases.iter().find(|case| case.name == order.case).unwrap();
    let prepared = match order.protection {
        Protection::Layers => confine(case.permissions, &order.setting),
        Protection::None => Ok(()),
    };
    let outcome = match prepared {
        Ok(()) => (case.attempt)(&order.setting),
        Err(step) => Outcome::Broken(step),
    };
    println!("{}", outcome.write());
    ExitCode::SUCCESS
}

/// All layers, in the order of NS-12, without namespaces and mounts.
fn confine(permissions: Permissions, setting: &Setting) -> Result<(), String> {
    let filter = SeccompProfile::builtin(permissions).map_err(|error| format!("{error:?}"))?;
    if !rustix::process::geteuid().is_root() {
        enter_user_namespace().map_err(|error| format!("user namespace: {error}"))?;
    }
    limits().apply().map_err(|error| format!("{error:?}"))?;
    let rules = Ruleset::prepare(&paths(setting)).map_err(|error| format!("{error:?}"))?;
    drop_all_capabilities().map_err(|error| format!("{error:?}"))?;
    let _report = rules.enforce().map_err(|error| format!("{error:?}"))?;
    filter.install().map_err(|error| format!("{error:?}"))
}

/// Where an ordinary user has the rights that the layers need to be put on.
fn enter_user_namespace() -> std::io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    sys::unshare_user()?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))
}

pub(crate) fn limits() -> ResourceLimits {
    ResourceLimits {
        open_files: Bounds::fixed(OPEN_FILES_MAX),
        processes: None,
        file_bytes: Some(Bounds::fixed(FILE_BYTES_MAX)),
        stack_bytes: Bounds {
            soft: 8 << 20,
            hard: 64 << 20,
        },
        locked_bytes: Bounds::fixed(64 << 10),
        pending_signals: Bounds::fixed(1024),
        message_queue_bytes: Bounds::fixed(819_200),
    }
}

/// The system can be read and executed; of what the test made, only one directory can be seen.
fn paths(setting: &Setting) -> PathPolicy {
    let system = [
        "/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc", "/opt", "/proc",
    ];
    let present = system
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.exists());
    PathPolicy {
        read_only: vec![PathBuf::from("/sys/devices/system/cpu")],
        read_write: vec![setting.inside.clone(), PathBuf::from("/dev")],
        execute: present.collect(),
        tcp: None,
        reach: Reach::Inside,
    }
}
