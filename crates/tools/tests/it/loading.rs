//! Entrypoints: what they stand for, their schemas, and what cannot be loaded.

use serde_json::json;
use zareba_tools::{Origin, PythonHost, PythonOptions, ToolDefinition, ToolError};

use crate::fixture::{Bench, value};

fn find<'a>(tools: &'a [ToolDefinition], name: &str) -> &'a ToolDefinition {
    tools
        .iter()
        .find(|tool| tool.name.as_str() == name)
        .unwrap()
}

#[tokio::test]
async fn a_schema_comes_of_signature_and_documentation() {
    let bench = Bench::new().await;
    let (_, loaded) = bench.load(&["sample.add"]).await;
    let add = find(&loaded.tools, "add");
    assert_eq!(add.description, "Adds two numbers.\nIt is exact.");
    let strict = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first one, which is a number."},
            "b": {"type": ["integer", "null"], "description": "The second one."},
        },
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    assert_eq!(add.parameters, strict);
    assert_eq!(add.accepts.as_ref().unwrap()["required"], json!(["a"]));
    assert_eq!(add.openai()["function"]["strict"], true);
    let entrypoint = "sample.add".to_owned();
    assert_eq!(add.origin, Origin::Python { entrypoint });
    bench.close().await;
}

#[tokio::test]
async fn every_style_of_documentation_is_read() {
    let bench = Bench::new().await;
    let names = [
        "sample.rest_style",
        "sample.numpy_style",
        "sample.epydoc_style",
    ];
    let (_, loaded) = bench.load(&names).await;
    let about = |tool: &str, parameter: &str| {
        let tool = find(&loaded.tools, tool);
        tool.parameters["properties"][parameter]["description"].clone()
    };
    assert_eq!(about("rest_style", "query"), "what to look for");
    assert_eq!(about("rest_style", "limit"), "how many at the most");
    assert_eq!(about("numpy_style", "names"), "The names.");
    assert_eq!(about("numpy_style", "table"), "The table.");
    assert_eq!(about("epydoc_style", "either"), "a number or a text");
    for tool in ["rest_style", "numpy_style", "epydoc_style"] {
        let description = &find(&loaded.tools, tool).description;
        assert_eq!(description.lines().count(), 1, "{description}");
    }
    bench.close().await;
}

#[tokio::test]
async fn types_become_schemas() {
    let bench = Bench::new().await;
    let names = [
        "rest_style",
        "numpy_style",
        "epydoc_style",
        "take_model",
        "echo",
    ];
    let names = names.map(|name| format!("sample.{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, loaded) = bench.load(&names).await;
    let of = |tool: &str, parameter: &str| {
        let mut schema = find(&loaded.tools, tool).parameters["properties"][parameter].clone();
        schema.as_object_mut().unwrap().remove("description");
        schema
    };
    let nothing = || json!({"type": "null"});
    let integer = || json!({"type": "integer"});
    assert_eq!(
        of("rest_style", "limit"),
        json!({"anyOf": [integer(), nothing()]})
    );
    let texts = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(of("numpy_style", "names"), texts);
    let table = json!({"type": "object", "additionalProperties": {"type": "number"}});
    assert_eq!(of("numpy_style", "table"), table);
    let either = json!({"anyOf": [integer(), {"type": "string"}, nothing()]});
    assert_eq!(of("epydoc_style", "either"), either);
    assert_eq!(of("epydoc_style", "plain"), json!({"type": ["null"]}));
    assert_eq!(
        of("epydoc_style", "color"),
        json!({"$ref": "#/$defs/Color"})
    );
    assert_eq!(of("echo", "value"), json!({}));
    let definitions = &find(&loaded.tools, "take_model").parameters["$defs"];
    let model = json!({
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
        "additionalProperties": false,
    });
    assert_eq!(definitions, &json!({ "Model": model }));
    bench.close().await;
}

#[tokio::test]
async fn tools_of_camel_and_lists_are_taken_as_they_describe_themselves() {
    let bench = Bench::new().await;
    let (registry, loaded) = bench.load(&["sample.tools"]).await;
    let names: Vec<_> = loaded.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["camel_add", "echo"]);
    let tool = find(&loaded.tools, "camel_add");
    assert_eq!(tool.description, "Of CAMEL.");
    assert_eq!(tool.parameters["required"], json!(["a", "b"]));
    // `b` has a default, so that a call may leave it out.
    assert_eq!(value(&registry, "camel_add", json!({"a": 1})).await, 3);
    bench.close().await;
}

#[tokio::test]
async fn what_cannot_be_loaded_is_told_and_the_rest_is_loaded() {
    let bench = Bench::new().await;
    std::fs::write(bench.workspace().join("broken.py"), "def f(:\n").unwrap();
    std::fs::write(
        bench.workspace().join("leaves.py"),
        "import sys; sys.exit(4)\n",
    )
    .unwrap();
    std::fs::write(
        bench.workspace().join("noisy.py"),
        "print('hi')\ndef f(): pass\n",
    )
    .unwrap();
    // A module of the workspace does not stand in for one that the worker needs.
    std::fs::write(bench.workspace().join("json.py"), "raise SystemExit\n").unwrap();
    let names = [
        "nowhere.f",
        "sample.nothing",
        "sample.number",
        "sample.Color",
        r#"sample.Counter{"wrong": 1}"#,
        r#"sample.add{"a": 1}"#,
        "broken.f",
        "leaves.f",
        "noisy.f",
        "sample.add",
        "sample.tools",
        "sample.echo",
    ];
    let (registry, loaded) = bench.load(&names).await;
    let failures = loaded.failures.iter();
    let failures: Vec<_> = failures
        .map(|it| (it.entrypoint.as_str(), it.kind.as_str()))
        .collect();
    assert_eq!(
        failures,
        [
            ("nowhere.f", "ModuleNotFoundError"),
            ("sample.nothing", "AttributeError"),
            ("sample.number", "TypeError"),
            ("sample.Color", "TypeError"),
            (r#"sample.Counter{"wrong": 1}"#, "TypeError"),
            (r#"sample.add{"a": 1}"#, "TypeError"),
            ("broken.f", "SyntaxError"),
            ("leaves.f", "SystemExit"),
            ("sample.echo", "ValueError"),
        ]
    );
    let names: Vec<_> = registry
        .list()
        .into_iter()
        .map(|it| it.name.to_string())
        .collect();
    assert_eq!(names, ["f", "add", "camel_add", "echo"]);
    bench.close().await;
}

#[tokio::test]
async fn an_interpreter_that_cannot_be_one_is_named() {
    let bench = Bench::new().await;
    for (python, problem) in [
        (
            "/no/such/python",
            "cannot start the interpreter `/no/such/python`",
        ),
        (
            "true",
            "the interpreter `true` cannot host tools: its interpreter ended",
        ),
        ("cat", "the interpreter `cat` cannot host tools"),
    ] {
        let options = PythonOptions {
            python: python.to_owned(),
            ..PythonOptions::default()
        };
        let entrypoints = vec!["sample.add".parse().unwrap()];
        let started = PythonHost::start(bench.place(), entrypoints, options).await;
        let error = started.err().unwrap();
        assert!(matches!(error, ToolError::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    bench.close().await;
}
