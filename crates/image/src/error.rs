//! What can go wrong with images, each with what to do about it.

use std::{fmt, io, path::PathBuf};

use crate::{Digest, LimitExceeded, ParseDigestError, ParseNameError, UnpackError};

/// Why something was not done with an image. The store is then as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    #[error("cannot {deed} `{path}` in the image store")]
    Store {
        deed: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "cannot use `{path}` as an image store, because {problem}; choose a directory of your own"
    )]
    BadStore {
        path: PathBuf,
        problem: &'static str,
    },
    #[error("the record `{path}` of the image store is damaged; delete it and import again")]
    BadRecord {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "`{path}` is not an image; give what `docker save` wrote, an OCI image layout, or a root \
         file system as a directory or a tar archive"
    )]
    NotAnImage { path: PathBuf },
    #[error(transparent)]
    BadName(#[from] ParseNameError),
    #[error("the {document} of the image is wrong; get the image again")]
    BadDocument {
        document: &'static str,
        source: DocumentProblem,
    },
    #[error("the image lacks `{blob}`; get it again as a whole")]
    MissingBlob { blob: String },
    #[error("`{blob}` has the digest {found} and should have {expected}; get the image again")]
    DigestMismatch {
        blob: String,
        expected: Digest,
        found: Digest,
    },
    #[error("the image is for {}, and this machine needs {wanted}", Listed(.present))]
    NoPlatform {
        wanted: String,
        present: Vec<String>,
    },
    #[error("the archive holds several images; name one of them: {}", Listed(.names))]
    SeveralImages { names: Vec<String> },
    #[error("the image is too large; if it can be trusted, raise the limits of the store")]
    Limit(#[from] LimitExceeded),
    #[error("cannot unpack the layer {layer}")]
    Unpack { layer: String, source: UnpackError },
    #[error("there is no image `{wanted}`{}", Nearest(.nearest))]
    Unknown {
        wanted: String,
        nearest: Vec<String>,
    },
    #[error("`{prefix}` begins the ids of several images: {}; write more of it", Listed(.candidates))]
    Ambiguous {
        prefix: String,
        candidates: Vec<String>,
    },
    #[error("the image {id} is in use by a sandbox; end it first")]
    InUse { id: Digest },
    #[error("the store has its {max} images; remove some first")]
    StoreFull { max: usize },
}

/// What is wrong with a manifest, an index or a configuration.
#[derive(Debug, thiserror::Error)]
pub enum DocumentProblem {
    #[error("it has more than {max} bytes")]
    TooLong { max: u64 },
    #[error("it is not the JSON that it should be")]
    Syntax(#[from] serde_json::Error),
    #[error(transparent)]
    Digest(#[from] ParseDigestError),
    #[error("it is an index and a manifest at once")]
    TwoKinds,
    #[error("it is neither an index nor a manifest")]
    NoKind,
    #[error("it names no image")]
    Empty,
    #[error("indexes are nested too deeply")]
    TooDeep,
    #[error("it has {layers} layers and {digests} digests for them")]
    LayerCount { layers: usize, digests: usize },
    #[error("`{blob}` has {found} bytes and should have {expected}")]
    Size {
        blob: String,
        expected: u64,
        found: u64,
    },
}

impl ImageError {
    pub(crate) fn store(
        deed: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Store { deed, path, source }
    }
}

struct Listed<'a>(&'a [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("nothing");
        }
        for (index, item) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{item}")?;
        }
        Ok(())
    }
}

struct Nearest<'a>(&'a [String]);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return formatter.write_str("; import or pull it first");
        }
        write!(formatter, "; did you mean {}?", Listed(self.0))
    }
}
