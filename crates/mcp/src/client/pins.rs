//! Which definitions were accepted: each by its hash, so that a server cannot put another tool in
//! the place of one that somebody has looked at.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A file of pins; thousands of tools fit.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Definitions that are remembered, of all servers.
const PINS_MAX: usize = 20_000;

/// Definitions that are remembered of one server: more than any shows at once, and few enough that
/// none can fill the whole file with names that it makes up.
const SERVER_PINS_MAX: usize = 1024;

/// Which definitions were accepted. What is seen for the first time is; what has changed since is
/// not, until somebody [approves](Pins::approve) it. Clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    file: Option<PathBuf>,
    /// By server and tool.
    known: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
}

/// Why pins could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot {deed} the accepted definitions of MCP tools in `{path}`; move the file away to begin anew"
)]
pub struct PinError {
    deed: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// How a definition compares with the accepted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pinned {
    /// It is accepted, perhaps since now.
    Accepted,
    /// Another one was.
    Changed,
}

impl Pins {
    /// Pins that are forgotten with the last clone.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Pins that are kept in a file, which need not be there yet.
    ///
    /// # Errors
    /// When it cannot be read, or holds something else.
    pub fn in_file(path: &Path) -> Result<Self, PinError> {
        let failed = |source| PinError {
            deed: "read",
            path: path.to_owned(),
            source,
        };
        let known = match read(path) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(error)),
        };
        let shared = Shared {
            file: Some(path.to_owned()),
            known: Mutex::new(known),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Forgets what was accepted of a server, so that what it has next is accepted.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn approve(&self, server: &str) -> Result<(), PinError> {
        let mut known = self.known();
        known.remove(server);
        self.write(&known)
    }

    /// Compares definitions of a server with what was accepted of it, and accepts those that are
    /// new.
    pub(super) fn compare(
        &self,
        server: &str,
        definitions: &[(String, String)],
    ) -> Result<Vec<Pinned>, PinError> {
        let mut known = self.known();
        let all: usize = known.values().map(BTreeMap::len).sum();
        let of_server = known.entry(server.to_owned()).or_default();
        let mut room = PINS_MAX
            .saturating_sub(all)
            .min(SERVER_PINS_MAX.saturating_sub(of_server.len()));
        let (mut is_changed, mut verdicts) = (false, Vec::with_capacity(definitions.len()));
        for (tool, hash) in definitions {
            verdicts.push(match of_server.get(tool) {
                Some(pinned) if pinned == hash => Pinned::Accepted,
                Some(_) => Pinned::Changed,
                None if room > 0 => {
                    of_server.insert(tool.clone(), hash.clone());
                    (room, is_changed) = (room - 1, true);
                    Pinned::Accepted
                }
                // What cannot be remembered could change unseen.
                None => Pinned::Changed,
            });
        }
        if is_changed {
            self.write(&known)?;
        }
        Ok(verdicts)
    }

    fn write(&self, known: &BTreeMap<String, BTreeMap<String, String>>) -> Result<(), PinError> {
        let Some(path) = &self.shared.file else {
            return Ok(());
        };
        let written = replace(path, &json!(known));
        written.map_err(|source| PinError {
            deed: "write",
            path: path.clone(),
            source,
        })
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, String>>> {
        let known = self.shared.known.lock();
        known.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hash of everything that a model or a person is told of a tool.
pub(super) fn hash(tool: &Tool) -> String {
    let told = json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": sorted(&Value::Object(tool.input_schema.as_ref().clone())),
        "outputSchema": tool.output_schema.as_ref().map(|schema| sorted(&Value::Object(schema.as_ref().clone()))),
        "annotations": tool.annotations,
    });
    let digest = Sha256::digest(told.to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same with the keys of objects in order: a server may write them in any. What came through
/// the parser is no deeper than that allows.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let ordered: BTreeMap<_, _> = members.iter().collect();
            let members = ordered
                .into_iter()
                .map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn read(path: &Path) -> io::Result<BTreeMap<String, BTreeMap<String, String>>> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::other("it is too large"));
    }
    let text = fs::read(path)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Replaces a file at once, so that nobody ever reads half of it.
fn replace(path: &Path, value: &Value) -> io::Result<()> {
    let directory = path
        .parent()
        .ok_or_else(|| io::Error::other("it has no directory"))?;
    let text = value.to_string();
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(io::Error::other("it would be too large"));
    }
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(description: &str, schema: Value) -> Tool {
        let schema = schema.as_object().cloned().unwrap_or_default();
        Tool::new("t", description.to_owned(), schema)
    }

    #[test]
    fn a_definition_is_known_by_all_that_is_told_of_it() {
        let one = tool(
            "a",
            json!({"type": "object", "properties": {"x": {"type": "string"}}}),
        );
        let same = tool(
            "a",
            json!({"properties": {"x": {"type": "string"}}, "type": "object"}),
        );
        let other = tool(
            "a",
            json!({"type": "object", "properties": {"x": {"type": "number"}}}),
        );
        assert_eq!(hash(&one), hash(&same));
        assert_ne!(hash(&one), hash(&other));
        assert_ne!(hash(&one), hash(&tool("b", json!({"type": "object"}))));
    }

    #[test]
    fn what_has_changed_stays_out_until_it_is_approved_also_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/pins.json");
        let seen = |pins: &Pins, hash: &str| {
            let definitions = [("t".to_owned(), hash.to_owned())];
            pins.compare("s", &definitions).unwrap().remove(0)
        };
        let pins = Pins::in_file(&path).unwrap();
        assert_eq!(seen(&pins, "one"), Pinned::Accepted);
        assert_eq!(seen(&pins, "two"), Pinned::Changed);
        let pins = Pins::in_file(&path).unwrap();
        assert_eq!(seen(&pins, "two"), Pinned::Changed);
        assert_eq!(seen(&pins, "one"), Pinned::Accepted);
        pins.approve("s").unwrap();
        assert_eq!(seen(&pins, "two"), Pinned::Accepted);
        assert_eq!(seen(&Pins::in_file(&path).unwrap(), "one"), Pinned::Changed);
    }

    #[test]
    fn what_cannot_be_remembered_is_not_accepted() {
        let pins = Pins::in_memory();
        let made_up = |number: usize| (format!("t{number}"), "one".to_owned());
        let definitions: Vec<_> = (0..=SERVER_PINS_MAX).map(made_up).collect();
        let verdicts = pins.compare("s", &definitions).unwrap();
        assert_eq!(verdicts[SERVER_PINS_MAX - 1], Pinned::Accepted);
        assert_eq!(verdicts[SERVER_PINS_MAX], Pinned::Changed);
        let of_another = pins.compare("other", &[made_up(0)]).unwrap();
        assert_eq!(of_another, [Pinned::Accepted]);
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pins.json");
        fs::write(&path, "[1]").unwrap();
        let error = Pins::in_file(&path).unwrap_err();
        assert!(error.to_string().contains("cannot read"), "{error}");
    }
}
