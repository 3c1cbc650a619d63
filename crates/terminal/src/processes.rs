//! The processes of this machine, as `/proc` shows them: who descends from whom, and ending a
//! whole family.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs::{self, File},
    io::{self, Read as _},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long a family may take to stand still. One that is in the middle of a system call that
/// nothing interrupts takes as long as that.
const STANDSTILL: Duration = Duration::from_secs(20);

/// How long to wait for a process that was told to stop, which the kernel announces to its parent
/// only.
const MOMENT: Duration = Duration::from_micros(200);

/// Which process is meant: a number is given away again, with the time of its start it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it was started, in clock ticks since the boot.
    pub start_time: u64,
}

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Which one.
    pub id: ProcessId,
    /// The number of its parent.
    pub parent: i32,
    /// The number of its process group; 0 if that is outside of our namespace.
    pub group: i32,
    /// The number of its session's leader; 0 if that is outside of our namespace.
    pub session: i32,
    /// The process group in the foreground of its terminal; -1 without a terminal, 0 if that is
    /// outside of our namespace.
    pub foreground: i32,
    /// Processor time that it has used, in clock ticks.
    pub ticks: u64,
    /// It has ended and nobody has waited for it.
    pub is_zombie: bool,
    /// It was stopped, and does nothing until it is told to go on.
    pub is_stopped: bool,
    /// It has executed no program yet and handles Ctrl-C itself, as the process that it is a copy of.
    pub is_copy_with_handler: bool,
}

/// `PF_FORKNOEXEC` of the kernel's process flags: forked, and nothing executed since.
const FORKED_WITHOUT_EXEC: u64 = 0x40;

/// Ctrl-C in a set of signals.
const INTERRUPT_BIT: u64 = 1 << (Signal::INT.as_raw() - 1);

impl Process {
    /// The process of that number.
    ///
    /// # Errors
    /// There is none that we may see.
    pub fn read(pid: i32) -> io::Result<Self> {
        let stat = read_at_once(&format!("/proc/{pid}/stat"))?;
        Self::parse(pid, &stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// All that can be seen; those that end meanwhile are left out.
    pub fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|pid| Self::read(pid).ok())
            .collect()
    }

    /// It can start nothing.
    fn is_idle(&self) -> bool {
        self.is_stopped || self.is_zombie
    }

    /// It leads the session of a terminal in whose foreground another group is: it is a shell that
    /// waits for a command.
    pub const fn waits_for_command(&self) -> bool {
        self.session == self.id.pid && self.foreground > 0 && self.foreground != self.group
    }

    /// The name in parentheses may hold anything, so fields are counted behind the last one:
    /// state, parent, group, session, terminal, its foreground, flags, five fields later the
    /// processor time of the process and of the kernel for it, seven later the start, and twelve
    /// later the signals that have a handler.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let foreground = fields.nth(1)?.parse().ok()?;
        let flags: u64 = fields.next()?.parse().ok()?;
        let of_process: u64 = fields.nth(4)?.parse().ok()?;
        let of_kernel: u64 = fields.next()?.parse().ok()?;
        let start_time = fields.nth(6)?.parse().ok()?;
        let handled: u64 = fields.nth(11)?.parse().ok()?;
        Some(Self {
            id: ProcessId { pid, start_time },
            parent,
            group,
            session,
            foreground,
            ticks: of_process.saturating_add(of_kernel),
            is_zombie: state == "Z" || state == "X",
            is_stopped: state == "T" || state == "t",
            is_copy_with_handler: flags & FORKED_WITHOUT_EXEC != 0 && handled & INTERRUPT_BIT != 0,
        })
    }
}

/// The text of a file of `/proc`. Such files do not tell their size, and whoever begins with little
/// room asks for some bytes at a time.
pub(crate) fn read_at_once(path: &str) -> io::Result<String> {
    const COMMON_BYTES: usize = 1024;
    let mut text = String::with_capacity(COMMON_BYTES);
    File::open(path)?.take(u64::MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The children that the first thread of a process has started, in that order; none where the
/// kernel does not tell. Takes no look at other processes, however many there are.
pub fn children(parent: i32) -> Vec<i32> {
    let list = read_at_once(&format!("/proc/{parent}/task/{parent}/children"));
    let list = list.unwrap_or_default();
    list.split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Everything whose line of parents, or whose session's leader, leads to `ancestor`; older
/// generations first.
pub fn descendants(ancestor: i32) -> Vec<Process> {
    below(ancestor, &Process::all())
}

fn below(ancestor: i32, table: &[Process]) -> Vec<Process> {
    let mut beneath: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in table {
        beneath.entry(process.parent).or_default().push(process);
        // One whose parent has ended is found by its session. 0 is the kernel's own.
        if process.session != 0 && process.session != process.parent {
            beneath.entry(process.session).or_default().push(process);
        }
    }
    let mut known = HashSet::from([ancestor]);
    let mut found = Vec::new();
    let mut open = VecDeque::from([ancestor]);
    while let Some(number) = open.pop_front() {
        for process in beneath.remove(&number).unwrap_or_default() {
            if known.insert(process.id.pid) {
                found.push(*process);
                open.push_back(process.id.pid);
            }
        }
    }
    found
}

/// Kills a process and everything that descends from it.
///
/// All are stopped before the first is killed, so none can get lost by the death of its parent.
pub fn kill_family(head: i32) {
    let Ok(process) = Process::read(head) else {
        return;
    };
    let handle = signal(process.id, Signal::STOP);
    let deadline = Instant::now() + STANDSTILL;
    while Process::read(head).is_ok_and(|now| now.id == process.id && !now.is_idle())
        && Instant::now() < deadline
    {
        std::thread::sleep(MOMENT);
    }
    kill_descendants(head);
    if let Ok(handle) = handle {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}

/// Kills everything that descends from `ancestor`, but not itself. What it starts meanwhile may
/// live on, unless it is ourselves.
pub fn kill_descendants(ancestor: i32) {
    for handle in stop_all(ancestor, Order::AtOnce).into_iter().flatten() {
        // It may have ended by itself, which is just as good.
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}

/// In which order a family is stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    AtOnce,
    /// A parent that is told to stop looks after its children once more, and would take one that
    /// stands still already for stopped by its user.
    ParentsFirst,
}

/// Stops everything that descends from `ancestor`, but not itself.
pub fn stop_descendants(ancestor: i32) {
    drop(stop_all(ancestor, Order::ParentsFirst));
}

/// Lets everything that descends from `ancestor` go on, the youngest generation first: a parent
/// that looks after its children finds them running.
pub fn continue_descendants(ancestor: i32) {
    for process in descendants(ancestor).iter().rev() {
        let _ = signal(process.id, Signal::CONT);
    }
}

/// To be told to stop is not to have stopped: a fork that is under way is finished first. And a
/// look at the table takes its time: the list of numbers is older than what is read of each. So
/// it takes a look that finds everyone standing still, and another after it that finds nobody
/// else.
fn stop_all(ancestor: i32, order: Order) -> Vec<Option<OwnedFd>> {
    let mut told: HashMap<ProcessId, _> = HashMap::new();
    let deadline = Instant::now() + STANDSTILL;
    let mut calm = 0;
    while calm < 2 && Instant::now() < deadline {
        let before = told.len();
        let mut restless = false;
        let family = descendants(ancestor);
        let awake: HashSet<i32> = family
            .iter()
            .filter(|process| order == Order::ParentsFirst && !process.is_idle())
            .map(|process| process.id.pid)
            .collect();
        for process in family {
            if process.is_zombie {
                continue;
            }
            restless |= !process.is_stopped;
            if awake.contains(&process.parent) {
                continue;
            }
            told.entry(process.id)
                .or_insert_with(|| signal(process.id, Signal::STOP).ok());
        }
        if restless || told.len() != before {
            calm = 0;
            std::thread::sleep(MOMENT);
        } else {
            calm += 1;
        }
    }
    told.into_values().collect()
}

/// Signals a process, and none that has got its number since; returns its descriptor.
fn signal(id: ProcessId, signal: Signal) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(id.pid).ok_or(io::ErrorKind::NotFound)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    if Process::read(id.pid)?.id != id {
        return Err(io::ErrorKind::NotFound.into());
    }
    pidfd_send_signal(&handle, signal)?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Read as _},
        os::unix::process::CommandExt as _,
        path::Path,
        process::{Command, Stdio},
    };

    use super::*;

    fn process(pid: i32, parent: i32, session: i32) -> Process {
        let id = ProcessId { pid, start_time: 0 };
        Process {
            id,
            parent,
            group: session,
            session,
            foreground: -1,
            ticks: 0,
            is_zombie: false,
            is_stopped: false,
            is_copy_with_handler: false,
        }
    }

    #[test]
    fn fields_are_counted_past_an_awkward_name() {
        let stat =
            "7 (a) b) Z 3 7 5 34816 9 0 0 0 0 0 120 31 0 0 20 0 1 0 4242 0 0 0 0 0 0 0 0 0 0 0 2";
        let read = Process::parse(7, stat).unwrap();
        assert_eq!((read.parent, read.group, read.session), (3, 7, 5));
        assert_eq!(read.id.start_time, 4242);
        assert_eq!((read.foreground, read.ticks), (9, 151));
        assert!(!read.waits_for_command());
        assert!(!read.is_copy_with_handler);
        let shell =
            "5 (bash) S 3 5 5 34816 9 64 0 0 0 0 1 1 0 0 20 0 1 0 4242 0 0 0 0 0 0 0 0 0 0 0 0";
        assert!(Process::parse(5, shell).unwrap().waits_for_command());
        assert!(!Process::parse(5, shell).unwrap().is_copy_with_handler);
        let idle =
            "5 (bash) S 3 5 5 34816 5 64 0 0 0 0 1 1 0 0 20 0 1 0 4242 0 0 0 0 0 0 0 0 0 0 0 2";
        assert!(!Process::parse(5, idle).unwrap().waits_for_command());
        assert!(Process::parse(5, idle).unwrap().is_copy_with_handler);
        assert!(read.is_zombie);
        assert_eq!(Process::parse(7, "7 (a) S 3"), None);
    }

    #[test]
    fn a_family_is_found_by_parents_and_by_sessions() {
        let table = [
            process(2, 1, 2),
            process(3, 2, 3),
            process(4, 1, 3),
            process(5, 4, 5),
            process(6, 1, 6),
            // Numbers that were given away meanwhile look like a circle.
            process(8, 9, 8),
            process(9, 8, 9),
        ];
        let mut found: Vec<i32> = below(2, &table).iter().map(|found| found.id.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4, 5]);
        assert_eq!(below(8, &table), [process(9, 8, 9)]);
    }

    #[test]
    fn children_are_found_in_the_order_of_their_start() {
        let mut first = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut second = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        // Only the first thread's are told, and a test runs in another.
        let thread = std::fs::read_link("/proc/thread-self").unwrap();
        let list = fs::read_to_string(Path::new("/proc").join(thread).join("children")).unwrap();
        assert_eq!(list.trim(), format!("{} {}", first.id(), second.id()));
        let us = i32::try_from(std::process::id()).unwrap();
        assert_eq!(children(us), [0; 0]);
        for child in [&mut first, &mut second] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    #[test]
    fn none_escapes_by_forking_while_its_family_is_killed() {
        // Generation after generation, and many from one, in a session of its own.
        let family = "generation() { [ $1 = 0 ] || { (sleep 1000 & generation $(($1 - 1)); wait) & wait; }; }; \
                      echo; generation 200 & \
                      setsid sh -c 'for i in $(seq 200); do sleep 1000 & done; wait' & wait";
        for _ in 0..3 {
            let mut child = Command::new("sh")
                .args(["-c", family])
                .process_group(0)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap());
            output.read_line(&mut String::new()).unwrap();
            let pid = i32::try_from(child.id()).unwrap();
            kill_family(pid);
            child.wait().unwrap();
            // All that held the pipe are dead when it ends.
            output.read_to_end(&mut Vec::new()).unwrap();
        }
    }
}
