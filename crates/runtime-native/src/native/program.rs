//! What a sandbox runs: ourselves, as its executor.

use std::{
    ffi::OsString,
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{fs::PermissionsExt as _, net::UnixListener},
    },
    path::Path,
};

use rustix::pipe::{PipeFlags, pipe_with};

use zareba_executor::{DEFAULT_LOCALE, sets_locale};

use crate::{HomeTools, RunCommand};

use super::view::{HOME, STATE, USER, View, WORKSPACE};

/// Numbers of the executor's channels.
const LISTEN_FD: i32 = 3;
const KEY_FD: i32 = 4;

/// Where programs are inside.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the executor is started with.
pub(super) struct Invocation<'a> {
    /// Whose programs it is among.
    pub(super) view: &'a View,
    /// Its variables, and those of its shells.
    pub(super) environment: &'a [(OsString, OsString)],
    /// More arguments.
    pub(super) arguments: &'a [OsString],
    /// Programs in the user's home that it has beside them.
    pub(super) tools: Option<&'a HomeTools>,
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

/// The descriptors that an executor has inside.
pub(super) struct Channels {
    /// Those that it gets, with their numbers.
    pub(super) inside: Vec<(OwnedFd, i32)>,
    pub(super) key: KeyPipe,
}

impl Channels {
    /// It listens under a name outside, and has our own standard output to say on it that it is
    /// ready.
    pub(super) fn open(socket: &Path) -> io::Result<Self> {
        let _ = fs::remove_file(socket);
        let listener = UnixListener::bind(socket)?;
        fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
        let (key, write_key) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            inside: vec![(listener.into(), LISTEN_FD), (key, KEY_FD)],
            key: KeyPipe(write_key),
        })
    }
}

impl Invocation<'_> {
    /// Becomes the executor.
    pub(super) fn run(&self, executor: RunCommand) -> i32 {
        let environment: Vec<_> = self.environment().collect();
        // What was executed would have it; here it is for programs that are started without one.
        zareba_confine::replace_environment(&environment);
        executor(self.arguments(), environment)
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

    /// Programs of the machine come before those of the user's home.
    fn search_path(&self) -> OsString {
        let mut path = OsString::from(SEARCH_PATH);
        for directory in self.tools.into_iter().flat_map(|tools| &tools.search) {
            path.push(":");
            path.push(directory);
        }
        path
    }

    fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        // As for every shell; what the executor starts by itself has it from here.
        let locale = Some(DEFAULT_LOCALE).filter(|_| !sets_locale(self.environment));
        let tools = self.tools.into_iter().flat_map(HomeTools::variables);
        [("HOME", HOME)]
            .into_iter()
            .chain(locale)
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .chain([(OsString::from("PATH"), self.search_path())])
            .chain(tools.map(|(name, root)| (OsString::from(name), root.into())))
            .chain(self.environment.iter().cloned())
    }
}
