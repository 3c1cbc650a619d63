//! What a `native` sandbox reaches over the network, and how programs in it are reached.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use zareba_egress::{Limits, Policy, Rule};
use zareba_runtime::{Runtime as _, RuntimeError, Sandbox};
use zareba_runtime_native::{NativeRuntime, Reachable, Walls};

use crate::fixture::{self, Fixture, output, spec};

/// A sandbox that may reach what these rules allow.
fn filtered(allow: &[&str]) -> Fixture<NativeRuntime> {
    let rules = allow.iter().map(|rule| Rule::parse(rule).unwrap());
    let policy = Policy::new(rules.collect(), Vec::new(), Limits::default()).unwrap();
    fixture::native_with(Walls {
        network: Reachable::Listed(policy),
        ..fixture::walls()
    })
}

/// What comes back for a request to an address.
fn ask(address: &str, port: u16, host: &str) -> String {
    format!(
        "exec 3<>/dev/tcp/{address}/{port} && printf 'GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n' >&3 && cat <&3; \
         exec 3>&-"
    )
}

/// Answers one connection with what it was sent.
async fn echo_once() -> (u16, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut line = [0; 6];
        stream.read_exact(&mut line).await.unwrap();
        stream.write_all(&line).await.unwrap();
    });
    (port, task)
}

#[tokio::test]
async fn eg1_what_no_rule_allows_is_refused_and_the_refusal_names_the_missing_rule() {
    let fixture = filtered(&["allowed.example"]);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let answer = output(&*sandbox, &ask("93.184.216.34", 80, "example.com")).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(answer.contains("egress_denied"), "{answer}");
    assert!(answer.contains("`example.com`"), "{answer}");
    let metadata = output(&*sandbox, &ask("169.254.169.254", 80, "169.254.169.254")).await;
    assert!(metadata.starts_with("HTTP/1.1 403"), "{metadata}");
    // Nobody listens on other ports, so programs do not hang.
    let closed = "(exec 3<>/dev/tcp/93.184.216.34/22) 2>&1 | grep -om1 'Connection refused'";
    assert_eq!(output(&*sandbox, closed).await, "Connection refused");
    let report = sandbox.inspect().await.unwrap();
    assert_eq!(
        report["enforcement"]["network"]["filtered"]["tcp_ports"][0],
        80
    );
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn eg4_what_a_rule_allows_is_reached_at_exactly_that_address() {
    let (port, echo) = echo_once().await;
    let fixture = filtered(&[&format!("127.0.0.1:{port}")]);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3 && head -c 6 <&3");
    assert_eq!(output(&*sandbox, &command).await, "hello");
    echo.await.unwrap();
    // The same port at another address of the machine is another matter.
    let other =
        format!("exec 3<>/dev/tcp/127.0.0.2/{port} && echo hello >&3 && head -c 6 <&3; true");
    assert!(!output(&*sandbox, &other).await.contains("hello"));
    sandbox.close().await.unwrap();
}

#[tokio::test]
async fn eg9_without_its_proxy_a_sandbox_reaches_nothing_and_goes_on() {
    let fixture = filtered(&["allowed.example"]);
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let answer = output(&*sandbox, &ask("93.184.216.34", 80, "example.com")).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    kill_proxy(sandbox.id().as_str()).await;
    let refused = "(exec 3<>/dev/tcp/93.184.216.34/80) 2>&1 | grep -om1 'Connection refused'";
    assert_eq!(output(&*sandbox, refused).await, "Connection refused");
    assert_eq!(output(&*sandbox, "echo well").await, "well");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// Kills the proxy of a sandbox, known by the file that it writes to, and waits for its end.
async fn kill_proxy(id: &str) {
    let wanted = format!("/{id}/egress.jsonl\0");
    let found = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .find_map(|entry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let is_proxy = line.contains("\0egress\0") && line.contains(&wanted);
            is_proxy
                .then(|| entry.file_name().to_str()?.parse().ok())
                .flatten()
        });
    let pid = rustix::process::Pid::from_raw(found.expect("a proxy")).unwrap();
    let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    rustix::process::pidfd_send_signal(&handle, rustix::process::Signal::KILL).unwrap();
    let mut ended = [rustix::event::PollFd::new(
        &handle,
        rustix::event::PollFlags::IN,
    )];
    rustix::event::poll(&mut ended, None).unwrap();
}

async fn get(sandbox: &dyn Sandbox, port: u16) -> Result<String, RuntimeError> {
    let mut stream = sandbox.connect_port(port).await?;
    stream
        .write_all(b"GET /hello HTTP/1.0\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    Ok(answer)
}

#[tokio::test]
async fn a_program_that_listens_inside_is_reached_without_opening_the_network() {
    let fixture = fixture::native();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let nobody = get(&*sandbox, 8000).await.unwrap_err();
    assert!(
        nobody.to_string().contains("nothing listens on port 8000"),
        "{nobody}"
    );
    let serve = "echo inside > hello; python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & \
                 until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.01; done; echo up";
    assert!(output(&*sandbox, serve).await.ends_with("up"));
    for _ in 0..3 {
        let answer = get(&*sandbox, 8000).await.unwrap();
        assert!(
            answer.contains("200 OK") && answer.ends_with("inside\n"),
            "{answer}"
        );
    }
    let report = sandbox.inspect().await.unwrap();
    assert_eq!(report["listening"][0], "127.0.0.1:8000");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test]
async fn several_connections_are_made_at_once() {
    let fixture = fixture::native();
    let sandbox = fixture.runtime.create(spec()).await.unwrap();
    let serve = "echo inside > hello; python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & \
                 until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.01; done; echo up";
    assert!(output(&*sandbox, serve).await.ends_with("up"));
    let mut visits = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let sandbox = std::sync::Arc::clone(&sandbox);
        visits.spawn(async move { get(&*sandbox, 8000).await.unwrap() });
    }
    let answers = tokio::time::timeout(Duration::from_secs(60), visits.join_all())
        .await
        .unwrap();
    assert!(answers.iter().all(|answer| answer.contains("200 OK")));
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}
