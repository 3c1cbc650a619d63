//! Programs of this machine: where they are and what they say of themselves.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::timeout};
use zareba_config::Environment;

/// Where programs are when nobody says so.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first executable `name` along `PATH`.
pub(crate) fn find(name: &str, environment: &Environment) -> Option<PathBuf> {
    let path = environment
        .get("PATH")
        .filter(|path| !path.is_empty())
        .unwrap_or(USUAL_PATH);
    path.split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| Path::new(directory).join(name))
        .find(|program| is_executable(program))
}

/// What the program prints when it is asked for its version: the first line that says anything.
pub(crate) async fn ask(program: &Path, arguments: &[&str]) -> Option<String> {
    let asked = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, asked).await.ok()?.ok()?;
    // Some print it to standard error.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    output.status.success().then(|| line.to_owned())
}

fn is_executable(program: &Path) -> bool {
    program
        .metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
