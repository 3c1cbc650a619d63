//! What both ends have to agree on about the routes for files.

use std::time::Duration;

use http::HeaderName;

pub(crate) const STATUS: &str = "/files/status";
pub(crate) const CONTENT: &str = "/files/content";
pub(crate) const ENTRIES: &str = "/files/entries";
pub(crate) const REMOVAL: &str = "/files";
pub(crate) const DIRECTORIES: &str = "/files/directories";
pub(crate) const RENAMES: &str = "/files/renames";
pub(crate) const WATCH: &str = "/files/watch";

/// Describes a file beside its bytes.
pub(crate) const STATUS_HEADER: HeaderName = HeaderName::from_static("x-zareba-file");

/// How often a watch without changes sends a line without content. It tells the client that the
/// watch goes on, and us that the client does.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
