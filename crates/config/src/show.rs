//! The table behind `zareba config show`: each setting, its value, and who set it.

use serde::{Serialize, Serializer};

use crate::configuration::Configuration;
use crate::key;
use crate::layer::ENV_SECTION;
use crate::origin::Origin;
use crate::secret::{MASK, looks_secret, mask};
use crate::setting::Shape;
use crate::value::Value;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The path of the setting, as files and `--set` write it.
    pub key: String,
    /// The value as TOML. An optional setting that is unset has the empty string, which reads
    /// back as unset; a secret has `"***"`.
    pub value: String,
    /// Who set it, in one word.
    #[serde(serialize_with = "as_text")]
    pub origin: Origin,
}

impl Configuration {
    /// Every setting in the order of the reference, then the variables for the sandbox by name.
    pub fn table(&self) -> Vec<Row> {
        let settings = key::all().iter().map(|key| {
            let value = (key.get)(&self.settings);
            let value = match (key.shape.inner(), value) {
                (_, Value::Null) => Value::Null,
                (Shape::Secret, _) => Value::Text(MASK.to_owned()),
                // Only free tables hold names that we did not choose ourselves.
                (Shape::Table | Shape::List(_), value) => mask(key.name, value),
                (_, value) => value,
            };
            self.row(key.path.to_owned(), &value)
        });
        let variables = self.settings.env.iter().map(|(name, value)| {
            let shown = if looks_secret(name) { MASK } else { value };
            self.row(
                format!("{ENV_SECTION}.{name}"),
                &Value::Text(shown.to_owned()),
            )
        });
        settings.chain(variables).collect()
    }

    fn row(&self, key: String, value: &Value) -> Row {
        Row {
            origin: self.origin(&key),
            value: value.to_string(),
            key,
        }
    }
}

fn as_text<S: Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(origin)
}
