//! Commands as tools: arguments are words and variables, and never text of a shell.

use std::sync::Arc;

use serde_json::{Value, json};
use zareba_tools::{Call, CommandTool, CommandToolSpec, Registry, ToolError};

use crate::fixture::{Bench, named, returned, value};

fn spec(document: Value) -> CommandToolSpec {
    serde_json::from_value(document).unwrap()
}

fn registry(bench: &Bench, document: Value) -> Registry {
    let registry = Registry::new();
    let tool = CommandTool::new(bench.place(), spec(document)).unwrap();
    registry.add(Arc::new(tool)).unwrap();
    registry
}

const HOSTILE: &str = "'; touch escaped; \"$(touch escaped)` touch escaped` -rf";

#[tokio::test]
async fn arguments_are_words_of_their_own() {
    let bench = Bench::new().await;
    let registry = registry(
        &bench,
        json!({
            "name": "show",
            "description": "Shows words.",
            "argv": ["printf", "%s|", "{first}", "--", "{second}", "{other}"],
            "parameters": [
                {"name": "first", "description": "Any text."},
                {"name": "second", "optional": true, "schema": {"type": "integer"}},
            ],
        }),
    );
    let both = json!({"first": HOSTILE, "second": 5});
    let shown = value(&registry, "show", both).await;
    assert_eq!(shown, format!("{HOSTILE}|--|5|{{other}}|"));
    let one = value(&registry, "show", json!({"first": "a"})).await;
    assert_eq!(one, "a|--|{other}|");
    assert!(!bench.workspace().join("escaped").exists());
    let schema = &registry.list()[0].parameters;
    assert_eq!(schema["required"], json!(["first"]));
    assert_eq!(schema["properties"]["first"]["description"], "Any text.");
    bench.close().await;
}

#[tokio::test]
async fn arguments_are_variables_of_a_shell() {
    let bench = Bench::new().await;
    let registry = registry(
        &bench,
        json!({
            "name": "count",
            "shell": "printf %s \"$text\" | wc -c; echo \"${path-none}\" >&2",
            "parameters": [{"name": "text"}, {"name": "path", "optional": true}],
        }),
    );
    let counted = returned(&registry, "count", json!({"text": HOSTILE}))
        .await
        .unwrap();
    let expected = format!("{}\n", HOSTILE.len());
    assert_eq!(counted.value().as_str().unwrap().trim_start(), expected);
    assert_eq!(counted.stderr, "none\n");
    assert!(!bench.workspace().join("escaped").exists());
    // Nobody sets other variables, also not where the schema is not looked at.
    let call = Call {
        is_validated: false,
        ..named(json!({"text": "a", "LD_PRELOAD": "/tmp/x.so"}))
    };
    let error = registry.call("count", call).await.unwrap_err();
    assert!(
        error.to_string().contains("no parameter `LD_PRELOAD`"),
        "{error}"
    );
    bench.close().await;
}

#[tokio::test]
async fn a_failed_command_is_a_failure_with_what_it_printed() {
    let bench = Bench::new().await;
    let registry = registry(
        &bench,
        json!({"name": "fail", "shell": "echo out; echo err >&2; exit 3"}),
    );
    let error = returned(&registry, "fail", json!({})).await.unwrap_err();
    let ToolError::Raised(exception) = error else {
        panic!("it did not fail");
    };
    assert_eq!(exception.message, "it ended with exit code 3");
    assert_eq!(
        (exception.stdout.as_str(), exception.stderr.as_str()),
        ("out\n", "err\n")
    );
    bench.close().await;
}

#[tokio::test]
async fn what_is_no_command_is_refused() {
    let bench = Bench::new().await;
    for (document, problem) in [
        (json!({"name": "x"}), "either `argv` or `shell`"),
        (
            json!({"name": "x", "argv": ["a"], "shell": "a"}),
            "either `argv` or `shell`",
        ),
        (
            json!({"name": "x", "shell": "a", "parameters": [{"name": "a-b"}]}),
            "`a-b` cannot name a parameter",
        ),
    ] {
        let error = CommandTool::new(bench.place(), spec(document)).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
    let registry = registry(
        &bench,
        json!({"name": "gone", "argv": ["/no/such/program"]}),
    );
    let error = returned(&registry, "gone", json!({})).await.unwrap_err();
    assert!(matches!(error, ToolError::Unavailable { .. }), "{error}");
    bench.close().await;
}
