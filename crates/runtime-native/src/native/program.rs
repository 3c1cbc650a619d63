//! The program that a sandbox runs: ourselves, as its executor.

use std::{
    ffi::{CString, OsString},
    fs::{self, File},
    io,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStringExt as _, fs::PermissionsExt as _, net::UnixListener},
    },
    path::Path,
};

use rustix::pipe::{PipeFlags, pipe_with};
use zareba_confine::Program;

use super::view::{HOME, STATE, USER, View, WORKSPACE};

/// Numbers of the executor's channels.
const LISTEN_FD: i32 = 3;
const KEY_FD: i32 = 4;

/// Where programs are inside.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the executor is started with.
pub(super) struct Invocation<'a> {
    /// Where it is reached.
    pub(super) socket: &'a Path,
    /// Whose programs it is among.
    pub(super) view: &'a View,
    /// Its variables, and those of its shells.
    pub(super) environment: &'a [(OsString, OsString)],
    /// More arguments.
    pub(super) arguments: &'a [OsString],
}

/// The executor's key, which it waits for before it does anything.
#[derive(Debug)]
pub(super) struct KeyPipe(OwnedFd);

impl KeyPipe {
    /// Lets the executor begin.
    pub(super) fn send(self, key: &str) -> io::Result<()> {
        rustix::io::write(&self.0, key.as_bytes())?;
        Ok(())
    }
}

impl Invocation<'_> {
    /// Our own program, as the executor inside. It listens under a name outside, and has our own
    /// standard output to say on it that it is ready.
    pub(super) fn program(&self) -> io::Result<(Program, KeyPipe)> {
        let executable = File::open("/proc/self/exe")?;
        let _ = fs::remove_file(self.socket);
        let listener = UnixListener::bind(self.socket)?;
        fs::set_permissions(self.socket, fs::Permissions::from_mode(0o600))?;
        let (key, write_key) = pipe_with(PipeFlags::CLOEXEC)?;
        let program = Program {
            executable: executable.into(),
            arguments: c_strings(self.arguments())?,
            environment: c_strings(self.environment())?,
            directory: WORKSPACE.into(),
            descriptors: vec![(listener.into(), LISTEN_FD), (key, KEY_FD)],
        };
        Ok((program, KeyPipe(write_key)))
    }

    fn arguments(&self) -> Vec<OsString> {
        let listen = LISTEN_FD.to_string();
        let key = KEY_FD.to_string();
        let user = match self.view {
            View::Machine { .. } => USER,
            View::Image { .. } => "root",
        };
        let mut arguments: Vec<OsString> = [
            "zareba",
            "executor",
            "--working-dir",
            WORKSPACE,
            "--no-enable-browser",
            "--listen-fd",
            &listen,
            "--key-fd",
            &key,
            "--ready-fd",
            "1",
            "--username",
            user,
            "--state-dir",
            STATE,
        ]
        .map(OsString::from)
        .to_vec();
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }

    fn environment(&self) -> impl Iterator<Item = OsString> {
        [("PATH", SEARCH_PATH), ("HOME", HOME), ("LANG", "C.UTF-8")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into_iter()
            .chain(self.environment.iter().cloned())
            .map(|(mut name, value)| {
                name.push("=");
                name.push(value);
                name
            })
    }
}

fn c_strings(strings: impl IntoIterator<Item = OsString>) -> io::Result<Vec<CString>> {
    strings
        .into_iter()
        .map(|string| Ok(CString::new(string.into_vec())?))
        .collect()
}
