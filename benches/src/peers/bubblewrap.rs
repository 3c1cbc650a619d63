//! bubblewrap: the smallest program that puts a command behind namespaces.

use std::{
    io,
    process::{Command, Stdio},
};

/// Where it comes from when it is not there.
const NOT_INSTALLED: &str = "not installed (Debian: `apt-get install bubblewrap`)";

/// The system's programs and nothing else of this machine. What the links point to need not exist.
const VIEW: [&str; 20] = [
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
];

/// `echo hi` in a bash behind new namespaces, or why there is none.
pub(crate) fn bubblewrap() -> Result<Command, String> {
    let mut command = Command::new("bwrap");
    command.args(VIEW);
    echoing(command)
}

/// The same in nothing but new namespaces: the kernel's own part, with neither a file system nor
/// limits of its own.
pub(crate) fn unshare() -> Result<Command, String> {
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--net",
        "--ipc",
        "--uts",
        "--cgroup",
    ]);
    echoing(command)
}

fn echoing(mut command: Command) -> Result<Command, String> {
    command.args(["bash", "-c", "echo hi"]).stdin(Stdio::null());
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NOT_INSTALLED.to_owned(),
        _ => format!("cannot be started: {error}"),
    })?;
    if output.status.success() {
        return Ok(command);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next_back().unwrap_or("it said nothing");
    Err(format!("does not work here: {said}"))
}
