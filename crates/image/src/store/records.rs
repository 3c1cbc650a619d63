//! The files of a store that are written and read by us alone.
//!
//! They are a promise to later versions of this program: a field may be added with a default, and
//! none may change its meaning.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::directory;
use crate::{
    Digest, Image, ImageConfig, ImageName, error::ImageError, limits::DOCUMENT_BYTES_MAX,
    unpack::is_opaque_root,
};

/// Longest record. A configuration is in it, and escapes may make that longer.
const RECORD_BYTES_MAX: u64 = 8 * DOCUMENT_BYTES_MAX;
/// Most images of a store.
pub(super) const IMAGES_MAX: usize = 10_000;

/// Names, in full, and the images that they mean.
pub(super) type Names = BTreeMap<String, String>;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    id: String,
    /// The lowest first.
    #[serde(with = "digests")]
    pub(super) layers: Vec<Digest>,
    created: Option<String>,
    config: ConfigRecord,
    size_bytes: u64,
    skipped_entries: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct ConfigRecord {
    env: Vec<String>,
    working_dir: Option<String>,
    user: Option<String>,
    entrypoint: Vec<String>,
    cmd: Vec<String>,
    labels: BTreeMap<String, String>,
}

/// What is known of a layer besides its files.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LayerRecord {
    pub(super) entries: u64,
    pub(super) size_bytes: u64,
    pub(super) skipped_entries: u64,
}

/// An image that is about to be recorded.
#[derive(Debug)]
pub(super) struct NewImage {
    pub(super) id: Digest,
    pub(super) layers: Vec<(Digest, LayerRecord)>,
    pub(super) created: Option<String>,
    pub(super) config: ImageConfig,
}

impl NewImage {
    pub(super) fn record(&self) -> ImageRecord {
        let config = &self.config;
        let records = || self.layers.iter().map(|(_, record)| record);
        ImageRecord {
            id: self.id.to_string(),
            layers: self.layers.iter().map(|(id, _)| id.clone()).collect(),
            created: self.created.clone(),
            config: ConfigRecord {
                env: config.env.clone(),
                working_dir: config.working_dir.clone(),
                user: config.user.clone(),
                entrypoint: config.entrypoint.clone(),
                cmd: config.cmd.clone(),
                labels: config.labels.clone(),
            },
            size_bytes: records().map(|record| record.size_bytes).sum(),
            skipped_entries: records().map(|record| record.skipped_entries).sum(),
        }
    }
}

impl ImageRecord {
    fn into_image(self, id: Digest, root: &Path, names: &Names) -> Result<Image, ImageError> {
        let mut layers = Vec::new();
        for layer in &self.layers {
            let tree = directory::layer(root, layer).join(TREE);
            let is_opaque = is_opaque_root(&tree);
            if is_opaque.map_err(ImageError::store("look at", &tree))? {
                // overlayfs does not ask the root of a layer whether it hides those below.
                layers.clear();
            }
            // An image may have a layer twice, and overlayfs refuses that. The upper one counts.
            layers.retain(|lower| *lower != tree);
            layers.push(tree);
        }
        layers.reverse();
        let text = id.to_string();
        let names = names.iter().filter(|(_, of)| **of == text);
        let config = self.config;
        Ok(Image {
            names: names
                .filter_map(|(name, _)| ImageName::parse(name).ok())
                .collect(),
            id,
            layers,
            config: ImageConfig {
                env: config.env,
                working_dir: config.working_dir,
                user: config.user,
                entrypoint: config.entrypoint,
                cmd: config.cmd,
                labels: config.labels,
            },
            size_bytes: self.size_bytes,
            created: self.created,
            skipped_entries: self.skipped_entries,
            store: root.to_owned(),
        })
    }
}

/// Digests as texts, which are checked when they are read: they become names of directories.
mod digests {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

    use crate::Digest;

    pub(super) fn serialize<S: Serializer>(
        digests: &[Digest],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let texts: Vec<String> = digests.iter().map(ToString::to_string).collect();
        texts.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Digest>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let digests = texts.iter().map(|text| Digest::parse(text));
        digests.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// The directory of a layer that holds its files.
pub(super) const TREE: &str = "tree";
const LAYER_RECORD: &str = "layer.json";

/// All images, sorted by id. The caller holds the store.
pub(super) fn read_images(root: &Path) -> Result<Vec<Image>, ImageError> {
    let names = read_names(root)?;
    let ids = read_ids(root)?;
    let records = ids.into_iter().map(|id| {
        let record = read_record(root, &id)?;
        record.into_image(id, root, &names)
    });
    records.collect()
}

/// The ids of all images, sorted. The caller holds the store.
pub(super) fn read_ids(root: &Path) -> Result<Vec<Digest>, ImageError> {
    let path = directory::images(root);
    let failed = |error| ImageError::store("list", &path)(error);
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let hex = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let id = hex.and_then(|hex| Digest::parse(&format!("sha256:{hex}")).ok());
        ids.extend(id);
    }
    ids.sort_unstable();
    Ok(ids)
}

/// One image. The caller holds the store.
pub(super) fn read_image(root: &Path, id: &Digest) -> Result<Image, ImageError> {
    let names = read_names(root)?;
    read_record(root, id)?.into_image(id.clone(), root, &names)
}

pub(super) fn read_record(root: &Path, id: &Digest) -> Result<ImageRecord, ImageError> {
    read(&directory::record(root, id))
}

pub(super) fn read_names(root: &Path) -> Result<Names, ImageError> {
    match read(&directory::names(root)) {
        Err(ImageError::Store { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(Names::new())
        }
        names => names,
    }
}

/// What is known of a layer; nothing when it is not in the store.
pub(super) fn read_layer(root: &Path, diff_id: &Digest) -> Result<Option<LayerRecord>, ImageError> {
    read_staged_layer(&directory::layer(root, diff_id))
}

/// The same for a layer that is still on its way.
pub(super) fn read_staged_layer(directory: &Path) -> Result<Option<LayerRecord>, ImageError> {
    match read(&directory.join(LAYER_RECORD)) {
        Err(ImageError::Store { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        record => record.map(Some),
    }
}

pub(super) fn write_layer(directory: &Path, record: LayerRecord) -> Result<(), ImageError> {
    write(&directory.join(LAYER_RECORD), &record)
}

/// Replaces a record as a whole, by way of the scratch directory. The caller holds the store.
pub(super) fn replace(
    path: &Path,
    scratch: &Path,
    record: &impl Serialize,
) -> Result<(), ImageError> {
    let fresh = tempfile::Builder::new().tempdir_in(scratch);
    let fresh = fresh.map_err(ImageError::store("make a directory in", scratch))?;
    let file = fresh.path().join("record");
    write(&file, record)?;
    std::fs::rename(&file, path).map_err(ImageError::store("put in place", path))
}

fn write(path: &Path, record: &impl Serialize) -> Result<(), ImageError> {
    let written = serde_json::to_vec(record)
        .map_err(io::Error::other)
        .and_then(|text| {
            let mut file = File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)?;
            file.write_all(&text)?;
            file.sync_all()
        });
    written.map_err(ImageError::store("write", path))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ImageError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(RECORD_BYTES_MAX).read_to_end(&mut text));
    read.map_err(ImageError::store("read", path))?;
    serde_json::from_slice(&text).map_err(|source| ImageError::BadRecord {
        path: path.to_owned(),
        source,
    })
}
