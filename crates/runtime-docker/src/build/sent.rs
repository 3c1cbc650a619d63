//! What is sent to the Engine: an archive with a Dockerfile in it that was read.

use std::{
    fs::File,
    path::{Component, Path, PathBuf},
};

use super::{
    BuildError, BuildSource, ContextLimits, archive, context,
    pack::{Packed, Packer, dockerfile_text},
};

/// Where a Dockerfile lies in the archive that is not in the context.
const OWN_DOCKERFILE: &str = ".zareba.Dockerfile";
const DOCKERFILE: &str = "Dockerfile";

/// What is sent.
pub(super) struct Context {
    pub(super) packed: Packed,
    /// Where the Dockerfile is in it.
    pub(super) dockerfile: PathBuf,
    pub(super) text: String,
}

impl Context {
    pub(super) fn pack(
        source: BuildSource,
        scratch: &Path,
        limits: ContextLimits,
    ) -> Result<Self, BuildError> {
        let mut packer = Packer::new(scratch, limits)?;
        let (dockerfile, text) = match source {
            BuildSource::Directory {
                directory,
                dockerfile: Some(dockerfile),
            } if dockerfile.is_absolute() && !dockerfile.starts_with(&directory) => {
                context::pack(&directory, None, Path::new(""), &mut packer)?;
                let file = File::open(&dockerfile).map_err(|source| BuildError::Read {
                    path: dockerfile.clone(),
                    source,
                })?;
                let text = dockerfile_text(&dockerfile, file)?;
                let place = PathBuf::from(OWN_DOCKERFILE);
                packer.text(&place, &text)?;
                (place, Some(text))
            }
            BuildSource::Directory {
                directory,
                dockerfile,
            } => {
                let place = below(&directory, dockerfile)?;
                let text = context::pack(&directory, Some(&place), Path::new(""), &mut packer)?;
                (place, text)
            }
            BuildSource::Archive(mut file) => {
                let place = PathBuf::from(DOCKERFILE);
                let text = archive::pack(&mut file, &place, limits, &mut packer)?;
                (place, text)
            }
        };
        let missing = || BuildError::dockerfile(format!("there is no `{}`", dockerfile.display()));
        Ok(Self {
            text: text.ok_or_else(missing)?,
            packed: packer.finish()?,
            dockerfile,
        })
    }

    /// What a recipe needs: its files, which are packed already, and its Dockerfile.
    pub(super) fn of_recipe(mut packer: Packer, text: String) -> Result<Self, BuildError> {
        let dockerfile = PathBuf::from(DOCKERFILE);
        packer.text(&dockerfile, &text)?;
        Ok(Self {
            packed: packer.finish()?,
            dockerfile,
            text,
        })
    }
}

/// The path of a Dockerfile below its context, without detours.
fn below(directory: &Path, dockerfile: Option<PathBuf>) -> Result<PathBuf, BuildError> {
    let dockerfile = dockerfile.unwrap_or_else(|| PathBuf::from(DOCKERFILE));
    let relative = dockerfile.strip_prefix(directory).unwrap_or(&dockerfile);
    let parts = relative
        .components()
        .filter(|part| *part != Component::CurDir);
    let path: PathBuf = parts.collect();
    if path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Ok(path);
    }
    let reason = format!("`{}` is not below the context", dockerfile.display());
    Err(BuildError::dockerfile(reason))
}

/// Work with files, away from those who wait for nothing but the network.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BuildError> + Send + 'static,
) -> Result<T, BuildError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| BuildError::Keep(std::io::Error::other(error)))?
}
