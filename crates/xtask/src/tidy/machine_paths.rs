//! No tracked file knows the machine that it was written on: no private directories, no home
//! directories, no address of a package mirror.
//!
//! Mirrors are known by their shape, since their names are nobody's business.

use super::report::Finding;
use super::repository::Repository;

/// Directories of particular machines, split so that this file does not name them itself.
const PRIVATE_DIRECTORIES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/fa", "rm/"),
];

const HOMES: &[&str] = &[concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Users whose home may be named: the one of the wire contract, and the made-up one of examples.
const KNOWN_USERS: &[&str] = &["openhands", "user", "agent"];

/// First labels of hosts that serve packages.
const MIRROR_LABELS: &[&str] = &[
    "artifactory",
    "crates",
    "deb",
    "index",
    "mirror",
    "mirrors",
    "nexus",
    "npm",
    "pypi",
    "registry",
];

/// Settings that choose where packages come from. They belong to a machine, not to a project.
const MIRROR_SETTINGS: &[&str] = &["--index-url", "--extra-index-url", "replace-with"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.texts() {
        // The checker's own tests need bad examples.
        let is_this_file = path.ends_with("tidy/machine_paths.rs");
        if is_this_file {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(fault) = fault(line) {
                findings.push(Finding::at_line(path, index + 1, fault));
            }
        }
    }
    findings
}

fn fault(line: &str) -> Option<String> {
    private_directory(line)
        .map(|directory| format!("`{directory}` is a directory of one machine"))
        .or_else(|| home(line).map(|user| format!("the home directory of `{user}`")))
        .or_else(|| mirror(line).map(|what| format!("`{what}` chooses a package mirror")))
}

fn private_directory(line: &str) -> Option<&'static str> {
    PRIVATE_DIRECTORIES
        .iter()
        .copied()
        .find(|directory| path_starts(line, directory).next().is_some())
}

/// The user whose home directory is named, if it is somebody in particular.
fn home(line: &str) -> Option<&str> {
    HOMES
        .iter()
        .flat_map(|home| path_starts(line, home))
        .map(name_at_start)
        .find(|user| !user.is_empty() && !KNOWN_USERS.contains(user))
}

fn mirror(line: &str) -> Option<&str> {
    let setting = MIRROR_SETTINGS
        .iter()
        .find(|setting| line.contains(**setting));
    setting.copied().or_else(|| {
        let hosts = line.split("://").skip(1).map(name_at_start);
        hosts.into_iter().find(|host| {
            let label = host.split(['.', '-']).next().unwrap_or_default();
            host.contains('.') && MIRROR_LABELS.contains(&label)
        })
    })
}

/// What follows each place where an absolute path begins with `prefix`.
fn path_starts<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(prefix).filter_map(move |(at, _)| {
        let before = line[..at].chars().next_back();
        let goes_on = before
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | ')' | '*'));
        (!goes_on).then(|| &line[at + prefix.len()..])
    })
}

fn name_at_start(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-'));
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_one_machine_are_found_in_any_file() {
        for directory in PRIVATE_DIRECTORIES {
            let text = format!("fine\nsee {directory}notes\n");
            let repository = Repository::of(&[("docs/a.md", &text)]);
            let message = format!("`{directory}` is a directory of one machine");
            assert_eq!(
                check(&repository),
                [Finding::at_line("docs/a.md", 2, message)]
            );
        }
    }

    #[test]
    fn homes_and_mirrors_are_found() {
        let found = [
            "cd /home/alice/code",
            "\"/Users/bob\"",
            "pip install --index-url somewhere",
            "url = 'https://mirror.example.com/simple'",
            "https://pypi-cache.example.com",
        ]
        .map(|line| fault(line).unwrap());
        assert_eq!(
            found,
            [
                "the home directory of `alice`",
                "the home directory of `bob`",
                "`--index-url` chooses a package mirror",
                "`mirror.example.com` chooses a package mirror",
                "`pypi-cache.example.com` chooses a package mirror",
            ]
        );
    }

    #[test]
    fn ordinary_text_passes() {
        let elsewhere = format!("/tmp{0}x and .{0}y", PRIVATE_DIRECTORIES[0]);
        for line in [
            elsewhere.as_str(),
            "the home of root is /root",
            "cd /home/openhands/x; ls /home/",
            "https://github.com/rust-lang/crates.io-index",
            "http://localhost:8080/index.html",
        ] {
            assert_eq!(fault(line), None, "{line}");
        }
    }
}
