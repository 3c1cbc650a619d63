//! What is written down of a sandbox, so that another process can find it again.
//!
//! It holds the key that opens the executor, and only its user can read it.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use zareba_runtime::{
    RequestField, SandboxRequest,
    notes::{self, milliseconds},
};

use crate::{EnginePlace, Lifetime};

const NAME: &str = "sandbox.json";
const VERSION: u64 = 1;

/// A sandbox in a container.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The container's id.
    pub(crate) container: String,
    pub(crate) key: String,
    pub(crate) workspace: PathBuf,
    /// How long an action may take that does not say so itself.
    pub(crate) timeout: Duration,
    pub(crate) lifetime: Lifetime,
    pub(crate) image: String,
    pub(crate) created: SystemTime,
    /// What was asked of it.
    pub(crate) request: SandboxRequest,
    /// What of that does not hold.
    pub(crate) not_held: Vec<RequestField>,
    /// What is weaker than it could be.
    pub(crate) relaxed: Vec<String>,
    /// Where its Engine was: that decides how it is reached.
    pub(crate) place: EnginePlace,
}

impl Record {
    /// A reader finds this one or the one before it.
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        notes::write(directory, NAME, &self.document())
    }

    /// The same for a sandbox that nobody knows of yet, without waiting for the disk.
    pub(crate) fn replace(&self, directory: &Path) -> io::Result<()> {
        notes::replace(directory, NAME, &self.document())
    }

    fn document(&self) -> Value {
        let (kept_alive, idle_timeout) = match self.lifetime {
            Lifetime::WithUs => (false, None),
            Lifetime::KeptAlive { idle_timeout } => (true, idle_timeout),
        };
        json!({
            "version": VERSION,
            "container": self.container,
            "key": self.key,
            "workspace": self.workspace.to_string_lossy(),
            "timeout_ms": milliseconds(self.timeout),
            "kept_alive": kept_alive,
            "idle_timeout_ms": idle_timeout.map(milliseconds),
            "image": self.image,
            "created_ms": notes::since_epoch(self.created),
            "request": self.request,
            "not_held": self.not_held,
            "relaxed": self.relaxed,
            "elsewhere": self.place == EnginePlace::Elsewhere,
        })
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
        let relaxed = document.get("relaxed")?.as_array()?;
        Some(Self {
            container: text("container")?,
            key: text("key")?,
            workspace: text("workspace")?.into(),
            timeout: Duration::from_millis(number("timeout_ms")?),
            lifetime: if document.get("kept_alive")?.as_bool()? {
                Lifetime::KeptAlive { idle_timeout }
            } else {
                Lifetime::WithUs
            },
            image: text("image")?,
            created: UNIX_EPOCH + Duration::from_millis(number("created_ms")?),
            request: added(document, "request")?,
            not_held: added(document, "not_held")?,
            relaxed: relaxed
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
            place: match document.get("elsewhere").and_then(Value::as_bool) {
                Some(true) => EnginePlace::Elsewhere,
                _ => EnginePlace::ThisMachine,
            },
        })
    }
}

/// A part that records did not have from the beginning.
fn added<T: DeserializeOwned + Default>(document: &Value, key: &str) -> Option<T> {
    match document.get(key) {
        Some(value) => T::deserialize(value).ok(),
        None => Some(T::default()),
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Record")
            .field("container", &self.container)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn record() -> Record {
        Record {
            container: "abc".to_owned(),
            key: "secret".to_owned(),
            workspace: "/workspace".into(),
            timeout: Duration::from_secs(120),
            lifetime: Lifetime::KeptAlive {
                idle_timeout: Some(Duration::from_millis(1500)),
            },
            image: "debian:12".to_owned(),
            created: UNIX_EPOCH + Duration::from_millis(1_234_567),
            request: SandboxRequest {
                pids: Some(99),
                ..SandboxRequest::default()
            },
            not_held: vec![RequestField::Allow],
            relaxed: vec!["network: host".to_owned()],
            place: EnginePlace::Elsewhere,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nobody_else_can() {
        let directory = tempfile::tempdir().unwrap();
        record().write(directory.path()).unwrap();
        record().write(directory.path()).unwrap();
        assert_eq!(Record::read(directory.path()), Some(record()));
        let entries: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
        assert_eq!(entries.len(), 1);
        let mode = entries[0].metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{:?}", record()).contains("secret"));
    }

    #[test]
    fn what_is_no_record_is_none() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(directory.path()), None);
        for content in ["", "{}", "[]", r#"{"version": 2}"#] {
            fs::write(directory.path().join(NAME), content).unwrap();
            assert_eq!(Record::read(directory.path()), None, "{content}");
        }
    }
}
