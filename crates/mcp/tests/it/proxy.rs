//! Servers behind one address, as OpenHands' client finds them.

use std::sync::Arc;

use rmcp::{RoleClient, ServiceExt as _, service::RunningService};
use serde_json::json;
use zareba_mcp::proxy::Proxy;
use zareba_wire::tool_servers::{ToolProgram, ToolServers as _};

use crate::fixture::{Bench, call, text};

fn program(bench: &Bench, name: &str) -> ToolProgram {
    ToolProgram {
        name: name.to_owned(),
        command: "python3".to_owned(),
        arguments: vec![bench.path("server.py"), "good".to_owned()],
        environment: Vec::new(),
    }
}

async fn names(client: &RunningService<RoleClient, ()>) -> Vec<String> {
    let tools = client.list_all_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

#[tokio::test]
async fn a_new_set_takes_the_place_of_the_old_one_at_once() {
    let bench = Bench::new().await;
    let proxy = Proxy::new(bench.place());
    assert!(proxy.connect().is_none());
    proxy.replace(vec![program(&bench, "one")]).await.unwrap();
    let client = ().serve(proxy.connect().unwrap().stream).await.unwrap();
    assert!(names(&client).await.contains(&"echo".to_owned()));
    let echoed = call(&client, "echo", json!({"text": "hello"})).await;
    assert_eq!(text(&echoed), "hello");
    let both = vec![program(&bench, "one"), program(&bench, "two")];
    proxy.replace(both).await.unwrap();
    let now = names(&client).await;
    assert!(now.contains(&"one_echo".to_owned()) && now.contains(&"two_echo".to_owned()));
    let echoed = call(&client, "two_echo", json!({"text": "again"})).await;
    assert_eq!(text(&echoed), "again");
    proxy.replace(Vec::new()).await.unwrap();
    assert_eq!(names(&client).await, [""; 0]);
    bench.close().await;
}

#[tokio::test]
async fn what_does_not_work_is_told_and_the_rest_does() {
    let bench = Bench::new().await;
    let proxy = Arc::new(Proxy::new(bench.place()));
    let broken = ToolProgram {
        command: "no-such-program".to_owned(),
        ..program(&bench, "broken")
    };
    let told = proxy
        .replace(vec![broken, program(&bench, "good")])
        .await
        .unwrap_err();
    assert!(
        told.contains("`broken`") && told.contains("no-such-program"),
        "{told}"
    );
    let client = ().serve(proxy.connect().unwrap().stream).await.unwrap();
    assert!(names(&client).await.contains(&"good_echo".to_owned()));
    bench.close().await;
}
