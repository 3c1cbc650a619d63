//! From settings to the parts of a server.

use std::{
    net::ToSocketAddrs as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use zareba_config::{
    LogDurability, NetworkRules, Processors, RuntimeKind, Settings, Size, UnknownImages, WhenIdle,
};
use zareba_eventlog::{Durability, EventLog, LogError, Options};
use zareba_facades::openhands::{Scheme, UnknownImage};
use zareba_runtime_docker::ImageBuilder;
use zareba_server::{Listen, OpenHandsSettings, ServerSettings, TlsFiles, Transport};
use zareba_session::{
    AllowAll, Home, HomeError, Idle, Permissions, PermittedRules, RequestMaxima, Runtimes, Secret,
    SessionsOptions,
};
use zareba_wire::Endpoint;

use super::{
    images::{EngineImages, StoredImages},
    tools::Pushed,
};
use crate::{
    commands::mcp,
    exit::Exit,
    failure::Failure,
    sandbox::{self, Backend, Place},
    say,
};

/// The log of a state directory.
pub(crate) fn log_file(state: &Path) -> PathBuf {
    state.join("events.db")
}

/// Opens the log that the settings name, to write to it.
pub(crate) async fn open_log(settings: &Settings, state: &Path) -> Result<EventLog, Failure> {
    open(settings, state).await.map_err(|error| {
        let failure = Failure::of(Exit::Start, &error);
        match error {
            LogError::InUse { .. } => {
                failure.hint("`zareba serve --stop` ends the server that uses it")
            }
            _ => failure,
        }
    })
}

/// The same, unless a server writes to it.
pub(crate) async fn open_log_if_free(
    settings: &Settings,
    state: &Path,
) -> Result<Option<EventLog>, Failure> {
    match open(settings, state).await {
        Ok(log) => Ok(Some(log)),
        Err(LogError::InUse { .. }) => Ok(None),
        Err(error) => Err(Failure::of(Exit::Start, &error)),
    }
}

async fn open(settings: &Settings, state: &Path) -> Result<EventLog, LogError> {
    let options = Options {
        durability: match settings.log.durability {
            LogDurability::Process => Durability::Process,
            LogDurability::Disk => Durability::Disk,
        },
        session_bytes_max: Some(settings.log.session_bytes.bytes()),
    };
    match &settings.log.database {
        Some(url) => EventLog::open_database_with(url.expose(), options).await,
        None => EventLog::open_file_with(&log_file(state), options).await,
    }
}

/// Takes a state directory for one server alone.
pub(super) async fn open_home(state: &Path) -> Result<Home, Failure> {
    Home::open(state).await.map_err(|error| {
        let failure = Failure::of(Exit::Start, &error);
        match error {
            HomeError::InUse { .. } => {
                failure.hint("`zareba serve --stop` ends the server that uses it")
            }
            _ => failure,
        }
    })
}

/// The runtimes of a server, and those who keep sandboxes ready in them.
pub(super) struct Backends(Vec<(String, Backend)>);

impl Backends {
    /// Those that sessions may choose from, with what ended sandboxes have left cleaned away.
    pub(super) async fn start(place: &Place<'_>, settings: &Settings) -> Result<Self, Failure> {
        let mut backends = Vec::new();
        for kind in kinds(settings)? {
            let backend = place.pooled(kind)?;
            let removed = backend
                .reap()
                .await
                .map_err(|error| sandbox::failure(&error))?;
            if removed > 0 {
                say::note(format_args!(
                    "removed what {removed} ended sandboxes had left"
                ));
            }
            backends.push((kind.as_str().to_owned(), backend));
        }
        Ok(Self(backends))
    }

    /// Starts sandboxes for sessions to come, while the server answers already.
    pub(super) fn warm_up(&self) {
        for (name, backend) in &self.0 {
            let (name, backend) = (name.clone(), backend.clone());
            tokio::spawn(async move {
                if let Err(error) = backend.warm_up().await {
                    tracing::warn!(runtime = name, %error, "cannot start sandboxes ahead");
                }
            });
        }
    }

    /// Who builds images for the sessions of a runtime, if it can use any.
    fn image_builder(&self, kind: RuntimeKind) -> Option<ImageBuilder> {
        let named = self.0.iter().find(|(name, _)| name == kind.as_str());
        match named {
            Some((_, Backend::Docker(runtime))) => Some(runtime.image_builder()),
            _ => None,
        }
    }

    fn runtimes(&self) -> Runtimes {
        let each = self.0.iter();
        each.map(|(name, backend)| (name.clone(), backend.shared()))
            .collect()
    }

    /// Lets go of what is kept ready.
    pub(super) async fn end(&self) {
        for (_, backend) in &self.0 {
            backend.cool_down().await;
        }
    }
}

/// The runtime of the settings and those that are listed beside it. What does not isolate is
/// offered to nobody unless the operator says so.
fn kinds(settings: &Settings) -> Result<Vec<RuntimeKind>, Failure> {
    let mut kinds = vec![settings.runtime.kind];
    for name in &settings.sessions.runtimes {
        let kind = RuntimeKind::named(name).ok_or_else(|| {
            Failure::new(
                Exit::Configuration,
                format!("`sessions.runtimes` names `{name}`, which is no runtime"),
            )
        })?;
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// What all sessions have in common.
pub(super) fn sessions_options(settings: &Settings, backends: &Backends) -> SessionsOptions {
    SessionsOptions {
        runtimes: backends.runtimes(),
        default_runtime: settings.runtime.kind.as_str().to_owned(),
        guard: Arc::new(AllowAll),
        idle_timeout: settings.sessions.idle_timeout,
        when_idle: match settings.sessions.when_idle {
            WhenIdle::Pause => Idle::Pause,
            WhenIdle::Close => Idle::Close,
            WhenIdle::Stay => Idle::Stay,
        },
        life_max: settings.sessions.life_max,
        no_change_timeout: settings.shell.no_change_timeout,
        timeout: settings.shell.timeout,
        sessions_max: settings.sessions.max as usize,
        owner_sessions_max: settings.sessions.owner_max as usize,
        workspaces: settings
            .sessions
            .workspaces
            .iter()
            .map(PathBuf::from)
            .collect(),
        permissions: permissions(settings),
        hidden: mcp::secrets(&settings.mcp).map(Secret).collect(),
    }
}

/// What clients may ask of a sandbox beyond what the runtime's own settings give.
fn permissions(settings: &Settings) -> Permissions {
    let given = &settings.sessions;
    Permissions {
        maxima: RequestMaxima {
            memory_bytes: given.memory_max.map(Size::bytes),
            cpu_millis: given.cpus_max.map(Processors::millis),
            pids: given.pids_max,
            disk_bytes: given.disk_max.map(Size::bytes),
        },
        networks: given.networks.clone(),
        rules: match given.network_rules {
            NetworkRules::Configured => PermittedRules::Configured,
            NetworkRules::Any => PermittedRules::Any,
        },
    }
}

/// Where it listens, and whom it answers.
pub(super) fn server_settings(settings: &Settings) -> Result<ServerSettings, Failure> {
    let given = &settings.server;
    let mut made = ServerSettings::new(listen(settings)?);
    made.allowed_hosts = given.hosts.clone();
    made.allowed_hosts
        .extend(given.public_url.as_deref().and_then(host_of));
    made.allowed_origins = given.origins.clone();
    made.preview_domain = given.preview_domain.clone();
    made.limits.drain = given.drain;
    Ok(made)
}

fn listen(settings: &Settings) -> Result<Listen, Failure> {
    let given = &settings.server;
    if let Some(path) = given.listen.strip_prefix("unix:") {
        return Ok(Listen::Unix(PathBuf::from(path)));
    }
    let mistake = |reason: String| {
        Failure::new(
            Exit::Configuration,
            format!("`server.listen` cannot be `{}`: {reason}", given.listen),
        )
        .hint("use an address with a port, such as `127.0.0.1:7070`, or `unix:` and a path")
    };
    let mut addresses = given
        .listen
        .to_socket_addrs()
        .map_err(|error| mistake(error.to_string()))?;
    let address = addresses
        .next()
        .ok_or_else(|| mistake("it names no address".to_owned()))?;
    let transport = match (&given.tls_certificate, &given.tls_key) {
        (Some(certificates), Some(key)) => Transport::Tls(TlsFiles {
            certificates: certificates.clone(),
            key: key.clone(),
        }),
        (None, None) if given.behind_tls_proxy => Transport::BehindTlsProxy,
        (None, None) => Transport::Plain,
        _ => {
            let message =
                "`server.tls_certificate` and `server.tls_key` go together, and one is missing";
            return Err(Failure::new(Exit::Configuration, message));
        }
    };
    Ok(Listen::Tcp { address, transport })
}

/// What OpenHands' clients are told.
pub(super) fn openhands_settings(
    place: &Place<'_>,
    settings: &Settings,
    backends: &Backends,
) -> OpenHandsSettings {
    // Their sessions run where all do that name no runtime.
    let kind = settings.runtime.kind;
    let images = backends.image_builder(kind);
    let images = images.map(|builder| Arc::new(EngineImages(builder)));
    let imported = (kind == RuntimeKind::Native).then(|| Arc::new(StoredImages(place.images())));
    // What is built must have a name that sessions may use, and somebody must have said so.
    let may_build = settings.docker.build && settings.docker.allowed_images.is_some();
    OpenHandsSettings {
        // Whoever names an image for a container gets it or an error, and never another one.
        unknown_image: match images {
            Some(_) => UnknownImage::AskRuntime,
            None => match settings.server.openhands_unknown_image {
                UnknownImages::Refuse if imported.is_some() => UnknownImage::Refuse,
                // A runtime without walls has no images at all, and OpenHands names one with each request.
                UnknownImages::Refuse | UnknownImages::ThisMachine => UnknownImage::SystemView,
            },
        },
        tools: Some(Arc::new(Pushed)),
        builder: images.clone().filter(|_| may_build).map(|it| it as _),
        images: images
            .map(|it| it as _)
            .or_else(|| imported.map(|it| it as _)),
        public_url: settings.server.public_url.clone(),
        scheme: match settings.server.tls_certificate {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        },
        ..OpenHandsSettings::default()
    }
}

/// The name and port of a URL.
fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    (!host.is_empty()).then(|| host.to_owned())
}

/// The address that clients on this machine use.
pub(super) fn url(settings: &Settings, endpoint: &Endpoint) -> String {
    if let Some(url) = &settings.server.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let scheme = match settings.server.tls_certificate {
        Some(_) => "https",
        None => "http",
    };
    match endpoint {
        Endpoint::Tcp(address) if address.ip().is_unspecified() => {
            format!("{scheme}://localhost:{}", address.port())
        }
        Endpoint::Tcp(address) => format!("{scheme}://{address}"),
        Endpoint::Unix(path) => format!("unix:{}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host() {
        assert_eq!(
            host_of("https://a.example:8443/x"),
            Some("a.example:8443".to_owned())
        );
        assert_eq!(host_of("a.example"), None);
        assert_eq!(host_of("https:///x"), None);
    }
}
