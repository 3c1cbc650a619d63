//! [`Traces`]: what requests do, for OpenTelemetry, sent as OTLP over HTTP (`http/protobuf`).
//!
//! The spans are `tracing`'s and exist whether or not anybody collects them: `request` here,
//! `session.run` and `sandbox` in the session. Nothing of this module runs unless [`Traces`] was
//! started and its layer installed. Spans that have ended go into a bounded queue, and a thread of
//! the exporter sends them; when the queue is full they are dropped, so that a collector that is
//! slow or away never holds anything up.

mod courier;

use std::{collections::HashMap, time::Duration};

use http::HeaderMap;
use opentelemetry::{
    Context, KeyValue, propagation::TextMapPropagator as _, trace::TracerProvider,
};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use tokio::runtime::Handle;
use tracing::{Level, Metadata, Span, Subscriber, level_filters::LevelFilter};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use courier::Courier;

/// Spans that wait to be sent; further ones are dropped.
const WAITING_MAX: usize = 4096;
/// Spans that are sent at once.
const BATCH_MAX: usize = 512;
/// How often spans are sent.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long the last ones may take when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Where traces go.
#[derive(Clone)]
pub struct TraceSettings {
    /// The address that takes them, such as `http://localhost:4318/v1/traces`.
    pub url: String,
    /// Headers for it, as `name=value` with commas between them. They may be secrets.
    pub headers: Option<String>,
    /// What the server is called in traces.
    pub service: String,
}

impl std::fmt::Debug for TraceSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TraceSettings")
            .field("url", &self.url)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// Why there can be no traces.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The address is none.
    #[error(
        "`{url}` cannot be the address of a collector; use one such as `http://localhost:4318`"
    )]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it, when somebody knows.
        source: Option<ExporterBuildError>,
    },
    /// The headers are none. They may be secrets and are not repeated.
    #[error("header {number} for the collector is not of the form `name=value`")]
    Header {
        /// Which one, counted from 1.
        number: usize,
    },
    /// There is no HTTP client to be had.
    #[error("cannot prepare requests to the collector")]
    Client(#[source] reqwest::Error),
}

/// Sends spans to a collector until it is ended.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Prepares to send spans. Requests are made on `runtime`, which must live longer.
    ///
    /// # Errors
    /// When the address or the headers are none.
    pub fn start(settings: &TraceSettings, runtime: &Handle) -> Result<Self, TraceError> {
        let refused = |source| TraceError::Address {
            url: settings.url.clone(),
            source,
        };
        if !["http://", "https://"]
            .iter()
            .any(|scheme| settings.url.starts_with(scheme))
        {
            return Err(refused(None));
        }
        let courier = Courier::new(runtime.clone()).map_err(TraceError::Client)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(courier)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&settings.url)
            .with_headers(headers(settings.headers.as_deref())?)
            .build()
            .map_err(|error| refused(Some(error)))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(WAITING_MAX)
            .with_max_export_batch_size(BATCH_MAX)
            .with_scheduled_delay(INTERVAL)
            .build();
        let processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(batches)
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            // Whoever has decided already that a request is not traced is believed.
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_resource(resource(&settings.service))
            .build();
        Ok(Self { provider })
    }

    /// What makes OpenTelemetry's spans of ours; to be installed beside the log.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        OpenTelemetryLayer::new(self.provider.tracer("zareba"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_filter(filter_fn(is_station).with_max_level_hint(LevelFilter::INFO))
    }

    /// Sends what waits, and ends. Blocks for a few seconds at the most.
    pub fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_WORDS) {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// Whether something is a station on the path of a request. Events stay in the log.
fn is_station(metadata: &Metadata<'_>) -> bool {
    metadata.is_span()
        && *metadata.level() <= Level::INFO
        && metadata.target().starts_with("zareba_")
}

fn resource(service: &str) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    Resource::builder_empty()
        .with_service_name(service.to_owned())
        .with_attribute(version)
        .build()
}

fn headers(text: Option<&str>) -> Result<HashMap<String, String>, TraceError> {
    let pairs = text.into_iter().flat_map(|text| text.split(','));
    let pairs = pairs.map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .enumerate()
        .map(|(index, pair)| match pair.split_once('=') {
            Some((name, value)) if http::HeaderName::try_from(name.trim()).is_ok() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(TraceError::Header { number: index + 1 }),
        })
        .collect()
}

/// Whether anybody collects a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    Yes,
    No,
}

/// Puts the span of a request into the trace that its client has begun, if it did (`traceparent`).
/// The span must not have been entered.
pub(crate) fn join(span: &Span, headers: &HeaderMap) -> Collected {
    if span.is_disabled() {
        return Collected::No;
    }
    let nowhere = Context::new();
    let sender = HeaderExtractor(headers);
    let parent = TraceContextPropagator::new().extract_with_context(&nowhere, &sender);
    match span.set_parent(parent) {
        Ok(()) => Collected::Yes,
        Err(_) => Collected::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(url: &str, headers: Option<&str>) -> Result<Traces, TraceError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let settings = TraceSettings {
            url: url.to_owned(),
            headers: headers.map(str::to_owned),
            service: "zareba".to_owned(),
        };
        Traces::start(&settings, runtime.unwrap().handle())
    }

    #[test]
    fn what_cannot_be_sent_to_is_refused_at_the_start() {
        for url in ["", "localhost:4318", "grpc://localhost:4317", "http://"] {
            let error = start(url, None).unwrap_err();
            assert!(error.to_string().contains(&format!("`{url}`")), "{error}");
        }
        let error = start("http://localhost/v1/traces", Some("a=b,hunter2")).unwrap_err();
        assert!(matches!(error, TraceError::Header { number: 2 }), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn headers_are_pairs_with_commas_between_them() {
        let pairs = headers(Some(" Authorization=Basic a=b , x-team = red,")).unwrap();
        let expected = [("Authorization", "Basic a=b"), ("x-team", "red")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(pairs, HashMap::from(expected));
        assert_eq!(headers(None).unwrap(), HashMap::new());
    }
}
