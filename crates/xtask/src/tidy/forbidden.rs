//! What the invariants of `ARCHITECTURE.md` forbid in the text of a crate, with the files where it is
//! allowed nevertheless.
//!
//! Tests are not judged. To allow one more file, write the reason into the invariant as well.

use super::code;
use super::report::Finding;
use super::repository::Repository;

/// A piece of code that some crates do without.
struct Forbidden {
    text: &'static str,
    /// Folders of the crates; none for all of the product.
    crates: &'static [&'static str],
    /// Paths of the files that may.
    except: &'static [&'static str],
    message: &'static str,
}

/// Files of `server` that use a type of one facade for all routes: `Reserved`, a place that a client of
/// OpenHands holds.
const WITH_RESERVED: &[&str] = &[
    "crates/server/src/camel.rs",
    "crates/server/src/held.rs",
    "crates/server/src/lib.rs",
    "crates/server/src/openhands.rs",
    "crates/server/src/ports/proxy.rs",
    "crates/server/src/request.rs",
    "crates/server/src/routes.rs",
    "crates/server/src/websocket.rs",
];

const FORBIDDEN: &[Forbidden] = &[
    Forbidden {
        text: "unbounded_channel",
        crates: &[],
        // A semaphore of bytes bounds it.
        except: &["crates/eventlog/src/writer.rs"],
        message: "every queue has a limit; give the channel one",
    },
    Forbidden {
        text: "sleep(",
        crates: &["protocol", "executor", "runtime"],
        // A lock that another program holds cannot be waited for with a deadline; before a sandbox, not an action.
        except: &["crates/runtime/src/guarded/stand_in.rs"],
        message: "no action waits for a fixed time; wait for an event, with a deadline",
    },
    Forbidden {
        text: "zareba_facades::openhands",
        crates: &["server"],
        except: WITH_RESERVED,
        message: "routes of the server's own API know no facade; put the type where all of them find it",
    },
    Forbidden {
        text: "zareba_facades::camel",
        crates: &["server"],
        except: &["crates/server/src/camel.rs"],
        message: "routes of the server's own API know no facade; put the type where all of them find it",
    },
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.rust_sources() {
        let mut parts = path.split('/').skip(1);
        let (Some(folder), Some("src")) = (parts.next(), parts.next()) else {
            continue;
        };
        if folder == "xtask" || is_test(path) {
            continue;
        }
        let rules = FORBIDDEN.iter().filter(|rule| {
            (rule.crates.is_empty() || rule.crates.contains(&folder))
                && !rule.except.contains(&path)
        });
        let rules: Vec<&Forbidden> = rules.collect();
        let code = code::without_comments_and_literals(text);
        for (index, line) in before_tests(&code).enumerate() {
            let broken = rules.iter().filter(|rule| has(line, rule.text));
            findings.extend(broken.map(|rule| Finding::at_line(path, index + 1, rule.message)));
        }
    }
    findings
}

/// Whether a line has the text, and not a longer name that ends with it.
fn has(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

fn is_test(path: &str) -> bool {
    path.ends_with("_tests.rs") || path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The lines of a file up to its module of tests, which is the last item.
fn before_tests(code: &str) -> impl Iterator<Item = &str> {
    let mut lines = code.lines().peekable();
    std::iter::from_fn(move || {
        let line = lines.next()?;
        let next = lines.peek().copied().unwrap_or_default();
        (!(line == "#[cfg(test)]" && next.starts_with("mod "))).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_file(path: &str, text: &str) -> Vec<(Option<usize>, String)> {
        let found = check(&Repository::of(&[(path, text)])).into_iter();
        found.map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn what_an_invariant_forbids_is_found_with_its_line() {
        let queue = "//! A.\nlet (a, b) = mpsc::unbounded_channel();\n";
        let found = check_file("crates/wire/src/a.rs", queue);
        let message = "every queue has a limit; give the channel one".to_owned();
        assert_eq!(found, [(Some(2), message)]);
        let waits = "//! A.\n\ntokio::time::sleep(A).await;\n";
        assert_eq!(check_file("crates/executor/src/a.rs", waits).len(), 1);
        let facade = "//! A.\nuse zareba_facades::openhands::User;\n";
        assert_eq!(check_file("crates/server/src/events.rs", facade).len(), 1);
    }

    #[test]
    fn tests_exceptions_and_other_crates_pass() {
        let queue = "//! A.\nlet (a, b) = mpsc::unbounded_channel();\n";
        assert_eq!(check_file("crates/eventlog/src/writer.rs", queue), []);
        assert_eq!(check_file("crates/wire/src/a_tests.rs", queue), []);
        assert_eq!(check_file("crates/wire/tests/it/main.rs", queue), []);
        let inline =
            "//! A.\n// unbounded_channel\n#[cfg(test)]\nmod tests {\nunbounded_channel();\n}\n";
        assert_eq!(check_file("crates/wire/src/a.rs", inline), []);
        let waits = "//! A.\ntokio::time::sleep(A).await;\nmy_sleep(); sleep_until(b);\n";
        assert_eq!(check_file("crates/client/src/a.rs", waits), []);
        assert_eq!(
            check_file("crates/executor/src/a.rs", "my_sleep(); sleep_until(b);\n"),
            []
        );
    }
}
