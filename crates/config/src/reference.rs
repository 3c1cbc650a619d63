//! The reference of all keys, for the documentation and for programs that list them.

use std::fmt::Write as _;

use serde::Serialize;

use crate::hint::sections;
use crate::key::{self, Key, Support};
use crate::setting::Shape;
use crate::settings::Settings;

/// Everything that a person has to know about one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyReference {
    /// `section.key`.
    pub path: &'static str,
    /// OpenHands' name for it, where it has another one.
    pub openhands: Option<&'static str>,
    /// The variables that set it, from the weakest to the strongest.
    pub variables: Vec<String>,
    /// What values it takes.
    pub accepts: String,
    /// Its default as TOML; absent when it is unset by default.
    pub default: Option<String>,
    /// What it is for.
    pub meaning: &'static str,
    /// Why a project file may set it without the user's trust, if it may.
    pub project: Option<&'static str>,
    /// What to use instead, if this version does not have it.
    pub absent: Option<&'static str>,
}

/// Every key, section by section.
pub fn keys() -> Vec<KeyReference> {
    let defaults = Settings::default();
    key::all()
        .iter()
        .map(|key| describe(key, &defaults))
        .collect()
}

/// The key tables of `docs/configuration.md`, one per section.
pub fn reference_markdown() -> String {
    let keys = keys();
    let mut page = String::new();
    for section in sections() {
        let prefix = format!("{section}.");
        let mut of_section = keys
            .iter()
            .filter(|key| key.path.starts_with(&prefix))
            .peekable();
        if of_section.peek().is_none() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "\n### `[{section}]`\n\n{}| key | type | default | meaning | project file | other names |\n|---|---|---|---|---|---|\n",
            read_by(section)
        );
        for key in of_section {
            let _ = writeln!(page, "{}", table_row(key));
        }
    }
    page
}

fn describe(key: &Key, defaults: &Settings) -> KeyReference {
    let is_unset = matches!((key.get)(defaults), crate::value::Value::Null);
    KeyReference {
        path: key.path,
        openhands: key.alias,
        variables: key
            .variable_names()
            .into_iter()
            .map(|variable| variable.name)
            .collect(),
        accepts: accepts(key.shape),
        default: (!is_unset).then(|| (key.get)(defaults).to_string()),
        meaning: key.meaning,
        project: key.project,
        absent: match key.support {
            Support::Works => None,
            Support::NotInThisVersion { instead, .. } => Some(instead),
        },
    }
}

/// Which commands a section is for, where it is not for all that make sandboxes.
fn read_by(section: &str) -> &'static str {
    match section {
        "executor" => "Read by `zareba executor`, from variables, flags and `--config`.\n\n",
        "pool.native" | "pool.docker" | "server" | "sessions" | "telemetry" => {
            "Read by `zareba serve`.\n\n"
        }
        "log" => "Read by `zareba serve`, `key` and `log`.\n\n",
        "mcp" => "Read by `zareba serve`, `mcp` and `tools`.\n\n",
        _ => "",
    }
}

fn accepts(shape: Shape) -> String {
    match shape {
        Shape::Boolean => "boolean".to_owned(),
        Shape::Integer { .. } => "integer".to_owned(),
        Shape::Seconds => "seconds".to_owned(),
        Shape::Number => "number".to_owned(),
        Shape::Size => "size".to_owned(),
        Shape::Text => "string".to_owned(),
        Shape::Path => "path".to_owned(),
        Shape::Secret => "secret".to_owned(),
        Shape::Choice(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        Shape::TextList => "list of strings".to_owned(),
        Shape::List(items) => format!("list of {items}"),
        Shape::Table => "table".to_owned(),
        Shape::Optional(inner) => accepts(*inner),
    }
}

fn table_row(key: &KeyReference) -> String {
    let default = key
        .default
        .as_ref()
        .map_or("unset".to_owned(), |default| format!("`{default}`"));
    // The derived variable of every key follows one rule, so only the others are worth a column.
    let special = key
        .variables
        .iter()
        .rev()
        .skip(1)
        .rev()
        .map(|name| format!("`{name}`"));
    let alias = key.openhands.map(|path| format!("`{path}`"));
    let names: Vec<String> = alias.into_iter().chain(special).collect();
    let meaning = match key.absent {
        None => key.meaning.to_owned(),
        Some(instead) => format!("*Not in this version*: {instead}. {}", key.meaning),
    };
    let project = if key.project.is_some() { "yes" } else { "" };
    let cells = [
        format!("`{}`", key.path),
        key.accepts.clone(),
        default,
        meaning,
        project.to_owned(),
        names.join(", "),
    ];
    format!(
        "| {} |",
        cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
    )
}
