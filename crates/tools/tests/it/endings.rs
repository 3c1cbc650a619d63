//! How calls end that do not return: time, cancellation, exits, the death of the interpreter.

use std::{path::PathBuf, time::Duration};

use serde_json::json;
use zareba_tools::{Call, PythonOptions, Registry, ToolError};

use crate::fixture::{Bench, named, returned, value};

fn within(seconds: f64, arguments: serde_json::Value) -> Call {
    Call {
        timeout: Some(Duration::from_secs_f64(seconds)),
        ..named(arguments)
    }
}

fn impatient() -> PythonOptions {
    PythonOptions {
        grace: Duration::from_millis(500),
        ..PythonOptions::default()
    }
}

/// Calls a tool that makes a file once it runs, and drops the call then.
async fn drop_when_running(registry: &Registry, tool: &str, mark: PathBuf) {
    let call = registry.call(tool, named(json!({"path": mark})));
    let runs = async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        result = call => panic!("it ended: {result:?}"),
        () = runs => {}
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_stopped_and_state_stays() {
    let bench = Bench::new().await;
    let names = ["sample.nap", "sample.Counter", "sample.later"];
    let (registry, _) = bench.load(&names).await;
    assert_eq!(value(&registry, "up", json!({})).await, 1);
    for tool in ["nap", "later"] {
        let call = registry.call(tool, within(0.3, json!({"seconds": 60.0})));
        let error = call.await.unwrap_err();
        assert!(matches!(error, ToolError::TimedOut { .. }), "{error}");
    }
    assert_eq!(value(&registry, "up", json!({})).await, 2);
    bench.close().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_stopped_and_state_stays() {
    let bench = Bench::new().await;
    let (registry, _) = bench.load(&["sample.spin", "sample.Counter"]).await;
    assert_eq!(value(&registry, "up", json!({})).await, 1);
    drop_when_running(&registry, "spin", bench.workspace().join("spins")).await;
    assert_eq!(value(&registry, "up", json!({})).await, 2);
    bench.close().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_stopped_costs_the_interpreter() {
    let bench = Bench::new().await;
    let names = ["sample.stubborn", "sample.Counter", "sample.nap"];
    let (registry, _) = bench.load_with(&names, impatient()).await;
    assert_eq!(value(&registry, "up", json!({})).await, 1);
    let other = returned(&registry, "nap", json!({"seconds": 60.0}));
    let drops = drop_when_running(&registry, "stubborn", bench.workspace().join("stubborn"));
    let (other, ()) = tokio::join!(other, drops);
    let error = other.unwrap_err();
    assert!(matches!(error, ToolError::Gone { .. }), "{error}");
    assert!(error.to_string().contains("did not end"), "{error}");
    // The next call starts it anew, with its first state.
    assert_eq!(value(&registry, "up", json!({})).await, 1);
    bench.close().await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_turn_is_stopped_alone() {
    let bench = Bench::new().await;
    let options = PythonOptions {
        threads: 1,
        ..impatient()
    };
    let (registry, _) = bench.load_with(&["sample.nap"], options).await;
    // Longer than the patience with calls that do not end.
    let first = value(&registry, "nap", json!({"seconds": 1.5}));
    let second = registry.call("nap", within(0.2, json!({"seconds": 0.0})));
    let (first, second) = tokio::join!(first, second);
    let second = second.unwrap_err();
    assert!(matches!(second, ToolError::TimedOut { .. }), "{second}");
    assert_eq!(first, 1.5);
    bench.close().await;
}

#[tokio::test]
async fn an_exit_of_a_tool_ends_its_call_only() {
    let bench = Bench::new().await;
    let (registry, _) = bench.load(&["sample.leave", "sample.Counter"]).await;
    assert_eq!(value(&registry, "up", json!({})).await, 1);
    let error = returned(&registry, "leave", json!({})).await.unwrap_err();
    assert!(matches!(error, ToolError::Exited(_)), "{error}");
    assert!(error.to_string().contains("exit code 3"), "{error}");
    assert_eq!(value(&registry, "up", json!({})).await, 2);
    bench.close().await;
}

#[tokio::test]
async fn the_death_of_an_interpreter_is_told_and_the_next_call_starts_it_anew() {
    let bench = Bench::new().await;
    let names = ["sample.die", "sample.crash", "sample.Counter", "sample.nap"];
    let (registry, _) = bench.load(&names).await;
    for (tool, how) in [("die", "exit code 7"), ("crash", "signal 11")] {
        assert_eq!(value(&registry, "up", json!({})).await, 1);
        let other = returned(&registry, "nap", json!({"seconds": 60.0}));
        let death = returned(&registry, tool, json!({}));
        let (other, death) = tokio::join!(other, death);
        for error in [other.unwrap_err(), death.unwrap_err()] {
            assert!(matches!(error, ToolError::Gone { .. }), "{error}");
            assert!(error.to_string().contains(how), "{error}");
        }
    }
    assert_eq!(value(&registry, "up", json!({})).await, 1);
    bench.close().await;
}

#[tokio::test]
async fn an_interpreter_ends_with_its_last_handle() {
    let bench = Bench::new().await;
    let mark = bench.workspace().display().to_string();
    let (registry, _) = bench.load(&["sample.where", "sample.environment"]).await;
    let number = value(&registry, "where", json!({})).await;
    assert_eq!(number, mark.as_str());
    let interpreters = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter(|process| {
            let place = std::fs::read_link(process.path().join("cwd"));
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            place.is_ok_and(|place| place.display().to_string() == mark)
                && String::from_utf8_lossy(&line).contains("python")
        })
        .count()
    };
    assert_eq!(interpreters(), 1);
    drop(registry);
    let gone = async {
        while interpreters() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .unwrap();
    bench.close().await;
}
