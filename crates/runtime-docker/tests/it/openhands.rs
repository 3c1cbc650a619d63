//! An image that OpenHands starts with the command line of its own server.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use zareba_protocol::{Action, ObservationKind, RunCommand};
use zareba_wire::{Endpoint, SessionKey, client::ExecutorClient};

use crate::fixture::{DEBIAN, fixture};

const KEY: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test(flavor = "multi_thread")]
async fn an_image_runs_our_executor_for_their_command_line() {
    let fixture = fixture(DEBIAN);
    let tag = format!("zareba-test/openhands-{}", std::process::id());
    let id = fixture.runtime.make_openhands_image(DEBIAN, &tag).await;
    assert!(id.unwrap().starts_with("sha256:"));
    assert_eq!(fixture.leftovers(), [""; 0]);

    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let name = format!("openhands-test-{}", std::process::id());
    let key = format!("SESSION_API_KEY={KEY}");
    let number = port.to_string();
    let mut start = vec!["run", "--detach", "--network", "host", "--name", &name];
    start.extend(["--env", &key, "--workdir", "/openhands/code/", &tag]);
    start.extend(
        "/openhands/micromamba/bin/micromamba run -n openhands poetry run python -u -m".split(' '),
    );
    start.extend(["openhands.runtime.action_execution_server", &number]);
    start.extend("--working-dir /workspace --plugins agent_skills".split(' '));
    start.extend("--username openhands --user-id 1000 --no-enable-browser".split(' '));
    fixture.docker(&start);
    fixture.await_log(&name, "listening on");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let session_key = SessionKey::new(KEY).unwrap();
    let client = ExecutorClient::new(Endpoint::Tcp(address), Some(session_key));
    client.alive().await.unwrap();
    let action = Action::Run(RunCommand::new("whoami; pwd"));
    let observation = client.execute(action.into()).await.unwrap().observation;
    assert!(matches!(observation.kind, ObservationKind::Run(_)));
    assert_eq!(observation.content, "openhands\n/workspace");
    fixture.docker(&["rm", "--force", &name]);
    fixture.docker(&["rmi", &tag]);
}
