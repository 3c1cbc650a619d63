//! What `deny.toml` bans is not in `Cargo.lock`, and everything there comes from crates.io.
//!
//! `cargo deny` checks this and more, licences above all, where it is installed. The bans are
//! checked here as well because they need no tool and no network.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::report::Finding;
use super::repository::Repository;

const LOCK: &str = "Cargo.lock";
const POLICY: &str = "deny.toml";
/// How a lock file names the one source we take packages from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut tables = Vec::new();
    for path in [LOCK, POLICY] {
        match repository.text(path).map(str::parse::<Table>) {
            Some(Ok(table)) => tables.push(table),
            Some(Err(error)) => return vec![Finding::in_file(path, error.message().to_owned())],
            None => return vec![Finding::in_file(path, "this file is missing")],
        }
    }
    let [lock, policy] = tables.as_slice() else {
        return Vec::new();
    };
    let packages = packages(lock);
    let mut messages = foreign_sources(&packages);
    messages.extend(banned(&packages, policy));
    messages
        .into_iter()
        .map(|message| Finding::in_file(LOCK, message))
        .collect()
}

struct Package<'a> {
    name: &'a str,
    version: &'a str,
    /// `None` for our own crates.
    source: Option<&'a str>,
}

fn packages(lock: &Table) -> Vec<Package<'_>> {
    entries(lock.get("package"))
        .filter_map(|entry| {
            Some(Package {
                name: entry.get("name")?.as_str()?,
                version: entry.get("version")?.as_str()?,
                source: entry.get("source").and_then(Value::as_str),
            })
        })
        .collect()
}

fn foreign_sources(packages: &[Package<'_>]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| package.source.is_some_and(|source| source != CRATES_IO))
        .map(|package| format!("`{}` does not come from crates.io", package.name))
        .collect()
}

fn banned(packages: &[Package<'_>], policy: &Table) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions
            .entry(package.name)
            .or_default()
            .insert(package.version);
    }
    let bans = entries(policy.get("bans").and_then(|bans| bans.get("deny")));
    let mut messages = Vec::new();
    for ban in bans {
        let name = ban.get("crate").and_then(Value::as_str).unwrap_or_default();
        let present = versions.get(name).map_or(0, BTreeSet::len);
        let one_is_fine = ban.get("deny-multiple-versions").and_then(Value::as_bool) == Some(true);
        if one_is_fine && present > 1 {
            messages.push(format!("{present} versions of `{name}`, one is allowed"));
        } else if !one_is_fine && present > 0 {
            messages.push(format!("`{name}` is banned by {POLICY}, which says why"));
        }
    }
    messages
}

fn entries(array: Option<&Value>) -> impl Iterator<Item = &Value> {
    array.and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANS: &str = "[bans]\ndeny = [{ crate = 'openssl-sys' }, \
                        { crate = 'rustls', deny-multiple-versions = true }]\n";

    fn check_lock(lock: &str) -> Vec<String> {
        let repository = Repository::of(&[(LOCK, lock), (POLICY, BANS)]);
        check(&repository).into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn one_allowed_version_passes() {
        let lock = format!(
            "[[package]]\nname = 'zareba-wire'\nversion = '0.1.0'\n\
             [[package]]\nname = 'rustls'\nversion = '0.23.1'\nsource = '{CRATES_IO}'\n"
        );
        assert_eq!(check_lock(&lock), [""; 0]);
    }

    #[test]
    fn banned_doubled_and_foreign_packages_are_found() {
        let lock = "[[package]]\nname = 'openssl-sys'\nversion = '0.9.0'\n\
                    [[package]]\nname = 'rustls'\nversion = '0.22.0'\n\
                    [[package]]\nname = 'rustls'\nversion = '0.23.0'\n\
                    [[package]]\nname = 'odd'\nversion = '1.0.0'\nsource = 'git+https://example.com/odd'\n";
        assert_eq!(
            check_lock(lock),
            [
                "`odd` does not come from crates.io",
                "`openssl-sys` is banned by deny.toml, which says why",
                "2 versions of `rustls`, one is allowed",
            ]
        );
    }

    #[test]
    fn a_missing_policy_is_found() {
        let repository = Repository::of(&[(LOCK, "")]);
        assert_eq!(
            check(&repository),
            [Finding::in_file(POLICY, "this file is missing")]
        );
    }
}
