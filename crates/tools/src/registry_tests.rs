//! A registry keeps order, refuses what it cannot offer, and holds calls to their time.

use std::{convert::Infallible, time::Duration};

use serde_json::{Value, json};

use super::*;
use crate::{Arguments, FunctionTool, Origin};

fn echo(name: &str) -> Arc<dyn Tool> {
    let tool = FunctionTool::new(name, "Says it again.", |value: Value| async move {
        Ok::<_, Infallible>(value)
    });
    Arc::new(tool.unwrap())
}

fn named(arguments: Value) -> Call {
    Call::new(Arguments::named(arguments.as_object().unwrap().clone()))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

fn add() -> Arc<dyn Tool> {
    let tool = FunctionTool::new("add", "Adds.", |sum: Sum| async move {
        sum.a.checked_add(sum.b).ok_or("too much")
    });
    Arc::new(tool.unwrap())
}

#[tokio::test]
async fn a_function_is_called_by_name_and_by_position() {
    let registry = Registry::new();
    registry.add(add()).unwrap();
    let returned = registry.call("add", named(json!({"a": 1, "b": 2}))).await;
    assert_eq!(returned.unwrap().value(), 3);
    let by_position = Call::new(Arguments {
        positional: vec![json!(1), json!(5)],
        ..Arguments::default()
    });
    assert_eq!(registry.call("add", by_position).await.unwrap().value(), 6);
}

#[tokio::test]
async fn a_failure_of_a_function_is_an_exception() {
    let registry = Registry::new();
    registry.add(add()).unwrap();
    let call = named(json!({"a": i64::MAX, "b": 1}));
    let error = registry.call("add", call).await.unwrap_err();
    assert_eq!(error.to_string(), "`add` raised &str: too much");
}

#[tokio::test]
async fn arguments_are_checked_unless_that_is_not_wanted() {
    let registry = Registry::new();
    registry.add(add()).unwrap();
    let error = registry.call("add", named(json!({"a": "1"}))).await;
    let ToolError::Invalid { problems, .. } = error.unwrap_err() else {
        panic!("not refused");
    };
    assert_eq!(problems.len(), 2, "{problems:?}");
    let unchecked = Call {
        is_validated: false,
        ..named(json!({"a": "1"}))
    };
    let error = registry.call("add", unchecked).await.unwrap_err();
    assert_eq!(error.kind(), "invalid_arguments");
}

#[test]
fn tools_stay_in_the_order_of_adding_and_names_are_unique() {
    let registry = Registry::new();
    registry.add(echo("b")).unwrap();
    registry.add(echo("a")).unwrap();
    let error = registry.add_all(vec![echo("c"), echo("b")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is a tool `b` already, from this program; remove that one first"
    );
    let names = |registry: &Registry| {
        let names = registry.list().into_iter().map(|it| it.name.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&registry), ["b", "a"]);
    let b = ToolName::try_from("b").unwrap();
    assert!(registry.remove(&b).is_some() && registry.remove(&b).is_none());
    registry.add(echo("b")).unwrap();
    assert_eq!(names(&registry), ["a", "b"]);
    assert_eq!(registry.get("a").unwrap().definition().origin, Origin::Rust);
}

#[tokio::test]
async fn who_asks_for_no_tool_is_told_which_there_are() {
    let registry = Registry::new();
    let error = registry.call("x", named(json!({}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no tool `x`; there are none here"
    );
    registry.add(echo("a")).unwrap();
    let error = registry.call("x", named(json!({}))).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no tool `x`; there are: a");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_dropped() {
    struct Dropped(Arc<Mutex<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let is_dropped = Arc::new(Mutex::new(false));
    let flag = Arc::clone(&is_dropped);
    let tool = FunctionTool::new("wait", "", move |_: Value| {
        let guard = Dropped(Arc::clone(&flag));
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            Ok::<_, Infallible>(())
        }
    });
    let registry = Registry::new();
    registry.add(Arc::new(tool.unwrap())).unwrap();
    let call = Call {
        timeout: Some(Duration::from_secs(2)),
        ..named(json!({}))
    };
    let error = registry.call("wait", call).await.unwrap_err();
    assert_eq!(error.kind(), "timed_out");
    assert!(*is_dropped.lock().unwrap());
}

#[tokio::test]
async fn a_result_that_nests_too_deep_is_refused() {
    let tool = FunctionTool::new("deep", "", |_: Value| async {
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        Ok::<_, Infallible>(deep)
    });
    let registry = Registry::new();
    registry.add(Arc::new(tool.unwrap())).unwrap();
    let error = registry.call("deep", named(json!({}))).await.unwrap_err();
    assert_eq!(error.kind(), "not_json");
}
