//! Where the Engine is, found out as the docker command does.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The place of an Engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineAddress {
    /// A Unix socket of this machine.
    Unix(PathBuf),
    /// A TCP address.
    Tcp {
        /// Host and port.
        address: String,
        /// How both ends know each other; `None` is a connection that anybody can read.
        tls: Option<TlsFiles>,
    },
    /// A machine that `ssh` reaches, and whose docker command reaches the Engine.
    Ssh(SshHost),
}

/// A machine that `ssh` reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshHost {
    /// Who to be there; `None` leaves it to the configuration of `ssh`.
    pub user: Option<String>,
    /// Its name or address, or what the configuration of `ssh` calls it.
    pub host: String,
    /// Where it listens; `None` leaves it to the configuration of `ssh`.
    pub port: Option<u16>,
    /// The Engine's socket there; `None` is the one that its docker command takes.
    pub socket: Option<String>,
}

/// Whether an Engine sees the files of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnginePlace {
    /// It does: directories can be mounted.
    ThisMachine,
    /// It does not: what a container needs is sent to it.
    Elsewhere,
}

/// The files of a TLS connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Who may say that the Engine is the Engine.
    pub authority: PathBuf,
    /// Our certificate.
    pub certificate: PathBuf,
    /// Our key.
    pub key: PathBuf,
}

/// What tells where the Engine is, in the words of the docker command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSources {
    /// `DOCKER_HOST`, or a setting of ours; goes before a context.
    pub host: Option<String>,
    /// `DOCKER_CONTEXT`.
    pub context: Option<String>,
    /// `DOCKER_CONFIG`, usually `~/.docker`.
    pub config_dir: PathBuf,
    /// `DOCKER_TLS_VERIFY` is set.
    pub tls_verify: bool,
    /// `DOCKER_CERT_PATH`.
    pub cert_path: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`, where the sockets of rootless Engines are.
    pub runtime_dir: Option<PathBuf>,
}

/// Why it is not known where the Engine is.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The host is not written like one.
    #[error(
        "`{host}` is no address of an Engine: write `unix:///PATH`, `tcp://HOST:PORT` or \
         `ssh://USER@HOST`"
    )]
    Syntax {
        /// What was written.
        host: String,
    },
    /// We cannot go that way.
    #[error(
        "the Engine at `{host}` cannot be used: {scheme} is not supported; \
         forward its socket to this machine and name that"
    )]
    Unsupported {
        /// What was written.
        host: String,
        /// The way.
        scheme: &'static str,
    },
    /// There is no such context.
    #[error("cannot read the Docker context `{context}` in `{file}`", file = file.display())]
    Context {
        /// Which.
        context: String,
        /// Where it should be.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

const DEFAULT_SOCKET: &str = "/var/run/docker.sock";
const PODMAN_SOCKET: &str = "/run/podman/podman.sock";

/// A context's document is far smaller; whatever is larger is none.
const DOCUMENT_BYTES_MAX: u64 = 1024 * 1024;

impl EngineAddress {
    /// Finds out where the Engine is: the host, the context, the configured context, and then the
    /// sockets where an Engine usually is, Docker's before Podman's.
    ///
    /// # Errors
    /// When what was said makes no sense, or names a context that is not there.
    pub fn resolve(sources: &EngineSources) -> Result<Self, AddressError> {
        if let Some(host) = sources.host.as_deref().filter(|host| !host.is_empty()) {
            let tls = sources.tls_verify.then(|| {
                let directory = sources.cert_path.as_deref();
                TlsFiles::in_directory(directory.unwrap_or(&sources.config_dir))
            });
            return Self::parse(host, tls);
        }
        let chosen = sources.context.clone().filter(|name| !name.is_empty());
        let context = chosen.or_else(|| current_context(&sources.config_dir));
        match context.filter(|name| name != "default") {
            Some(context) => Self::of_context(&sources.config_dir, &context),
            None => {
                let usual = usual_sockets(sources.runtime_dir.as_deref());
                Ok(Self::Unix(first_there(usual)))
            }
        }
    }

    /// Where an Engine with this address usually is: one behind a socket is here.
    pub fn usual_place(&self) -> EnginePlace {
        match self {
            Self::Unix(_) => EnginePlace::ThisMachine,
            Self::Tcp { .. } | Self::Ssh(_) => EnginePlace::Elsewhere,
        }
    }

    /// The socket, when it is one.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tcp { .. } | Self::Ssh(_) => None,
        }
    }

    fn parse(host: &str, tls: Option<TlsFiles>) -> Result<Self, AddressError> {
        let unsupported = |scheme| {
            let host = host.to_owned();
            Err(AddressError::Unsupported { host, scheme })
        };
        let wrong = || AddressError::Syntax {
            host: host.to_owned(),
        };
        let (scheme, rest) = host.split_once("://").ok_or_else(wrong)?;
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(PathBuf::from(rest))),
            // Without keys it would be neither safe nor what was meant.
            "https" if tls.is_none() => Err(wrong()),
            "tcp" | "http" | "https" if is_host_and_port(rest) => Ok(Self::Tcp {
                address: rest.trim_end_matches('/').to_owned(),
                tls,
            }),
            "ssh" => SshHost::parse(rest).map(Self::Ssh).ok_or_else(wrong),
            "npipe" => unsupported("a named pipe"),
            "fd" => unsupported("a descriptor"),
            _ => Err(wrong()),
        }
    }

    fn of_context(config_dir: &Path, context: &str) -> Result<Self, AddressError> {
        let digest: String = Sha256::digest(context.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let contexts = config_dir.join("contexts");
        let file = contexts.join("meta").join(&digest).join("meta.json");
        let missing = |source| AddressError::Context {
            context: context.to_owned(),
            file: file.clone(),
            source,
        };
        let document = read_document(&file).map_err(missing)?;
        let host = document.pointer("/Endpoints/docker/Host");
        let host = host.and_then(Value::as_str).ok_or_else(|| {
            let problem = "it names no endpoint `docker`";
            missing(io::Error::new(io::ErrorKind::InvalidData, problem))
        })?;
        let tls = contexts.join("tls").join(&digest).join("docker");
        let tls = tls.is_dir().then(|| TlsFiles::in_directory(&tls));
        Self::parse(host, tls)
    }
}

impl SshHost {
    /// Reads `[USER@]HOST[:PORT][/SOCKET]`. What `ssh` or the shell at the other end would take for
    /// anything but a name is refused.
    fn parse(text: &str) -> Option<Self> {
        let (authority, socket) = match text.find('/') {
            Some(at) => (&text[..at], &text[at..]),
            None => (text, ""),
        };
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|it| it.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let is_name = |name: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
            !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
        };
        let is_path = |path: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
            path.chars().all(is_plain)
        };
        let socket = socket.trim_end_matches('/');
        let is_sound = is_name(host) && user.is_none_or(is_name) && is_path(socket);
        let port = port.map(str::parse).transpose().ok()?;
        is_sound.then(|| Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
            socket: (!socket.is_empty()).then(|| socket.to_owned()),
        })
    }
}

impl TlsFiles {
    /// Under the names that the docker command uses.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            authority: directory.join("ca.pem"),
            certificate: directory.join("cert.pem"),
            key: directory.join("key.pem"),
        }
    }
}

fn is_host_and_port(text: &str) -> bool {
    let text = text.trim_end_matches('/');
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
}

fn current_context(config_dir: &Path) -> Option<String> {
    let document = read_document(&config_dir.join("config.json")).ok()?;
    Some(document.get("currentContext")?.as_str()?.to_owned())
}

/// Where an Engine usually is; the first is the one that is named when none is there.
fn usual_sockets(runtime_dir: Option<&Path>) -> Vec<PathBuf> {
    let rootless = |name: &str| Some(runtime_dir?.join(name));
    let sockets = [
        Some(PathBuf::from(DEFAULT_SOCKET)),
        rootless("docker.sock"),
        rootless("podman/podman.sock"),
        Some(PathBuf::from(PODMAN_SOCKET)),
    ];
    sockets.into_iter().flatten().collect()
}

fn first_there(paths: Vec<PathBuf>) -> PathBuf {
    let found = paths.iter().find(|path| path.exists()).cloned();
    found
        .or_else(|| paths.into_iter().next())
        .unwrap_or_default()
}

fn read_document(path: &Path) -> io::Result<Value> {
    if fs::metadata(path)?.len() > DOCUMENT_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
