//! Numbers of requirements, such as `NS-4` in a comment and `_ns_4` in the name of a test, are rows of
//! the page that says what they mean.
//!
//! A number that the page does not have tells a reader nothing, and hides a slip of the pen.

use std::collections::BTreeSet;

use super::code;
use super::report::Finding;
use super::repository::Repository;

const PAGE: &str = "docs/requirements.md";

/// Files in which the shape of a number means a requirement.
const READ: &[&str] = &[".rs", ".py", ".sh", ".md", ".rc", ".rare", ".toml"];

/// Other things with the shape of a number, by what stands before the dash.
const OTHER_FAMILIES: &[&str] = &["C"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let known: BTreeSet<&str> = repository.text(PAGE).map(rows).unwrap_or_default();
    let families: BTreeSet<String> = known
        .iter()
        .filter_map(|number| Some(number.split_once('-')?.0.to_lowercase()))
        .collect();
    let mut findings = Vec::new();
    for (path, text) in repository.texts().filter(|(path, _)| is_read(path)) {
        let is_rust = path.ends_with(".rs");
        for (index, line) in text.lines().enumerate() {
            let mut named: Vec<String> = numbers(line).map(str::to_owned).collect();
            if is_rust {
                named.extend(numbers_in_names(line, &families));
            }
            let unknown = named
                .iter()
                .filter(|number| !known.contains(number.as_str()));
            findings.extend(unknown.map(|number| {
                let message =
                    format!("`{number}` is not in `{PAGE}`; add its row or mend the number");
                Finding::at_line(path, index + 1, message)
            }));
        }
    }
    findings
}

fn is_read(path: &str) -> bool {
    // This file needs bad examples.
    !path.ends_with("tidy/requirements.rs") && READ.iter().any(|ending| path.ends_with(ending))
}

/// The numbers that have a row.
fn rows(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|cell| is_number(cell))
        .collect()
}

/// One letter that is `G`, or two, a dash and digits.
fn is_number(word: &str) -> bool {
    let Some((family, digits)) = word.split_once('-') else {
        return false;
    };
    matches!(family.len(), 1..=2)
        && family.chars().all(|c| c.is_ascii_uppercase())
        && !OTHER_FAMILIES.contains(&family)
        && matches!(digits.len(), 1..=2)
        && digits.chars().all(|c| c.is_ascii_digit())
}

/// The numbers in a line of text.
fn numbers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_')
        .filter(|word| is_number(word))
}

/// The numbers in the name of the function that a line of Rust declares: `..._eg_4_eg_6`.
fn numbers_in_names(line: &str, families: &BTreeSet<String>) -> Vec<String> {
    let mut words = code::words(line).skip_while(|word| *word != "fn");
    let parts: Vec<&str> = words.nth(1).unwrap_or_default().split('_').collect();
    let pairs = parts.windows(2).filter_map(|pair| {
        let [family, digits] = pair else { return None };
        let is_number = families.contains(*family)
            && !digits.is_empty()
            && digits.chars().all(|c| c.is_ascii_digit());
        is_number.then(|| format!("{}-{digits}", family.to_uppercase()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "# Requirements\n| | |\n|---|---|\n| NS-4 | Walls. |\n| G-1 | Bytes. |\n";

    fn check_file(path: &str, text: &str) -> Vec<(Option<usize>, String)> {
        let repository = Repository::of(&[(PAGE, ROWS), (path, text)]);
        let found = check(&repository).into_iter();
        found.map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn numbers_with_a_row_and_other_words_pass() {
        let text = "/// G-1, NS-4: bytes (NS-4).\nfn a_wall_holds_ns_4() {}\n\
                    let text = \"UTF-8, SSH-2.0, C-1, BSD-3-Clause, A-100\";\nfn g_forces_in_2() {}\n";
        assert_eq!(check_file("crates/a/src/lib.rs", text), []);
    }

    #[test]
    fn numbers_without_a_row_are_found_in_comments_and_names() {
        let text = "/// NS-5: what?\nfn it_holds_ns_4_ns_40() {}\n";
        assert_eq!(
            check_file("crates/a/tests/it/main.rs", text),
            [
                (
                    Some(1),
                    "`NS-5` is not in `docs/requirements.md`; add its row or mend the number"
                        .to_owned()
                ),
                (
                    Some(2),
                    "`NS-40` is not in `docs/requirements.md`; add its row or mend the number"
                        .to_owned()
                ),
            ]
        );
        assert_eq!(check_file("docs/a.md", "see HS-2\n").len(), 1);
    }

    #[test]
    fn without_the_page_every_number_is_found() {
        let repository = Repository::of(&[("docs/a.md", "G-1\n")]);
        assert_eq!(check(&repository).len(), 1);
    }
}
