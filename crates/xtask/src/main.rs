//! Repository checks and the support programs of the test suite, run as `cargo xtask COMMAND`.
//!
//! The `Makefile` holds the names people type and `scripts/` the order of things; what needs more
//! than a few lines of shell lives here, where it has types and tests. Nothing here is shipped,
//! and no crate of the product is used, so that a broken product can still be checked.

#[cfg(target_os = "linux")]
mod census;
mod test_binaries;
mod tidy;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy                              check the house rules that the compiler cannot
  census [--empty DIR] -- CMD...    run CMD and fail if it leaves processes, mounts or files behind
  test-binaries CRATE               build all tests and print the integration tests of crates/CRATE
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            // Nothing can be done about a standard error that is gone.
            let _ = writeln!(io::stderr(), "xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let mut stdout = io::stdout().lock();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => {
            let repository = tidy::Repository::load(workspace_root())?;
            tidy::run(&repository, &mut stdout)
        }
        #[cfg(target_os = "linux")]
        ["census", rest @ ..] => {
            drop(stdout);
            census::run(rest, &mut io::stderr())
        }
        ["test-binaries", crate_name] => {
            for executable in test_binaries::build(workspace_root(), crate_name)? {
                writeln!(stdout, "{executable}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        ["help" | "--help" | "-h"] => {
            stdout.write_all(USAGE.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        _ => anyhow::bail!("unknown command\n\n{USAGE}"),
    }
}

/// Where the checkout lies, fixed when this program was compiled: it is only ever run from there.
fn workspace_root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
