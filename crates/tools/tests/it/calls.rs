//! Calls of functions of Python: results, state, streams, parallelism.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zareba_tools::{Arguments, Call, PythonOptions, ToolError};

use crate::fixture::{Bench, named, returned, value};

#[tokio::test]
async fn a_function_is_called_with_its_defaults() {
    let bench = Bench::new().await;
    let (registry, loaded) = bench.load(&["sample.add", "sample.rest_style"]).await;
    assert_eq!(loaded.failures, []);
    assert_eq!(value(&registry, "add", json!({"a": 1})).await, 3);
    assert_eq!(value(&registry, "add", json!({"a": 1, "b": 5})).await, 6);
    // In a strict schema null is how a model leaves a parameter out.
    assert_eq!(value(&registry, "add", json!({"a": 1, "b": null})).await, 3);
    let call = Call::new(Arguments {
        positional: vec![json!("q"), json!(1), json!(2)],
        named: json!({"x": true}).as_object().cloned().unwrap(),
    });
    let found = registry.call("rest_style", call).await.unwrap();
    assert_eq!(found.value(), json!(["q", 1, [2], {"x": true}]));
    bench.close().await;
}

#[tokio::test]
async fn arguments_are_held_to_the_schema_unless_that_is_not_wanted() {
    let bench = Bench::new().await;
    let (registry, _) = bench.load(&["sample.add", "sample.take_model"]).await;
    let error = returned(&registry, "add", json!({"a": "x"}))
        .await
        .unwrap_err();
    assert!(matches!(error, ToolError::Invalid { .. }), "{error}");
    let unchecked = |arguments| Call {
        is_validated: false,
        ..named(arguments)
    };
    let call = registry.call("add", unchecked(json!({"a": "x", "b": "y"})));
    assert_eq!(call.await.unwrap().json, "\"xy\"");
    // A parameter that is a model gets one, and the plain value where nothing is to be done to it.
    let model = json!({"model": {"x": 4}});
    assert_eq!(value(&registry, "take_model", model.clone()).await, 4);
    let plain = registry.call("take_model", unchecked(model)).await.unwrap();
    assert_eq!(plain.value(), "a dict");
    bench.close().await;
}

#[tokio::test]
async fn a_toolkit_keeps_its_state_and_a_reset_restores_it() {
    let bench = Bench::new().await;
    let entrypoint = r#"sample.Counter{"start": 5, "options": {"a": {"b": [1]}}}"#;
    let (registry, loaded) = bench.load(&[entrypoint]).await;
    assert_eq!(loaded.toolkits, [entrypoint]);
    assert_eq!(value(&registry, "up", json!({})).await, 6);
    assert_eq!(value(&registry, "up", json!({})).await, 7);
    let told = value(&registry, "told", json!({})).await;
    assert_eq!(told, json!({"a": {"b": [1]}}));
    registry.reset().await.unwrap();
    assert_eq!(value(&registry, "up", json!({})).await, 6);
    bench.close().await;
}

#[tokio::test]
async fn calls_run_at_once_and_each_keeps_what_it_prints() {
    let bench = Bench::new().await;
    let (registry, _) = bench.load(&["sample.say"]).await;
    let words = ["one", "two", "three", "four", "five", "six"];
    let calls = words.map(|word| returned(&registry, "say", json!({"word": word, "times": 200})));
    for (word, found) in words
        .iter()
        .zip(futures_util::future::join_all(calls).await)
    {
        let found = found.unwrap();
        assert_eq!(found.stdout, format!("{word}\n").repeat(200));
        assert_eq!(
            found.stderr,
            format!("{}\n", word.to_uppercase()).repeat(200)
        );
    }
    bench.close().await;
}

#[tokio::test]
async fn a_slow_call_holds_nobody_up() {
    let bench = Bench::new().await;
    let (registry, _) = bench
        .load(&["sample.nap", "sample.add", "sample.later"])
        .await;
    let begun = Instant::now();
    let naps = (0..8).map(|_| value(&registry, "nap", json!({"seconds": 1.0})));
    let waits = (0..50).map(|_| value(&registry, "later", json!({"seconds": 1.0})));
    let quick = async {
        assert_eq!(value(&registry, "add", json!({"a": 1})).await, 3);
        begun.elapsed()
    };
    let all = futures_util::future::join3(
        futures_util::future::join_all(naps),
        futures_util::future::join_all(waits),
        quick,
    );
    let (_, _, quick) = all.await;
    assert!(quick < Duration::from_millis(900), "{quick:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    bench.close().await;
}

#[tokio::test]
async fn asynchronous_functions_are_awaited() {
    let bench = Bench::new().await;
    let names = ["sample.later", "sample.awaitable", "sample.fail_later"];
    let (registry, _) = bench.load(&names).await;
    let first = returned(&registry, "later", json!({"seconds": 0.2, "word": "a"}));
    let second = returned(&registry, "later", json!({"seconds": 0.1, "word": "b"}));
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.unwrap().stdout, "before a\nafter a\n");
    assert_eq!(second.unwrap().stdout, "before b\nafter b\n");
    let found = returned(&registry, "awaitable", json!({"word": "w"}))
        .await
        .unwrap();
    assert_eq!(
        (found.json.as_str(), found.stdout.as_str()),
        ("\"w\"", "w\n")
    );
    let error = returned(&registry, "fail_later", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "KeyError");
    bench.close().await;
}

#[tokio::test]
async fn an_exception_keeps_its_type_its_text_and_where_it_came_from() {
    let bench = Bench::new().await;
    let names = ["sample.fail", "sample.fail_oddly", "sample.ask"];
    let (registry, _) = bench.load(&names).await;
    let error = returned(&registry, "fail", json!({"message": "täten"})).await;
    let ToolError::Raised(exception) = error.unwrap_err() else {
        panic!("it did not raise");
    };
    assert_eq!(exception.kind, "ValueError");
    assert_eq!(exception.message, "täten");
    assert_eq!(exception.stdout, "about to fail\n");
    let traceback = &exception.traceback;
    assert!(traceback.contains("sample.py"), "{traceback}");
    assert!(!traceback.contains("<string>"), "{traceback}");
    let error = returned(&registry, "fail_oddly", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "sample.Odd");
    let error = returned(&registry, "ask", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), "EOFError");
    bench.close().await;
}

#[tokio::test]
async fn what_json_cannot_say_is_described() {
    let bench = Bench::new().await;
    let names = [
        "not_json",
        "circle",
        "odd_numbers",
        "surrogate",
        "echo",
        "nested",
    ];
    let names = names.map(|name| format!("sample.{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (registry, _) = bench.load(&names).await;
    let error = returned(&registry, "not_json", json!({})).await;
    let ToolError::NotJson(described) = error.unwrap_err() else {
        panic!("it is JSON");
    };
    assert_eq!(described.kind, "set");
    assert_eq!(described.description, "{1, 2}");
    assert_eq!(
        described.message,
        "Object of type set is not JSON serializable"
    );
    let error = returned(&registry, "circle", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("Circular"), "{error}");
    let odd = returned(&registry, "odd_numbers", json!({})).await.unwrap();
    assert_eq!(odd.json, "[NaN, Infinity, -Infinity]");
    assert_eq!(odd.value(), json!([null, null, null]));
    let half = returned(&registry, "surrogate", json!({})).await.unwrap();
    assert_eq!(half.json, r#""\ud800""#);
    let error = returned(&registry, "nested", json!({"depth": 200}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "not_json");
    let text = json!({"value": {"ä": "\u{1F600}", "n": [1.5, true, null]}});
    assert_eq!(value(&registry, "echo", text.clone()).await, text["value"]);
    bench.close().await;
}

#[tokio::test]
async fn large_values_pass_and_too_large_ones_are_refused() {
    let bench = Bench::new().await;
    let names = ["sample.length", "sample.repeat", "sample.print_much"];
    let (registry, _) = bench.load(&names).await;
    let text = "x".repeat(5 * 1024 * 1024);
    assert_eq!(
        value(&registry, "length", json!({"text": text})).await,
        text.len()
    );
    let count = json!({"text": "ä", "count": 2_500_000});
    let found = returned(&registry, "repeat", count).await.unwrap();
    assert_eq!(found.json.len(), 5_000_002);
    let count = json!({"text": "x", "count": 17 * 1024 * 1024});
    let error = returned(&registry, "repeat", count).await.unwrap_err();
    assert!(matches!(error, ToolError::TooLarge { .. }), "{error}");
    let text = "x".repeat(17 * 1024 * 1024);
    let error = returned(&registry, "length", json!({"text": text}))
        .await
        .unwrap_err();
    assert!(matches!(error, ToolError::TooLarge { .. }), "{error}");
    let found = returned(&registry, "print_much", json!({"count": 1_000_000}))
        .await
        .unwrap();
    assert!(found.is_truncated);
    assert_eq!(found.stdout.len(), zareba_tools::OUTPUT_BYTES_MAX);
    bench.close().await;
}

#[tokio::test]
async fn streams_below_python_do_not_disturb_the_protocol() {
    let bench = Bench::new().await;
    let (registry, _) = bench
        .load(&["sample.print_below", "sample.print_bytes"])
        .await;
    let found = returned(&registry, "print_below", json!({})).await.unwrap();
    assert_eq!((found.value(), found.stdout.as_str()), (json!("done"), ""));
    let found = returned(&registry, "print_bytes", json!({})).await.unwrap();
    assert_eq!(
        (found.value(), found.stdout.as_str()),
        (Value::Null, "ä\u{fffd}")
    );
    bench.close().await;
}

#[tokio::test]
async fn variables_directory_and_camels_mark_are_there() {
    let bench = Bench::new().await;
    let below = bench.workspace().join("below");
    std::fs::create_dir(&below).unwrap();
    std::fs::rename(bench.workspace().join("sample.py"), below.join("sample.py")).unwrap();
    let options = PythonOptions {
        environment: vec![("GREETING".to_owned(), "hello".to_owned())],
        directory: Some("below".to_owned()),
        ..PythonOptions::default()
    };
    let names = ["sample.environment", "sample.where"];
    let (registry, _) = bench.load_with(&names, options).await;
    let of = |name: &str| json!({"name": name});
    assert_eq!(
        value(&registry, "environment", of("GREETING")).await,
        "hello"
    );
    assert_eq!(
        value(&registry, "environment", of("CAMEL_RUNTIME")).await,
        "true"
    );
    let place = value(&registry, "where", json!({})).await;
    assert!(place.as_str().unwrap().ends_with("below"), "{place}");
    bench.close().await;
}
