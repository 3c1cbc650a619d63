//! What an image was built for, in the words that registries use.

use std::fmt;

use crate::platform::{OS, architecture};

/// A processor under Linux. A store takes only images for this machine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    architecture: String,
}

impl Platform {
    /// The one that this program was built for.
    #[must_use]
    pub fn host() -> Self {
        Self::linux(architecture())
    }

    /// Linux on an architecture, by its name in registries: `amd64`, `arm64`, `riscv64`.
    #[must_use]
    pub fn linux(architecture: &str) -> Self {
        Self {
            architecture: architecture.to_owned(),
        }
    }

    #[must_use]
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    pub(super) fn os(&self) -> &'static str {
        OS
    }

    pub(super) fn is(&self, os: &str, architecture: &str) -> bool {
        os == OS && architecture == self.architecture
    }

    /// Whether every processor of the architecture runs this variant of it. Others need a newer
    /// one than there may be.
    pub(super) fn is_baseline(&self, variant: Option<&str>) -> bool {
        match (self.architecture.as_str(), variant) {
            (_, None | Some("")) => true,
            ("amd64", Some(variant)) => variant == "v1",
            ("arm64", Some(variant)) => variant == "v8",
            _ => false,
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{OS}/{}", self.architecture)
    }
}
