//! [`SecretText`]: a value that travels and is never printed.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A value that travels and is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = Password)]
pub struct SecretText(pub String);

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretText(…)")
    }
}
