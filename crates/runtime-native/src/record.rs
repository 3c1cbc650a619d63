//! What is written down of a local executor, so that another process can find it again.
//!
//! It holds the key that opens the executor, and only its user can read it.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Deserialize as _;
use serde_json::{Value, json};
use zareba_runtime::{
    RequestField,
    notes::{self, Draft, milliseconds},
};

use crate::process::ProcessIdentity;

const NAME: &str = "server.json";
const VERSION: u64 = 1;

/// A local executor.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) process: ProcessIdentity,
    /// Where it listens.
    pub(crate) socket: PathBuf,
    pub(crate) key: String,
    pub(crate) workspace: PathBuf,
    /// How long an action may take that does not say so itself.
    pub(crate) timeout: Duration,
    pub(crate) lifetime: RecordedLifetime,
    /// What was asked for and does not hold.
    pub(crate) not_held: Vec<RequestField>,
    /// The image whose files it has.
    pub(crate) image: Option<String>,
    pub(crate) created: SystemTime,
}

/// How long it was meant to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordedLifetime {
    WithItsOwner,
    KeptAlive { idle_timeout: Option<Duration> },
}

impl Record {
    /// Writes it down; it is found when that is published.
    pub(crate) fn draft(&self, directory: &Path) -> io::Result<Draft> {
        let (kept_alive, idle_timeout) = match self.lifetime {
            RecordedLifetime::WithItsOwner => (false, None),
            RecordedLifetime::KeptAlive { idle_timeout } => (true, idle_timeout),
        };
        let document = json!({
            "version": VERSION,
            "pid": self.process.pid,
            "start_time": self.process.start_time,
            "boot": self.process.boot,
            "socket": text(&self.socket)?,
            "key": self.key,
            "workspace": text(&self.workspace)?,
            "timeout_ms": milliseconds(self.timeout),
            "kept_alive": kept_alive,
            "idle_timeout_ms": idle_timeout.map(milliseconds),
            "not_held": self.not_held,
            "image": self.image,
            "created_ms": notes::since_epoch(self.created),
        });
        Draft::write(directory, NAME, &document)
    }

    /// None when there is none, or none that this version can read.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        Self::parse(&notes::read(directory, NAME)?)
    }

    fn parse(document: &Value) -> Option<Self> {
        let text = |key: &str| Some(document.get(key)?.as_str()?.to_owned());
        let number = |key: &str| document.get(key)?.as_u64();
        if number("version")? != VERSION {
            return None;
        }
        let idle_timeout = number("idle_timeout_ms").map(Duration::from_millis);
        Some(Self {
            process: ProcessIdentity {
                pid: i32::try_from(number("pid")?).ok()?,
                start_time: number("start_time")?,
                boot: text("boot")?,
            },
            socket: text("socket")?.into(),
            key: text("key")?,
            workspace: text("workspace")?.into(),
            timeout: Duration::from_millis(number("timeout_ms")?),
            lifetime: if document.get("kept_alive")?.as_bool()? {
                RecordedLifetime::KeptAlive { idle_timeout }
            } else {
                RecordedLifetime::WithItsOwner
            },
            not_held: match document.get("not_held") {
                Some(fields) => Vec::deserialize(fields).ok()?,
                None => Vec::new(),
            },
            image: text("image"),
            created: UNIX_EPOCH + Duration::from_millis(number("created_ms")?),
        })
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Record")
            .field("process", &self.process)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| {
        let problem = format!("the path `{}` is not UTF-8", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn record() -> Record {
        Record {
            process: ProcessIdentity {
                pid: 12,
                start_time: 34,
                boot: "b".to_owned(),
            },
            socket: "/run/s".into(),
            key: "secret".to_owned(),
            workspace: "/tmp/w".into(),
            timeout: Duration::from_secs(120),
            lifetime: RecordedLifetime::KeptAlive {
                idle_timeout: Some(Duration::from_millis(1500)),
            },
            not_held: vec![RequestField::Memory],
            image: Some("debian:12".to_owned()),
            created: UNIX_EPOCH + Duration::from_millis(1_234_567),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nobody_else_can() {
        let directory = tempfile::tempdir().unwrap();
        record().draft(directory.path()).unwrap().publish().unwrap();
        assert_eq!(Record::read(directory.path()), Some(record()));
        let entries: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
        let [entry] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert_eq!(
            entry.metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn what_is_no_record_is_none() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(directory.path()), None);
        let broken = [
            "",
            "{}",
            "[]",
            r#"{"version": 2}"#,
            r#"{"version": 1, "pid": -1}"#,
        ];
        for content in broken {
            fs::write(directory.path().join(NAME), content).unwrap();
            assert_eq!(Record::read(directory.path()), None, "{content}");
        }
    }

    #[test]
    fn a_key_does_not_show_up_in_logs() {
        assert!(!format!("{:?}", record()).contains("secret"));
    }
}
