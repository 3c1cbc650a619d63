//! What is counted.

use std::collections::BTreeMap;

use crate::{fixture::Site, http::Request};

/// Reads the text format: every sample with its labels, every name described.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let kind = comment.split(' ').next().unwrap();
            assert!(["HELP", "TYPE"].contains(&kind), "{line}");
        } else if !line.is_empty() {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert_eq!(samples.insert(name.to_owned(), value), None, "{line}");
        }
    }
    samples
}

#[tokio::test]
async fn requests_sessions_and_actions_are_counted() {
    let site = Site::start().await;
    let session = site.session().await;
    site.run(&session, "true").await;
    site.run(&session, "false").await;
    site.send(Request::get("/v1/status").key("zrb_wrong")).await;
    site.get("/v1/sessions/none").await.error(404);
    let answer = site.get("/metrics").await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4")
    );
    let text = answer.text();
    let samples = parse(&text);
    for (name, expected) in [
        ("zareba_sessions{state=\"ready\"}", 1.0),
        ("zareba_sessions{state=\"closed\"}", 0.0),
        ("zareba_actions_total{outcome=\"answered\"}", 2.0),
        ("zareba_wrong_keys_total", 1.0),
        ("zareba_log_durable", 1.0),
        (
            "zareba_http_requests_total{method=\"POST\",\
             route=\"/v1/sessions/{session}/actions\",status=\"200\"}",
            2.0,
        ),
        (
            "zareba_http_requests_total{method=\"GET\",\
             route=\"/v1/sessions/{session}\",status=\"404\"}",
            1.0,
        ),
        (
            "zareba_http_request_seconds_count{route=\"/v1/sessions/{session}/actions\"}",
            2.0,
        ),
    ] {
        assert_eq!(samples.get(name), Some(&expected), "{name} in {text}");
    }
    site.stop().await;
}
