//! What a sandbox shall be like: plain data, complete, with no default for anything that
//! decides how strong it is.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that decides what a confined program sees and may do.
///
/// It is made outside, by whoever answers for the sandbox, and handed to the launcher whole;
/// nothing inside can change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The name that programs inside see for their machine.
    pub hostname: String,
    /// Who the program is, inside and outside.
    pub identity: Identity,
    /// A directory of this machine on which the new root is put together. Everyone must be able
    /// to enter it, and no entry may come from below it. Nothing is written to it: it is covered
    /// in a mount table that only the sandbox has.
    pub stage: PathBuf,
    /// What exists inside, in order: a later entry may lie below an earlier one.
    pub entries: Vec<Entry>,
    /// What `/tmp` may take.
    pub tmp: MemoryCap,
    /// What `/dev/shm` may take.
    pub shm: MemoryCap,
    /// What the program may reach over the network.
    pub network: Network,
}

/// One user and group, as two sides see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// User number inside.
    pub uid_inside: u32,
    /// Group number inside.
    pub gid_inside: u32,
    /// User number that the rest of the machine sees.
    pub uid_outside: u32,
    /// Group number that the rest of the machine sees.
    pub gid_outside: u32,
}

/// Something that exists inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Absolute path inside.
    pub inside: PathBuf,
    /// What is there.
    pub kind: EntryKind,
}

/// What is at a path inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum EntryKind {
    /// A file or directory of this machine.
    Bind {
        /// Absolute path outside.
        source: PathBuf,
        /// What may be done to it.
        access: Access,
        /// Whose files appear as the sandbox's own.
        owner: Ownership,
    },
    /// Directories of this machine, the first on top, under a layer that takes all changes.
    Overlay {
        /// What is below; never written to.
        lower: Vec<PathBuf>,
        /// A directory with two in it: `upper`, where changes go, and `work`, for overlayfs.
        layer: PathBuf,
        /// Whose files below appear as the sandbox's own.
        owner: Ownership,
    },
    /// A file system in memory.
    Memory {
        /// What it may take.
        cap: MemoryCap,
        /// Permission bits of its root.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it points.
        target: PathBuf,
    },
    /// An empty directory of the root's own.
    Directory,
}

/// Whose files appear inside as those of the sandbox's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ownership {
    /// Files belong to whom they belong; all but the sandbox's own user are nobody.
    AsItIs,
    /// Files of this user and group appear as the sandbox's, and what it makes appears outside
    /// as theirs. Only root can arrange that, and only where the file system supports it.
    Mapped {
        /// User number outside.
        uid: u32,
        /// Group number outside.
        gid: u32,
    },
}

/// What may be done to a bound file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It can be read and executed.
    ReadOnly,
    /// It can be changed, on the machine itself.
    ReadWrite,
}

/// What a file system in memory may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryCap {
    /// Bytes of content.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

/// What can be reached over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing but the sandbox itself, by a loopback interface of its own.
    None,
    /// Whatever this machine can reach: an operator's explicit choice.
    Host,
}
