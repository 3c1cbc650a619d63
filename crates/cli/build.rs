//! Puts the commit into the version that `zareba --version` prints, and no two parts of the program
//! into one huge page.
//!
//! A source tree without git has no commit, which is no reason not to build. `ZAREBA_COMMIT` is for
//! builders who know it better.

use std::{path::Path, process::Command};

const HUGE_PAGE_BYTES: usize = 2 * 1024 * 1024;

fn main() {
    println!("cargo:rerun-if-env-changed=ZAREBA_COMMIT");
    let version = env!("CARGO_PKG_VERSION");
    let given = std::env::var("ZAREBA_COMMIT").ok();
    let commit = given.filter(|commit| !commit.is_empty()).or_else(commit);
    let version = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo:rustc-env=PROGRAM_VERSION={version}");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // So that each of them can be held in pages of its own, up to its ends.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,max-page-size={HUGE_PAGE_BYTES}");
    }
}

/// The commit that is checked out. Which files say so is asked of git, because a worktree keeps
/// them elsewhere; only those are watched, so that an edit does not build everything anew.
fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let names = ["HEAD", "packed-refs"].into_iter().map(str::to_owned);
    for name in names.chain(branch) {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", &name])?;
        // Watching what is not there would build this crate anew each time.
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    Some(commit)
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
