//! Takes an image into the store: all of it, or nothing.

use std::path::{Path, PathBuf};

use super::{
    ImageStore, Scratch, directory,
    records::{self, IMAGES_MAX, LayerRecord, NewImage, TREE},
};
use crate::{
    Digest, Image, ImageConfig, ImageName, Progress, Stage,
    error::{DocumentProblem, ImageError},
    limits::Budget,
    source::{Blobs, Found, Plan, PlannedLayer, Section, detect, plan},
    unpack::{Contents, UnpackError, copy_directory, unpack_layer},
};

/// How many bytes pass between two reports of progress.
const REPORT_BYTES: u64 = 4 * 1024 * 1024;

impl ImageStore {
    /// Imports what `docker save` wrote, an OCI image layout (a directory or an archive), or a
    /// bare root file system (a directory or an archive). Archives may be compressed.
    ///
    /// With a name, the image gets that one; without, those that it brings along. A name that
    /// another image has moves over, and the other one stays in the store. Layers that are in
    /// the store already are not read at all, so a source may lack them.
    pub fn import(
        &self,
        source: &Path,
        name: Option<&str>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Image, ImageError> {
        let name = name.map(ImageName::parse).transpose()?;
        let scratch = self.scratch()?;
        let mut import = Import {
            root: &self.root,
            scratch: &scratch,
            budget: Budget::new(self.limits),
            progress,
            unpacked: Vec::new(),
        };
        import.tell(Stage::Resolving, None, 0, None);
        let spool = scratch.path().join("archive");
        let (image, names) = match detect(source, &spool, self.limits)? {
            Found::Image(blobs) => {
                let plan = plan(&blobs, name.as_ref())?;
                import.image(&blobs, plan)?
            }
            Found::RootArchive(section) => (import.root_archive(source, section)?, Vec::new()),
            Found::RootDirectory => (import.root_directory(source)?, Vec::new()),
        };
        let names = name.map_or(names, |name| vec![name]);
        let image = import.commit(&image, &names)?;
        import.tell(
            Stage::Finished,
            None,
            image.size_bytes,
            Some(image.size_bytes),
        );
        Ok(image)
    }

    /// Whether a layer is in the store, by its digest without compression.
    pub fn has_layer(&self, diff_id: &Digest) -> Result<bool, ImageError> {
        Ok(records::read_layer(&self.root, diff_id)?.is_some())
    }
}

struct Import<'a> {
    root: &'a Path,
    scratch: &'a Scratch,
    budget: Budget,
    progress: &'a mut dyn FnMut(Progress),
    /// Layers that are complete and wait in the scratch directory for their place.
    unpacked: Vec<(Digest, PathBuf)>,
}

impl Import<'_> {
    fn image(
        &mut self,
        blobs: &Blobs,
        plan: Plan,
    ) -> Result<(NewImage, Vec<ImageName>), ImageError> {
        let mut layers = Vec::new();
        for layer in &plan.layers {
            let record = match self.known(&layer.diff_id)? {
                Some(record) => record,
                None => self.layer(blobs, layer)?,
            };
            layers.push((layer.diff_id.clone(), record));
        }
        let image = NewImage {
            id: plan.id,
            layers,
            created: plan.created,
            config: plan.config,
        };
        Ok((image, plan.names))
    }

    /// A layer that needs no work, charged as if it had been unpacked.
    fn known(&mut self, diff_id: &Digest) -> Result<Option<LayerRecord>, ImageError> {
        let staged = self.unpacked.iter().find(|(id, _)| id == diff_id);
        let record = match staged {
            // The same layer twice in one image.
            Some((_, directory)) => records::read_staged_layer(directory)?,
            None => records::read_layer(self.root, diff_id)?,
        };
        if let Some(record) = record {
            self.budget.charge_entries(record.entries)?;
            self.budget.charge_unpacked(record.size_bytes)?;
            let bytes = record.size_bytes;
            self.tell(Stage::Shared, Some(diff_id), bytes, Some(bytes));
        }
        Ok(record)
    }

    fn layer(&mut self, blobs: &Blobs, layer: &PlannedLayer) -> Result<LayerRecord, ImageError> {
        let section = blobs.open(&layer.blob)?;
        let section = section.ok_or_else(|| ImageError::MissingBlob {
            blob: layer.blob.clone(),
        })?;
        self.budget.check_blob(section.left_bytes())?;
        if let Some((_, expected)) = layer.expected
            && section.left_bytes() != expected
        {
            let source = DocumentProblem::Size {
                blob: layer.blob.clone(),
                expected,
                found: section.left_bytes(),
            };
            let document = "manifest";
            return Err(ImageError::BadDocument { document, source });
        }
        let place = self.place()?;
        let label = layer.diff_id.to_string();
        let unpacked = self.unpack(section, &place, &label, Some(&layer.diff_id))?;
        if let Some((expected, _)) = &layer.expected {
            check(&layer.blob, expected, unpacked.blob)?;
        }
        check(&label, &layer.diff_id, unpacked.diff_id)?;
        self.stage(layer.diff_id.clone(), place, unpacked.contents)
    }

    /// A bare root file system is an image with one layer and nothing to say about itself.
    fn root_archive(&mut self, source: &Path, section: Section) -> Result<NewImage, ImageError> {
        self.budget.check_blob(section.left_bytes())?;
        let place = self.place()?;
        let label = source.display().to_string();
        let unpacked = self.unpack(section, &place, &label, None)?;
        self.bare(unpacked.diff_id, place, unpacked.contents)
    }

    fn root_directory(&mut self, source: &Path) -> Result<NewImage, ImageError> {
        let place = self.place()?;
        let into = place.join(TREE);
        let copied = {
            let mut tell = reporter(self.progress, None, None);
            copy_directory(source, &into, self.root, &self.budget, &mut tell)
        };
        let (contents, digest) = copied.map_err(|error| failed(source.display(), error))?;
        self.bare(digest, place, contents)
    }

    fn bare(
        &mut self,
        diff_id: Digest,
        place: PathBuf,
        contents: Contents,
    ) -> Result<NewImage, ImageError> {
        let record = match records::read_layer(self.root, &diff_id)? {
            Some(record) => record,
            None => self.stage(diff_id.clone(), place, contents)?,
        };
        Ok(NewImage {
            id: Digest::of(format!("zareba root file system 1\n{diff_id}\n").as_bytes()),
            layers: vec![(diff_id, record)],
            created: None,
            config: ImageConfig::default(),
        })
    }

    /// A directory for a layer, with an empty one in it for the files.
    fn place(&self) -> Result<PathBuf, ImageError> {
        let place = self
            .scratch
            .path()
            .join(format!("layer-{}", self.unpacked.len()));
        let tree = place.join(TREE);
        std::fs::create_dir_all(&tree).map_err(ImageError::store("make the directory", &tree))?;
        Ok(place)
    }

    fn unpack(
        &mut self,
        section: Section,
        place: &Path,
        label: &str,
        diff_id: Option<&Digest>,
    ) -> Result<crate::unpack::Unpacked, ImageError> {
        let mut tell = reporter(self.progress, diff_id.cloned(), Some(section.left_bytes()));
        unpack_layer(section, &place.join(TREE), &self.budget, &mut tell)
            .map_err(|error| failed(label, error))
    }

    fn stage(
        &mut self,
        diff_id: Digest,
        place: PathBuf,
        contents: Contents,
    ) -> Result<LayerRecord, ImageError> {
        let record = LayerRecord {
            entries: contents.entries,
            size_bytes: contents.file_bytes,
            skipped_entries: contents.skipped,
        };
        records::write_layer(&place, record)?;
        self.unpacked.push((diff_id, place));
        Ok(record)
    }

    /// Puts everything in its place: layers first, then the record that names them, then names.
    fn commit(&mut self, image: &NewImage, names: &[ImageName]) -> Result<Image, ImageError> {
        if !self.unpacked.is_empty() {
            // A rename that survives a power cut must not survive without what was renamed.
            let synced = std::fs::File::open(self.scratch.path())
                .and_then(|directory| Ok(rustix::fs::syncfs(directory)?));
            synced.map_err(ImageError::store("sync", self.scratch.path()))?;
        }
        let _store = directory::lock_exclusive(self.root)?;
        let path = directory::record(self.root, &image.id);
        let ids = records::read_ids(self.root)?;
        if !ids.contains(&image.id) && ids.len() >= IMAGES_MAX {
            return Err(ImageError::StoreFull { max: IMAGES_MAX });
        }
        for (diff_id, place) in &self.unpacked {
            let into = directory::layer(self.root, diff_id);
            // Another import was faster. What it made is the same.
            if into.exists() {
                continue;
            }
            std::fs::rename(place, &into).map_err(ImageError::store("put in place", into))?;
        }
        records::replace(&path, self.scratch.path(), &image.record())?;
        if !names.is_empty() {
            self.name(&image.id, names)?;
        }
        records::read_image(self.root, &image.id)
    }

    fn name(&self, id: &Digest, names: &[ImageName]) -> Result<(), ImageError> {
        let mut all = records::read_names(self.root)?;
        for name in names {
            let before = all.insert(name.canonical(), id.to_string());
            if let Some(before) = before.filter(|before| *before != id.to_string()) {
                tracing::info!(%name, %before, now = %id, "the name of an image moved");
            }
        }
        records::replace(&directory::names(self.root), self.scratch.path(), &all)
    }

    fn tell(&mut self, stage: Stage, digest: Option<&Digest>, done: u64, total: Option<u64>) {
        (self.progress)(Progress {
            stage,
            digest: digest.cloned(),
            done_bytes: done,
            total_bytes: total,
        });
    }
}

/// Reports bytes from time to time, and the last of them.
fn reporter(
    progress: &mut dyn FnMut(Progress),
    digest: Option<Digest>,
    total: Option<u64>,
) -> impl FnMut(u64) {
    let mut told = 0;
    move |done| {
        let is_last = total == Some(done) && told != done;
        if is_last || done.saturating_sub(told) >= REPORT_BYTES {
            told = done;
            progress(Progress {
                stage: Stage::Unpacking,
                digest: digest.clone(),
                done_bytes: done,
                total_bytes: total,
            });
        }
    }
}

fn check(blob: &str, expected: &Digest, found: Digest) -> Result<(), ImageError> {
    if *expected == found {
        return Ok(());
    }
    Err(ImageError::DigestMismatch {
        blob: blob.to_owned(),
        expected: expected.clone(),
        found,
    })
}

fn failed(layer: impl std::fmt::Display, source: UnpackError) -> ImageError {
    match source {
        UnpackError::Limit(limit) => ImageError::Limit(limit),
        source => ImageError::Unpack {
            layer: layer.to_string(),
            source,
        },
    }
}
