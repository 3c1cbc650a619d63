//! The table behind `zareba config show`: each setting, its value, and who set it.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::admission::LeftOut;
use crate::configuration::Configuration;
use crate::key;
use crate::layer::{ENV_SECTION, Target};
use crate::origin::Origin;
use crate::secret::{MASK, looks_secret, mask};
use crate::setting::Shape;
use crate::value::Value;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The path of the setting, as files and `--set` write it.
    pub key: String,
    /// The value; a secret has the text `***`. Printed it is TOML, in which an optional setting that
    /// is unset has the empty string, which reads back as unset.
    pub value: Value,
    /// Who set it, in one word.
    #[serde(serialize_with = "as_text")]
    pub origin: Origin,
    /// Sources that say something about it and do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

impl Configuration {
    /// Every setting in the order of the reference, then the variables for the sandbox by name.
    pub fn table(&self) -> Vec<Row> {
        let settings = key::all()
            .iter()
            .map(|key| self.row(&Target::Key(key), (key.get)(&self.settings)));
        let variables = self.settings.env.iter().map(|(name, value)| {
            let value = Value::Text(value.to_owned());
            self.row(&Target::Variable(name.to_owned()), value)
        });
        settings.chain(variables).collect()
    }

    fn row(&self, target: &Target, value: Value) -> Row {
        let key = target.path();
        let left_out = self.left_out.iter().filter(|left_out| left_out.key == key);
        Row {
            origin: self.origin(&key),
            value: masked(target, value),
            left_out: left_out.cloned().collect(),
            key,
        }
    }
}

/// The value of a setting with its secrets replaced.
pub(crate) fn masked(target: &Target, value: Value) -> Value {
    match (target, value) {
        (_, Value::Null) => Value::Null,
        (Target::Key(key), value) => match key.shape.inner() {
            Shape::Secret => Value::Text(MASK.to_owned()),
            // Only free tables hold names that we did not choose ourselves.
            Shape::Table | Shape::List(_) => mask(key.name, value),
            _ => value,
        },
        (Target::Variable(name), _) if looks_secret(name) => Value::Text(MASK.to_owned()),
        (Target::Variable(_), value) => value,
        (Target::Variables, value) => mask(ENV_SECTION, value),
    }
}

impl Serialize for LeftOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("LeftOut", 3)?;
        fields.serialize_field("origin", &self.origin.to_string())?;
        fields.serialize_field("reason", self.reason.as_str())?;
        fields.serialize_field("value", &self.value)?;
        fields.end()
    }
}

/// As JSON has it: numbers are numbers, and what is unset is null.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Boolean(boolean) => serializer.serialize_bool(*boolean),
            Self::Integer(integer) => serializer.serialize_i64(*integer),
            Self::Float(float) => serializer.serialize_f64(*float),
            Self::Text(text) | Self::Datetime(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Table(entries) => serializer.collect_map(entries),
        }
    }
}

fn as_text<S: Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(origin)
}
