//! `xtask census`: runs a command between two counts and compares them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, WaitStatus};

use super::processes;
use super::traces::Traces;

/// How long processes may take to be gone after the command has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `[--empty DIR] -- CMD...`; fails when the command does or when it leaves something.
pub(crate) fn run(arguments: &[&str], output: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let (private, program, rest) = match arguments {
        ["--empty", directory, "--", program, rest @ ..] => {
            (Some(Path::new(*directory)), program, rest)
        }
        ["--", program, rest @ ..] => (None, program, rest),
        _ => bail!("usage: census [--empty DIR] -- CMD..."),
    };
    let before = Traces::of_machine(private)?;
    processes::adopt_orphans().context("cannot become the parent of orphans")?;
    let child = Command::new(program)
        .args(rest)
        .spawn()
        .with_context(|| format!("cannot start `{program}`"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.context("the kernel gave an impossible process id")?;
    let status = processes::wait_for(pid).context("cannot wait for the command")?;

    let mut differences = Vec::new();
    for leftover in processes::remaining(PATIENCE)? {
        let id = leftover.pid.as_raw_nonzero();
        differences.push(format!("left behind: process {id} {}", leftover.command));
    }
    processes::kill_remaining()?;
    differences.extend(Traces::of_machine(private)?.changes_since(&before));
    report(exit_code(status), &differences, output)
}

fn report(code: u8, differences: &[String], output: &mut dyn Write) -> anyhow::Result<ExitCode> {
    for difference in differences {
        writeln!(output, "census: {difference}")?;
    }
    if differences.is_empty() {
        writeln!(
            output,
            "census: no process, namespace, mount, control group or file was left behind"
        )?;
    }
    if code == 0 && !differences.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::from(code))
}

/// The command's own code, or what a shell would say of its signal.
fn exit_code(status: WaitStatus) -> u8 {
    let code = match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: u8, differences: &[String], expected: (ExitCode, &str)) {
        let mut printed = Vec::new();
        let code = report(code, differences, &mut printed).unwrap();
        assert_eq!(
            (code, String::from_utf8(printed).unwrap().as_str()),
            expected
        );
    }

    #[test]
    fn a_difference_fails_a_command_that_succeeded() {
        let clean = "census: no process, namespace, mount, control group or file was left behind\n";
        check(0, &[], (ExitCode::SUCCESS, clean));
        check(3, &[], (ExitCode::from(3), clean));
        let left = ["left behind: mount /x".to_owned()];
        check(
            0,
            &left,
            (ExitCode::FAILURE, "census: left behind: mount /x\n"),
        );
        check(
            3,
            &left,
            (ExitCode::from(3), "census: left behind: mount /x\n"),
        );
    }
}
