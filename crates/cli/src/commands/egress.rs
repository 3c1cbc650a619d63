//! `zareba egress`: the proxy of one sandbox.
//!
//! It lives as long as its standard input, which its supervisor holds.

use std::net::{TcpListener, UdpSocket};

use tokio::{io::AsyncReadExt as _, runtime};
use zareba_egress::{Output, Policy, Sockets, serve};
use zareba_terminal::take_inherited;

use crate::{
    arguments::EgressArguments,
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Passes traffic on until the supervisor is gone.
pub(super) fn perform(arguments: &EgressArguments) -> Result<Exit, Failure> {
    let policy: Policy = serde_json::from_str(&arguments.policy)
        .map_err(|error| Failure::of(Exit::Usage, &error).while_doing("cannot read the policy"))?;
    let take = |number: &i32| take_inherited(*number);
    let tcp = arguments.tcp.iter().map(take);
    let udp = arguments.udp.iter().map(take);
    let sockets = Sockets {
        tcp: tcp
            .map(|socket| socket.map(TcpListener::from))
            .collect::<Result<_, _>>()
            .or_fail(Exit::Start, "cannot take the sandbox's sockets")?,
        udp: udp
            .map(|socket| socket.map(UdpSocket::from))
            .collect::<Result<_, _>>()
            .or_fail(Exit::Start, "cannot take the sandbox's sockets")?,
    };
    let output = Output {
        decisions: arguments.decisions.clone(),
        counters: arguments.counters.clone(),
    };
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start the proxy")?;
    runtime
        .block_on(serve(sockets, policy, output, supervisor_gone()))
        .map_err(|error| Failure::of(Exit::Failure, &error))?;
    Ok(Exit::Success)
}

/// Nothing is ever written there.
async fn supervisor_gone() {
    let standard = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
    let lifeline = standard
        .map_err(std::io::Error::from)
        .and_then(tokio::net::unix::pipe::Receiver::from_owned_fd);
    if let Ok(mut lifeline) = lifeline {
        let _ = lifeline.read_u8().await;
    }
}
