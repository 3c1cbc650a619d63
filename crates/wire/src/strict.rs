//! JSON that means one thing: every name once, and an object where a type has named fields.
//!
//! Of a name that comes twice in an object, readers keep the first or the last, so that a proxy, a
//! guard and a server may each see another document; here it is an error. And the derived readers
//! of structs take an array for an object, field by field in the order of the declaration; here
//! they do not. Both are done around serde's data model, so that all types are read so, with all
//! that is in them.

use std::{borrow::Cow, collections::HashSet, fmt, marker::PhantomData};

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer as _,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor, value::CowStrDeserializer,
};

/// Reads strictly from another reader, or gives what it reads to something else strictly: whatever
/// of serde's roles the other one has.
#[derive(Debug)]
pub struct Strict<I>(pub I);

/// Reads a whole document strictly.
///
/// # Errors
/// When it is no JSON, does not fit the type, or means more than one thing.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = T::deserialize(Strict(&mut reader))?;
    reader.end()?;
    Ok(value)
}

/// Methods that hand everything on, with a visitor that is strict about what is inside.
macro_rules! handed_on {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Strict(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    handed_on! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32
        deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32
        deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier
    }

    /// What is ignored is read all the same: there, too, a name may come twice.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Strict(visitor))
    }

    /// Only an object: there is no other way to ask for one by a type's fields.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Strict(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Strict(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Strict(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, Strict(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_tuple_struct(name, length, Strict(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Strict(visitor))
    }
}

/// Visits of values in which there are no others.
macro_rules! plain {
    ($($method:ident($kind:ty))*) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    plain! {
        visit_bool(bool) visit_i64(i64) visit_i128(i128) visit_u64(u64) visit_u128(u128)
        visit_f64(f64) visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
        visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Strict(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Strict(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Strict(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Entries {
            entries,
            names: HashSet::new(),
        })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variants: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Strict(variants))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(inner))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<A> {
    type Error = A::Error;
    type Variant = Strict<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(seed)?;
        Ok((value, Strict(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Strict(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, Strict(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = OnlyObjects(Strict(visitor));
        self.0.struct_variant(fields, visitor)
    }
}

/// The fields of a variant, which cannot be asked for as a map, refused as an array.
struct OnlyObjects<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OnlyObjects<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<V::Value, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(entries)
    }
}

/// The entries of an object, whose names are remembered.
struct Entries<'de, A> {
    entries: A,
    names: HashSet<Cow<'de, str>>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'de, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let Some(name) = self.entries.next_key_seed(Name(PhantomData))? else {
            return Ok(None);
        };
        if !self.names.insert(name.clone()) {
            return Err(A::Error::custom(format_args!(
                "the name `{name}` comes twice in an object"
            )));
        }
        let name: CowStrDeserializer<'_, A::Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.entries.next_value_seed(Strict(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.entries.size_hint()
    }
}

/// Reads the name of an entry.
struct Name<'de>(PhantomData<&'de str>);

impl<'de> DeserializeSeed<'de> for Name<'de> {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Cow<'de, str>, D::Error> {
        inner.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'de> {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_string<E: Error>(self, name: String) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, de::IgnoredAny};
    use serde_json::Value;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        inner: Inner,
        #[serde(default)]
        free: BTreeMap<String, Value>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        number: u8,
        #[serde(default)]
        choice: Option<Choice>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        Plain,
        Fields { a: u8 },
    }

    fn read<T: DeserializeOwned>(json: &str) -> Result<T, String> {
        from_slice(json.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn plain_documents_are_read_as_ever() {
        for json in [
            r#"{"inner": {"number": 1}}"#,
            r#"{"inner": {"number": 2, "choice": "plain"}, "free": {"a": {"a": [1, {"a": null}]}}}"#,
            r#"{"inner": {"choice": {"fields": {"a": 3}}, "number": 4}, "free": {"\u00e4": 1.5}}"#,
        ] {
            assert_eq!(read::<Outer>(json), Ok(serde_json::from_str(json).unwrap()));
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(read::<Value>(json), Ok(value));
        }
        for json in [
            "null",
            "-1",
            "18446744073709551615",
            "1e3",
            "true",
            "\"\\n\"",
            "[[], {}]",
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(read::<Value>(json), Ok(value), "{json}");
        }
        assert_eq!(read::<(u8, Vec<u8>)>("[1, [2]]"), Ok((1, vec![2])));
    }

    #[test]
    fn a_name_that_comes_twice_is_an_error_wherever_it_is() {
        for (json, name) in [
            (r#"{"a": 1, "a": 1}"#, "a"),
            (r#"{"a": 1, "b": {}, "\u0061": 2}"#, "a"),
            (r#"[0, {"x": [{"b": 1, "b": null}]}]"#, "b"),
        ] {
            let error = read::<Value>(json).unwrap_err();
            let expected = format!("the name `{name}` comes twice in an object");
            assert!(error.starts_with(&expected), "{json}: {error}");
        }
        let ignored = read::<IgnoredAny>(r#"[{"x": {"b": 1, "b": 2}}]"#).unwrap_err();
        assert!(ignored.contains("`b` comes twice"), "{ignored}");
        let unknown = read::<Outer>(r#"{"inner": {"number": 1}, "else": {"z": 1, "z": 2}}"#);
        assert!(unknown.unwrap_err().contains("`z` comes twice"));
        let twice = r#"{"inner": {"number": 1}, "free": {"y": 1, "y": 2}}"#;
        assert!(
            read::<Outer>(twice)
                .unwrap_err()
                .contains("`y` comes twice")
        );
    }

    #[test]
    fn an_array_is_no_object() {
        for json in [
            r#"[{"number": 1, "choice": null}, {}]"#,
            r#"{"inner": [1, null]}"#,
            r#"{"inner": {"number": 1, "choice": {"fields": [3]}}}"#,
        ] {
            assert!(serde_json::from_str::<Outer>(json).is_ok(), "{json}");
            let error = read::<Outer>(json).unwrap_err();
            assert!(error.starts_with("invalid type: sequence"), "{error}");
        }
    }
}
