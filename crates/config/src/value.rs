//! The untyped value between a source and a typed setting.
//!
//! Files speak TOML, variables speak text, and OpenHands' list variables speak Python; all three
//! meet here, so that a setting's type is checked in one way whatever the source was.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::DeValue;

/// A value as a source wrote it, before a setting has accepted it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value: Python's `None`, JSON's `null`, or an optional setting that is unset.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A string.
    Text(String),
    /// A TOML date or time, which no setting accepts; kept so that the error can name it.
    Datetime(String),
    /// A sequence of values.
    List(Vec<Value>),
    /// Named values.
    Table(BTreeMap<String, Value>),
}

impl Value {
    /// Takes over a parsed TOML value. The parser bounds the nesting, and with it the recursion.
    pub(crate) fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.clone().into_owned()),
            // An integer past 64 bits is larger than any setting allows, as infinity is.
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map_or(Self::Float(f64::INFINITY), Self::Integer),
            DeValue::Float(float) => Self::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => Self::Boolean(*boolean),
            DeValue::Datetime(datetime) => Self::Datetime(datetime.to_string()),
            DeValue::Array(array) => Self::List(
                array
                    .iter()
                    .map(|item| Self::from_toml(item.get_ref()))
                    .collect(),
            ),
            DeValue::Table(table) => Self::Table(
                table
                    .iter()
                    .map(|(name, item)| {
                        (name.get_ref().to_string(), Self::from_toml(item.get_ref()))
                    })
                    .collect(),
            ),
        }
    }

    /// What an error calls this kind of value.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Datetime(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    fn to_toml(&self) -> toml::Value {
        match self {
            // TOML has no null; optional settings read the empty string as unset.
            Self::Null => toml::Value::String(String::new()),
            Self::Boolean(boolean) => toml::Value::Boolean(*boolean),
            Self::Integer(integer) => toml::Value::Integer(*integer),
            Self::Float(float) => toml::Value::Float(*float),
            Self::Text(text) | Self::Datetime(text) => toml::Value::String(text.clone()),
            Self::List(items) => toml::Value::Array(items.iter().map(Self::to_toml).collect()),
            Self::Table(entries) => toml::Value::Table(
                entries
                    .iter()
                    .map(|(name, value)| (name.clone(), value.to_toml()))
                    .collect(),
            ),
        }
    }
}

/// Writes the value as TOML; no value is written as the empty string, which optional settings
/// read back as unset.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_toml().fmt(f)
    }
}
