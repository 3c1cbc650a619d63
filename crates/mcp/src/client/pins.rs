//! Which definitions were accepted: each by its hash, so that a server cannot put another tool in
//! the place of one that somebody has looked at.
//!
//! Nobody accepts for others: what a tenant has seen counts for that tenant, for the server of that
//! name, reached in that way. Several processes can share a file: each changes it under a lock, and
//! sees with its next use what others have changed.

mod store;

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Reach, ServerSpec};
use store::Store;

pub use store::PinError;

/// Definitions that are remembered, of all tenants.
const PINS_MAX: usize = 50_000;

/// Definitions that are remembered of one tenant's servers: few enough that none can fill the
/// whole file.
const TENANT_PINS_MAX: usize = 5000;

/// Definitions that are remembered of one server: more than any shows at once, and few enough that
/// none can fill what its tenant has with names that it makes up.
const SERVER_PINS_MAX: usize = 1024;

/// How long others may keep the file locked.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// Which definitions were accepted. What is seen for the first time is; what has changed since is
/// not, until somebody [approves](Pins::approve) it. Clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    store: Arc<Store>,
    tenant: Arc<str>,
}

/// What is known: by tenant, server, how that is reached, and tool.
type Known = BTreeMap<String, BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>>;

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
        let store = Store::in_file(path);
        store.generation()?;
        Ok(Self {
            store: Arc::new(store),
            tenant: Arc::default(),
        })
    }

    /// The same for another tenant, who has accepted nothing of what others have. Without it they
    /// are those of nobody in particular, that is of whoever uses the program alone.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        Self {
            store: Arc::clone(&self.store),
            tenant: tenant.into(),
        }
    }

    /// Forgets what was accepted of a server, by all tenants and however it is reached, so that
    /// what it has next is accepted. Processes that run see that with their next use.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn approve(&self, server: &str) -> Result<(), PinError> {
        self.store.change(|known| {
            let mut is_changed = false;
            for servers in known.values_mut() {
                is_changed |= servers.remove(server).is_some();
            }
            ((), is_changed)
        })
    }

    /// A number that is another one after every change that this process can see.
    pub(super) fn generation(&self) -> Result<u64, PinError> {
        self.store.generation()
    }

    /// Compares definitions of a server, given as name and hash, with what was accepted of it, and
    /// accepts those that are new.
    pub(super) async fn compare(
        &self,
        server: &ServerSpec,
        definitions: &[(String, String)],
    ) -> Result<Vec<Pinned>, PinError> {
        let reach = reach_hash(&server.reach);
        let of_server = |known: &Known| {
            let servers = known.get(&*self.tenant)?;
            servers.get(&server.name)?.get(&reach).cloned()
        };
        let accepted = self.store.look(of_server)?.unwrap_or_default();
        let known = definitions.iter().map(|(tool, hash)| {
            let pinned = accepted.get(tool)?;
            Some(match pinned == hash {
                true => Pinned::Accepted,
                false => Pinned::Changed,
            })
        });
        if let Some(verdicts) = known.collect() {
            return Ok(verdicts);
        }
        // Something is new. Others may hold the lock, which nobody else shall wait for.
        let (pins, name, wanted) = (self.clone(), server.name.clone(), definitions.to_vec());
        let accepting = tokio::task::spawn_blocking(move || {
            let tenant = &*pins.tenant;
            let accept = |known: &mut Known| accept(known, [tenant, &name, &reach], &wanted);
            pins.store.change(accept)
        });
        match tokio::time::timeout(LOCK_PATIENCE, accepting).await {
            Ok(Ok(verdicts)) => verdicts,
            Ok(Err(_)) => Err(self.store.failed("write", "it was given up")),
            Err(_) => Err(self
                .store
                .failed("write", "another process keeps it locked")),
        }
    }
}

/// Accepts what is new of a server, as far as there is room, and says whether that changed
/// anything.
fn accept(
    known: &mut Known,
    [tenant, server, reach]: [&str; 3],
    definitions: &[(String, String)],
) -> (Vec<Pinned>, bool) {
    let pins_of = |servers: &BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>| {
        let reaches = servers.values().flat_map(BTreeMap::values);
        reaches.map(BTreeMap::len).sum::<usize>()
    };
    let all: usize = known.values().map(pins_of).sum();
    let of_tenant = known.get(tenant).map_or(0, pins_of);
    let servers = known.entry(tenant.to_owned()).or_default();
    let reaches = servers.entry(server.to_owned()).or_default();
    let accepted = reaches.entry(reach.to_owned()).or_default();
    let mut room = PINS_MAX
        .saturating_sub(all)
        .min(TENANT_PINS_MAX.saturating_sub(of_tenant))
        .min(SERVER_PINS_MAX.saturating_sub(accepted.len()));
    let mut is_changed = false;
    let verdicts = definitions.iter().map(|(tool, hash)| {
        match accepted.get(tool) {
            Some(pinned) if pinned == hash => Pinned::Accepted,
            Some(_) => Pinned::Changed,
            None if room > 0 => {
                accepted.insert(tool.clone(), hash.clone());
                (room, is_changed) = (room - 1, true);
                Pinned::Accepted
            }
            // What cannot be remembered could change unseen.
            None => Pinned::Changed,
        }
    });
    let verdicts = verdicts.collect();
    (verdicts, is_changed)
}

/// How a server is reached, without what is secret about that: another program or another address
/// under the same name is another server.
fn reach_hash(reach: &Reach) -> String {
    let told = match reach {
        Reach::Program {
            command, arguments, ..
        } => json!(["program", command, arguments]),
        Reach::Http { url, .. } => json!(["http", url]),
        Reach::Events { url, .. } => json!(["events", url]),
    };
    hex_digest(&told)
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
    hex_digest(&told)
}

fn hex_digest(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
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

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
