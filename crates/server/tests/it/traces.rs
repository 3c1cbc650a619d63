//! Traces, as a collector gets them.

use std::{collections::BTreeMap, net::SocketAddr};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind},
};
use prost::Message as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing_subscriber::layer::SubscriberExt as _;
use zareba_server::{TraceSettings, Traces};

use crate::{
    fixture::{Site, run},
    http::Request,
};

/// What one request to a collector carried.
struct Export {
    head: String,
    content: ExportTraceServiceRequest,
}

/// A collector that takes everything.
struct Collector {
    address: SocketAddr,
    exports: mpsc::Receiver<Export>,
    task: JoinHandle<()>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, exports) = mpsc::channel(64);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                while let Some(export) = read(&mut stream).await {
                    let _ = sender.send(export).await;
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                    stream.write_all(answer).await.unwrap();
                }
            }
        });
        Self {
            address,
            exports,
            task,
        }
    }

    /// All spans that have come, once nobody sends any more.
    async fn spans(mut self) -> Vec<Span> {
        let mut spans = Vec::new();
        while let Ok(export) = self.exports.try_recv() {
            assert!(
                export.head.starts_with("POST /v1/traces HTTP/1.1\r\n"),
                "{}",
                export.head
            );
            let head = export.head.to_ascii_lowercase();
            assert!(
                head.contains("content-type: application/x-protobuf\r\n"),
                "{head}"
            );
            assert!(head.contains("x-team: red\r\n"), "{head}");
            for resource in export.content.resource_spans {
                let about = resource.resource.unwrap();
                assert_eq!(texts(&about.attributes)["service.name"], "tested");
                let scopes = resource.scope_spans.into_iter();
                spans.extend(scopes.flat_map(|scope| scope.spans));
            }
        }
        self.task.abort();
        spans
    }
}

async fn read(stream: &mut TcpStream) -> Option<Export> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let lower = head.to_ascii_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.unwrap().parse().unwrap();
    while bytes.len() < end + length {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
    }
    let content = ExportTraceServiceRequest::decode(&bytes[end..end + length]).unwrap();
    Some(Export { head, content })
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<&str, String> {
    let shown = |pair: &KeyValue| match pair.value.clone().and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = attributes.iter();
    pairs.map(|pair| (pair.key.as_str(), shown(pair))).collect()
}

/// Traces of this thread, which is the only one of a test.
fn begin(address: SocketAddr) -> (Traces, DefaultGuard) {
    let settings = TraceSettings {
        url: format!("http://{address}/v1/traces"),
        headers: Some("x-team=red".to_owned()),
        service: "tested".to_owned(),
    };
    let traces = Traces::start(&settings, &Handle::current()).unwrap();
    let guard = set_default(tracing_subscriber::registry().with(traces.layer()));
    (traces, guard)
}

#[tokio::test]
async fn a_request_its_action_and_its_sandbox_are_one_trace() {
    let collector = Collector::start().await;
    let (traces, guard) = begin(collector.address);
    let site = Site::start().await;
    let session = site.session().await;
    let path = format!("/v1/sessions/{session}/actions");
    let request = Request::post(&path, &run("echo secret-output"))
        .key(&site.admin)
        .header(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        );
    site.send(request).await.expect(200);
    let unsampled = Request::get("/v1/status").key(&site.admin).header(
        "traceparent",
        "00-11111111111111111111111111111111-2222222222222222-00",
    );
    site.send(unsampled).await.expect(200);
    let nonsense = Request::get("/v1/limits").key(&site.admin);
    let nonsense = nonsense.header("traceparent", "00-xyz");
    site.send(nonsense).await.expect(200);
    site.send(Request::get("/p/0123456789abcdef/x")).await;
    site.stop().await;
    spawn_blocking(|| traces.end()).await.unwrap();
    drop(guard);
    let spans = collector.spans().await;

    let trace = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    let ours: Vec<&Span> = spans.iter().filter(|span| span.trace_id == trace).collect();
    let named = |name: &str| *ours.iter().find(|span| span.name == name).unwrap();
    let request = named("request");
    let (conducted, sandbox) = (named("session.run"), named("sandbox"));
    assert_eq!(ours.len(), 3, "{ours:?}");
    assert_eq!(
        request.parent_span_id,
        0xb7ad_6b71_6920_3331_u64.to_be_bytes()
    );
    assert_eq!(conducted.parent_span_id, request.span_id);
    assert_eq!(sandbox.parent_span_id, conducted.span_id);
    assert_eq!(request.kind, i32::from(SpanKind::Server));
    let about = texts(&request.attributes);
    assert_eq!(about["http.route"], "/v1/sessions/{session}/actions");
    assert_eq!(about["http.request.method"], "POST");
    assert_eq!(about["http.response.status_code"], "200");
    let about = texts(&conducted.attributes);
    assert_eq!(
        (about["session"].as_str(), about["action"].as_str()),
        (session.as_str(), "run")
    );
    assert_eq!(texts(&sandbox.attributes)["runtime"], "cli");

    // Whoever has decided that it is not traced is believed; what is no parent is none.
    let on = |route: &str| {
        let mut all = spans.iter();
        all.find(|span| {
            texts(&span.attributes)
                .get("http.route")
                .is_some_and(|it| it == route)
        })
    };
    assert_eq!(on("/v1/status"), None);
    let alone = on("/v1/limits").unwrap();
    assert!(alone.parent_span_id.is_empty());
    // What was said and what opens shared ports is nobody's business.
    let all = format!("{spans:?}");
    assert!(
        !all.contains("secret-output") && !all.contains("0123456789abcdef"),
        "{all}"
    );
}

/// Nothing waits for a collector.
#[tokio::test]
async fn a_collector_that_is_away_holds_nothing_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // It takes connections and never answers.
    let (traces, guard) = begin(address);
    let site = Site::start().await;
    let started = std::time::Instant::now();
    for _ in 0..6000 {
        site.send(Request::get("/v1/health")).await.expect(200);
    }
    let session = site.session().await;
    site.run(&session, "true").await;
    drop(guard);
    site.stop().await;
    spawn_blocking(|| traces.end()).await.unwrap();
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
    drop(listener);
}
