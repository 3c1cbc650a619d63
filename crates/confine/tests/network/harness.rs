//! Runs cases as the standard test harness would: the same command line, the same output.

use std::{panic, process::ExitCode};

/// A test: it fails by panicking.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(),
}

/// What the command line asks for.
#[derive(Default)]
struct Options {
    list: bool,
    exact: bool,
    only_ignored: bool,
    filters: Vec<String>,
    skip: Vec<String>,
}

pub(crate) fn run(arguments: &[String], cases: &[Case]) -> ExitCode {
    let options = Options::parse(arguments);
    let chosen: Vec<&Case> = cases
        .iter()
        .filter(|case| options.choose(case.name))
        .collect();
    if options.list {
        for case in chosen {
            println!("{}: test", case.name);
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = 0;
    for case in &chosen {
        let passed = panic::catch_unwind(case.run).is_ok();
        let result = if passed { "ok" } else { "FAILED" };
        println!("test {} ... {result}", case.name);
        failed += usize::from(!passed);
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out\n",
        chosen.len() - failed,
        cases.len() - chosen.len()
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

impl Options {
    fn parse(arguments: &[String]) -> Self {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => options.list = true,
                "--exact" => options.exact = true,
                "--ignored" => options.only_ignored = true,
                "--skip" => options.skip.extend(arguments.next().cloned()),
                // How to print, and how many at a time: there is one way, and one at a time.
                "--format" | "--test-threads" | "--color" | "-Z" => drop(arguments.next()),
                flag if flag.starts_with('-') => {}
                filter => options.filters.push(filter.to_owned()),
            }
        }
        options
    }

    fn choose(&self, name: &str) -> bool {
        let fits = |filter: &String| {
            if self.exact {
                name == filter
            } else {
                name.contains(filter)
            }
        };
        let is_wanted = self.filters.is_empty() || self.filters.iter().any(fits);
        !self.only_ignored && is_wanted && !self.skip.iter().any(fits)
    }
}
