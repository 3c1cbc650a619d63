//! [`Registry`]: the tools of one session.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    Call, Host, JsonShape, NotJson, RESULT_DEPTH_MAX, RESULT_VALUES_MAX, Returned, Tool,
    ToolDefinition, ToolError, ToolName, check::Check,
};

/// Tools that a session may have.
pub const TOOLS_MAX: usize = 1024;

/// Names that are told to somebody who asks for another one.
const KNOWN_MAX: usize = 20;

/// How long a description may be: a language model reads it with every request.
const DESCRIPTION_BYTES_MAX: usize = 64 * 1024;

/// How long a call may take that does not say so itself.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// The tools of one session, in the order in which they were added. Clones share them.
#[derive(Clone, Default)]
pub struct Registry {
    entries: Arc<Mutex<Vec<Entry>>>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    check: Arc<Check>,
}

impl Registry {
    /// One without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// When its name is taken, its schema makes no sense, or there are too many.
    pub fn add(&self, tool: Arc<dyn Tool>) -> Result<(), ToolError> {
        self.add_all(vec![tool])
    }

    /// Adds several tools, or none of them.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_all(&self, tools: Vec<Arc<dyn Tool>>) -> Result<(), ToolError> {
        let mut added = Vec::with_capacity(tools.len());
        for tool in tools {
            added.push(Entry {
                check: Arc::new(checked(tool.definition())?),
                tool,
            });
        }
        let mut entries = self.entries();
        let all = entries.len() + added.len();
        for (index, entry) in added.iter().enumerate() {
            let definition = entry.tool.definition();
            let mut before = entries.iter().chain(added.iter().take(index));
            let taken = before.find(|it| it.tool.definition().name == definition.name);
            if let Some(other) = taken {
                return Err(ToolError::Taken {
                    name: definition.name.clone(),
                    by: other.tool.definition().origin.clone(),
                });
            }
            if all > TOOLS_MAX {
                return Err(ToolError::Definition {
                    tool: definition.name.to_string(),
                    problem: format!("there would be {all} tools, and the limit is {TOOLS_MAX}"),
                });
            }
        }
        entries.extend(added);
        Ok(())
    }

    /// Adds a tool, in the place of one with the same name and origin when there is one.
    ///
    /// # Errors
    /// As [`add`](Self::add); the name may be that of a tool from elsewhere.
    pub fn replace(&self, tool: Arc<dyn Tool>) -> Result<(), ToolError> {
        let definition = tool.definition();
        let check = Arc::new(checked(definition)?);
        let mut entries = self.entries();
        let before = entries.iter_mut().find(|entry| {
            let known = entry.tool.definition();
            known.name == definition.name && known.origin == definition.origin
        });
        if let Some(before) = before {
            *before = Entry { tool, check };
            return Ok(());
        }
        drop(entries);
        self.add(tool)
    }

    /// Removes a tool and says whether there was one. Calls that are under way go on.
    pub fn remove(&self, name: &ToolName) -> Option<Arc<dyn Tool>> {
        let mut entries = self.entries();
        let at = entries
            .iter()
            .position(|entry| entry.tool.definition().name == *name)?;
        Some(entries.remove(at).tool)
    }

    /// The tool of a name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        Some(self.find(name)?.tool)
    }

    /// All tools, in the order in which they were added.
    pub fn list(&self) -> Vec<ToolDefinition> {
        let entries = self.entries();
        let definitions = entries.iter().map(|entry| entry.tool.definition().clone());
        definitions.collect()
    }

    /// Calls a tool, and cancels the call when its time is up. Dropping the future cancels it, too.
    ///
    /// # Errors
    /// When there is no such tool, its arguments are not what it takes, it fails or takes too long.
    pub async fn call(&self, name: &str, call: Call) -> Result<Returned, ToolError> {
        let Some(Entry { tool, check }) = self.find(name) else {
            return Err(self.not_found(name));
        };
        if call.is_validated {
            let problems = check.problems(&call.arguments);
            if !problems.is_empty() {
                let tool = name.to_owned();
                return Err(ToolError::Invalid { tool, problems });
            }
        }
        let limit = call.timeout.unwrap_or(CALL_TIMEOUT);
        let returned = match tokio::time::timeout(limit, tool.call(call)).await {
            Ok(returned) => returned?,
            Err(_) => {
                let tool = name.to_owned();
                return Err(ToolError::TimedOut { tool, limit });
            }
        };
        manageable(name, returned)
    }

    /// Has every host begin anew: state that tools have kept is as it was at first.
    ///
    /// # Errors
    /// When a host cannot be started again. The others are.
    pub async fn reset(&self) -> Result<(), ToolError> {
        let mut result = Ok(());
        for host in self.hosts() {
            result = result.and(host.reset().await);
        }
        result
    }

    /// Ends every host. A later call begins anew.
    pub async fn close(&self) {
        for host in self.hosts() {
            host.close().await;
        }
    }

    fn hosts(&self) -> Vec<Arc<dyn Host>> {
        let mut hosts: Vec<Arc<dyn Host>> = Vec::new();
        let tools: Vec<_> = self.entries().clone();
        for host in tools.iter().filter_map(|entry| entry.tool.host()) {
            if !hosts.iter().any(|known| Arc::ptr_eq(known, &host)) {
                hosts.push(host);
            }
        }
        hosts
    }

    fn find(&self, name: &str) -> Option<Entry> {
        let entries = self.entries();
        let mut found = entries.iter();
        found
            .find(|entry| entry.tool.definition().name.as_str() == name)
            .cloned()
    }

    fn not_found(&self, name: &str) -> ToolError {
        let known = self.list().into_iter().take(KNOWN_MAX);
        ToolError::NotFound {
            name: name.chars().take(200).collect(),
            known: known.map(|tool| tool.name.to_string()).collect(),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks whether a tool can be offered as it describes itself, and prepares its schema.
pub(crate) fn checked(definition: &ToolDefinition) -> Result<Check, ToolError> {
    let refuse = |problem| ToolError::Definition {
        tool: definition.name.to_string(),
        problem,
    };
    let bytes = definition.description.len();
    if bytes > DESCRIPTION_BYTES_MAX {
        return Err(refuse(format!(
            "its description has {bytes} bytes, and the limit is {DESCRIPTION_BYTES_MAX}"
        )));
    }
    Check::new(&definition.parameters).map_err(refuse)?;
    Check::new(definition.call_schema()).map_err(refuse)
}

/// Refuses a result that nobody could store or show.
fn manageable(tool: &str, returned: Returned) -> Result<Returned, ToolError> {
    let JsonShape { depth, values } = JsonShape::of(returned.json.as_bytes());
    let message = if depth > RESULT_DEPTH_MAX {
        format!("it nests {depth} levels deep, and the limit is {RESULT_DEPTH_MAX}")
    } else if values > RESULT_VALUES_MAX {
        format!("it is made of {values} values, and the limit is {RESULT_VALUES_MAX}")
    } else {
        return Ok(returned);
    };
    Err(ToolError::NotJson(Box::new(NotJson {
        tool: tool.to_owned(),
        kind: "nested".to_owned(),
        description: String::new(),
        message,
        stdout: returned.stdout,
        stderr: returned.stderr,
        is_truncated: returned.is_truncated,
    })))
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.list().into_iter().map(|tool| tool.name);
        formatter.debug_set().entries(names).finish()
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
