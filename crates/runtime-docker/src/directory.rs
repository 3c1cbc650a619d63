//! What this installation keeps in `STATE/docker/` beside the directories of its sandboxes, and how
//! those are removed.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use zareba_runtime::{
    directory::{Claim, DirectoryError, prepare},
    guarded,
};

/// Names that are no sandbox.
const INSTANCE: &str = ".instance";
pub(crate) const PORTS: &str = ".ports";

/// Removes the directory of a sandbox, on a thread that may block.
pub(crate) async fn remove(claim: Claim) {
    let removing = tokio::task::spawn_blocking(move || {
        let path = claim.path();
        guarded::remove(path);
        if let Err(error) = remove_tree(path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove a sandbox's directory");
        }
    });
    // Fails only with the whole async runtime.
    let _ = removing.await;
}

/// The name of this installation: made once, and on every container of it (DK-6).
pub(crate) fn instance(kind: &Path) -> Result<String, DirectoryError> {
    let _making = prepare(kind)?;
    let path = kind.join(INSTANCE);
    let known = fs::read_to_string(&path).unwrap_or_default();
    let is_name = known.len() == 32 && known.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_name {
        return Ok(known);
    }
    let new = format!("{:032x}", rand::random::<u128>());
    fs::write(&path, &new).map_err(|source| DirectoryError::Prepare { path, source })?;
    Ok(new)
}

/// Removes a tree that a sandbox could write to, when nobody writes to it any more. Directories
/// are moved up before they are emptied, so that no depth of them exhausts anything, and opened
/// to their owner. Nothing is followed.
pub(crate) fn remove_tree(root: &Path) -> io::Result<()> {
    let mut number: u64 = 0;
    loop {
        let mut is_empty = true;
        for entry in fs::read_dir(root)? {
            is_empty = false;
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            fs::set_permissions(entry.path(), Permissions::from_mode(0o700))?;
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    number += 1;
                    fs::rename(inner.path(), root.join(format!(".removed-{number}")))?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
        if is_empty {
            return fs::remove_dir(root);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn an_installation_keeps_its_name() {
        let state = tempfile::tempdir().unwrap();
        let kind = state.path().join("docker");
        let name = instance(&kind).unwrap();
        assert_eq!(instance(&kind).unwrap(), name);
        assert!(zareba_runtime::directory::all(&kind).unwrap().is_empty());
    }

    #[test]
    fn trees_of_any_depth_and_mode_are_removed_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let kept = place.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        let root = place.path().join("root");
        fs::create_dir(&root).unwrap();
        std::os::unix::fs::symlink(&kept, root.join("link")).unwrap();
        let mut deep = File::open(&root).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&deep, "d", 0o700.into()).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            let next = rustix::fs::openat(&deep, "d", flags, 0.into()).unwrap();
            deep = File::from(next);
        }
        fs::create_dir(root.join("shut")).unwrap();
        fs::write(root.join("shut/file"), "").unwrap();
        fs::set_permissions(root.join("shut"), Permissions::from_mode(0o000)).unwrap();
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        assert!(kept.join("file").exists());
    }
}
