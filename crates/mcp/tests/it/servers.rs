//! Servers of others: their tools, their deaths and what was accepted of them.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use zareba_mcp::client::{McpServers, Naming, Pins};
use zareba_tools::{Arguments, Call, Registry, ToolError};

use crate::fixture::Bench;

async fn called(registry: &Registry, name: &str, arguments: Value) -> Result<Value, ToolError> {
    let arguments = arguments.as_object().cloned().unwrap();
    let call = Call::new(Arguments::named(arguments));
    Ok(registry.call(name, call).await?.value())
}

fn filled(servers: &mut McpServers) -> Registry {
    let registry = Registry::new();
    servers.add_to(&registry);
    registry
}

#[tokio::test]
async fn tools_carry_the_name_of_their_server() {
    let bench = Bench::new().await;
    let mut servers = bench.servers(&["one", "two"], Pins::in_memory()).await;
    assert_eq!(servers.problems(), []);
    let registry = filled(&mut servers);
    for name in ["one_echo", "two_echo"] {
        let result = called(&registry, name, json!({"text": name}))
            .await
            .unwrap();
        assert_eq!(result["content"][0]["text"], name);
    }
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_server_that_died_is_started_again_for_the_next_call() {
    let bench = Bench::new().await;
    let mut servers = bench.servers(&["good"], Pins::in_memory()).await;
    let registry = filled(&mut servers);
    let pid = called(&registry, "good_pid", json!({})).await.unwrap();
    let gone = called(&registry, "good_die", json!({})).await.unwrap_err();
    assert!(matches!(gone, ToolError::Gone { .. }), "{gone}");
    let told = gone.to_string();
    assert!(
        told.contains("exit code 3") && told.contains("I die now"),
        "{told}"
    );
    let again = called(&registry, "good_pid", json!({})).await.unwrap();
    assert_ne!(pid, again);
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_taken_back_and_the_server_stays() {
    let bench = Bench::new().await;
    let mut servers = bench.servers(&["good"], Pins::in_memory()).await;
    let registry = filled(&mut servers);
    let pid = called(&registry, "good_pid", json!({})).await.unwrap();
    let call = Call {
        timeout: Some(Duration::from_millis(300)),
        ..Call::new(Arguments::default())
    };
    let late = registry.call("good_sleep", call).await.unwrap_err();
    assert!(matches!(late, ToolError::TimedOut { .. }), "{late}");
    assert_eq!(called(&registry, "good_pid", json!({})).await.unwrap(), pid);
    bench.until_there("cancelled").await;
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_definition_that_changed_is_not_called_until_it_is_accepted() {
    let bench = Bench::new().await;
    let file = bench.path("state/pins.json");
    let pins = || Pins::in_file(std::path::Path::new(&file)).unwrap();
    let mut servers = bench.servers(&["changing"], pins()).await;
    let registry = filled(&mut servers);
    called(&registry, "changing_echo", json!({})).await.unwrap();
    std::fs::write(bench.path("changed"), "").unwrap();
    // The server is started anew, and has another definition then.
    servers.close().await;
    let refused = called(&registry, "changing_echo", json!({}))
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("--approve changing"),
        "{refused}"
    );
    servers.close().await;
    let mut servers = bench.servers(&["changing"], pins()).await;
    assert!(servers.problems()[0].message.contains("--approve changing"));
    // Its words are not shown to anybody either.
    assert!(filled(&mut servers).get("changing_echo").is_none());
    servers.close().await;
    pins().approve("changing").unwrap();
    let mut servers = bench.servers(&["changing"], pins()).await;
    let registry = filled(&mut servers);
    called(&registry, "changing_echo", json!({})).await.unwrap();
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_and_the_others_work() {
    let bench = Bench::new().await;
    let missing = zareba_mcp::client::ServerSpec::program(
        "missing",
        "no-such-program",
        Vec::new(),
        Vec::new(),
    );
    let specs = vec![missing.unwrap(), bench.spec("good", "good")];
    let place: Arc<dyn zareba_tools::Place> = bench.place();
    let naming = Naming::Prefixed;
    let mut servers = McpServers::connect(specs, Some(place), Pins::in_memory(), naming).await;
    let [problem] = servers.problems() else {
        panic!("{:?}", servers.problems());
    };
    assert_eq!(problem.server, "missing");
    assert!(problem.message.contains("no-such-program"), "{problem}");
    let registry = filled(&mut servers);
    called(&registry, "good_echo", json!({})).await.unwrap();
    servers.close().await;
    bench.close().await;
}
