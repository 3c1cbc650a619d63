//! Single words of a schema, and the words about them.

use serde_json::{Map, Value};

/// The longest part of what others wrote that a problem quotes.
const QUOTED_CHARS_MAX: usize = 100;

/// What is wrong with a value by itself, without looking into it.
pub(super) fn problem(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    if let Some(kinds) = schema.get("type") {
        let kinds = match kinds {
            Value::Array(kinds) => kinds.as_slice(),
            one => std::slice::from_ref(one),
        };
        let names: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
        if !names.is_empty() && !names.iter().any(|name| is_of_type(value, name)) {
            let wanted = names.join(" or ");
            return Some(format!(
                "is {}, and {} is wanted",
                shown(value),
                short(&wanted)
            ));
        }
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.contains(value)
    {
        let values = Value::Array(values.clone()).to_string();
        return Some(format!(
            "is {}, and not one of {}",
            shown(value),
            short(&values)
        ));
    }
    if let Some(only) = schema.get("const")
        && only != value
    {
        return Some(format!("is {}, and not {}", shown(value), shown(only)));
    }
    bounds(schema, value)
}

fn bounds(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    let breaks = |size: f64, least: &str, most: &str, what: &str| {
        if let Some(least) = bound(least).filter(|least| size < *least) {
            return Some(format!("has {what} {size}, and at least {least} is wanted"));
        }
        let most = bound(most).filter(|most| size > *most)?;
        Some(format!("has {what} {size}, and at most {most} is wanted"))
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            let beyond = bound("exclusiveMinimum").is_some_and(|least| number <= least)
                || bound("exclusiveMaximum").is_some_and(|most| number >= most);
            if beyond {
                return Some(format!("is {number}, which is beyond its bounds"));
            }
            breaks(number, "minimum", "maximum", "the value")
        }
        Value::String(text) => breaks(
            count(text.chars().count()),
            "minLength",
            "maxLength",
            "the length",
        ),
        Value::Array(items) => breaks(count(items.len()), "minItems", "maxItems", "the length"),
        Value::Object(members) => {
            let size = count(members.len());
            breaks(size, "minProperties", "maxProperties", "the size")
        }
        Value::Null | Value::Bool(_) => None,
    }
}

fn count(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // 1.0 is a whole number, too.
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        _ => true,
    }
}

/// What a reference inside the document stands for.
pub(super) fn reference<'a>(root: &'a Value, schema: &Map<String, Value>) -> Option<&'a Value> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer)
}

/// How much there is to compare a value with, beside the schemas that apply to its parts.
pub(super) fn weight(schema: &Map<String, Value>) -> usize {
    let length = |word: &str| {
        schema
            .get(word)
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    };
    1 + length("enum") + length("required")
}

/// A reference that leads out of the document, or nowhere.
pub(super) fn outside_reference(root: &Value) -> Option<&str> {
    let mut rest = vec![root];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get("$ref") {
                    let inside = target.strip_prefix('#').and_then(|it| root.pointer(it));
                    if inside.is_none() {
                        return Some(target);
                    }
                }
                rest.extend(members.values());
            }
            _ => {}
        }
    }
    None
}

/// The place of a member.
pub(super) fn below(place: &str, name: &str) -> String {
    match place {
        "" => name.to_owned(),
        place => format!("{}/{}", short(place), short(name)),
    }
}

/// A value as a problem shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("the text \"{}\"", short(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The beginning of a text.
pub(super) fn short(text: &str) -> String {
    let mut beginning: String = text.chars().take(QUOTED_CHARS_MAX + 1).collect();
    if beginning.chars().count() > QUOTED_CHARS_MAX {
        beginning.pop();
        beginning.push('…');
    }
    beginning
}
