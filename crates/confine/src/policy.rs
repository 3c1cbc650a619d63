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
    /// What the root itself is.
    pub root: Root,
    /// What exists inside, in order: a later entry may lie below an earlier one.
    pub entries: Vec<Entry>,
    /// What `/tmp`, `/dev/shm` and everything else that lies in memory may take together.
    pub memory: MemoryCap,
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

/// What the root of the sandbox is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Root {
    /// Nothing but the places of the entries, in memory; it cannot be written to.
    Memory,
    /// A whole file system, such as that of an image.
    ///
    /// Its makers may have put links at the places of entries, and a mount is never led along a
    /// link. Where that may be, a lower directory above theirs has to hold plain ones.
    Overlay(Overlay),
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
        /// Whether a link on the way to it is an error: what others can change meanwhile could lead
        /// anywhere.
        is_direct: bool,
    },
    /// Directories of this machine as one.
    Overlay(Overlay),
    /// What an earlier entry has put there, once more: a place that has a mount of its own can
    /// be neither moved nor removed, whatever may be done to what is in it.
    Again {
        /// What may be done to it.
        access: Access,
    },
    /// A file system in memory.
    Memory {
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it points.
        target: PathBuf,
    },
    /// An empty directory of what is there already.
    Directory {
        /// Its permission bits.
        mode: u32,
    },
}

/// Directories that appear as one, the first on top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// What is below; never written to. At most [`Overlay::LOWER_MAX`].
    pub lower: Vec<Lower>,
    /// Where changes go. Without it nothing can be changed, and there must be two below at
    /// least.
    pub layer: Option<Layer>,
    /// Files that only this sandbox has, above everything below. They are in memory; a layer on
    /// the disk has none.
    pub own: Vec<OwnFile>,
}

/// A file of the sandbox's own user that everyone can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnFile {
    /// Its path below the top of the overlay.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Where the changes of an overlay go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layer {
    /// To a directory outside with two in it: `upper` for them, and `work` for overlayfs.
    Directory(PathBuf),
    /// To memory.
    Memory,
}

impl Overlay {
    /// The kernel takes 500.
    pub const LOWER_MAX: usize = 500;
}

/// One directory below an overlay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lower {
    /// Absolute path outside.
    pub path: PathBuf,
    /// Whose files in it appear as the sandbox's own.
    pub owner: Ownership,
    /// Whether a link on the way to it is an error: what others can change meanwhile could lead
    /// anywhere.
    pub is_direct: bool,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Network {
    /// Nothing but the sandbox itself, by a loopback interface of its own.
    None,
    /// Whatever the holder of [`NetworkSockets`](crate::network::NetworkSockets) lets through.
    Filtered {
        /// TCP ports on which every address of the world answers, at most
        /// [`TCP_PORTS_MAX`](crate::network::TCP_PORTS_MAX); that of names is always among them.
        tcp_ports: Vec<u16>,
    },
    /// Whatever this machine can reach: an operator's explicit choice.
    Host,
}
