//! Starting a program under a policy.
//!
//! The order is fixed: namespaces, mounts, names, identity, descriptors, then whatever takes
//! rights away, then the program. The child tells of a failed step through a pipe that the
//! start of the program closes; so an answer always comes, and silence means success.

use std::{
    convert::Infallible,
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{DumpableBehavior, Pid, Signal, WaitOptions},
    thread::{Gid, Uid},
};

use crate::{
    arguments,
    cgroup::{self, Entrance},
    handover,
    network::{self, Doorway, NetworkSockets, Origin, ReadyNetwork},
    objects,
    policy::{Identity, Network, Policy},
    privilege::is_root_of_machine,
    quotas::{Account, Charged},
    restriction::Restriction,
    root,
    step::{AtStep as _, Failure, Step},
    sys::{self, Side},
};

/// Namespaces that every sandbox has from its start. That of control groups follows when the
/// process is in its group, because it hides what is above the place where it was made.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// What the child says when only the start of the program is left to do.
const SET_UP: u8 = b'+';

/// The longest failure that is read from a child.
const FAILURE_MAX_BYTES: u64 = 16 * 1024;

/// What goes on inside: a part of this very program, in a copy of this process. To execute it
/// anew would take longer than all namespaces do.
pub struct Program<'a> {
    /// What everyone inside reads as its arguments.
    pub shown: &'static str,
    /// What it does, and its exit status then.
    pub run: &'a dyn Fn() -> i32,
    /// Where it starts, inside.
    pub directory: PathBuf,
    /// Descriptors that it gets, under these numbers; all others are closed.
    pub descriptors: Vec<(OwnedFd, i32)>,
}

impl std::fmt::Debug for Program<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut program = formatter.debug_struct("Program");
        program.field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// A running sandbox: its first process, which ends with the program and takes everything
/// inside along.
#[derive(Debug)]
pub struct Confined {
    /// Its number outside, for display.
    pub pid: i32,
    /// Its descriptor.
    pub pidfd: OwnedFd,
    /// Where it meets the world, when its network is filtered.
    pub network: Option<NetworkSockets>,
    /// The way to programs that listen inside, when it has a network of its own.
    pub doorway: Option<Doorway>,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step}{}", on(object))]
pub struct LaunchError {
    /// What was being done.
    pub step: Step,
    /// On what; may be empty.
    pub object: String,
    /// What the system said.
    pub source: io::Error,
}

fn on(object: &str) -> String {
    if object.is_empty() {
        String::new()
    } else {
        format!(" (`{object}`)")
    }
}

impl LaunchError {
    /// A step that failed before the launch.
    pub fn of(step: Step, errno: Option<i32>) -> Self {
        Failure {
            step,
            errno: errno.unwrap_or(0),
            object: String::new(),
        }
        .into()
    }

    /// What a person can do about it on this machine.
    pub fn remedy(&self) -> &'static str {
        self.step.remedy_for(&self.source, Restriction::find)
    }
}

impl From<Failure> for LaunchError {
    fn from(failure: Failure) -> Self {
        let source = match failure.errno {
            0 => io::ErrorKind::Other.into(),
            errno => io::Error::from_raw_os_error(errno),
        };
        Self {
            step: failure.step,
            object: failure.object,
            source,
        }
    }
}

/// Starts a program. The calling process must have a single thread.
///
/// # Errors
/// The first step that failed; nothing is left running then.
pub fn launch(
    policy: &Policy,
    program: Program<'_>,
    hooks: &Hooks<'_>,
) -> Result<Confined, LaunchError> {
    let prepared = root::prepare(policy)?;
    // The child looks for it, and whoever reads back what the child has done.
    root::masked_here();
    let (verdict, verdict_inside) = verdict_pipe().at(Step::HandShake, "pipe")?;
    let (mapped_inside, mapped) = pipe_with(PipeFlags::CLOEXEC).at(Step::HandShake, "pipe")?;
    let privileged = is_root_of_machine();
    let channel = network::channel(&policy.network).at(Step::HandShake, "socket pair")?;
    let (groups, groups_inside) = handover::pair().at(Step::HandShake, "socket pair")?;
    let (side, origin) = clone_behind_walls(policy, hooks.birthplace)?;
    match side {
        Side::Child => {
            drop((verdict, mapped, channel.outside, groups));
            let inside = Inside {
                policy,
                program,
                groups: groups_inside,
                restrict: hooks.restrict,
                verdict: verdict_inside,
                privileged,
                origin,
            };
            inside.run(prepared, mapped_inside, channel.inside)
        }
        Side::Parent { pid, pidfd } => {
            drop((verdict_inside, mapped_inside));
            drop((channel.inside, groups_inside));
            let mut confined = Confined {
                pid,
                pidfd,
                network: None,
                doorway: None,
            };
            let outcome = map_identity(pid, policy.identity)
                .and_then(|()| prepared.translate(pid))
                // While the child waits for us: soon it is not to be looked into.
                .and_then(|()| Doorway::open(pid, &policy.network).at(Step::Doorway, ""))
                .and_then(|doorway| {
                    confined.doorway = doorway;
                    go_on(mapped)?;
                    drop(prepared);
                    let entrance = (hooks.groups)().at(Step::ControlGroup, "")?;
                    let let_in = handover::send(groups, &entrance.descriptors());
                    (hooks.meanwhile)();
                    // A child that is gone has said why.
                    await_verdict(verdict)?;
                    let_in.at(Step::ControlGroup, "")
                })
                .and_then(|()| (hooks.confirm)(pid).at(Step::ControlGroup, ""))
                .and_then(|()| network::receive(channel.outside));
            match outcome {
                Ok(network) => {
                    confined.network = network;
                    Ok(confined)
                }
                Err(failure) => {
                    confined.end();
                    Err(failure.into())
                }
            }
        }
    }
}

/// A new process in new namespaces, and in a network of its own if it shall have one.
fn clone_behind_walls(
    policy: &Policy,
    birthplace: Option<BorrowedFd<'_>>,
) -> Result<(Side, Origin), Failure> {
    // One that cannot be entered is no loss.
    let network = &policy.network;
    let ready = match network {
        Network::None => ReadyNetwork::take().and_then(|ready| ready.enter().ok()),
        Network::Filtered { .. } | Network::Host => None,
    };
    let Some(away) = ready else {
        let own_network = match network {
            Network::None | Network::Filtered { .. } => libc::CLONE_NEWNET,
            Network::Host => 0,
        };
        let flags = (NAMESPACES | own_network) as u64;
        let side = clone_charged(policy.identity, flags, birthplace)?;
        return Ok((side, Origin::New));
    };
    let cloned = clone_charged(policy.identity, NAMESPACES as u64, birthplace);
    if let Ok(Side::Child) = cloned {
        drop(away);
    } else if let Err(error) = away.return_home() {
        if let Ok(Side::Parent { pidfd, .. }) = &cloned {
            end(pidfd);
        }
        return Err(error).at(Step::Namespaces, "network");
    }
    Ok((cloned?, Origin::Ready))
}

/// What the kernel counts for each user is charged to the sandbox's own where it has one.
fn clone_charged(
    identity: Identity,
    flags: u64,
    birthplace: Option<BorrowedFd<'_>>,
) -> Result<Side, Failure> {
    let charged = Charged::to(identity).at(Step::Namespaces, "user")?;
    let cloned = sys::clone_into(flags, birthplace);
    if let Ok(Side::Child) = cloned {
        // It becomes what it is inside later.
        return Ok(Side::Child);
    }
    if let Err(error) = charged.map_or(Ok(()), Charged::end) {
        if let Ok(Side::Parent { pidfd, .. }) = &cloned {
            end(pidfd);
        }
        return Err(error).at(Step::Namespaces, "user");
    }
    cloned.at(Step::Namespaces, "")
}

/// A pipe whose writing end is out of the way of the numbers that the program's own descriptors
/// get. There must be no second copy of it in the parent, or it would never see the pipe's end.
fn verdict_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (verdict, inside) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((
        verdict,
        rustix::io::fcntl_dupfd_cloexec(&inside, sys::HIGH_NUMBER)?,
    ))
}

/// What is done to the new process beside what the policy says.
pub struct Hooks<'a> {
    /// The directory of a control group that the new process is born in.
    pub birthplace: Option<BorrowedFd<'a>>,
    /// Outside, while the new process puts its root together: makes the control groups that it
    /// enters then, before it takes its rights from itself.
    pub groups: &'a dyn Fn() -> io::Result<Entrance>,
    /// Outside, while the new process takes its rights from itself: the place for what has to be
    /// done anyway before the program is let go on.
    pub meanwhile: &'a dyn Fn(),
    /// Outside, with the number of the new process, when it is about to start the program: the
    /// place to ask whether it is where it should be.
    pub confirm: &'a dyn Fn(i32) -> io::Result<()>,
    /// Inside, as the last thing before the program starts: the place to take rights away.
    pub restrict: &'a dyn Fn() -> Result<(), RestrictError>,
}

impl std::fmt::Debug for Hooks<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// Why a right could not be taken away.
#[derive(Debug)]
pub struct RestrictError {
    /// Which layer.
    pub step: Step,
    /// The error number, or 0 when there is none.
    pub errno: i32,
}

impl Confined {
    /// Kills everything inside and waits for the end.
    pub fn end(&self) {
        end(&self.pidfd);
    }
}

fn end(process: &OwnedFd) {
    let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
    let id = rustix::process::WaitId::PidFd(process.as_fd());
    let _ = rustix::process::waitid(id, rustix::process::WaitIdOptions::EXITED);
}

/// One user and one group; whoever is not mapped is nobody.
fn map_identity(pid: i32, identity: Identity) -> Result<(), Failure> {
    let write = |file: &str, text: String| {
        let path = format!("/proc/{pid}/{file}");
        std::fs::write(&path, text).at(Step::IdentityMap, path)
    };
    if !is_root_of_machine() {
        // Without this a process could drop a group that denies it something.
        write("setgroups", "deny".to_owned())?;
    }
    write(
        "gid_map",
        format!("{} {} 1\n", identity.gid_inside, identity.gid_outside),
    )?;
    write(
        "uid_map",
        format!("{} {} 1\n", identity.uid_inside, identity.uid_outside),
    )
}

/// Tells the child that it is somebody.
fn go_on(mapped: OwnedFd) -> Result<(), Failure> {
    File::from(mapped)
        .write_all(&[1])
        .at(Step::HandShake, "the child")
}

fn await_verdict(verdict: OwnedFd) -> Result<(), Failure> {
    let mut text = Vec::new();
    File::from(verdict)
        .take(FAILURE_MAX_BYTES)
        .read_to_end(&mut text)
        .at(Step::HandShake, "the child")?;
    // Without the mark the child was killed before it could say anything.
    let failure = match text.strip_prefix(&[SET_UP]) {
        Some([]) => return Ok(()),
        Some(failure) => failure,
        None => &text,
    };
    Err(serde_json::from_slice(failure).unwrap_or_else(|_| Failure {
        step: Step::HandShake,
        errno: 0,
        object: "the child ended half-way".to_owned(),
    }))
}

/// The child's side.
struct Inside<'a> {
    policy: &'a Policy,
    program: Program<'a>,
    groups: OwnedFd,
    restrict: &'a dyn Fn() -> Result<(), RestrictError>,
    verdict: OwnedFd,
    /// The launcher is the machine's root.
    privileged: bool,
    /// Where the network comes from.
    origin: Origin,
}

impl Inside<'_> {
    /// Never returns: the process ends here, or becomes the first of the sandbox.
    fn run(self, prepared: root::Prepared, mapped: OwnedFd, sockets: Option<OwnedFd>) -> ! {
        let failed = |error: &io::Error| self.tell(&Failure::new(Step::Exec, "", error));
        // Our memory is the program's then. It closes its own copy of the verdict's pipe.
        let beside = |program| -> Infallible {
            sys::let_go_of_everything();
            let _ = rustix::thread::set_name(c"init");
            sys::exit_at_once(reap_until(program))
        };
        let set_up = self.set_up(prepared, mapped, sockets).and_then(|()| {
            rustix::io::write(&self.verdict, &[SET_UP]).at(Step::HandShake, "the parent")
        });
        let failure = match set_up {
            Ok(_) => Failure::new(
                Step::Exec,
                "clone",
                &sys::spawn(&self.program, &failed, beside),
            ),
            Err(failure) => failure,
        };
        self.tell(&failure);
        std::process::exit(1)
    }

    fn tell(&self, failure: &Failure) {
        let text = serde_json::to_vec(failure).unwrap_or_default();
        // Less than a pipe takes at once; without a reader nobody needs to know.
        let _ = rustix::io::write(&self.verdict, &text);
    }

    fn set_up(
        &self,
        prepared: root::Prepared,
        mapped: OwnedFd,
        sockets: Option<OwnedFd>,
    ) -> Result<(), Failure> {
        // Until the program shows its own: not what the launcher was told.
        arguments::show(b"init").at(Step::Identity, "arguments")?;
        let mut byte = [0];
        File::from(mapped)
            .read_exact(&mut byte)
            .at(Step::HandShake, "the parent")?;
        self.become_user()?;
        objects::lower(self.policy.memory.bytes);
        // The supervisor has one thread, which lives as long as it does. Changing the user
        // would clear this, so it comes after; and before it the supervisor may be gone already.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .at(Step::Identity, "")?;
        self.require_parent()?;
        root::enter(self.policy, prepared)?;
        self.enter_groups()?;
        root::seal_settings(match self.privileged {
            true => Account::Own,
            false => Account::Shared,
        })?;
        rustix::system::sethostname(self.policy.hostname.as_bytes())
            .at(Step::Hostname, &self.policy.hostname)?;
        network::set_up(&self.policy.network, self.origin, sockets)?;
        self.finish()
    }

    /// All that was made until now is the sandbox itself, and no more than anyone can ask for.
    fn enter_groups(&self) -> Result<(), Failure> {
        let entrance = handover::receive(&self.groups).at(Step::HandShake, "the parent")?;
        cgroup::enter(&entrance).at(Step::ControlGroup, "")?;
        sys::unshare_control_groups().at(Step::Namespaces, "cgroup")
    }

    fn become_user(&self) -> Result<(), Failure> {
        let identity = self.policy.identity;
        let (uid, gid) = (
            Uid::from_raw(identity.uid_inside),
            Gid::from_raw(identity.gid_inside),
        );
        match rustix::thread::set_thread_groups(&[]) {
            // Without root the groups of whoever started us stay, unmapped.
            Err(Errno::PERM) if !self.privileged => {}
            dropped => dropped.at(Step::Identity, "groups")?,
        }
        rustix::thread::set_thread_res_gid(gid, gid, gid).at(Step::Identity, "group")?;
        rustix::thread::set_keep_capabilities(true).at(Step::Identity, "")?;
        rustix::thread::set_thread_res_uid(uid, uid, uid).at(Step::Identity, "user")
    }

    /// Nobody reads the verdict any more when the supervisor is gone. Its number would not tell:
    /// it is 0 in a process namespace of our own.
    fn require_parent(&self) -> Result<(), Failure> {
        let mut fds = [PollFd::new(&self.verdict, PollFlags::empty())];
        poll(
            &mut fds,
            Some(&Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            }),
        )
        .at(Step::HandShake, "the parent")?;
        if fds[0].revents().contains(PollFlags::ERR) {
            return Err(Errno::PIPE).at(Step::HandShake, "the parent");
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Failure> {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
            .at(Step::Identity, "")?;
        let directory = &self.program.directory;
        rustix::process::chdir(directory).at(Step::Exec, directory.to_string_lossy())?;
        (self.restrict)().map_err(|RestrictError { step, errno }| Failure {
            step,
            errno,
            object: String::new(),
        })
    }
}

/// Reaps everything that ends inside until the program does, and returns its status. Makes system calls
/// and does nothing else.
fn reap_until(program: Pid) -> i32 {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                return status.exit_status().or(signal).unwrap_or(1);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}
