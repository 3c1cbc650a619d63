//! Which definitions were accepted: each by its hash, so that a server cannot put another tool in
//! the place of one that somebody has looked at.
//!
//! Nobody accepts for others: what a tenant has seen counts for that tenant, for the server of that
//! name, reached in that way. Each tenant has a file, so that none takes room from another. Several
//! processes can share them: each changes a file under a lock, and sees with its next use what
//! others have changed.

mod store;

use std::{collections::BTreeMap, path::Path, sync::Arc};

use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Reach, ServerSpec};
use store::{Store, Stores};

pub use store::PinError;

/// Definitions that are remembered of one tenant's servers.
const TENANT_PINS_MAX: usize = 5000;

/// Definitions that are remembered of one server: more than any shows at once, and few enough that
/// none can fill what its tenant has with names that it makes up.
const SERVER_PINS_MAX: usize = 1024;

/// Which definitions were accepted. What is seen for the first time is; what has changed since is
/// not, until somebody [approves](Pins::approve) it. Clones share what they know.
#[derive(Clone, Debug)]
pub struct Pins {
    stores: Arc<Stores>,
    store: Arc<Store>,
}

/// What is known of a tenant's servers: by server, how that is reached, and the hash of a tool's
/// name, which may be anything.
type Known = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;

/// How a definition compares with the accepted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pinned {
    /// It is accepted, perhaps since now.
    Accepted,
    /// Another one was.
    Changed,
    /// There was none, and there is no room for one: it could change unseen.
    NoRoom,
}

impl Pins {
    /// Pins that are forgotten with the last clone.
    pub fn in_memory() -> Self {
        Self::in_stores(Stores::default())
    }

    /// Pins that are kept in a directory, which need not be there yet.
    ///
    /// # Errors
    /// When those of nobody in particular cannot be read, or are something else.
    pub fn in_directory(path: &Path) -> Result<Self, PinError> {
        let pins = Self::in_stores(Stores::in_directory(path));
        pins.generation()?;
        Ok(pins)
    }

    fn in_stores(stores: Stores) -> Self {
        Self {
            store: stores.of(&tenant_hash("")),
            stores: Arc::new(stores),
        }
    }

    /// The same for another tenant, who has accepted nothing of what others have. Without it they
    /// are those of nobody in particular, that is of whoever uses the program alone.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        Self {
            store: self.stores.of(&tenant_hash(tenant)),
            stores: Arc::clone(&self.stores),
        }
    }

    /// Forgets what was accepted of a server, by all tenants and however it is reached, so that
    /// what it has next is accepted. Processes that run see that with their next use.
    ///
    /// # Errors
    /// When that cannot be written down for everybody.
    pub fn approve(&self, server: &str) -> Result<(), PinError> {
        let mut outcome = Ok(());
        for store in self.stores.all()? {
            let forgotten = store.change(|known| ((), known.remove(server).is_some()));
            // What is wrong with one tenant's is no reason to keep the others waiting.
            outcome = outcome.and(forgotten);
        }
        outcome
    }

    /// A number that is another one after every change that this process can see.
    pub(super) fn generation(&self) -> Result<u64, PinError> {
        self.store.generation()
    }

    /// Compares a definition of a server with the accepted one, and accepts nothing: `None` where
    /// there is no such one.
    pub(super) fn check(
        &self,
        server: &ServerSpec,
        tool: &str,
        hash: &str,
    ) -> Result<Option<Pinned>, PinError> {
        let reach = reach_hash(&server.reach);
        let tool = name_hash(tool);
        self.store.look(|known| {
            let pinned = known.get(&server.name)?.get(&reach)?.get(&tool)?;
            Some(verdict(pinned, hash))
        })
    }

    /// Compares definitions that a server has just shown, given as name and hash, with what was
    /// accepted of it, and accepts those that are new.
    pub(super) async fn compare(
        &self,
        server: &ServerSpec,
        definitions: &[(String, String)],
    ) -> Result<Vec<Pinned>, PinError> {
        let reach = reach_hash(&server.reach);
        let definitions = definitions.iter();
        let wanted = definitions.map(|(tool, hash)| (name_hash(tool), hash.clone()));
        let wanted: Vec<(String, String)> = wanted.collect();
        let known = self.store.look(|known| {
            let accepted = known.get(&server.name).and_then(|it| it.get(&reach));
            let known = wanted.iter().map(|(tool, hash)| {
                let pinned = accepted?.get(tool)?;
                Some(verdict(pinned, hash))
            });
            known.collect()
        })?;
        if let Some(verdicts) = known {
            return Ok(verdicts);
        }
        // Something is new. Others may hold the lock, which nobody else shall wait for.
        let (store, name) = (Arc::clone(&self.store), server.name.clone());
        let accepting = tokio::task::spawn_blocking(move || {
            store.change(|known| accept(known, [&name, &reach], &wanted))
        });
        let given_up = |_| Err(self.store.failed("write", "it was given up"));
        accepting.await.unwrap_or_else(given_up)
    }
}

fn verdict(pinned: &str, hash: &str) -> Pinned {
    match pinned == hash {
        true => Pinned::Accepted,
        false => Pinned::Changed,
    }
}

/// Accepts what is new of a server, as far as there is room, and says whether that changed
/// anything.
fn accept(
    known: &mut Known,
    [server, reach]: [&str; 2],
    definitions: &[(String, String)],
) -> (Vec<Pinned>, bool) {
    let reaches = known.values().flat_map(BTreeMap::values);
    let all = reaches.map(BTreeMap::len).sum::<usize>();
    let reaches = known.entry(server.to_owned()).or_default();
    let accepted = reaches.entry(reach.to_owned()).or_default();
    let mut room = TENANT_PINS_MAX
        .saturating_sub(all)
        .min(SERVER_PINS_MAX.saturating_sub(accepted.len()));
    let mut is_changed = false;
    let verdicts = definitions.iter().map(|(tool, hash)| {
        if let Some(pinned) = accepted.get(tool) {
            return verdict(pinned, hash);
        }
        if room == 0 {
            return Pinned::NoRoom;
        }
        accepted.insert(tool.clone(), hash.clone());
        (room, is_changed) = (room - 1, true);
        Pinned::Accepted
    });
    let verdicts = verdicts.collect();
    (verdicts, is_changed)
}

/// Names of tenants and tools may have any length and any characters; these have not.
fn tenant_hash(tenant: &str) -> String {
    hex_digest(&json!(["tenant", tenant]))
}

fn name_hash(tool: &str) -> String {
    hex_digest(&json!(["tool", tool]))
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
