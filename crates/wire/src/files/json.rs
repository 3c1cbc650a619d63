//! The JSON of statuses, pages, changes and request bodies. Written by hand, because only the
//! protocol's types promise their form to anybody.

use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    DirectoryRequest, EntryPage, Existing, FileChange, FileEntry, FileKind, FileStatus,
    LIST_LIMIT_MAX, Parents, RenameRequest,
};

/// A request that travels in a body.
pub(crate) trait Body: Sized {
    fn to_json(&self) -> Value;
    /// What the body asks for, or what is wrong with it.
    fn from_json(body: &[u8]) -> Result<Self, String>;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Directory {
    path: String,
    mode: Option<u32>,
    #[serde(default)]
    parents: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    from: String,
    to: String,
    #[serde(default)]
    replace: bool,
}

impl Body for DirectoryRequest {
    fn to_json(&self) -> Value {
        let parents = self.parents == Parents::Make;
        json!({ "path": self.path, "mode": self.mode, "parents": parents })
    }

    fn from_json(body: &[u8]) -> Result<Self, String> {
        let body: Directory = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        Ok(Self {
            path: body.path,
            mode: body.mode,
            parents: if body.parents {
                Parents::Make
            } else {
                Parents::Require
            },
        })
    }
}

impl Body for RenameRequest {
    fn to_json(&self) -> Value {
        let replace = self.existing == Existing::Replace;
        json!({ "from": self.from, "to": self.to, "replace": replace })
    }

    fn from_json(body: &[u8]) -> Result<Self, String> {
        let body: Names = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        Ok(Self {
            from: body.from,
            to: body.to,
            existing: if body.replace {
                Existing::Replace
            } else {
                Existing::Keep
            },
        })
    }
}

impl FileStatus {
    /// As it travels: times are nanoseconds.
    pub(crate) fn to_json(&self) -> Value {
        Value::Object(self.members())
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
        put("kind", self.kind.as_str().into());
        put("size", self.size.into());
        put("mode", self.mode.into());
        put("modified_ns", nanoseconds(self.modified).into());
        put("version", self.version.as_str().into());
        for (key, text) in [("sha256", &self.sha256), ("target", &self.target)] {
            if let Some(text) = text {
                put(key, text.as_str().into());
            }
        }
        members
    }

    pub(crate) fn from_json(document: &Value) -> Option<Self> {
        let text = |key: &str| Some(document.get(key)?.as_str()?.to_owned());
        let number = |key: &str| document.get(key)?.as_u64();
        Some(Self {
            kind: FileKind::from_word(&text("kind")?)?,
            size: number("size")?,
            mode: u32::try_from(number("mode")?).ok()? & 0o7777,
            modified: time(document.get("modified_ns")?.as_i64()?)?,
            version: text("version")?,
            sha256: text("sha256"),
            target: text("target"),
        })
    }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let clamped = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => clamped(after),
        Err(before) => -clamped(before.duration()),
    }
}

fn time(nanoseconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    }
}

impl EntryPage {
    pub(crate) fn to_json(&self) -> Value {
        let entries = self.entries.iter().map(|entry| {
            let mut members = entry.status.members();
            members.insert("name".to_owned(), entry.name.as_str().into());
            Value::Object(members)
        });
        json!({
            "entries": entries.collect::<Vec<_>>(),
            "next": self.next,
            "truncated": self.truncated,
        })
    }

    /// Whoever sends more entries than may be asked for is not believed.
    pub(crate) fn from_json(document: &Value) -> Option<Self> {
        let listed = document.get("entries")?.as_array()?;
        if listed.len() > LIST_LIMIT_MAX {
            return None;
        }
        let entry = |entry: &Value| {
            Some(FileEntry {
                name: entry.get("name")?.as_str()?.to_owned(),
                status: FileStatus::from_json(entry)?,
            })
        };
        let next = document.get("next").and_then(Value::as_str);
        Some(Self {
            entries: listed.iter().map(entry).collect::<Option<_>>()?,
            next: next.map(str::to_owned),
            truncated: document.get("truncated")?.as_bool()?,
        })
    }
}

impl FileChange {
    /// A document for one line.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Created { path, kind } => {
                json!({ "change": "created", "path": path, "kind": kind.as_str() })
            }
            Self::Modified { path } => json!({ "change": "modified", "path": path }),
            Self::Removed { path, kind } => {
                json!({ "change": "removed", "path": path, "kind": kind.as_str() })
            }
            Self::Renamed { path, to, kind } => {
                json!({ "change": "renamed", "path": path, "to": to, "kind": kind.as_str() })
            }
            Self::Overflow => json!({ "change": "overflow" }),
            Self::Incomplete { directories } => {
                json!({ "change": "incomplete", "directories": directories })
            }
            Self::Gone => json!({ "change": "gone" }),
        }
    }

    pub(crate) fn from_json(document: &Value) -> Option<Self> {
        let text = |key: &str| Some(document.get(key)?.as_str()?.to_owned());
        let kind = || FileKind::from_word(&text("kind")?);
        Some(match text("change")?.as_str() {
            "created" => Self::Created {
                path: text("path")?,
                kind: kind()?,
            },
            "modified" => Self::Modified {
                path: text("path")?,
            },
            "removed" => Self::Removed {
                path: text("path")?,
                kind: kind()?,
            },
            "renamed" => Self::Renamed {
                path: text("path")?,
                to: text("to")?,
                kind: kind()?,
            },
            "overflow" => Self::Overflow,
            "incomplete" => {
                let directories = document.get("directories")?.as_u64()?;
                Self::Incomplete {
                    directories: usize::try_from(directories).ok()?,
                }
            }
            "gone" => Self::Gone,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(modified: SystemTime) -> FileStatus {
        FileStatus {
            kind: FileKind::Link,
            size: u64::MAX,
            mode: 0o4755,
            modified,
            version: "1-2-3".to_owned(),
            sha256: Some("ab".to_owned()),
            target: Some("../ä".to_owned()),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let before = SystemTime::UNIX_EPOCH - Duration::from_nanos(1_500_000_001);
        for modified in [SystemTime::UNIX_EPOCH, before, SystemTime::now()] {
            let status = status(modified);
            assert_eq!(
                FileStatus::from_json(&status.to_json()),
                Some(status.clone())
            );
            let page = EntryPage {
                entries: vec![FileEntry {
                    name: "a\nb".to_owned(),
                    status,
                }],
                next: Some("a\nb".to_owned()),
                truncated: true,
            };
            assert_eq!(EntryPage::from_json(&page.to_json()), Some(page));
        }
        let (path, to, kind) = ("a".to_owned(), "b".to_owned(), FileKind::Directory);
        for change in [
            FileChange::Created {
                path: path.clone(),
                kind,
            },
            FileChange::Modified { path: path.clone() },
            FileChange::Removed {
                path: path.clone(),
                kind,
            },
            FileChange::Renamed { path, to, kind },
            FileChange::Overflow,
            FileChange::Incomplete { directories: 7 },
            FileChange::Gone,
        ] {
            assert_eq!(FileChange::from_json(&change.to_json()), Some(change));
        }
    }

    #[test]
    fn requests_are_read_as_they_were_written_and_mistakes_are_named() {
        let request = RenameRequest {
            from: "a".to_owned(),
            to: "b".to_owned(),
            existing: Existing::Replace,
        };
        let body = request.to_json().to_string();
        assert_eq!(RenameRequest::from_json(body.as_bytes()), Ok(request));
        let request = DirectoryRequest {
            path: "a".to_owned(),
            mode: Some(0o700),
            parents: Parents::Make,
        };
        let body = request.to_json().to_string();
        assert_eq!(DirectoryRequest::from_json(body.as_bytes()), Ok(request));
        let error = RenameRequest::from_json(br#"{"from": "a", "to": "b", "force": true}"#);
        assert!(error.unwrap_err().contains("unknown field `force`"));
    }

    /// G-1: the other end may be anybody.
    #[test]
    fn answers_that_make_no_sense_are_no_answers() {
        let good = status(SystemTime::UNIX_EPOCH).to_json();
        for (key, value) in [
            ("kind", json!("door")),
            ("size", json!(-1)),
            ("mode", json!("0644")),
            ("modified_ns", json!(0.5)),
            ("version", Value::Null),
        ] {
            let mut bad = good.clone();
            bad[key] = value;
            assert_eq!(FileStatus::from_json(&bad), None, "{key}");
        }
        let page = json!({ "entries": vec![good; LIST_LIMIT_MAX + 1], "truncated": false });
        assert_eq!(EntryPage::from_json(&page), None);
        assert_eq!(FileChange::from_json(&json!({ "change": "party" })), None);
    }
}
