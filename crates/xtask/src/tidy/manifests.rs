//! Every crate's manifest: named after its folder, described, under the workspace's lints, and
//! with every version taken from the workspace.
//!
//! Also the one place that reads dependency tables, for [`super::layers`] too.

use toml::{Table, Value};

use super::report::Finding;
use super::repository::Repository;

/// What the packages of the product are called before their folder's name.
const PREFIX: &str = "zareba-";
/// Not part of the product, so without the prefix.
const TOOL: &str = "xtask";

/// What a dependency is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Part of the crate or of its build.
    Product,
    /// Only there for its tests, examples and benches.
    Development,
}

/// One entry of a dependency table.
#[derive(Debug)]
pub(super) struct Dependency {
    /// The package's real name, also when the manifest renames it.
    pub(super) package: String,
    pub(super) kind: Kind,
    from_workspace: bool,
}

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .crates()
        .flat_map(|(folder, text)| {
            let path = path_of(folder);
            let messages = match text.parse::<Table>() {
                Ok(manifest) => faults(folder, &manifest),
                Err(error) => vec![format!("not a manifest: {}", error.message())],
            };
            messages
                .into_iter()
                .map(move |message| Finding::in_file(&path, message))
        })
        .collect()
}

/// Where the manifest of the crate in `folder` lies.
pub(super) fn path_of(folder: &str) -> String {
    format!("crates/{folder}/Cargo.toml")
}

/// The folder of one of our packages; `None` for everybody else's.
pub(super) fn folder_of(package: &str) -> Option<&str> {
    match package {
        TOOL => Some(TOOL),
        _ => package.strip_prefix(PREFIX),
    }
}

/// All dependencies, those for one platform included.
pub(super) fn dependencies(manifest: &Table) -> Vec<Dependency> {
    let for_platforms = manifest
        .get("target")
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(Table::values)
        .filter_map(Value::as_table);
    let tables = std::iter::once(manifest).chain(for_platforms);
    tables.flat_map(dependencies_of_table).collect()
}

fn dependencies_of_table(table: &Table) -> Vec<Dependency> {
    let sections = [
        ("dependencies", Kind::Product),
        ("build-dependencies", Kind::Product),
        ("dev-dependencies", Kind::Development),
    ];
    let mut found = Vec::new();
    for (section, kind) in sections {
        let entries = table.get(section).and_then(Value::as_table);
        for (name, entry) in entries.into_iter().flatten() {
            let renamed = entry.get("package").and_then(Value::as_str);
            found.push(Dependency {
                package: renamed.unwrap_or(name).to_owned(),
                kind,
                from_workspace: is_from_workspace(entry),
            });
        }
    }
    found
}

fn faults(folder: &str, manifest: &Table) -> Vec<String> {
    let mut faults = Vec::new();
    let package = |key| manifest.get("package")?.get(key)?.as_str();
    let name = package("name").unwrap_or_default();
    if folder_of(name) != Some(folder) {
        let expected = format!("{PREFIX}{folder}");
        faults.push(format!(
            "the package is called `{name}`; its folder asks for `{expected}`"
        ));
    }
    if package("description").is_none_or(|text| text.trim().is_empty()) {
        faults.push("say in `description` what the crate is responsible for".to_owned());
    }
    if !manifest.get("lints").is_some_and(is_from_workspace) {
        faults.push("take the workspace's lints: `[lints]` with `workspace = true`".to_owned());
    }
    for dependency in dependencies(manifest) {
        if !dependency.from_workspace {
            faults.push(format!(
                "move the version of `{}` to `[workspace.dependencies]`",
                dependency.package
            ));
        }
    }
    faults
}

fn is_from_workspace(entry: &Value) -> bool {
    entry.get("workspace").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_manifest(manifest: &str) -> Vec<String> {
        let repository = Repository::of(&[("crates/wire/Cargo.toml", manifest)]);
        check(&repository).into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn a_manifest_in_order_passes() {
        let manifest = "[package]\nname = 'zareba-wire'\ndescription = 'Carries.'\n\
                        [lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n";
        assert_eq!(check_manifest(manifest), [""; 0]);
    }

    #[test]
    fn every_fault_of_a_manifest_is_found() {
        let manifest = "[package]\nname = 'carrier'\ndescription = ' '\n\
                        [lints.rust]\nunsafe_code = 'allow'\n\
                        [dependencies]\nserde = '1'\n[dev-dependencies]\ntempfile = '3'\n";
        assert_eq!(
            check_manifest(manifest),
            [
                "the package is called `carrier`; its folder asks for `zareba-wire`",
                "say in `description` what the crate is responsible for",
                "take the workspace's lints: `[lints]` with `workspace = true`",
                "move the version of `serde` to `[workspace.dependencies]`",
                "move the version of `tempfile` to `[workspace.dependencies]`",
            ]
        );
    }

    #[test]
    fn text_that_is_not_a_manifest_is_found() {
        let found = check_manifest("[package");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("not a manifest: "), "{found:?}");
    }
}
