//! What a supervisor writes down of its sandbox, for whoever pauses, inspects or ends it.
//!
//! The file lies in the sandbox's private directory, where nothing inside can reach it, and is
//! there before anybody is told that the sandbox is.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zareba_runtime::notes;
use zareba_terminal::ProcessId;

use super::disk::DiskLimit;
use crate::changes::ChangesPlace;

const NAME: &str = "sandbox.json";
const VERSION: u64 = 1;

/// What there is to know of a running sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    /// Its first process, as the machine sees it.
    pub(crate) init: ProcessId,
    /// Where its control groups are.
    pub(crate) groups: Vec<PathBuf>,
    /// What its files may take.
    pub(crate) disk: DiskLimit,
    /// What they take when it is new; older versions did not say.
    pub(crate) disk_base: DiskLimit,
    /// What it may have of memory; older versions did not say.
    pub(crate) memory_bytes: Option<u64>,
    /// Where changes of its workspace go; older versions did not say.
    pub(crate) changes: Option<ChangesPlace>,
    /// What is shown of the user's home, where anything may be; older versions did not say.
    pub(crate) home_tools: Option<Vec<PathBuf>>,
    /// What stands around it, read back from the kernel: a document that few of those who read this
    /// ask for.
    pub(crate) enforcement: Box<RawValue>,
}

/// As it is written.
#[derive(Deserialize, Serialize)]
struct Document {
    version: u64,
    init: First,
    groups: Vec<PathBuf>,
    disk: Disk,
    #[serde(default)]
    disk_base: Disk,
    #[serde(default)]
    memory_bytes: Option<u64>,
    #[serde(default)]
    changes: Option<ChangesPlace>,
    #[serde(default)]
    home_tools: Option<Vec<PathBuf>>,
    enforcement: Box<RawValue>,
}

#[derive(Deserialize, Serialize)]
struct First {
    pid: i32,
    start_time: u64,
}

#[derive(Default, Deserialize, Serialize)]
struct Disk {
    bytes: u64,
    inodes: u64,
}

impl From<DiskLimit> for Disk {
    fn from(DiskLimit { bytes, inodes }: DiskLimit) -> Self {
        Self { bytes, inodes }
    }
}

impl From<Disk> for DiskLimit {
    fn from(Disk { bytes, inodes }: Disk) -> Self {
        Self { bytes, inodes }
    }
}

impl Description {
    pub(super) fn write(self, directory: &Path) -> io::Result<()> {
        let document = Document {
            version: VERSION,
            init: First {
                pid: self.init.pid,
                start_time: self.init.start_time,
            },
            groups: self.groups,
            disk: self.disk.into(),
            disk_base: self.disk_base.into(),
            memory_bytes: self.memory_bytes,
            changes: self.changes,
            home_tools: self.home_tools,
            enforcement: self.enforcement,
        };
        notes::write(directory, NAME, &document)
    }

    /// None when there is none, or none that this version can read.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let document: Document = notes::read(directory, NAME)?;
        (document.version == VERSION).then_some(Self {
            init: ProcessId {
                pid: document.init.pid,
                start_time: document.init.start_time,
            },
            groups: document.groups,
            disk: document.disk.into(),
            disk_base: document.disk_base.into(),
            memory_bytes: document.memory_bytes,
            changes: document.changes,
            home_tools: document.home_tools,
            enforcement: document.enforcement,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{json, value::to_raw_value};

    use super::*;

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Description::read(directory.path()).is_none());
        let description = Description {
            init: ProcessId {
                pid: 12,
                start_time: 34,
            },
            groups: vec!["/sys/fs/cgroup/zareba/a".into()],
            disk: DiskLimit {
                bytes: 56,
                inodes: 78,
            },
            disk_base: DiskLimit {
                bytes: 12,
                inodes: 3,
            },
            memory_bytes: Some(1 << 30),
            changes: Some(ChangesPlace::Layer {
                lower: "/srv/w".into(),
            }),
            home_tools: Some(vec!["/srv/u/.cargo/bin".into()]),
            enforcement: to_raw_value(&json!({ "seccomp": "filter" })).unwrap(),
        };
        description.clone().write(directory.path()).unwrap();
        let read = Description::read(directory.path()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{description:?}"));
        for broken in ["", "{}", r#"{"version": 2}"#, r#"{"version": 1}"#] {
            fs::write(directory.path().join(NAME), broken).unwrap();
            assert!(Description::read(directory.path()).is_none(), "{broken}");
        }
    }
}
