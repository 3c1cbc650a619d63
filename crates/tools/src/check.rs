//! Holds arguments to the schema of a tool.
//!
//! Schemas come from sandboxes and tool servers and are hostile, so that this is no general
//! validator: it knows the words that schemas of functions are made of, follows references inside
//! the document only, runs no patterns, and takes a bounded number of steps whatever the schema
//! says. A word that it does not know asks for nothing; the tool itself has the last say.

mod words;

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::Arguments;

/// The longest schema of one tool, as text.
pub(crate) const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// Comparisons, all in all: far more than honest arguments take, and well under a second.
const STEPS_MAX: usize = 1_000_000;

/// However much a step turns out to cost.
const LOOK_MAX: Duration = Duration::from_millis(200);

/// How deep schemas and values may nest.
const DEPTH_MAX: usize = 128;

/// Problems that are named; more say nothing new.
const PROBLEMS_MAX: usize = 8;

/// Under this key a schema says that more arguments by position are taken than it names.
const VARIADIC: &str = "x-variadic";

/// A schema that is ready to hold arguments to.
#[derive(Debug)]
pub(crate) struct Check {
    schema: Value,
}

/// One look at arguments.
struct Look<'a> {
    root: &'a Value,
    steps: usize,
    until: Instant,
    problems: Vec<String>,
}

impl Check {
    /// Prepares a schema.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let Some(object) = schema.as_object() else {
            return Err("its schema is no JSON object".to_owned());
        };
        let bytes = schema.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(format!(
                "its schema has {bytes} bytes, and the limit is {SCHEMA_BYTES_MAX}"
            ));
        }
        if object.get("type").is_some_and(|kind| kind != "object") {
            return Err("its schema is not one of an object".to_owned());
        }
        if let Some(reference) = words::outside_reference(schema) {
            return Err(format!(
                "its schema refers to `{}`, which is not in it",
                words::short(reference)
            ));
        }
        Ok(Self {
            schema: schema.clone(),
        })
    }

    /// What is wrong with arguments, one sentence each.
    pub(crate) fn problems(&self, arguments: &Arguments) -> Vec<String> {
        let all = match self.by_name(arguments) {
            Ok(all) => Value::Object(all),
            Err(problem) => return vec![problem],
        };
        let mut look = Look {
            root: &self.schema,
            steps: 0,
            until: Instant::now() + LOOK_MAX,
            problems: Vec::new(),
        };
        look.at(&self.schema, &all, "", 0);
        if look.steps > STEPS_MAX {
            return vec!["its schema takes too long to look at".to_owned()];
        }
        look.problems
    }

    /// All arguments by their names.
    fn by_name(&self, arguments: &Arguments) -> Result<Map<String, Value>, String> {
        let mut all = arguments.named.clone();
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let mut names = properties.into_iter().flat_map(Map::keys);
        for (index, value) in arguments.positional.iter().enumerate() {
            match names.next() {
                Some(name) if all.contains_key(name) => {
                    return Err(format!("`{name}` is given by position and by name"));
                }
                Some(name) => {
                    all.insert(name.clone(), value.clone());
                }
                None if self.schema.get(VARIADIC) == Some(&Value::Bool(true)) => break,
                None => {
                    let given = arguments.positional.len();
                    return Err(format!(
                        "{given} are given by position, and it takes {index}"
                    ));
                }
            }
        }
        Ok(all)
    }
}

impl Look<'_> {
    /// Holds a value to a schema and says whether it fits.
    fn at(&mut self, schema: &Value, value: &Value, place: &str, depth: usize) -> bool {
        self.steps += 1;
        if self.steps > STEPS_MAX || depth > DEPTH_MAX || Instant::now() > self.until {
            // Counted as too many: what cannot be looked at through is refused.
            self.steps = STEPS_MAX + 1;
            return false;
        }
        let schema = match schema {
            Value::Bool(false) => return self.complain(place, "is not taken"),
            Value::Object(schema) => schema,
            _ => return true,
        };
        self.steps += words::weight(schema);
        let before = self.problems.len();
        if let Some(target) = words::reference(self.root, schema)
            && !self.at(target, value, place, depth + 1)
        {
            return false;
        }
        if let Some(problem) = words::problem(schema, value) {
            return self.complain(place, &problem);
        }
        let fits = self.members(schema, value, place, depth)
            & self.items(schema, value, place, depth)
            & self.choices(schema, value, place, depth);
        fits && self.problems.len() == before
    }

    fn members(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> bool {
        let Some(members) = value.as_object() else {
            return true;
        };
        let mut fits = true;
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                fits = self.complain(place, &format!("lacks `{}`", words::short(name)));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let has_patterns = schema.contains_key("patternProperties");
        for (name, member) in members {
            let inner = words::below(place, name);
            match properties.and_then(|it| it.get(name)) {
                Some(property) => fits &= self.at(property, member, &inner, depth + 1),
                None if has_patterns => {}
                None => match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => {
                        let name = words::short(name);
                        fits = self.complain(place, &format!("has `{name}`, which is not known"));
                    }
                    Some(rest) => fits &= self.at(rest, member, &inner, depth + 1),
                    None => {}
                },
            }
        }
        fits
    }

    fn items(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> bool {
        let Some(items) = value.as_array() else {
            return true;
        };
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let first = first.map(Vec::as_slice).unwrap_or_default();
        let mut fits = true;
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| schema.get("items")) {
                let inner = words::below(place, &index.to_string());
                fits &= self.at(schema, item, &inner, depth + 1);
            }
        }
        fits
    }

    fn choices(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> bool {
        let list = |word: &str| schema.get(word).and_then(Value::as_array);
        let mut fits = true;
        for all in list("allOf").into_iter().flatten() {
            fits &= self.at(all, value, place, depth + 1);
        }
        for word in ["anyOf", "oneOf"] {
            let Some(choices) = list(word) else {
                continue;
            };
            let before = self.problems.len();
            let fitting = choices
                .iter()
                .filter(|choice| self.at(choice, value, place, depth + 1))
                .count();
            // Why it is none of several says nothing; that it is none of them does.
            self.problems.truncate(before);
            fits &= match (word, fitting) {
                (_, 0) => self.complain(place, "is none of what it may be"),
                ("oneOf", 2..) => self.complain(place, "is more than one of what it may be"),
                _ => true,
            };
        }
        fits
    }

    fn complain(&mut self, place: &str, problem: &str) -> bool {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(match place {
                "" => format!("the object {problem}"),
                place => format!("`{}` {problem}", words::short(place)),
            });
        }
        false
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
