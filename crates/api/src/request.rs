//! What may be asked of a session's sandbox, and what is in force in it.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Unexpected, Visitor},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, OneOfBuilder, RefOr, Schema, SchemaFormat, Type},
};
use zareba_protocol::amounts::{self, parse_bytes};

/// A number of bytes: an integer, or a text with a unit such as `512MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Bytes;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number of bytes, or a text such as \"512MiB\"")
            }

            fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<Bytes, E> {
                let is_possible = i64::try_from(bytes).is_ok();
                let wrong = || E::invalid_value(Unexpected::Unsigned(bytes), &self);
                is_possible.then_some(Bytes(bytes)).ok_or_else(wrong)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
                let wrong = || E::invalid_value(Unexpected::Str(text), &self);
                parse_bytes(text).map(Bytes).ok_or_else(wrong)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// By hand: it is read from two types and written as one.
impl PartialSchema for Bytes {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0))
            .maximum(Some(i64::MAX));
        // Twelve digits with any unit are within the range.
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[0-9]{1,6}([KMGT](i|iB)?|B)?$"));
        OneOfBuilder::new()
            .item(number)
            .item(text)
            .description(Some(
                "A number of bytes: an integer, or a text with a unit such as `512MiB`.",
            ))
            .into()
    }
}

impl ToSchema for Bytes {}

/// How many processors may be busy: `2`, or `0.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schema(value_type = f64, minimum = 0.01, maximum = 1024)]
pub struct Cpus(u32);

/// A number that is none of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a number of processors is between 0.01 and 1024")]
pub struct InvalidCpus;

impl Cpus {
    /// Thousandths of one.
    pub const fn millis(self) -> u32 {
        self.0
    }

    /// So many thousandths of one.
    pub const fn of_millis(millis: u32) -> Self {
        Self(millis)
    }
}

impl TryFrom<f64> for Cpus {
    type Error = InvalidCpus;

    fn try_from(count: f64) -> Result<Self, Self::Error> {
        let possible = amounts::CPU_MILLIS_MIN..=amounts::CPU_MILLIS_MAX;
        let millis = amounts::thousandths(count).filter(|millis| possible.contains(millis));
        millis.map(Self::of_millis).ok_or(InvalidCpus)
    }
}

impl From<Cpus> for f64 {
    fn from(cpus: Cpus) -> Self {
        Self::from(cpus.0) / 1000.0
    }
}

/// What a session shall reach over the network. What is left out is as the server's settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// `none`, `filtered` or `host`; for the runtime `docker` `none`, `machine`, `internet`, `host` or a
    /// network's name. A list in `allow` alone means `filtered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub mode: Option<String>,
    /// Hosts that a filtered network lets through, such as `pypi.org`, `*.example.com:8443` or
    /// `10.0.0.0/8:5432`, in place of the server's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Hosts that it lets through in no case, beside the server's list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// How much a session may use. What is left out is as the server's settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Processors that it may keep busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// What its changes to files may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Bytes>,
}

impl Resources {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a workspace appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceMode {
    /// There are no changes.
    ReadOnly,
    /// Changes go to a layer of the sandbox's own.
    CopyOnWrite,
    /// Changes go to the directory itself.
    ReadWrite,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_or_texts_with_units() {
        for (json, expected) in [
            ("536870912", Some(536_870_912)),
            ("\"512MiB\"", Some(536_870_912)),
            ("\"1G\"", Some(1 << 30)),
            ("\"12\"", Some(12)),
            ("-1", None),
            ("1.5", None),
            ("9223372036854775808", None),
            ("\"much\"", None),
            ("\"1.5G\"", None),
            ("null", None),
        ] {
            let read = serde_json::from_str::<Bytes>(json).ok();
            assert_eq!(read.map(|bytes| bytes.0), expected, "{json}");
        }
    }

    #[test]
    fn processors_have_fractions_and_bounds() {
        for (json, expected) in [
            ("2", Some(2000)),
            ("0.5", Some(500)),
            ("0.01", Some(10)),
            ("0.001", None),
            ("0", None),
            ("1025", None),
            ("\"2\"", None),
        ] {
            let read = serde_json::from_str::<Cpus>(json).ok();
            assert_eq!(read.map(Cpus::millis), expected, "{json}");
        }
    }

    #[test]
    fn what_is_not_known_inside_an_object_is_refused() {
        assert!(serde_json::from_str::<Network>(r#"{"reach": "host"}"#).is_err());
        assert!(serde_json::from_str::<Resources>(r#"{"ram": 1}"#).is_err());
    }
}
