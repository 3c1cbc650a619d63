//! Builds of images that clients have asked for: taken within a bound for all and for each, handed
//! to whoever builds, and remembered for whoever asks how they went.

use std::{
    collections::HashMap,
    fs::File,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::watch, task::AbortHandle};
use zareba_session::Owner;
use zareba_wire::BoxFuture;

/// Builds that are taken: received, in line or running, of all clients and of each. Whoever builds
/// decides how many run at once.
const BUILDS_MAX: usize = 8;
const BUILDS_EACH_MAX: usize = 2;
/// Builds that are remembered, finished ones included. Clients ask within a minute.
const KNOWN_MAX: usize = 256;

/// Builds images for clients; whoever runs the server implements it.
pub trait BuildService: Send + Sync {
    /// A file without a name, for a context while it is received.
    ///
    /// # Errors
    /// When there is none to be had.
    fn scratch(&self) -> io::Result<File>;

    /// Builds an image for an owner and returns its first name, when it is the owner's turn.
    /// Dropping the future ends the build.
    fn build(
        &self,
        owner: &Owner,
        order: RemoteBuild,
    ) -> BoxFuture<'static, Result<String, RemoteBuildError>>;
}

/// An image to be built.
#[derive(Debug)]
pub struct RemoteBuild {
    /// An archive, compressed or not, with a `Dockerfile` at its top.
    pub context: File,
    /// What the image is to be called.
    pub names: Vec<String>,
}

/// Why an image was not built, in words for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RemoteBuildError {
    /// What went wrong.
    pub reason: String,
    /// How it counts.
    pub kind: RemoteBuildFault,
}

/// How a failed build counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteBuildFault {
    /// The client's Dockerfile or context does not work, or is not allowed.
    Failure,
    /// It took too long.
    Timeout,
    /// The fault is ours or the Engine's.
    Internal,
}

/// How far a build is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Status {
    Working,
    Built(String),
    Failed(RemoteBuildError),
}

/// Those that are known.
#[derive(Debug, Default)]
pub(super) struct Builds {
    /// Whose builds are taken.
    taken: Arc<Mutex<Vec<Owner>>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    builds: HashMap<String, Build>,
    /// How many there ever were; the lowest number is the oldest build.
    count: u64,
}

#[derive(Debug)]
struct Build {
    number: u64,
    owner: Owner,
    status: watch::Receiver<Status>,
    task: AbortHandle,
}

/// Room for one build, from the first byte of its context on.
#[derive(Debug)]
pub(super) struct Slot {
    taken: Arc<Mutex<Vec<Owner>>>,
    owner: Owner,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = taken.iter().position(|owner| *owner == self.owner);
        if let Some(at) = ours {
            taken.swap_remove(at);
        }
    }
}

impl Builds {
    /// None when there are enough, of this owner or of all.
    pub(super) fn slot(&self, owner: &Owner) -> Option<Slot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = taken.iter().filter(|other| *other == owner).count();
        if taken.len() >= BUILDS_MAX || theirs >= BUILDS_EACH_MAX {
            return None;
        }
        taken.push(owner.clone());
        Some(Slot {
            taken: Arc::clone(&self.taken),
            owner: owner.clone(),
        })
    }

    /// Starts a build and returns its name.
    pub(super) fn start(
        &self,
        service: &dyn BuildService,
        order: RemoteBuild,
        slot: Slot,
    ) -> String {
        let owner = slot.owner.clone();
        let id = format!("build-{:032x}", rand::random::<u128>());
        let (tell, status) = watch::channel(Status::Working);
        let building = service.build(&owner, order);
        let task = tokio::spawn(async move {
            let ended = match building.await {
                Ok(image) => Status::Built(image),
                Err(error) => Status::Failed(error),
            };
            // Nobody hears of it when the server is gone.
            let _ = tell.send(ended);
            drop(slot);
        });
        let mut known = self.known();
        let number = known.count;
        known.count += 1;
        known.forget_oldest();
        let build = Build {
            number,
            owner,
            status,
            task: task.abort_handle(),
        };
        known.builds.insert(id.clone(), build);
        id
    }

    /// How a build of an owner goes; that of somebody else is not there. Waits so long for the end
    /// of one that runs.
    pub(super) async fn status(
        &self,
        id: &str,
        owner: &Owner,
        patience: Duration,
    ) -> Option<Value> {
        let mut status = {
            let known = self.known();
            let build = known.builds.get(id).filter(|build| build.owner == *owner);
            build?.status.clone()
        };
        let ended = status.wait_for(|status| *status != Status::Working);
        let ended = match tokio::time::timeout(patience, ended).await {
            Ok(Ok(ended)) => ended.clone(),
            Ok(Err(_)) => return Some(json!({ "status": "CANCELLED" })),
            Err(_) => Status::Working,
        };
        Some(match ended {
            Status::Working => json!({ "status": "WORKING" }),
            Status::Built(image) => json!({ "status": "SUCCESS", "image": image }),
            Status::Failed(RemoteBuildError { reason, kind }) => {
                let status = match kind {
                    RemoteBuildFault::Failure => "FAILURE",
                    RemoteBuildFault::Timeout => "TIMEOUT",
                    RemoteBuildFault::Internal => "INTERNAL_ERROR",
                };
                json!({ "status": status, "error": reason })
            }
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With the facade its builds end.
impl Drop for Builds {
    fn drop(&mut self) {
        for build in self.known().builds.values() {
            build.task.abort();
        }
    }
}

impl Known {
    /// Those that run are never the oldest: there are too few of them.
    fn forget_oldest(&mut self) {
        if self.builds.len() < KNOWN_MAX {
            return;
        }
        let ended = self
            .builds
            .iter()
            .filter(|(_, build)| build.task.is_finished());
        let oldest = ended.min_by_key(|(_, build)| build.number);
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            self.builds.remove(&id);
        }
    }
}

#[cfg(test)]
#[path = "builds_tests.rs"]
mod tests;
