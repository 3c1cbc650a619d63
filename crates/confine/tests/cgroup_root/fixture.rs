//! Groups with a life of one test, and shells to put into them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rustix::process::{Pid, geteuid};
use zareba_confine::cgroup::{
    CgroupError, Demand, Group, Host, Leaf, LeafLimits, Limits, OomScope,
};

/// Far more than anything takes; only a failure waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const NO_LIMITS: Limits = Limits {
    memory_bytes: None,
    pids: None,
    cpu_millis: None,
    io: Vec::new(),
    demand: Demand::BestEffort,
};

pub(crate) const PLAIN_LEAF: LeafLimits = LeafLimits {
    memory_bytes: None,
    pids: None,
    oom: OomScope::OneProcess,
};

/// Which hierarchies a test may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generations {
    Both,
    FirstOnly,
    SecondOnly,
}

/// The machine, with only these generations of groups.
pub(crate) fn machine(generations: Generations) -> Host {
    assert!(geteuid().is_root(), "these tests need root");
    let cgroup = own_places(generations);
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    Host::from_texts(&cgroup, &mountinfo)
}

/// The lines of `/proc/self/cgroup` for the hierarchies in question.
pub(crate) fn own_places(generations: Generations) -> String {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let is_wanted = |line: &&str| match generations {
        Generations::Both => true,
        Generations::FirstOnly => !line.starts_with("0::"),
        Generations::SecondOnly => line.starts_with("0::"),
    };
    text.lines()
        .filter(is_wanted)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// A name that no other test and no other run has.
pub(crate) fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("test-{}-{number}-{name}", std::process::id())
}

/// A group that is killed and removed at the end of the test, also of one that fails.
pub(crate) struct Scratch(Group);

impl Scratch {
    pub(crate) fn new(host: &Host, name: &str, limits: &Limits) -> Self {
        Self(Group::create(host, &unique(name), limits).unwrap())
    }

    /// One with a single leaf, made in two steps.
    pub(crate) fn with_leaf(host: &Host, name: &str, limits: &Limits) -> (Self, Leaf) {
        let name = unique(name);
        let begun = Group::begin(host, &name, limits, "all").unwrap();
        assert_eq!(begun.birthplace().is_some(), host.unified().is_some());
        let (group, leaf) = begun.finish().unwrap();
        (Self(group), leaf)
    }

    /// Ends the group as a sandbox ends, and looks for anything left of it.
    pub(crate) fn end(self) {
        let directories = self.0.directories();
        assert!(!directories.is_empty());
        self.0.kill(PATIENCE).unwrap();
        assert_eq!(self.0.processes().unwrap(), Vec::<i32>::new());
        self.0.remove(PATIENCE).unwrap();
        let left: Vec<PathBuf> = directories
            .into_iter()
            .filter(|path| path.exists())
            .collect();
        assert_eq!(left, Vec::<PathBuf>::new());
    }
}

impl std::ops::Deref for Scratch {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After `end` there is nothing left to do, and nothing that could fail.
        let _ = self.0.kill(PATIENCE);
        let _ = self.0.remove(PATIENCE);
    }
}

/// A shell that does nothing before it is told to, so that it can be put into a group first.
pub(crate) struct Shell {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Shell {
    pub(crate) fn waiting(script: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", &format!("read go\n{script}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// A shell that is in `leaf` and running.
    pub(crate) fn in_leaf(leaf: &Leaf, script: &str) -> Self {
        let mut shell = Self::waiting(script);
        leaf.attach(shell.pid()).unwrap();
        shell.go();
        shell
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn go(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    /// Tells it to go on if there is anybody to tell.
    pub(crate) fn go_if_alive(&mut self) {
        let _ = self
            .child
            .stdin
            .take()
            .map(|mut input| input.write_all(b"go\n"));
    }

    /// The next line it prints; empty when it is gone.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // One that was waited for is not signalled again; one that a failed test leaves is.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A script that starts `count` idle processes, says so, and waits for them.
pub(crate) fn crowd(count: usize) -> String {
    format!(
        "i=0; while [ $i -lt {count} ]; do sleep 1000 >/dev/null & i=$((i+1)); done\n\
         echo ready; wait"
    )
}

/// Whether an error is the one that says what processes are left.
pub(crate) fn is_busy(result: &Result<(), CgroupError>) -> bool {
    matches!(result, Err(CgroupError::Busy { .. }))
}
