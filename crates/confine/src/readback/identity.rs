//! In which namespaces a process is, and who its users are outside.

use super::{error::ReadBackError, status::decimal};

/// The kernel takes at most this many ranges.
const RANGES_MAX: usize = 340;

/// One kind of namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamespaceKind {
    /// Users, groups and what capabilities mean.
    User,
    /// Mounts.
    Mount,
    /// Process numbers.
    Pid,
    /// Interfaces, addresses, ports and abstract sockets.
    Network,
    /// Shared memory, semaphores and queues.
    Ipc,
    /// The machine's name.
    Uts,
    /// The root of the control groups.
    Cgroup,
}

impl NamespaceKind {
    /// All that a sandbox has of its own.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Mount,
        Self::Pid,
        Self::Network,
        Self::Ipc,
        Self::Uts,
        Self::Cgroup,
    ];

    /// Its file in a process's directory.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::User => "ns/user",
            Self::Mount => "ns/mnt",
            Self::Pid => "ns/pid",
            Self::Network => "ns/net",
            Self::Ipc => "ns/ipc",
            Self::Uts => "ns/uts",
            Self::Cgroup => "ns/cgroup",
        }
    }
}

/// Which namespace: two are the same if and only if both numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamespaceId {
    /// Of the kernel's file system of namespaces.
    pub device: u64,
    /// Within it.
    pub inode: u64,
}

/// The namespaces of one process, in the order of [`NamespaceKind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces {
    pub(super) ids: [NamespaceId; 7],
}

impl Namespaces {
    /// The one of a kind.
    pub fn get(&self, kind: NamespaceKind) -> NamespaceId {
        let [user, mount, pid, network, ipc, uts, cgroup] = self.ids;
        match kind {
            NamespaceKind::User => user,
            NamespaceKind::Mount => mount,
            NamespaceKind::Pid => pid,
            NamespaceKind::Network => network,
            NamespaceKind::Ipc => ipc,
            NamespaceKind::Uts => uts,
            NamespaceKind::Cgroup => cgroup,
        }
    }

    /// Those that two processes have in common; none, for a sandbox and its supervisor.
    pub fn shared_with(&self, other: &Self) -> Vec<NamespaceKind> {
        let is_shared = |kind: &NamespaceKind| self.get(*kind) == other.get(*kind);
        NamespaceKind::ALL.into_iter().filter(is_shared).collect()
    }
}

/// Who the users, or the groups, of a user namespace are outside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMap {
    /// Ranges that are mapped; whoever is in none is nobody.
    pub ranges: Vec<IdRange>,
}

/// Numbers that follow one another on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The first, inside.
    pub inside: u32,
    /// The first, in the user namespace of the reader.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

impl IdMap {
    /// Understands what the kernel wrote.
    ///
    /// # Errors
    /// When it is not three numbers a line.
    pub fn parse(file: &'static str, text: &str) -> Result<Self, ReadBackError> {
        let bad = |line: &str| ReadBackError::bad_value(file, "range", line);
        let mut ranges = Vec::new();
        for line in text.lines() {
            if ranges.len() == RANGES_MAX {
                return Err(bad(line));
            }
            ranges.push(range(line).ok_or_else(|| bad(line))?);
        }
        Ok(Self { ranges })
    }
}

fn range(line: &str) -> Option<IdRange> {
    let mut numbers = line.split(' ').filter(|word| !word.is_empty()).map(decimal);
    let range = IdRange {
        inside: numbers.next()??,
        outside: numbers.next()??,
        count: numbers.next()??,
    };
    numbers.next().is_none().then_some(range)
}
