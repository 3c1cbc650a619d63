//! The sections of the server: where it listens, what sessions may use, where events are kept.

use std::{path::PathBuf, time::Duration};

use super::rules;
use crate::key::section;
use crate::secret::Secret;
use crate::setting::{Processors, Size, choice};

choice! {
    /// What happens to a session that nobody uses.
    WhenIdle {
        /// It is paused, and wakes when something is asked of it.
        Pause = "pause",
        /// It is closed.
        Close = "close",
        /// Nothing.
        Stay = "stay",
    }
}

choice! {
    /// Hosts that a session may ask for.
    NetworkRules {
        /// Those that the operator's own list lets through.
        Configured = "configured",
        /// Whatever a rule can name, private addresses as well.
        Any = "any",
    }
}

choice! {
    /// What an acknowledged event survives.
    LogDurability {
        /// The end of the server.
        Process = "process",
        /// The end of the machine, too.
        Disk = "disk",
    }
}

choice! {
    /// What OpenHands' clients get that name an image which is not there.
    UnknownImages {
        /// An error that names it.
        Refuse = "refuse",
        /// A sandbox with the files of this machine.
        ThisMachine = "this-machine",
    }
}

section! {
    /// The server that many agents share.
    ServerSettings at server named "server" {
        /// Where it listens: an address with a port, or `unix:` and a path. Addresses beyond this
        /// machine need a certificate, or `server.behind_tls_proxy`.
        listen: String = "127.0.0.1:7070".to_owned();
        /// The address that clients use, when that is another one: it stands in the links that the
        /// server hands out.
        public_url: Option<String> = None;
        /// The file with the certificate and those above it, in PEM form.
        tls_certificate: Option<PathBuf> = None;
        /// The file with the certificate's private key, in PEM form.
        tls_key: Option<PathBuf> = None;
        /// Something in front of the server does TLS, so that it may listen anywhere without.
        behind_tls_proxy: bool = false;
        /// Names besides its own under which the server may be asked.
        hosts: Vec<String> = Vec::new();
        /// Origins of web pages that may use the server, such as `https://agents.example.com`.
        origins: Vec<String> = Vec::new();
        /// The domain below which each port of a session gets a name of its own.
        preview_domain: String = "localhost".to_owned();
        /// What a client of OpenHands' remote runtime API gets that names an image which is not there: an
        /// error that names it, or a sandbox with the files of this machine. With the runtime `docker` the
        /// Engine is asked instead.
        openhands_unknown_image: UnknownImages = UnknownImages::Refuse;
        /// How long requests under way may go on when the server ends.
        drain: Duration = Duration::from_secs(10);
    }
}

section! {
    /// Sessions of the server.
    SessionSettings at sessions named "sessions" {
        /// How long nothing may be asked of a session.
        idle_timeout: Duration = Duration::from_secs(3600), check rules::positive;
        /// What happens then: it is paused until it is used again, it is closed, or nothing.
        when_idle: WhenIdle = WhenIdle::Pause;
        /// How long a session may live, used or not. Unset means for ever.
        life_max: Option<Duration> = None, check rules::positive_if_set;
        /// How many sessions there may be that are not closed.
        max: u32 = 1000;
        /// How many of those may belong to one holder of keys.
        owner_max: u32 = 200;
        /// Runtimes beside `runtime.kind` that a session may choose. `cli` and `local` do not
        /// isolate.
        runtimes: Vec<String> = Vec::new();
        /// Directories of this machine that a session may be given as its workspace, with all that
        /// is below them. None unless listed.
        workspaces: Vec<String> = Vec::new();
        /// The most memory that a session may ask for. Unset means what the runtime's own settings
        /// give; so it is for the following as well.
        memory_max: Option<Size> = None;
        /// The most processors that a session may ask for.
        cpus_max: Option<Processors> = None;
        /// The most processes and threads that a session may ask for.
        pids_max: Option<u32> = None;
        /// The most that a session may ask for its changes to files.
        disk_max: Option<Size> = None;
        /// Networks that a session may ask for beside the runtime's own and those that are stricter,
        /// such as `filtered`.
        networks: Vec<String> = Vec::new();
        /// Hosts that a session may ask for in a filtered network: those of `native.allow`, or any.
        network_rules: NetworkRules = NetworkRules::Configured;
    }
}

section! {
    /// The event log of the server.
    LogSettings at log named "log" {
        /// The PostgreSQL database that several servers share, as `postgresql://…`. Unset means
        /// one file in the state directory.
        database: Option<Secret> = None;
        /// What an acknowledged event survives: the end of the server, or the end of the machine.
        durability: LogDurability = LogDurability::Process;
        /// What one session may keep in it.
        session_bytes: Size = Size::gibibytes(1);
        /// How long the log of a closed session is kept. Unset means for ever.
        retention: Option<Duration> = None,
            absent "the log of a closed session is kept";
    }
}
