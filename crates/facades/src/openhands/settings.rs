//! What an operator decides about the facade.

use std::{fmt, num::NonZeroU8, sync::Arc, time::Duration};

use jiff::Timestamp;
use zareba_tools::Place;
use zareba_wire::{BoxFuture, server::ServerLimits, tool_servers::ToolServers};

use super::BuildService;

/// How long `/start` waits for a session to be ready before it answers that it is starting. The
/// client then asks every two seconds, which would be most of the time a start takes.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// The largest of the factors that OpenHands knows: 1, 2, 4 and 8.
const RESOURCE_FACTOR_MAX: NonZeroU8 = NonZeroU8::new(8).unwrap();

/// What an operator decides about the facade.
#[derive(Clone)]
pub struct OpenHandsSettings {
    /// Where clients reach the server, without a slash at the end; `None` is by the name under
    /// which each of them asked.
    pub public_url: Option<String>,
    /// How the server is reached when there is no `public_url`.
    pub scheme: Scheme,
    /// What is done when a client asks for an image that the catalogue does not have. OpenHands
    /// always asks for one.
    pub unknown_image: UnknownImage,
    /// The images that there are.
    pub images: Option<Arc<dyn ImageCatalog>>,
    /// Who runs the servers of tools that clients push; without one they are told that there are
    /// none.
    pub tools: Option<Arc<dyn ToolProxies>>,
    /// Who builds images; without one `/build` says that none are built.
    pub builder: Option<Arc<dyn BuildService>>,
    /// How many times the usual memory and processors a client may ask for (`resource_factor`).
    pub resource_factor_max: NonZeroU8,
    /// How long `/start` waits for a session to be ready before it answers that it is starting.
    pub start_patience: Duration,
    /// What a request to a session may use up.
    pub limits: ServerLimits,
}

impl Default for OpenHandsSettings {
    fn default() -> Self {
        Self {
            public_url: None,
            scheme: Scheme::Http,
            unknown_image: UnknownImage::SystemView,
            images: None,
            tools: None,
            builder: None,
            resource_factor_max: RESOURCE_FACTOR_MAX,
            start_patience: START_PATIENCE,
            limits: ServerLimits::default(),
        }
    }
}

impl fmt::Debug for OpenHandsSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenHandsSettings")
            .field("public_url", &self.public_url)
            .field("scheme", &self.scheme)
            .field("unknown_image", &self.unknown_image)
            .field("resource_factor_max", &self.resource_factor_max)
            .field("start_patience", &self.start_patience)
            .finish_non_exhaustive()
    }
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// What is done when a client asks for an image that the catalogue does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownImage {
    /// The session has the files that its runtime offers without an image, and `/start` says so.
    SystemView,
    /// The runtime is asked for it all the same, and may fetch it.
    AskRuntime,
    /// The client is told that there is no such image.
    Refuse,
}

/// Runs the servers of tools that clients push.
pub trait ToolProxies: Send + Sync {
    /// Those of one session, which run in its sandbox.
    fn make(&self, place: Arc<dyn Place>) -> Arc<dyn ToolServers>;
}

/// The images that there are.
pub trait ImageCatalog: Send + Sync {
    /// What is known of an image, if it is there.
    fn find<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Option<ImageFacts>>;
}

/// What is known of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFacts {
    /// Since when it is there.
    pub since: Timestamp,
    /// What it takes.
    pub bytes: u64,
}
