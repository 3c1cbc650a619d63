//! One connection, from the moment it is accepted to the line in the log.
//!
//! Three ways lead out. A rule by address opens the address whatever is said on the connection,
//! so bytes pass at once. On ports 80 and 443 the client has to say a name first, by TLS or HTTP.
//! On other ports the name is known from the lookup that led there; the connection is made at
//! once, since the server may be the one who speaks first, and if the client then speaks TLS or
//! HTTP, the name that it says is checked before any of it passes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::denial::{Denial, Fault};
use crate::host::Host;
use crate::http;
use crate::judge::Verdict;
use crate::literal;
use crate::opening::{Opening, Patience, Unclear, read_opening};
use crate::proxy::Proxy;
use crate::record::{Decision, DecisionKind, End};
use crate::splice::{Direction, Stop, Traffic};

/// Ports on which the client names its server before anything is connected.
const WEB: [u16; 2] = [80, 443];
/// How long and for how many bytes a client that was answered in HTTP is read, so that it gets
/// to see the answer: closing on unread bytes would take it back.
const FAREWELL: Duration = Duration::from_secs(1);
const FAREWELL_BYTES: u64 = 64 * 1024;

/// How a connection that did not pass is ended.
enum Refusal {
    /// By a reset.
    Reset(Denial),
    /// By an answer that says why.
    Http(Denial),
}

/// How a connection that passed ended.
enum Passed {
    /// It ended by itself.
    Ended(End),
    /// It was HTTP and found nobody.
    HttpUnreachable,
    /// It was HTTP and has been answered.
    HttpAnswered,
}

/// Serves one connection whose program wanted `wanted`, and records what came of it.
pub(crate) async fn serve(proxy: Arc<Proxy>, mut client: TcpStream, wanted: SocketAddr) {
    let started = Instant::now();
    let mut decision = Decision::begin(DecisionKind::Tcp);
    decision.address = Some(literal::canonical(wanted.ip()));
    decision.port = Some(wanted.port());
    let traffic = Traffic::new(&proxy.meter);
    let connection = Connection {
        proxy: &proxy,
        // Without the flow and scope that only mean something inside the sandbox.
        wanted: SocketAddr::new(wanted.ip(), wanted.port()),
        traffic: &traffic,
    };
    let outcome = tokio::select! {
        outcome = connection.run(&mut client, &mut decision) => Some(outcome),
        () = proxy.closed() => None,
    };
    connection.finish(client, outcome, &mut decision).await;
    decision.bytes_up = traffic.bytes(Direction::Up);
    decision.bytes_down = traffic.bytes(Direction::Down);
    decision.lasted(started.elapsed());
    proxy.recorder.record(decision).await;
}

struct Connection<'a> {
    proxy: &'a Proxy,
    wanted: SocketAddr,
    traffic: &'a Traffic<'a>,
}

impl Connection<'_> {
    async fn run(
        &self,
        client: &mut TcpStream,
        decision: &mut Decision,
    ) -> Result<Passed, Refusal> {
        self.proxy.meter.check().map_err(Refusal::Reset)?;
        if let Verdict::Allow { rule } = self.proxy.judge(None, self.wanted) {
            decision.allow(rule.to_string());
            return self.by_address(client).await;
        }
        if WEB.contains(&self.wanted.port()) {
            self.by_greeting(client, decision).await
        } else {
            self.by_lookup(client, decision).await
        }
    }

    /// An address that is listed: everything passes.
    async fn by_address(&self, client: &mut TcpStream) -> Result<Passed, Refusal> {
        let Some(mut server) = self.connect().await else {
            return Ok(Passed::Ended(End::Unreachable));
        };
        let (mut client_reader, mut client_writer) = client.split();
        let (mut server_reader, mut server_writer) = server.split();
        let traffic = self.traffic;
        let up = traffic.copy(Direction::Up, &mut client_reader, &mut server_writer);
        let down = traffic.copy(Direction::Down, &mut server_reader, &mut client_writer);
        let ended = self.both(up, down).await;
        self.close(server, ended)
    }

    /// A port of the web: the client names its server before anything is connected.
    async fn by_greeting(
        &self,
        client: &mut TcpStream,
        decision: &mut Decision,
    ) -> Result<Passed, Refusal> {
        let (mut client_reader, mut client_writer) = client.split();
        let patience = Patience::FromNow(self.proxy.policy.limits().opening());
        let opening = read_opening(&mut client_reader, patience).await;
        let opening = opening.map_err(|unclear| self.unclear(unclear))?;
        self.name(&opening, decision);
        if let Opening::Raw { .. } = opening {
            return Err(Refusal::Reset(self.unreadable(Fault::Protocol)));
        }
        let rule = self.check(&opening)?;
        self.check_route(&opening)?;
        decision.allow(rule);
        let is_http = matches!(opening, Opening::Http { .. });
        let Some(mut server) = self.connect().await else {
            return Ok(match is_http {
                true => Passed::HttpUnreachable,
                false => Passed::Ended(End::Unreachable),
            });
        };
        let (mut server_reader, mut server_writer) = server.split();
        let up = self.forward(opening, &mut client_reader, &mut server_writer);
        let traffic = self.traffic;
        let down = traffic.copy(Direction::Down, &mut server_reader, &mut client_writer);
        let ended = self.both(up, down).await;
        self.close(server, ended)
    }

    /// Any other port: an allowed name led to this address.
    async fn by_lookup(
        &self,
        client: &mut TcpStream,
        decision: &mut Decision,
    ) -> Result<Passed, Refusal> {
        let opened = self.proxy.opened_by(self.wanted);
        let (name, rule) = opened.map_err(Refusal::Reset)?;
        decision.name = Some(name.to_string());
        let route = self.proxy.check_route(self.wanted.ip());
        route.map_err(Refusal::Reset)?;
        decision.allow(rule);
        let Some(mut server) = self.connect().await else {
            return Ok(Passed::Ended(End::Unreachable));
        };
        let (mut client_reader, mut client_writer) = client.split();
        let (mut server_reader, mut server_writer) = server.split();
        let patience = Patience::FromFirstByte(self.proxy.policy.limits().opening());
        let up = async {
            let opening = read_opening(&mut client_reader, patience).await;
            let opening = opening.map_err(|unclear| Stop::Unclear(unclear.fault))?;
            self.name(&opening, decision);
            if !matches!(opening, Opening::Raw { .. }) {
                let rule = self.check(&opening).map_err(Stop::from)?;
                decision.allow(rule);
            }
            self.forward(opening, &mut client_reader, &mut server_writer)
                .await
        };
        let traffic = self.traffic;
        let down = traffic.copy(Direction::Down, &mut server_reader, &mut client_writer);
        let ended = self.both(up, down).await;
        self.close(server, ended)
    }

    /// Writes down the name that the client says, whatever comes of it.
    fn name(&self, opening: &Opening, decision: &mut Decision) {
        match opening {
            Opening::Tls {
                name: Some(name), ..
            } => decision.name = Some(name.to_string()),
            Opening::Http { head, .. } => decision.name = Some(head.host.to_string()),
            Opening::Tls { name: None, .. } | Opening::Raw { .. } => {}
        }
    }

    /// The rule under which an opening may pass. The caller has dealt with what names nobody.
    fn check(&self, opening: &Opening) -> Result<String, Refusal> {
        let (address, port) = (self.wanted.ip(), self.wanted.port());
        match opening {
            Opening::Tls {
                name: Some(name), ..
            } => {
                let opened = self.proxy.opened_as(name, self.wanted);
                opened.map_err(Refusal::Reset)
            }
            Opening::Tls { name: None, .. } => {
                Err(Refusal::Reset(Denial::NoServerName { address, port }))
            }
            Opening::Http { head, .. } => self.check_request(head).map_err(Refusal::Http),
            Opening::Raw { .. } => Err(Refusal::Reset(self.unreadable(Fault::Protocol))),
        }
    }

    fn check_request(&self, head: &http::Head) -> Result<String, Denial> {
        if head.port.is_some_and(|port| port != self.wanted.port()) {
            return Err(self.unreadable(Fault::HttpPort));
        }
        match &head.host {
            Host::Name(name) => self.proxy.opened_as(name, self.wanted),
            // A listed address would have passed before anything was read.
            Host::Address(_) => match self.proxy.judge(None, self.wanted) {
                Verdict::Deny { reason } => Err(reason),
                Verdict::Allow { .. } => Err(self.unreadable(Fault::HttpHost)),
            },
        }
    }

    fn check_route(&self, opening: &Opening) -> Result<(), Refusal> {
        let route = self.proxy.check_route(self.wanted.ip());
        route.map_err(|denial| match opening {
            Opening::Http { .. } => Refusal::Http(denial),
            Opening::Tls { .. } | Opening::Raw { .. } => Refusal::Reset(denial),
        })
    }

    /// Connects to exactly the address that was judged.
    async fn connect(&self) -> Option<TcpStream> {
        let limit = self.proxy.policy.limits().connect();
        let connecting = self.proxy.upstream.connect(self.wanted);
        timeout(limit, connecting).await.ok()?.ok()
    }

    async fn forward(
        &self,
        opening: Opening,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Stop> {
        match opening {
            Opening::Http { head, rest } => self.traffic.request(head, rest, reader, writer).await,
            Opening::Tls { bytes, .. } | Opening::Raw { bytes } => {
                self.traffic.pass(Direction::Up, writer, &bytes).await?;
                drop(bytes);
                self.traffic.copy(Direction::Up, reader, writer).await
            }
        }
    }

    /// Runs both directions until both are done, one fails, or nothing has moved for too long.
    async fn both(
        &self,
        up: impl Future<Output = Result<(), Stop>>,
        down: impl Future<Output = Result<(), Stop>>,
    ) -> Result<End, Stop> {
        let idle = self.traffic.idle(self.proxy.policy.limits().idle());
        tokio::select! {
            done = async { tokio::try_join!(up, down) } => done.map(|_| End::Closed),
            () = idle => Ok(End::Idle),
        }
    }

    /// Lets the server know how it ended, and says what that means for the client.
    fn close(&self, server: TcpStream, ended: Result<End, Stop>) -> Result<Passed, Refusal> {
        if !matches!(ended, Ok(End::Closed) | Err(Stop::Answered)) {
            reset(server);
        }
        let has_heard_nothing = self.traffic.bytes(Direction::Down) == 0;
        match ended {
            Ok(end) => Ok(Passed::Ended(end)),
            Err(Stop::Answered) => Ok(Passed::HttpAnswered),
            Err(Stop::Broken) => Ok(Passed::Ended(End::Reset)),
            Err(Stop::DeniedRequest(denial)) if has_heard_nothing => Err(Refusal::Http(denial)),
            Err(Stop::Denied(denial) | Stop::DeniedRequest(denial)) => Err(Refusal::Reset(denial)),
            Err(Stop::Unclear(fault)) if has_heard_nothing && fault.is_of_http() => {
                Err(Refusal::Http(self.unreadable(fault)))
            }
            Err(Stop::Unclear(fault)) => Err(Refusal::Reset(self.unreadable(fault))),
        }
    }

    /// Ends the client's connection the way its outcome asks for, and notes the outcome.
    async fn finish(
        &self,
        mut client: TcpStream,
        outcome: Option<Result<Passed, Refusal>>,
        decision: &mut Decision,
    ) {
        match outcome {
            None if decision.rule.is_none() => {
                decision.deny(&self.unreadable(Fault::Shutdown));
                reset(client);
            }
            None => {
                decision.end = Some(End::Shutdown);
                reset(client);
            }
            Some(Ok(Passed::Ended(End::Closed))) => decision.end = Some(End::Closed),
            Some(Ok(Passed::Ended(end))) => {
                decision.end = Some(end);
                reset(client);
            }
            Some(Ok(Passed::HttpAnswered)) => {
                decision.end = Some(End::Closed);
                self.part(&mut client, &[]).await;
            }
            Some(Ok(Passed::HttpUnreachable)) => {
                decision.end = Some(End::Unreachable);
                let answer = http::unreachable(self.wanted.ip(), self.wanted.port());
                self.part(&mut client, &answer).await;
            }
            Some(Err(Refusal::Reset(denial))) => {
                decision.deny(&denial);
                reset(client);
            }
            Some(Err(Refusal::Http(denial))) => {
                decision.deny(&denial);
                self.part(&mut client, &http::denied(&denial)).await;
            }
        }
    }

    /// Says the last words and reads what the client still has to say, for a moment.
    async fn part(&self, client: &mut TcpStream, words: &[u8]) {
        let farewell = async {
            client.write_all(words).await?;
            client.shutdown().await?;
            let mut rest = client.take(FAREWELL_BYTES);
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
        };
        tokio::select! {
            // Whether the client heard it is the client's affair.
            _ = timeout(FAREWELL, farewell) => {}
            () = self.proxy.closed() => {}
        }
    }

    fn unclear(&self, unclear: Unclear) -> Refusal {
        let denial = self.unreadable(unclear.fault);
        match unclear.speaks_http {
            true => Refusal::Http(denial),
            false => Refusal::Reset(denial),
        }
    }

    fn unreadable(&self, fault: Fault) -> Denial {
        Denial::Unreadable {
            address: self.wanted.ip(),
            port: self.wanted.port(),
            fault,
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Reset(denial) => Self::Denied(denial),
            Refusal::Http(denial) => Self::DeniedRequest(denial),
        }
    }
}

/// Closes without a farewell, so that the other side sees that this was no regular end.
pub(crate) fn reset(stream: TcpStream) {
    // If it cannot be set, the connection is broken already.
    let _ = stream.set_zero_linger();
    drop(stream);
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
