//! Where to listen, and taking that socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use zareba_config::ExecutorSettings;
use zareba_wire::{
    Endpoint, SessionKey,
    server::{BindError, OpenAccess, Server, ServerLimits, ServerOptions},
};

use super::stopping::DRAIN;
use crate::{
    arguments::ExecutorArguments,
    exit::Exit,
    failure::{Failure, OrFail as _},
    handed_over, say,
};

/// Takes the socket that the command line means.
pub(super) fn bind(
    arguments: &ExecutorArguments,
    settings: &ExecutorSettings,
) -> Result<Server, Failure> {
    let session_key = session_key(arguments, settings)?;
    let open_access = if arguments.ours.allow_network_without_key {
        OpenAccess::Acknowledged
    } else {
        OpenAccess::LoopbackOnly
    };
    let limits = ServerLimits {
        drain: DRAIN,
        ..ServerLimits::default()
    };
    if let Some(number) = arguments.ours.supervised.listen_fd {
        let options = ServerOptions {
            session_key,
            open_access,
            limits,
        };
        let listener = handed_over::listener(number)?;
        return Server::adopt(listener, options).map_err(|error| refused(&error));
    }
    let is_strong = session_key.as_ref().is_some_and(SessionKey::is_strong);
    let guarded = is_strong || open_access == OpenAccess::Acknowledged;
    let endpoint = match (&arguments.ours.unix, arguments.port) {
        (Some(path), _) => Endpoint::Unix(path.clone()),
        (None, port) => {
            let usual = if guarded {
                Ipv4Addr::UNSPECIFIED
            } else {
                Ipv4Addr::LOCALHOST
            };
            let host = arguments.ours.host.unwrap_or(IpAddr::V4(usual));
            Endpoint::Tcp(SocketAddr::new(host, port.unwrap_or(0)))
        }
    };
    if !is_strong {
        say_who_may_come(&endpoint, session_key.as_ref(), open_access);
    }
    let options = ServerOptions {
        session_key,
        open_access,
        limits,
    };
    Server::bind(&endpoint, options).map_err(|error| refused(&error))
}

fn session_key(
    arguments: &ExecutorArguments,
    settings: &ExecutorSettings,
) -> Result<Option<SessionKey>, Failure> {
    let key = match arguments.ours.supervised.key_fd {
        Some(number) => Some(SessionKey::new(&handed_over::key(number)?)),
        None => settings
            .session_api_key
            .as_ref()
            .map(|key| SessionKey::new(key.expose())),
    };
    key.transpose()
        .or_fail(Exit::Configuration, "cannot use the session key")
}

/// Without a key that cannot be guessed it must be clear who can reach us.
fn say_who_may_come(endpoint: &Endpoint, key: Option<&SessionKey>, open_access: OpenAccess) {
    let fault = match key {
        None => "no SESSION_API_KEY is set",
        Some(_) => "SESSION_API_KEY has fewer than 32 bytes",
    };
    match (endpoint, open_access) {
        // The socket's owner is the only one who can open it.
        (Endpoint::Unix(_), _) => {}
        (Endpoint::Tcp(_), OpenAccess::LoopbackOnly) => {
            say::note(format_args!("{fault}, so only this machine is listened to"));
        }
        (Endpoint::Tcp(address), OpenAccess::Acknowledged) => say::warning(format_args!(
            "{fault}: whoever reaches {address} may run commands"
        )),
    }
}

fn refused(error: &BindError) -> Failure {
    let failure = Failure::of(Exit::Start, error);
    match error {
        BindError::OpenToNetwork { .. } => failure.hint(
            "set SESSION_API_KEY, or pass `--allow-network-without-key` where nobody else can \
             reach the port",
        ),
        BindError::WeakKey { .. } => failure.hint(
            "set SESSION_API_KEY to 32 random bytes or more, such as `openssl rand -hex 32` prints, \
             or pass `--host 127.0.0.1`",
        ),
        BindError::SocketInUse { .. } | BindError::Listen { .. } => {
            failure.hint("another program may be there already; choose another place")
        }
        _ => failure,
    }
}
