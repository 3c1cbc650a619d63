//! Reads an object into a struct and says which field was wrong.
//!
//! serde's own errors over a `Value` do not name the field, so the map is walked here.

use serde::de::{
    DeserializeOwned, DeserializeSeed, IntoDeserializer as _, MapAccess,
    value::{MapAccessDeserializer, StrDeserializer},
};
use serde_json::{Map, Value, map};

/// A field that could not be read.
#[derive(Debug)]
pub(crate) struct FieldError {
    /// Its name; empty when it is the object as a whole that lacks something.
    pub(crate) field: String,
    pub(crate) problem: String,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

/// Reads the fields; one that is null counts as absent, so that a default takes its place.
pub(crate) fn parse_fields<T: DeserializeOwned>(
    fields: Map<String, Value>,
) -> Result<T, FieldError> {
    let mut walk = Walk {
        fields: fields.into_iter(),
        key: String::new(),
        value: Value::Null,
    };
    T::deserialize(MapAccessDeserializer::new(&mut walk))
        .map_err(|error| FieldError::new(walk.key, error.to_string()))
}

struct Walk {
    fields: map::IntoIter,
    /// The field being read; empty before the first and after the last.
    key: String,
    value: Value,
}

impl<'de> MapAccess<'de> for Walk {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        let Some((key, value)) = self.fields.find(|(_, value)| !value.is_null()) else {
            self.key.clear();
            return Ok(None);
        };
        (self.key, self.value) = (key, value);
        let key: StrDeserializer<'_, Self::Error> = self.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        seed.deserialize(self.value.take())
    }
}
