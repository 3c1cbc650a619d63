//! The private directory of one sandbox, and what becomes of it when its owner lets go of it.

use std::path::{Path, PathBuf};

use zareba_runtime::{
    SandboxId,
    directory::{self, Claim},
};

pub(crate) use zareba_runtime::directory::DirectoryError;

use crate::{members, native, trees::remove_tree};

/// A sandbox's directory. Dropping it ends what is left of the sandbox's processes and removes
/// it, unless it was said that it stays.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    claim: Claim,
    fate: Fate,
}

/// What becomes of a directory whose owner lets go of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Removed,
    Left,
}

impl RunDirectory {
    /// Makes the directory of a new sandbox.
    pub(crate) fn create(kind: &Path, id: &SandboxId) -> Result<Self, DirectoryError> {
        Claim::create(kind, id).map(Self::ours)
    }

    /// The directory of a sandbox that is found again, which may have an owner elsewhere.
    pub(crate) fn of_another(kind: &Path, id: &SandboxId) -> Self {
        Self {
            claim: Claim::of_another(kind, id),
            fate: Fate::Left,
        }
    }

    /// Takes over all directories without an owner.
    pub(crate) fn abandoned(kind: &Path) -> Result<Vec<Self>, DirectoryError> {
        let claims = Claim::abandoned(kind)?;
        Ok(claims.into_iter().map(Self::ours).collect())
    }

    /// The directories of all sandboxes, whoever owns them.
    pub(crate) fn all(kind: &Path) -> Result<Vec<(SandboxId, PathBuf)>, DirectoryError> {
        directory::all(kind)
    }

    fn ours(claim: Claim) -> Self {
        let fate = Fate::Removed;
        Self { claim, fate }
    }

    pub(crate) fn path(&self) -> &Path {
        self.claim.path()
    }

    /// The sandbox that it belongs to.
    pub(crate) fn sandbox(&self) -> Option<SandboxId> {
        self.claim.sandbox()
    }

    /// Makes a directory inside and returns its path, with links on the way resolved, as a shell
    /// will report it.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, DirectoryError> {
        self.claim.make(name)
    }

    /// From now on only [`Self::remove`] removes it: it is needed by a process that outlives us.
    pub(crate) fn outlive(&mut self) {
        self.fate = Fate::Left;
    }

    /// Gives it up and leaves it where it is.
    pub(crate) fn leave(mut self) {
        self.outlive();
    }

    /// Removes it, with the sandbox's last processes, on a thread that may block.
    pub(crate) async fn remove(mut self) {
        self.fate = Fate::Removed;
        // Without a runtime the closure is dropped, and with it the directory.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.fate == Fate::Left {
            return;
        }
        // What is behind walls has ended with them.
        let path = self.claim.path();
        let walled = path.parent().and_then(Path::file_name) == Some(native::NAME.as_ref());
        match self.sandbox() {
            Some(_) if walled => {
                native::forget_group(path);
                native::remove_stand_ins(path);
            }
            Some(sandbox) => members::kill(&sandbox),
            None => {}
        }
        // Two commands may end the same sandbox at once, and the other was first.
        if let Err(error) = remove_tree(path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove a sandbox's directory");
        }
    }
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
