//! A server in the background: starting it until it answers, and ending it.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

use super::Published;
use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
};

/// The last that a server said is read from here when it did not start.
const LAST_WORDS_BYTES: u64 = 64 * 1024;

/// Starts a server that outlives us, and returns once it answers.
pub(super) fn start(state: &Path) -> Result<Exit, Failure> {
    let log = log_file(state);
    let output =
        open_log(state, &log).or_fail(Exit::Start, format!("cannot write `{}`", log.display()))?;
    let begin = output.metadata().map_or(0, |metadata| metadata.len());
    let program = std::env::current_exe().or_fail(Exit::Start, "cannot find our own program")?;
    let errors = output
        .try_clone()
        .or_fail(Exit::Start, "cannot start the server")?;
    // The server tells by its standard output that it answers, and nothing else.
    let mut child = Command::new(program)
        .args(arguments())
        .args(["--in-background", "--ready-fd", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .or_fail(Exit::Start, "cannot start the server")?;
    let mut word = String::new();
    if let Some(mut ready) = child.stdout.take() {
        ready
            .read_to_string(&mut word)
            .or_fail(Exit::Start, "cannot wait for the server")?;
    }
    if word.trim() == "ready" {
        let said = since(&log, begin).unwrap_or_default();
        say::words(said.trim_end());
        say::note(format_args!(
            "it goes on in the background; what it says is in {}",
            log.display()
        ));
        return Ok(Exit::Success);
    }
    // Only then everything that it has to say is written.
    let status = child
        .wait()
        .or_fail(Exit::Start, "cannot wait for the server")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    let exit = code.map_or(Exit::Start, Exit::Command);
    let said = since(&log, begin).unwrap_or_default();
    let silent = || Failure::new(exit, "it said nothing of why");
    Err(Failure::printed(exit, &said)
        .unwrap_or_else(silent)
        .while_doing("the server did not start")
        .hint(format!("all that it said is in {}", log.display())))
}

/// Our own arguments, less the one that brought us here.
fn arguments() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::args_os()
        .skip(1)
        .filter(|word| word != "--detach")
}

fn log_file(state: &Path) -> PathBuf {
    state.join("server.log")
}

fn open_log(state: &Path, log: &Path) -> io::Result<File> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state)?;
    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)
}

fn since(log: &Path, begin: u64) -> io::Result<String> {
    use io::Seek as _;
    let mut file = File::open(log)?;
    file.seek(io::SeekFrom::Start(begin))?;
    let mut said = String::new();
    file.take(LAST_WORDS_BYTES).read_to_string(&mut said)?;
    Ok(said)
}

/// Ends the server of a state directory and returns when it has ended.
pub(super) fn stop(state: &Path) -> Result<Exit, Failure> {
    let nobody = || {
        Failure::new(
            Exit::Lost,
            format!("no server runs in `{}`", state.display()),
        )
    };
    let found = Published::find(state).ok_or_else(nobody)?;
    let pid = Pid::from_raw(found.pid).ok_or_else(nobody)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| nobody())?;
    // The number may be somebody else's by now.
    if !is_ours(found.pid) {
        return Err(nobody());
    }
    pidfd_send_signal(&process, Signal::TERM).or_fail(Exit::Failure, "cannot end the server")?;
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ended, None).or_fail(Exit::Failure, "cannot wait for the server")?;
    say::note("the server has ended; its sandboxes run on, and the next one finds them again");
    Ok(Exit::Success)
}

fn is_ours(pid: i32) -> bool {
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments
        .split(|byte| *byte == 0)
        .any(|word| word == b"serve")
}
