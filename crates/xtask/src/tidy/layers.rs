//! Which crate of ours may use which: dependencies point one way, and every edge is listed here.
//!
//! A new edge is the most expensive change there is, so it is made twice on purpose: in the
//! manifest and in [`LAYERS`]. What lies outside the workspace is not judged here.

use toml::Table;

use super::manifests::{self, Dependency, Kind};
use super::report::Finding;
use super::repository::Repository;

struct Layer {
    /// The crate's folder.
    name: &'static str,
    /// Folders of the crates it may use, all of them higher up in the table.
    may_use: &'static [&'static str],
}

/// From the bottom up; a row may only name rows above it.
const LAYERS: &[Layer] = &[
    Layer {
        name: "protocol",
        may_use: &[],
    },
    Layer {
        name: "terminal",
        may_use: &[],
    },
    Layer {
        name: "confine",
        may_use: &[],
    },
    Layer {
        name: "egress",
        may_use: &[],
    },
    Layer {
        name: "image",
        may_use: &[],
    },
    Layer {
        name: "wire",
        may_use: &["protocol"],
    },
    Layer {
        name: "config",
        may_use: &["protocol"],
    },
    Layer {
        name: "executor",
        may_use: &["protocol", "terminal", "wire"],
    },
    Layer {
        name: "runtime",
        may_use: &["protocol", "wire"],
    },
    // `wire` because the `local` runtime is a client of the executor that it starts, and
    // `terminal` for its table of processes.
    Layer {
        name: "runtime-native",
        may_use: &[
            "protocol", "terminal", "confine", "egress", "image", "wire", "executor", "runtime",
        ],
    },
    // `wire` for the programs that host tools.
    Layer {
        name: "tools",
        may_use: &["protocol", "wire"],
    },
    // `wire` for programs, for what any server of ours is made of, and for the executor's routes.
    Layer {
        name: "mcp",
        may_use: &["protocol", "wire", "tools"],
    },
    Layer {
        name: "eventlog",
        may_use: &["protocol"],
    },
    // `wire` for programs and streams of bytes, which pass through.
    Layer {
        name: "session",
        may_use: &["protocol", "wire", "runtime", "tools", "eventlog"],
    },
    Layer {
        name: "api",
        may_use: &["protocol"],
    },
    Layer {
        name: "client",
        may_use: &["protocol", "api"],
    },
    // `executor` for the archives that files travel in, here and below.
    Layer {
        name: "runtime-remote",
        may_use: &["protocol", "wire", "executor", "runtime", "client"],
    },
    Layer {
        name: "facades",
        may_use: &[
            "protocol", "wire", "runtime", "tools", "eventlog", "session",
        ],
    },
    Layer {
        name: "server",
        may_use: &[
            "protocol", "wire", "runtime", "tools", "eventlog", "session", "api", "facades",
        ],
    },
    Layer {
        name: "runtime-docker",
        may_use: &["protocol", "wire", "executor", "runtime"],
    },
    Layer {
        name: "testkit",
        may_use: &["protocol", "wire", "runtime"],
    },
    Layer {
        name: "cli",
        may_use: &[
            "protocol",
            "terminal",
            "confine",
            "egress",
            "image",
            "wire",
            "config",
            "executor",
            "runtime",
            "tools",
            "mcp",
            "runtime-native",
            "eventlog",
            "session",
            "api",
            "client",
            "runtime-remote",
            "runtime-docker",
            "facades",
            "server",
        ],
    },
    Layer {
        name: "xtask",
        may_use: &[],
    },
];

/// What tests of any crate may use besides what the crate itself may.
const OPEN_TO_TESTS: &str = "testkit";

/// What tests of single crates may use besides: the real thing stands where a fake would prove
/// nothing.
const REAL_PARTS: &[(&str, &[&str])] = &[
    ("tools", &["executor", "runtime", "runtime-native"]),
    ("mcp", &["executor", "runtime", "runtime-native"]),
    ("session", &["executor", "runtime-native"]),
    ("facades", &["executor", "runtime-native"]),
    ("server", &["executor", "runtime-native"]),
    ("client", SERVER_PARTS),
    ("runtime-remote", SERVER_PARTS),
];

/// A whole server.
const SERVER_PARTS: &[&str] = &[
    "wire",
    "executor",
    "runtime",
    "runtime-native",
    "eventlog",
    "session",
    "facades",
    "server",
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, manifest) in repository.crates() {
        let path = manifests::path_of(name);
        match LAYERS.iter().find(|layer| layer.name == name) {
            None => findings.push(Finding::in_file(
                &path,
                format!("`{name}` has no row in the table of `tidy/layers.rs`"),
            )),
            Some(layer) => {
                // A manifest that does not parse is reported by the check of manifests.
                let manifest: Table = manifest.parse().unwrap_or_default();
                let strangers = manifests::dependencies(&manifest)
                    .into_iter()
                    .filter(|dependency| !is_allowed(layer, dependency))
                    .map(|dependency| complaint(layer, &dependency));
                findings.extend(strangers.map(|message| Finding::in_file(&path, message)));
                let unused = unused(layer, &manifest);
                findings.extend(unused.map(|message| Finding::in_file(&path, message)));
            }
        }
    }
    findings
}

/// Edges that the table permits and the crate does not have: the table would hide the next one.
fn unused<'a>(layer: &'a Layer, manifest: &Table) -> impl Iterator<Item = String> + 'a {
    let product = manifests::dependencies(manifest).into_iter();
    let product = product.filter(|dependency| dependency.kind == Kind::Product);
    let used: Vec<String> = product.map(|dependency| dependency.package).collect();
    let unused = layer.may_use.iter().filter(move |folder| {
        !used
            .iter()
            .any(|package| manifests::folder_of(package) == Some(**folder))
    });
    unused.map(|folder| {
        format!(
            "`{}` does not use `{folder}`; take it out of `tidy/layers.rs`",
            layer.name
        )
    })
}

/// What the crate in a folder may use; `None` for a folder that is not in the table.
pub(super) fn may_use(name: &str) -> Option<&'static [&'static str]> {
    let layer = LAYERS.iter().find(|layer| layer.name == name);
    layer.map(|layer| layer.may_use)
}

fn is_allowed(layer: &Layer, dependency: &Dependency) -> bool {
    let Some(folder) = manifests::folder_of(&dependency.package) else {
        return true;
    };
    let is_real_part =
        |(name, parts): &(&str, &[&str])| *name == layer.name && parts.contains(&folder);
    let is_for_tests = folder == OPEN_TO_TESTS || REAL_PARTS.iter().any(is_real_part);
    layer.may_use.contains(&folder) || (dependency.kind == Kind::Development && is_for_tests)
}

fn complaint(layer: &Layer, dependency: &Dependency) -> String {
    let allowed = match layer.may_use {
        [] => "nothing of ours".to_owned(),
        names => format!("`{}`", names.join("`, `")),
    };
    format!(
        "`{}` must not use `{}`; it may use {allowed}",
        layer.name, dependency.package
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_manifest(name: &str, manifest: &str) -> Vec<String> {
        let path = manifests::path_of(name);
        let repository = Repository::of(&[(&path, manifest)]);
        let messages = check(&repository).into_iter().map(|f| f.message);
        // The manifests here have few edges.
        messages
            .filter(|message| !message.contains("does not use"))
            .collect()
    }

    #[test]
    fn an_edge_that_is_in_the_table_only_is_found() {
        let path = manifests::path_of("client");
        let manifest = "[dependencies]\nzareba-protocol.workspace = true\n\
                        [dev-dependencies]\nzareba-api.workspace = true\n";
        assert_eq!(
            check(&Repository::of(&[(&path, manifest)])),
            [Finding::in_file(
                &path,
                "`client` does not use `api`; take it out of `tidy/layers.rs`"
            )]
        );
    }

    #[test]
    fn every_row_uses_only_rows_above_it() {
        for (at, layer) in LAYERS.iter().enumerate() {
            let above: Vec<&str> = LAYERS[..at].iter().map(|above| above.name).collect();
            for used in layer.may_use {
                assert!(above.contains(used), "{} uses {used}", layer.name);
            }
        }
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_found() {
        let manifest = "[dependencies]\nserde = '1'\nzareba-protocol.workspace = true\n\
                        zareba-executor.workspace = true\n";
        assert_eq!(
            check_manifest("wire", manifest),
            ["`wire` must not use `zareba-executor`; it may use `protocol`"]
        );
    }

    #[test]
    fn an_edge_is_found_behind_a_rename_a_target_and_a_build_script() {
        let manifest = "[dependencies]\nwords = { package = 'zareba-protocol', path = 'x' }\n\
                        [build-dependencies]\nzareba-wire.workspace = true\n\
                        [target.'cfg(unix)'.dependencies]\nzareba-runtime.workspace = true\n";
        assert_eq!(
            check_manifest("terminal", manifest),
            [
                "`terminal` must not use `zareba-protocol`; it may use nothing of ours",
                "`terminal` must not use `zareba-wire`; it may use nothing of ours",
                "`terminal` must not use `zareba-runtime`; it may use nothing of ours",
            ]
        );
    }

    #[test]
    fn the_test_kit_is_for_tests_only() {
        let for_tests = "[dev-dependencies]\nzareba-testkit.workspace = true\n";
        assert_eq!(check_manifest("wire", for_tests), [""; 0]);

        let for_all = "[dependencies]\nzareba-testkit.workspace = true\n";
        assert_eq!(
            check_manifest("wire", for_all),
            ["`wire` must not use `zareba-testkit`; it may use `protocol`"]
        );
    }

    #[test]
    fn tests_may_not_reach_around_the_layers_either() {
        let manifest = "[dev-dependencies]\nzareba-cli.workspace = true\n";
        assert_eq!(
            check_manifest("protocol", manifest),
            ["`protocol` must not use `zareba-cli`; it may use nothing of ours"]
        );
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        assert_eq!(
            check_manifest("surprise", "[package]\nname = 'zareba-surprise'\n"),
            ["`surprise` has no row in the table of `tidy/layers.rs`"]
        );
    }
}
