//! Takes images out of the store, and garbage with them.

use std::{collections::HashSet, fs::File, path::Path};

use super::{
    ImageStore, Scratch, directory,
    lookup::{Meaning, resolve},
    records::{self, Names},
};
use crate::{Digest, ImageName, error::ImageError};

/// What a removal took away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    pub names: Vec<ImageName>,
    /// The image, unless it has other names still.
    pub image: Option<Digest>,
}

impl ImageStore {
    /// Removes a name, and with its last name the image; or an image with all its names, when an
    /// id is given. An image that a sandbox uses stays, and so does its last name.
    pub fn remove(&self, name_or_id: &str) -> Result<Removed, ImageError> {
        let removed = self.remove_records(name_or_id)?;
        self.sweep()?;
        Ok(removed)
    }

    fn remove_records(&self, name_or_id: &str) -> Result<Removed, ImageError> {
        let root = &self.root;
        let scratch = Scratch::new(root)?;
        let _store = directory::lock_exclusive(root)?;
        let meaning = resolve(root, name_or_id)?;
        let id = meaning.id();
        let mut names = records::read_names(root)?;
        let mut gone = Vec::new();
        let text = id.to_string();
        let wanted = match &meaning {
            Meaning::Name { name, .. } => Some(name.canonical()),
            Meaning::Id(_) => None,
        };
        names.retain(|name, of| {
            let goes = *of == text && wanted.as_ref().is_none_or(|wanted| wanted == name);
            if goes {
                gone.extend(ImageName::parse(name).ok());
            }
            !goes
        });
        let is_named = names.values().any(|of| *of == text);
        if is_named {
            write_names(root, &scratch, &names)?;
            return Ok(Removed {
                names: gone,
                image: None,
            });
        }
        let lease = unused(root, id)?;
        write_names(root, &scratch, &names)?;
        let record = directory::record(root, id);
        std::fs::remove_file(&record).map_err(ImageError::store("remove", record))?;
        directory::remove_lease(root, id)?;
        drop(lease);
        Ok(Removed {
            names: gone,
            image: Some(id.clone()),
        })
    }

    /// Deletes what killed imports have left and layers that no image has any more, unless an
    /// import is going on; then somebody else will.
    pub(super) fn sweep(&self) -> Result<(), ImageError> {
        let root = &self.root;
        let Some(_alone) = directory::try_lock_imports_alone(root)? else {
            return Ok(());
        };
        {
            let _store = directory::lock_exclusive(root)?;
            match move_garbage(root) {
                // Nobody knows which layers that image has, so all of them stay.
                Err(ImageError::BadRecord { path, source }) => {
                    let path = path.display();
                    tracing::warn!(%path, %source, "a damaged record keeps layers from being swept");
                }
                moved => moved?,
            }
        }
        // Only deleting takes long, and nobody needs the store for that.
        let staging = directory::staging(root);
        let failed = |error| ImageError::store("sweep", &staging)(error);
        for entry in std::fs::read_dir(&staging).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_directory = entry.file_type().map_err(failed)?.is_dir();
            let path = entry.path();
            let removed = if is_directory {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.map_err(failed)?;
        }
        Ok(())
    }
}

/// Nobody has a lease on the image, and nobody gets one while this is held.
fn unused(root: &Path, id: &Digest) -> Result<File, ImageError> {
    let lease = directory::try_lock_lease(root, id)?;
    lease.ok_or_else(|| ImageError::InUse { id: id.clone() })
}

/// Moves layers that no image has to where garbage is. The caller holds the store, and no import
/// is going on that might count on one.
fn move_garbage(root: &Path) -> Result<(), ImageError> {
    let mut used = HashSet::new();
    for id in records::read_ids(root)? {
        let record = records::read_record(root, &id)?;
        used.extend(record.layers);
    }
    let layers = directory::layers(root);
    let failed = |error| ImageError::store("sweep", &layers)(error);
    let garbage = tempfile::TempDir::with_prefix_in("garbage-", directory::staging(root));
    let garbage = garbage.map_err(failed)?.keep();
    for entry in std::fs::read_dir(&layers).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let diff_id = name
            .to_str()
            .map(|name| Digest::parse(&format!("sha256:{name}")));
        if matches!(diff_id, Some(Ok(diff_id)) if used.contains(&diff_id)) {
            continue;
        }
        std::fs::rename(entry.path(), garbage.join(&name)).map_err(failed)?;
    }
    Ok(())
}

/// The caller holds the store.
fn write_names(root: &Path, scratch: &Scratch, names: &Names) -> Result<(), ImageError> {
    records::replace(&directory::names(root), scratch.path(), names)
}
