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
        /// The address that clients use, if it is another: links of the server begin with it.
        public_url: Option<String> = None;
        /// The file with the certificate chain, in PEM form.
        tls_certificate: Option<PathBuf> = None;
        /// The file with the certificate's private key, in PEM form.
        tls_key: Option<PathBuf> = None;
        /// Listen anywhere without TLS, because a proxy in front of the server does it.
        behind_tls_proxy: bool = false;
        /// More host names that requests may use for the server.
        hosts: Vec<String> = Vec::new();
        /// Origins of web pages that may use the server, such as `https://agents.example.com`.
        origins: Vec<String> = Vec::new();
        /// The domain for ports of sessions: each gets a name below it.
        preview_domain: String = "localhost".to_owned();
        /// What a client of OpenHands' remote runtime API gets that names an image which is not there: an
        /// error that names it, or a sandbox with the files of this machine. With the runtime `docker` the
        /// Engine is asked instead.
        openhands_unknown_image: UnknownImages = UnknownImages::Refuse;
        /// How long running requests may take to finish when the server ends.
        drain: Duration = Duration::from_secs(10);
    }
}

section! {
    /// Sessions of the server.
    SessionSettings at sessions named "sessions" {
        /// How long a session may be without use before it is idle.
        idle_timeout: Duration = Duration::from_secs(3600), check rules::positive;
        /// What to do with an idle session: pause it until it is used again, close it, or nothing
        /// (`stay`).
        when_idle: WhenIdle = WhenIdle::Pause;
        /// How long a session may live, even if it is used. Unset means no limit.
        life_max: Option<Duration> = None, check rules::positive_if_set;
        /// The number of sessions that may be open.
        max: u32 = 1000;
        /// The number of sessions that one owner may have open.
        owner_max: u32 = 200;
        /// More runtimes that a session may choose, besides `runtime.kind`. `cli` and `local` do not
        /// isolate.
        runtimes: Vec<String> = Vec::new();
        /// Directories of this machine that a session may name as its workspace, and those below
        /// them.
        workspaces: Vec<String> = Vec::new();
        /// The most memory that a session may ask for. Unset means the runtime's own setting, also
        /// for the following keys.
        memory_max: Option<Size> = None;
        /// The most processors that a session may ask for.
        cpus_max: Option<Processors> = None;
        /// The most processes and threads that a session may ask for.
        pids_max: Option<u32> = None;
        /// The most that a session may ask for its changes to files.
        disk_max: Option<Size> = None;
        /// Networks that a session may ask for, such as `filtered`, besides that of the runtime's
        /// setting and stricter ones.
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
        /// What an acknowledged event survives: a crash of the server, or also one of the machine.
        durability: LogDurability = LogDurability::Process;
        /// The size of the log of one session.
        session_bytes: Size = Size::gibibytes(1);
        /// How long the log of a closed session is kept. Unset means no limit.
        retention: Option<Duration> = None,
            absent "the log of a closed session is kept";
    }
}
