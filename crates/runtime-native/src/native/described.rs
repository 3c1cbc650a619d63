//! What a supervisor writes down of its sandbox, for whoever pauses, inspects or ends it.
//!
//! The file lies in the sandbox's private directory, where nothing inside can reach it, and is
//! there before anybody is told that the sandbox is.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use zareba_runtime::notes;
use zareba_terminal::ProcessId;

use super::disk::DiskLimit;

const NAME: &str = "sandbox.json";
const VERSION: u64 = 1;

/// What there is to know of a running sandbox.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Description {
    /// Its first process, as the machine sees it.
    pub(crate) init: ProcessId,
    /// Where its control groups are.
    pub(crate) groups: Vec<PathBuf>,
    /// What its files may take.
    pub(crate) disk: DiskLimit,
    /// What stands around it, read back from the kernel.
    pub(crate) enforcement: Value,
}

impl Description {
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let document = json!({
            "version": VERSION,
            "init": { "pid": self.init.pid, "start_time": self.init.start_time },
            "groups": self.groups,
            "disk": { "bytes": self.disk.bytes, "inodes": self.disk.inodes },
            "enforcement": self.enforcement,
        });
        notes::write(directory, NAME, &document)
    }

    /// None when there is none, or none that this version can read.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        Self::parse(notes::read(directory, NAME)?)
    }

    fn parse(mut document: Value) -> Option<Self> {
        if document.get("version")?.as_u64()? != VERSION {
            return None;
        }
        let init = document.get("init")?;
        let pid = i32::try_from(init.get("pid")?.as_u64()?).ok()?;
        let start_time = init.get("start_time")?.as_u64()?;
        let disk = document.get("disk")?;
        let disk = DiskLimit {
            bytes: disk.get("bytes")?.as_u64()?,
            inodes: disk.get("inodes")?.as_u64()?,
        };
        let groups = document.get("groups")?.as_array()?.iter();
        let groups = groups.map(|path| path.as_str().map(PathBuf::from));
        Some(Self {
            init: ProcessId { pid, start_time },
            groups: groups.collect::<Option<_>>()?,
            disk,
            enforcement: document.get_mut("enforcement")?.take(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Description::read(directory.path()), None);
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
            enforcement: json!({ "seccomp": "filter" }),
        };
        description.write(directory.path()).unwrap();
        assert_eq!(Description::read(directory.path()), Some(description));
        for broken in ["", "{}", r#"{"version": 2}"#, r#"{"version": 1}"#] {
            fs::write(directory.path().join(NAME), broken).unwrap();
            assert_eq!(Description::read(directory.path()), None, "{broken}");
        }
    }
}
