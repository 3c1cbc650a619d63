//! Links between our own documents lead somewhere, down to the heading.
//!
//! Addresses on the web are not tried: a check must not depend on the network.

use super::report::Finding;
use super::repository::Repository;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.documents() {
        for (line, target) in links(text) {
            if let Some(fault) = fault(repository, path, target) {
                findings.push(Finding::at_line(path, line, fault));
            }
        }
    }
    findings
}

fn fault(repository: &Repository, document: &str, target: &str) -> Option<String> {
    let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
    if is_elsewhere {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() {
        document.to_owned()
    } else {
        match resolve(document, file) {
            Some(file) if repository.contains(&file) => file,
            _ => return Some(format!("the link `{target}` leads nowhere")),
        }
    };
    let text = repository.text(&file).unwrap_or_default();
    let is_there = heading.is_empty() || headings(text).any(|found| found == heading);
    (!is_there).then(|| format!("the link `{target}` leads to a heading that is not there"))
}

/// `target` as seen from `document`; `None` when it leaves the repository.
fn resolve(document: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Line number and target of every `[text](target)` outside of code.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        // Every second piece between backticks is code; a link's text may hold code, its target
        // may not, so the line is cut at `](`, not at the backticks.
        line.match_indices("](").filter_map(move |(at, _)| {
            let in_code = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + 2..].split(')').next()?;
            let target = target.split_whitespace().next()?;
            (!in_code).then_some((number, target))
        })
    })
}

/// The anchors of a document's headings, as hosting sites derive them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        let is_heading = title.len() < line.len() && title.starts_with(' ');
        is_heading.then(|| anchor(title.trim()))
    })
}

fn anchor(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Numbered lines outside of fenced code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            return None;
        }
        (!in_fence).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_document(text: &str) -> Vec<(Option<usize>, String)> {
        let repository = Repository::of(&[
            ("docs/here.md", text),
            ("docs/there.md", "# Title\n## It's `code`, no?\n"),
            ("crates/wire/Cargo.toml", ""),
        ]);
        let found = check(&repository).into_iter();
        found.map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "[a](there.md), [`b`](../crates/wire), [c](https://example.com/x)\n\
                    [d](there.md#its-code-no) [e](#own-heading) [f](./there.md \"title\")\n\
                    # Own heading\n`[not](a-link)`\n```\n[nor](this)\n```\n";
        assert_eq!(check_document(text), []);
    }

    #[test]
    fn broken_links_are_found_with_their_line() {
        let text = "fine\n[a](gone.md) and [b](../../outside.md)\n[c](there.md#gone) [d](#gone)\n";
        assert_eq!(
            check_document(text),
            [
                (Some(2), "the link `gone.md` leads nowhere".to_owned()),
                (
                    Some(2),
                    "the link `../../outside.md` leads nowhere".to_owned()
                ),
                (
                    Some(3),
                    "the link `there.md#gone` leads to a heading that is not there".to_owned()
                ),
                (
                    Some(3),
                    "the link `#gone` leads to a heading that is not there".to_owned()
                ),
            ]
        );
    }
}
