//! Servers that mean harm.

use std::time::Duration;

use serde_json::json;
use zareba_mcp::client::{McpServers, Naming, Pins};
use zareba_tools::{Arguments, Call, Registry, ToolError};

use crate::fixture::Bench;

#[tokio::test]
async fn a_huge_list_is_cut_and_told() {
    let bench = Bench::new().await;
    let servers = bench.servers(&["many"], Pins::in_memory()).await;
    assert_eq!(servers.tools().len(), 256);
    assert!(
        servers.problems()[0]
            .message
            .contains("more than 256 tools")
    );
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_list_without_end_is_ended() {
    let bench = Bench::new().await;
    let servers = bench.servers(&["pages"], Pins::in_memory()).await;
    assert!((1..=256).contains(&servers.tools().len()), "{servers:?}");
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_server_with_other_names_each_time_fills_no_more_than_its_own_room() {
    let bench = Bench::new().await;
    let pins = Pins::in_memory();
    for taken in [256, 256, 256, 256, 0] {
        let servers = bench.servers(&["fresh"], pins.clone()).await;
        assert_eq!(servers.tools().len(), taken, "{:?}", servers.problems());
        let told = servers.problems().iter();
        let told = told.filter(|it| it.message.contains("--approve fresh"));
        assert_eq!(told.count(), 256 - taken);
        servers.close().await;
    }
    let servers = bench.servers(&["good"], pins).await;
    assert_eq!(servers.problems(), []);
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn names_that_clash_and_definitions_that_are_too_large_stay_out() {
    let bench = Bench::new().await;
    let specs = vec![
        bench.spec("s", "clash"),
        bench.spec("s_a", "clash"),
        bench.spec("w", "wide"),
    ];
    let place = bench.place();
    let naming = Naming::Prefixed;
    let servers = McpServers::connect(specs, Some(place), Pins::in_memory(), naming).await;
    let tools = servers.tools();
    let mut names: Vec<_> = tools
        .iter()
        .map(|tool| tool.definition().name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["s_a_a_b", "s_a_b", "s_a_echo", "s_echo", "w_echo"]);
    // Two that become the same name, two that are listed twice, two that are too long, and one
    // that is too large.
    assert_eq!(servers.problems().len(), 7, "{:#?}", servers.problems());
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn what_is_no_server_is_told_from_one() {
    let bench = Bench::new().await;
    let servers = bench
        .servers(&["noise", "endless"], Pins::in_memory())
        .await;
    assert_eq!(servers.tools().len(), 0);
    let told: Vec<_> = servers
        .problems()
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert!(told[0].contains("no messages of the protocol"), "{told:?}");
    assert!(told[1].contains("a message of more than"), "{told:?}");
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_result_that_is_too_large_ends_the_connection_and_nothing_else() {
    let bench = Bench::new().await;
    let servers = bench.servers(&["good"], Pins::in_memory()).await;
    let registry = Registry::new();
    registry.add_all(servers.tools()).unwrap();
    let call = || Call::new(Arguments::default());
    let refused = registry.call("good_huge", call()).await.unwrap_err();
    assert!(matches!(refused, ToolError::Gone { .. }), "{refused}");
    assert!(
        refused.to_string().contains("a message of more than"),
        "{refused}"
    );
    let echoed = registry.call("good_echo", call()).await.unwrap();
    assert_eq!(
        echoed.value()["content"],
        json!([{"type": "text", "text": ""}])
    );
    servers.close().await;
    bench.close().await;
}

#[tokio::test]
async fn a_server_that_never_answers_costs_its_own_time_alone() {
    let bench = Bench::new().await;
    let specs = vec![bench.spec("silent", "silent")];
    let place = bench.place();
    let naming = Naming::Prefixed;
    let connected = McpServers::connect(specs, Some(place), Pins::in_memory(), naming);
    let waited = tokio::time::timeout(Duration::from_millis(500), connected).await;
    assert!(waited.is_err());
    bench.close().await;
}

#[tokio::test]
async fn what_a_server_asks_for_is_refused_and_its_tool_goes_on() {
    let bench = Bench::new().await;
    let servers = bench.servers(&["good"], Pins::in_memory()).await;
    let registry = Registry::new();
    registry.add_all(servers.tools()).unwrap();
    let asked = registry.call("good_ask", Call::new(Arguments::default()));
    let told = asked.await.unwrap().value();
    let answers = told["content"][0]["text"].as_str().unwrap();
    let answers: serde_json::Value = serde_json::from_str(answers).unwrap();
    assert_eq!(answers[0]["result"], json!({}), "{answers}");
    assert_eq!(answers[1]["error"]["code"], -32601, "{answers}");
    servers.close().await;
    bench.close().await;
}

/// Waits until a process is no more.
async fn until_gone(pid: &str) {
    let gone = async {
        while std::path::Path::new("/proc").join(pid).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), gone).await;
    waited.unwrap_or_else(|_| panic!("the process {pid} goes on"));
}

#[tokio::test]
async fn g_1_a_server_that_goes_on_asking_is_cut_off_and_starts_anew() {
    let bench = Bench::new().await;
    let servers = bench.servers(&["good"], Pins::in_memory()).await;
    let registry = Registry::new();
    registry.add_all(servers.tools()).unwrap();
    let call = || Call::new(Arguments::default());
    for (tool, why) in [
        ("good_nag", "refused 100 times"),
        ("good_shout", "does not take the answers"),
        ("good_chatter", "nobody asked for"),
        ("good_dense", "more than 300000 values"),
    ] {
        let pid = registry.call("good_pid", call()).await.unwrap().value();
        let pid = pid["content"][0]["text"].as_str().unwrap().to_owned();
        let cut = registry.call(tool, call()).await.unwrap_err();
        assert!(matches!(cut, ToolError::Gone { .. }), "{cut}");
        assert!(cut.to_string().contains(why), "{cut}");
        until_gone(&pid).await;
        registry.call("good_echo", call()).await.unwrap();
    }
    servers.close().await;
    bench.close().await;
}
