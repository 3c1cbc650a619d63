//! A ground to build sandboxes on, and programs in them.

use std::{
    fs::{self, File},
    io::{PipeReader, Read as _, pipe},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{
            fs::{PermissionsExt as _, chown},
            net::UnixStream,
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tempfile::TempDir;
use zareba_confine::{
    Access, Bounds, Confined, Entry, EntryKind, Hooks, Identity, LaunchError, Layer, Lower,
    MemoryCap, Network, Overlay, Ownership, Permissions, Policy, Program, ResourceLimits,
    RestrictError, Root, SeccompProfile, Step, cgroup::Entrance, drop_all_capabilities, launch,
};

/// Nobody else's, and not one that real sandboxes get.
const OUTSIDE_WHEN_ROOT: u32 = 2_000_200_001;

/// The number of a program that is to be executed.
const PROGRAM: i32 = 3;

const CAP: MemoryCap = MemoryCap {
    bytes: 1 << 20,
    inodes: 100,
};

/// Directories of one test outside.
pub(crate) struct Ground {
    directory: TempDir,
    pub(crate) identity: Identity,
}

impl Ground {
    pub(crate) fn new(uid_inside: u32) -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let (uid_outside, gid_outside) = if uid.is_root() {
            (OUTSIDE_WHEN_ROOT, OUTSIDE_WHEN_ROOT)
        } else {
            (uid.as_raw(), gid.as_raw())
        };
        let identity = Identity {
            uid_inside,
            gid_inside: uid_inside,
            uid_outside,
            gid_outside,
        };
        Self {
            directory: TempDir::new().unwrap(),
            identity,
        }
    }

    /// A directory of our own; as root, that is nobody's inside unless it is mapped.
    pub(crate) fn ours(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn mapped(&self, path: &Path) -> Lower {
        Lower {
            path: path.to_owned(),
            owner: owner(),
            is_direct: false,
        }
    }

    /// A layer of the sandbox's user, for one sandbox: the kernel refuses a second use, because
    /// the first may have ended before everything was written (NS-21).
    pub(crate) fn layer(&self) -> Option<Layer> {
        let layer = tempfile::tempdir_in(self.directory.path()).unwrap().keep();
        for path in [layer.clone(), layer.join("upper"), layer.join("work")] {
            let _ = fs::create_dir(&path);
            let Identity {
                uid_outside,
                gid_outside,
                ..
            } = self.identity;
            chown(&path, Some(uid_outside), Some(gid_outside)).unwrap();
        }
        Some(Layer::Directory(layer))
    }

    /// A sandbox with the machine's programs and these entries.
    pub(crate) fn policy(&self, entries: Vec<Entry>) -> Policy {
        let system = ["/usr", "/bin", "/lib", "/lib64"];
        let system = system.into_iter().filter_map(as_outside);
        Policy {
            hostname: "sandbox".to_owned(),
            identity: self.identity,
            stage: PathBuf::from("/sys"),
            root: Root::Memory,
            entries: system.chain(entries).collect(),
            memory: CAP,
            network: Network::None,
        }
    }
}

impl Drop for Ground {
    /// overlayfs leaves directories behind that nobody may enter, and we can only let ourselves in.
    fn drop(&mut self) {
        let mut pending = vec![self.directory.path().to_owned()];
        while let Some(directory) = pending.pop() {
            let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            pending.extend(below.map(|entry| entry.path()));
        }
    }
}

/// Our own files shall be the sandbox's.
pub(crate) fn owner() -> Ownership {
    Ownership::Mapped {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    }
}

pub(crate) fn as_it_is(path: &str) -> Lower {
    Lower {
        path: path.into(),
        owner: Ownership::AsItIs,
        is_direct: false,
    }
}

pub(crate) fn overlay(inside: &str, lower: Vec<Lower>, layer: Option<Layer>) -> Entry {
    Entry {
        inside: inside.into(),
        kind: EntryKind::Overlay(Overlay {
            lower,
            layer,
            own: Vec::new(),
        }),
    }
}

pub(crate) fn bind(inside: &str, source: &Path, access: Access) -> Entry {
    Entry {
        inside: inside.into(),
        kind: EntryKind::Bind {
            source: source.to_owned(),
            access,
            owner: owner(),
            is_direct: false,
        },
    }
}

fn as_outside(path: &str) -> Option<Entry> {
    let path = Path::new(path);
    let kind = if let Ok(target) = path.read_link() {
        EntryKind::Link { target }
    } else if path.is_dir() {
        EntryKind::Bind {
            source: path.to_owned(),
            access: Access::ReadOnly,
            owner: Ownership::AsItIs,
            is_direct: false,
        }
    } else {
        return None;
    };
    let inside = path.to_owned();
    Some(Entry { inside, kind })
}

/// A running program.
pub(crate) struct Running {
    pub(crate) confined: Confined,
    output: PipeReader,
    /// Its end ends a program that reads its input.
    input: Option<OwnedFd>,
}

/// Starts a program of the machine's in a sandbox.
pub(crate) fn start(
    policy: &Policy,
    program: &Path,
    arguments: &[&str],
) -> Result<Running, LaunchError> {
    let (name, arguments) = arguments.split_first().unwrap();
    let execute = || {
        // It need not exist inside.
        let mut command = Command::new(format!("/proc/self/fd/{PROGRAM}"));
        command.arg0(name).args(arguments);
        command.env_clear().env("PATH", "/usr/bin:/bin");
        println!("{}", command.exec());
        1
    };
    let file = File::open(program).unwrap();
    start_ours(policy, &execute, vec![(file.into(), PROGRAM)])
}

/// Goes on in a sandbox.
pub(crate) fn start_ours(
    policy: &Policy,
    run: &dyn Fn() -> i32,
    mut descriptors: Vec<(OwnedFd, i32)>,
) -> Result<Running, LaunchError> {
    let (output, said) = pipe().unwrap();
    let (heard, input) = pipe().unwrap();
    descriptors.push((heard.into(), 0));
    descriptors.push((said.as_fd().try_clone_to_owned().unwrap(), 1));
    descriptors.push((said.into(), 2));
    let program = Program {
        shown: "view",
        run,
        directory: PathBuf::from("/"),
        descriptors,
    };
    let hooks = Hooks {
        birthplace: None,
        groups: &|| Ok(Entrance::default()),
        meanwhile: &|| {},
        confirm: &|_| Ok(()),
        restrict: &restrict,
    };
    let confined = launch(policy, program, &hooks)?;
    Ok(Running {
        confined,
        output,
        input: Some(input.into()),
    })
}

/// Runs a script to its end and returns what it said.
pub(crate) fn run(policy: &Policy, script: &str) -> String {
    let running = start(policy, Path::new("/bin/sh"), &["sh", "-c", script]).unwrap();
    running.finish()
}

/// Connects to a socket in a sandbox and returns what came of it, and once more when it could be
/// made its own by changing it.
pub(crate) fn run_connect(policy: &Policy, path: &str) -> String {
    let running = start_ours(policy, &|| connect(path), Vec::new()).unwrap();
    running.finish()
}

fn connect(path: &str) -> i32 {
    let attempt = || match UnixStream::connect(path) {
        Ok(_) => println!("connected"),
        Err(error) => println!("{:?}", error.kind()),
    };
    attempt();
    if fs::set_permissions(path, fs::Permissions::from_mode(0o700)).is_ok() {
        println!("made our own");
        attempt();
    }
    0
}

impl Running {
    pub(crate) fn finish(mut self) -> String {
        drop(self.input.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        text.trim_end().to_owned()
    }

    /// Waits for the first word.
    pub(crate) fn hear(&mut self) {
        let read = self.output.read(&mut [0; 64]).unwrap();
        assert_ne!(read, 0, "the program said nothing");
    }

    /// The program, as opposed to the first process.
    pub(crate) fn program(&self) -> Pid {
        let pid = self.confined.pid;
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        Pid::from_raw(children.trim().parse().unwrap()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.input.take());
        let id = WaitId::PidFd(self.confined.pidfd.as_fd());
        let _ = waitid(id, WaitIdOptions::EXITED);
    }
}

/// As in a real sandbox, apart from Landlock.
fn restrict() -> Result<(), RestrictError> {
    let failed = |step, errno: Option<i32>| RestrictError {
        step,
        errno: errno.unwrap_or(0),
    };
    let limits = ResourceLimits {
        open_files: Bounds::fixed(256),
        processes: None,
        file_bytes: None,
        stack_bytes: Bounds::fixed(8 << 20),
        locked_bytes: Bounds::fixed(65536),
        pending_signals: Bounds::fixed(256),
        message_queue_bytes: Bounds::fixed(65536),
    };
    limits
        .apply()
        .map_err(|error| failed(Step::ResourceLimits, error.raw_os_error()))?;
    drop_all_capabilities().map_err(|error| failed(Step::Capabilities, error.raw_os_error()))?;
    SeccompProfile::builtin(Permissions::NONE)
        .and_then(|filter| filter.install())
        .map_err(|error| failed(Step::Seccomp, error.raw_os_error()))
}
