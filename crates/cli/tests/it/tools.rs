//! `zareba tools`: functions of the workspace, listed, described and called.

use serde_json::{Value, json};

use crate::support::{Place, Told};

const MODULE: &str = "import sys\n\
    def search(query: str, limit: int = 2) -> list:\n    \
    \"\"\"Looks for something.\"\"\"\n    \
    print('looking')\n    \
    return [query] * limit\n\
    def fail():\n    raise ValueError('no')\n\
    def text():\n    return 'plain'\n";

fn with_module() -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.path("work")).unwrap();
    std::fs::write(place.path("work").join("my_tools.py"), MODULE).unwrap();
    place
}

fn tools(place: &Place, words: &[&str]) -> Told {
    let work = place.path("work").display().to_string();
    let more = [
        "--runtime",
        "cli",
        "--python",
        "/usr/bin/python3",
        "--workspace",
        &work,
    ];
    place.output(&[&["tools"], words, &more].concat())
}

#[test]
fn tools_are_listed_and_described() {
    let place = with_module();
    let told = tools(&place, &["ls", "my_tools.search", "my_tools.nothing"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[1].starts_with("search  my_tools.search  Looks for something."),
        "{lines:?}"
    );
    assert!(
        told.stderr.contains("cannot load `my_tools.nothing`"),
        "{}",
        told.stderr
    );

    let told = tools(&place, &["schema", "my_tools.search"]);
    let schema: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(schema[0]["function"]["name"], "search");
    let told = tools(&place, &["schema", "--format", "mcp", "my_tools.search"]);
    let schema: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(schema[0]["inputSchema"]["required"], json!(["query"]));
}

#[test]
fn a_call_prints_its_result_and_fails_with_the_tool() {
    let place = with_module();
    let call = |words: &[&str]| {
        let entrypoints =
            ["search", "fail", "text"].map(|name| format!("--entrypoint=my_tools.{name}"));
        let entrypoints: Vec<&str> = entrypoints.iter().map(String::as_str).collect();
        tools(&place, &[&["call"], words, &entrypoints].concat())
    };
    let told = call(&["search", "query=a b"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let result: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(result, json!(["a b", "a b"]));
    assert!(told.stderr.contains("looking\n"), "{}", told.stderr);
    let told = call(&["text"]);
    assert_eq!(told.stdout, "plain\n");
    let told = call(&["fail"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert!(told.stderr.contains("ValueError: no"), "{}", told.stderr);
    let told = call(&["search", "limit=x"]);
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("lacks `query`"), "{}", told.stderr);
    let told = call(&["nothing"]);
    assert!(
        told.stderr.contains("there are: search, fail, text"),
        "{}",
        told.stderr
    );
    let told = call(&["search", "query"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
}
