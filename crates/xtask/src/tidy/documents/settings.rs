//! Settings in documents, by key and by variable: those of the reference in the page on configuration,
//! which is generated from the settings themselves.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::{Marked, Marking, with_messages};
use crate::tidy::report::Finding;
use crate::tidy::repository::Repository;

const PAGE: &str = "docs/configuration.md";
const BEGIN: &str = "<!-- reference: begin -->";
const END: &str = "<!-- reference: end -->";

/// Words with a point that are no settings, though they begin like one.
const NO_SETTINGS: &[&str] = &[
    // The name of a registry.
    "docker.io",
    // A method of the library.
    "session.run",
    // A table of OpenHands, in which keys are free.
    "sandbox.runtime_startup_env_vars",
    // An example of a misspelt key.
    "shell.timout",
];

/// Tables of a file in which keys are free, or that are other programs'.
const OTHER_TABLES: &[&str] = &["env", "llm", "agent", "sandbox.runtime_startup_env_vars"];

/// Ends of names of files, which no setting has.
const FILE_ENDINGS: &[&str] = &["json", "log", "rs", "sock"];

/// Variables that are no settings.
const NO_SETTING_VARIABLES: &[&str] = &[
    "ZAREBA_API_KEY",
    "ZAREBA_BIN",
    "ZAREBA_CONFIG",
    "ZAREBA_LOG",
    "ZAREBA_MCP_TOKEN",
    "ZAREBA_URL",
    // Read when a filter is built anew, and when the Python package is.
    "ZAREBA_UPDATE_SECCOMP",
    "ZAREBA_WHEEL_BINARY",
    "ZAREBA_WHEEL_MACHINE",
];

/// Beginnings of variables that are no settings: free names, internal ones, and those that
/// Kubernetes sets.
const NO_SETTING_PREFIXES: &[&str] = &[
    "ZAREBA_ENV_",
    "ZAREBA_EXECUTOR_",
    "ZAREBA_TEST_",
    "ZAREBA_SERVICE_",
    "ZAREBA_PORT_",
];

pub(in crate::tidy) fn check(repository: &Repository) -> Vec<Finding> {
    let known = Known::of(repository.text(PAGE).unwrap_or_default());
    let mut findings = Vec::new();
    for (path, pieces) in with_messages(repository) {
        for piece in pieces {
            let unknown = names(&piece)
                .into_iter()
                .filter(|(_, name)| !known.has(name));
            let unknown = unknown.map(|(line, name)| (line, name.to_owned()));
            let unknown = unknown.chain(known.unknown_in_file(&piece));
            findings.extend(unknown.map(|(line, name)| {
                Finding::at_line(path, line, format!("there is no setting `{name}`"))
            }));
        }
    }
    findings
}

/// What the reference lists.
struct Known<'a> {
    keys: BTreeSet<&'a str>,
    sections: BTreeSet<&'a str>,
    variables: BTreeSet<String>,
}

impl<'a> Known<'a> {
    fn of(page: &'a str) -> Self {
        let from = page.find(BEGIN).map_or(page.len(), |at| at + BEGIN.len());
        let to = page.find(END).unwrap_or(page.len()).max(from);
        let rows = page[from..to]
            .lines()
            .filter(|line| line.starts_with("| `"));
        let (mut keys, mut sections, mut variables) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for row in rows {
            let names = row.split('`').skip(1).step_by(2);
            for (index, name) in names.filter(|name| is_key(name)).enumerate() {
                // The first is Zareba's own; others in the row are its names in OpenHands.
                keys.insert(name);
                if let (0, Some((section, _))) = (index, name.rsplit_once('.')) {
                    sections.insert(section);
                    variables.insert(format!("ZAREBA_{}", name.replace('.', "_").to_uppercase()));
                }
            }
        }
        Self {
            keys,
            sections,
            variables,
        }
    }

    /// The keys of an example of a file that are no settings, with the line of the example.
    fn unknown_in_file(&self, piece: &Marked<'_>) -> Vec<(usize, String)> {
        let file = match piece.place {
            Marking::Block("toml") => piece.text.parse::<Table>(),
            _ => Ok(Table::new()),
        };
        let mut unknown = Vec::new();
        match file {
            Ok(file) => flatten(self, "", &file, &mut unknown),
            Err(_) => unknown.push("of an example that is no TOML".to_owned()),
        }
        unknown.into_iter().map(|name| (piece.line, name)).collect()
    }

    /// Whether `name` is a setting, or nothing that looks like one.
    fn has(&self, name: &str) -> bool {
        if name.starts_with("ZAREBA_") {
            // `ZAREBA_*` and `ZAREBA_<SECTION>_<KEY>` stand for all of them.
            return name.ends_with('_')
                || self.variables.contains(name)
                || NO_SETTING_VARIABLES.contains(&name)
                || NO_SETTING_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix));
        }
        let (section, last) = name.rsplit_once('.').unwrap_or_default();
        !self.sections.contains(section)
            || FILE_ENDINGS.contains(&last)
            || self.keys.contains(name)
            || NO_SETTINGS.contains(&name)
    }
}

/// Adds the keys of a table of TOML that are not `known`, and tables that no section begins with.
fn flatten(known: &Known<'_>, section: &str, table: &Table, unknown: &mut Vec<String>) {
    for (key, value) in table {
        let name = [section, key].join(".");
        let name = name.trim_start_matches('.');
        if known.keys.contains(name) || OTHER_TABLES.contains(&name) {
            continue;
        }
        let begins = |other: &&str| other.split('.').next() == Some(name) || *other == name;
        match value {
            Value::Table(table) if known.sections.iter().any(begins) => {
                flatten(known, name, table, unknown);
            }
            _ => unknown.push(name.to_owned()),
        }
    }
}

/// Words with points between them, all in small letters.
fn is_key(name: &str) -> bool {
    let is_word = |part: &str| {
        let mut characters = part.chars();
        characters.next().is_some_and(|c| c.is_ascii_lowercase())
            && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    name.contains('.') && name.split('.').all(is_word)
}

/// What may be a setting, with its line: whole pieces between backticks, what follows `--set`, and
/// variables.
fn names<'a>(piece: &Marked<'a>) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    if !matches!(piece.place, Marking::Block(_)) && is_key(piece.text) {
        found.push((piece.line, piece.text));
    }
    for (index, line) in piece.text.lines().enumerate() {
        let at = piece.line + index;
        let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let variables = words.filter(|word| word.starts_with("ZAREBA_"));
        found.extend(variables.map(|variable| (at, variable)));
        let set = line.split("--set ").skip(1);
        let keys = set.filter_map(|rest| rest.split('=').next());
        found.extend(keys.filter(|key| is_key(key)).map(|key| (at, key)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = "<!-- reference: begin -->\n\
        | key | type | default | meaning | project file | other names |\n\
        | `shell.timeout` | seconds | `120` | How long. | yes | `sandbox.timeout`, `SANDBOX_TIMEOUT` |\n\
        | `pool.native.size` | integer | `0` | How many. |  |  |\n<!-- reference: end -->\n";

    fn check_document(text: &str) -> Vec<(Option<usize>, String)> {
        let repository = Repository::of(&[(PAGE, REFERENCE), ("docs/a.md", text)]);
        let found = check(&repository).into_iter();
        found.map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn settings_that_exist_and_other_words_pass() {
        let text = "`shell.timeout`, `pool.native.size`, `sandbox.timeout`, `example.com`, `native.rs`,\n\
                    `--set shell.timeout=3`, `--set env.LANG=C`, `ZAREBA_SHELL_TIMEOUT`,\n\
                    `ZAREBA_ENV_LANG`, `ZAREBA_URL`, `ZAREBA_*`; shell.nothing in prose is not judged\n";
        assert_eq!(check_document(text), []);
    }

    #[test]
    fn settings_that_do_not_exist_are_found() {
        let text = "`shell.time`\n```sh\nzareba run \\\n  --set pool.native.length=3 -- true\n\
                    ZAREBA_SHELL_TIME=3 zareba run true\n```\n";
        assert_eq!(
            check_document(text),
            [
                (Some(1), "shell.time"),
                (Some(4), "pool.native.length"),
                (Some(5), "ZAREBA_SHELL_TIME"),
            ]
            .map(|(line, name)| (line, format!("there is no setting `{name}`")))
        );
    }

    #[test]
    fn keys_of_an_example_of_a_file_are_judged() {
        let right = "```toml\n[shell]\ntimeout = 3\n[pool.native]\nsize = 1\n[env]\nA = '1'\n```\n";
        assert_eq!(check_document(right), []);
        let wrong = "\n```toml\n[shell]\ntimout = 3\n[pool.nativ]\nsize = 1\n[shel]\nx = 1\n```\n```toml\nx\n```\n";
        assert_eq!(
            check_document(wrong),
            [
                (3, "pool.nativ"),
                (3, "shel"),
                (3, "shell.timout"),
                (11, "of an example that is no TOML"),
            ]
            .map(|(line, name)| (Some(line), format!("there is no setting `{name}`")))
        );
    }

    #[test]
    fn only_the_reference_counts() {
        let page = format!("| `shell.before` |\n{REFERENCE}| `shell.after` |\n");
        let known = Known::of(&page);
        let expected = ["pool.native.size", "sandbox.timeout", "shell.timeout"];
        assert_eq!(known.keys, BTreeSet::from(expected));
        assert_eq!(known.sections, BTreeSet::from(["pool.native", "shell"]));
    }
}
