//! Measures `zareba` beside floors and peers in the same run, and prints one table.
//!
//! Times differ from machine to machine and from minute to minute; what stands beside each value
//! was measured in turns with it, so the ratios hold. No time makes the exit status non-zero,
//! only a measurement that could not be made. See `docs/benchmarks.md`.

mod actions;
mod ahead;
mod children;
mod executor;
mod floors;
mod http;
mod lane;
mod measure;
mod peers;
mod proc;
mod processors;
mod quantity;
mod sandboxes;
mod server;
mod setting;
mod stats;
mod table;

use std::{
    cell::OnceCell,
    env, fs,
    io::{self, Write as _},
    path::PathBuf,
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Context, ensure};
use clap::Parser;

use executor::Program;
use measure::MEASUREMENTS;
use setting::{Effort, Setting};
use table::Row;

/// A whole run takes less than half of this.
const RUN_MAX: Duration = Duration::from_secs(1200);

/// Measures the release program beside floors and peers
#[derive(Debug, Parser)]
#[command(name = "zareba-bench")]
struct Arguments {
    /// The program to measure
    #[arg(long, value_name = "FILE", env = "ZAREBA_BIN")]
    binary: PathBuf,
    /// A few runs of everything, to see that it works
    #[arg(long)]
    quick: bool,
    /// Say which goals were missed
    #[arg(long)]
    check: bool,
    /// Only the measurements with these names
    #[arg(long, value_name = "NAME", num_args = 1.., value_parser = clap::builder::PossibleValuesParser::new(measure::names()))]
    only: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    children::limit_run(RUN_MAX);
    let scratch = tempfile::Builder::new().prefix("zareba-bench-").tempdir()?;
    let setting = prepare(&arguments, scratch.path().to_owned())?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}\n", proc::machine())?;
    let mut rows = Vec::new();
    for (name, measure) in MEASUREMENTS {
        if !arguments.only.is_empty() && !arguments.only.iter().any(|only| only == name) {
            continue;
        }
        writeln!(io::stderr(), "measuring: {name}")?;
        match measure(&setting) {
            Ok(measured) => rows.extend(measured),
            Err(error) => rows.push(Row::failed(*name, format!("{error:#}"))),
        }
    }
    write!(out, "{}", table::render(&rows))?;
    if arguments.check {
        let shortfalls = table::shortfalls(&rows);
        writeln!(out, "\n{} of the goals were missed", shortfalls.len())?;
        for shortfall in shortfalls {
            writeln!(out, "- {shortfall}")?;
        }
    }
    let failed = rows.iter().any(Row::has_failed);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn prepare(arguments: &Arguments, scratch: PathBuf) -> anyhow::Result<Setting> {
    let binary = fs::canonicalize(&arguments.binary)
        .with_context(|| format!("there is no program `{}`", arguments.binary.display()))?;
    let (home, working_dir) = (scratch.join("home"), scratch.join("work"));
    fs::create_dir(&home)?;
    fs::create_dir(&working_dir)?;
    let program = Program {
        binary,
        home,
        working_dir,
        scratch,
        user: user()?,
    };
    let own_home = env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_dir());
    let at_home = own_home.map(|home| Program {
        home,
        ..program.clone()
    });
    let effort = if arguments.quick {
        Effort::Quick
    } else {
        Effort::Full
    };
    Ok(Setting {
        program,
        at_home,
        effort,
        peer: OnceCell::new(),
    })
}

/// The name of whoever runs this, which need not be in the environment.
fn user() -> anyhow::Result<String> {
    let output = Command::new("id")
        .arg("-un")
        .output()
        .context("cannot run `id`")?;
    ensure!(output.status.success(), "`id` does not know who we are");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
