//! What is counted, and the text that Prometheus reads.
//!
//! The recorder belongs to one server and is not the process's: two servers in one process, as in
//! tests, count apart.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder as _, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use zareba_api::{LogStatus, PoolStatus, SessionCounts};

/// Upper ends of the buckets of durations, in seconds.
const DURATIONS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
];
/// Durations that may wait to be sorted into buckets.
const UNSORTED_MAX: u64 = 4096;

const REQUESTS: &str = "zareba_http_requests_total";
const REQUEST_SECONDS: &str = "zareba_http_request_seconds";
const WRONG_KEYS: &str = "zareba_wrong_keys_total";
const SESSIONS: &str = "zareba_sessions";
const ACTIONS: &str = "zareba_actions_total";
const EVENTS_SENT: &str = "zareba_events_sent_total";
const STREAMS: &str = "zareba_streams";
const LOG_DURABLE: &str = "zareba_log_durable";
const LOG_WAITING: &str = "zareba_log_waiting";
const POOL_READY: &str = "zareba_pool_ready";
const POOL_HITS: &str = "zareba_pool_hits";
const POOL_MISSES: &str = "zareba_pool_misses";
const PANICS: &str = "zareba_panics_total";

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

/// Counts. Cloning it gives another handle.
#[derive(Clone)]
pub(crate) struct Telemetry {
    shared: Arc<Shared>,
}

struct Shared {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    unsorted: AtomicU64,
}

impl Telemetry {
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        // Refused only when there are no buckets at all.
        let recorder = match builder.set_buckets(DURATIONS) {
            Ok(builder) => builder.build_recorder(),
            Err(_) => PrometheusBuilder::new().build_recorder(),
        };
        describe(&recorder);
        let handle = recorder.handle();
        let unsorted = AtomicU64::new(0);
        let shared = Shared {
            recorder,
            handle,
            unsorted,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn request(&self, method: &str, route: &'static str, status: u16, took: Duration) {
        let labels = vec![
            Label::new("method", method.to_owned()),
            Label::from_static_parts("route", route),
            Label::new("status", status.to_string()),
        ];
        self.count(Key::from_parts(REQUESTS, labels), 1);
        let key = Key::from_parts(
            REQUEST_SECONDS,
            vec![Label::from_static_parts("route", route)],
        );
        let histogram = self.shared.recorder.register_histogram(&key, &METADATA);
        histogram.record(took.as_secs_f64());
        // What is recorded is kept as it came until somebody sorts it.
        if self.shared.unsorted.fetch_add(1, Ordering::Relaxed) >= UNSORTED_MAX {
            self.shared.unsorted.store(0, Ordering::Relaxed);
            self.shared.handle.run_upkeep();
        }
    }

    pub(crate) fn wrong_key(&self) {
        self.count(Key::from_static_name(WRONG_KEYS), 1);
    }

    pub(crate) fn panic(&self) {
        self.count(Key::from_static_name(PANICS), 1);
    }

    /// Counts an action by how its request was answered.
    pub(crate) fn action(&self, outcome: &'static str) {
        let labels = vec![Label::from_static_parts("outcome", outcome)];
        self.count(Key::from_parts(ACTIONS, labels), 1);
    }

    pub(crate) fn events_sent(&self, events: u64) {
        self.count(Key::from_static_name(EVENTS_SENT), events);
    }

    /// Counts an open stream of a kind until what is returned is dropped.
    pub(crate) fn stream(&self, kind: &'static str) -> OpenStream {
        let key = Key::from_parts(STREAMS, vec![Label::from_static_parts("kind", kind)]);
        let gauge = self.shared.recorder.register_gauge(&key, &METADATA);
        gauge.increment(1.0);
        OpenStream(gauge)
    }

    /// Everything as text, with what is only known when asked for.
    pub(crate) fn render(
        &self,
        sessions: &SessionCounts,
        log: &LogStatus,
        pools: &BTreeMap<String, PoolStatus>,
    ) -> String {
        for (state, number) in [
            ("starting", sessions.starting),
            ("ready", sessions.ready),
            ("paused", sessions.paused),
            ("failed", sessions.failed),
            ("lost", sessions.lost),
            ("closed", sessions.closed),
        ] {
            let labels = vec![Label::from_static_parts("state", state)];
            self.set(Key::from_parts(SESSIONS, labels), number as f64);
        }
        self.set(
            Key::from_static_name(LOG_DURABLE),
            f64::from(u8::from(log.durable)),
        );
        self.set(Key::from_static_name(LOG_WAITING), log.waiting as f64);
        for (runtime, pool) in pools {
            for (name, number) in [
                (POOL_READY, pool.ready),
                (POOL_HITS, pool.hits),
                (POOL_MISSES, pool.misses),
            ] {
                let labels = vec![Label::new("runtime", runtime.clone())];
                self.set(Key::from_parts(name, labels), number as f64);
            }
        }
        self.shared.handle.render()
    }

    fn count(&self, key: Key, by: u64) {
        let counter = self.shared.recorder.register_counter(&key, &METADATA);
        counter.increment(by);
    }

    fn set(&self, key: Key, value: f64) {
        self.shared
            .recorder
            .register_gauge(&key, &METADATA)
            .set(value);
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

/// An open stream, counted until it is dropped.
pub(crate) struct OpenStream(metrics::Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

fn describe(recorder: &PrometheusRecorder) {
    let counter = |name, text: &'static str| {
        recorder.describe_counter(KeyName::from_const_str(name), None, text.into());
    };
    let gauge = |name, text: &'static str| {
        recorder.describe_gauge(KeyName::from_const_str(name), None, text.into());
    };
    counter(REQUESTS, "Requests by method, route and status.");
    counter(WRONG_KEYS, "Requests without a valid key.");
    counter(ACTIONS, "Actions by how their request was answered.");
    counter(EVENTS_SENT, "Events sent on streams.");
    counter(PANICS, "Requests whose handler panicked.");
    gauge(SESSIONS, "Sessions by state.");
    gauge(STREAMS, "Open streams by kind.");
    gauge(LOG_DURABLE, "1 when what is acknowledged is stored.");
    gauge(POOL_READY, "Sandboxes that wait for sessions, by runtime.");
    gauge(POOL_HITS, "Sessions that got one of those since the start.");
    gauge(POOL_MISSES, "Sessions whose sandbox had to be started.");
    gauge(LOG_WAITING, "Events that wait in memory to be stored.");
    recorder.describe_histogram(
        KeyName::from_const_str(REQUEST_SECONDS),
        Some(Unit::Seconds),
        "How long requests took by route, until the first byte of the answer.".into(),
    );
}
