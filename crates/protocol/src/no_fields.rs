//! What `args` and `extras` hold for the types that carry nothing: an empty object, never null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The arguments of an action that takes none, and refuses any.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct NoArgs {}

/// The extras of an observation that has none; a client ignores what it does not know.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct NoExtras {}
