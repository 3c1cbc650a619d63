//! Runs every check and prints what they found, as `path:line: what is wrong`.

use std::io::Write;
use std::process::ExitCode;

use super::repository::Repository;
use super::{
    crate_list, documents, environment, forbidden, headers, layers, links, machine_paths,
    manifests, module_files, requirements, size, supply, unsafety,
};

/// Something in the repository that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    /// Counted from one; `None` when the whole file is meant.
    pub(super) line: Option<usize>,
    /// What is wrong and what to do about it.
    pub(super) message: String,
}

impl Finding {
    pub(super) fn in_file(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            message: message.into(),
        }
    }

    pub(super) fn at_line(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: Some(line),
            message: message.into(),
        }
    }
}

type Check = fn(&Repository) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    crate_list::check,
    documents::check_code_names,
    documents::check_commands,
    documents::check_routes,
    documents::check_settings,
    environment::check,
    forbidden::check,
    headers::check,
    layers::check,
    links::check,
    machine_paths::check,
    manifests::check,
    module_files::check,
    requirements::check,
    size::check,
    supply::check,
    unsafety::check,
];

/// Runs all checks; the code is a failure when there is anything to report.
pub(crate) fn run(repository: &Repository, output: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(repository)).collect();
    findings.sort();
    for finding in &findings {
        match finding.line {
            Some(line) => writeln!(output, "{}:{line}: {}", finding.path, finding.message)?,
            None => writeln!(output, "{}: {}", finding.path, finding.message)?,
        }
    }
    let (checks, files) = (CHECKS.len(), repository.len());
    if findings.is_empty() {
        writeln!(output, "tidy: {checks} checks, {files} files, all in order")?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = findings.len();
    writeln!(
        output,
        "tidy: {checks} checks, {files} files, {count} to mend"
    )?;
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_printed_with_its_place_and_fails_the_run() {
        let repository = Repository::of(&[("crates/a/src/mod.rs", "//! A.\n")]);
        let mut printed = Vec::new();

        let code = run(&repository, &mut printed).unwrap();

        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(code, ExitCode::FAILURE);
        assert!(
            printed.contains("crates/a/src/mod.rs: name this file after its module"),
            "{printed}"
        );
    }
}
