//! What a question is answered with, and what is remembered of it.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;

use crate::denial::Denial;
use crate::dns::message::{self, ANSWERS_MAX, Received, Reply, Transport, Wanted};
use crate::host::HostName;
use crate::judge::Verdict;
use crate::proxy::Proxy;
use crate::record::{Decision, DecisionKind, End};
use crate::upstream::{Addresses, Family, ResolveError, Route};

/// What is said about a name.
enum Answer {
    Addresses {
        addresses: Vec<IpAddr>,
        ttl: Duration,
    },
    /// The name exists, what was asked for does not.
    Nothing,
    NoSuchName,
    Failed,
    /// The name does not exist for this sandbox.
    Denied(Denial),
    /// The name exists, and all of its addresses are denied.
    Withheld(Denial),
}

/// Answers a packet; `None` when it deserves no answer.
pub(crate) async fn answer(proxy: &Proxy, packet: &[u8], transport: Transport) -> Option<Vec<u8>> {
    let started = Instant::now();
    let mut decision = Decision::begin(DecisionKind::Dns);
    let reply = match message::read(packet) {
        Received::Nothing => return None,
        Received::Bad(reply) => {
            decision.deny(&Denial::Question);
            reply
        }
        Received::Lookup(lookup) => {
            decision.name = Some(lookup.name.to_string());
            let answer = look_up(proxy, &lookup.name, lookup.wanted, &mut decision).await;
            apply(answer, lookup.reply, &mut decision)
        }
    };
    decision.lasted(started.elapsed());
    proxy.recorder.record(decision).await;
    reply.encode(transport)
}

async fn look_up(
    proxy: &Proxy,
    name: &HostName,
    wanted: Wanted,
    decision: &mut Decision,
) -> Answer {
    if !proxy.may_look_up() {
        return Answer::Withheld(Denial::LookupRate);
    }
    match proxy.policy.judge_lookup(name) {
        Verdict::Allow { rule } => decision.allow(rule.to_string()),
        Verdict::Deny { reason } => return Answer::Denied(reason),
    }
    match wanted {
        Wanted::Addresses(family) => addresses(proxy, name, family).await,
        Wanted::Service => Answer::Nothing,
        Wanted::Other(record_type) => Answer::Withheld(Denial::RecordType {
            record_type: record_type.to_string(),
        }),
    }
}

/// Asks outside, judges every address (EG-4), and remembers those that may be answered.
async fn addresses(proxy: &Proxy, name: &HostName, family: Family) -> Answer {
    let found = match proxy.upstream.resolve(name, family).await {
        Ok(found) => found,
        Err(ResolveError::NoSuchName) => return Answer::NoSuchName,
        Err(error @ ResolveError::Failed { .. }) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%name, %error, cause, "cannot resolve");
            return Answer::Failed;
        }
    };
    let Addresses { addresses, ttl } = found;
    let mut withheld = None;
    let mut answered = Vec::new();
    for address in addresses.into_iter().take(ANSWERS_MAX) {
        match check(proxy, address) {
            Ok(Route::None) => {}
            Ok(Route::Out | Route::Own) => answered.push(address),
            Err(denial) => withheld = Some(denial),
        }
    }
    let now = Instant::now();
    for address in &answered {
        proxy.resolved().insert(name, *address, ttl, now);
    }
    match withheld {
        Some(denial) if answered.is_empty() => Answer::Withheld(denial),
        _ if answered.is_empty() => Answer::Nothing,
        _ => Answer::Addresses {
            addresses: answered,
            ttl,
        },
    }
}

/// An address without a route is left out without a word: a program that got an IPv6 address on
/// a machine without IPv6 would connect to us, succeed, and never try the other one.
fn check(proxy: &Proxy, address: IpAddr) -> Result<Route, Denial> {
    if let Some(denial) = proxy.policy.judge_answer(address) {
        return Err(denial);
    }
    proxy.check_route(address)?;
    Ok(proxy.upstream.route(address))
}

fn apply(answer: Answer, reply: Reply, decision: &mut Decision) -> Reply {
    decision.end = Some(End::Closed);
    match answer {
        Answer::Addresses { addresses, ttl } => {
            decision.address = addresses.first().copied();
            reply.addresses(&addresses, ttl)
        }
        Answer::Nothing => reply,
        Answer::NoSuchName => reply.code(ResponseCode::NXDomain),
        Answer::Failed => {
            decision.end = Some(End::Unresolved);
            reply.code(ResponseCode::ServFail)
        }
        Answer::Denied(denial) => {
            decision.deny(&denial);
            reply
                .code(ResponseCode::NXDomain)
                .because(&denial.to_string())
        }
        Answer::Withheld(denial) => {
            decision.deny(&denial);
            let code = match denial {
                Denial::LookupRate => ResponseCode::Refused,
                _ => ResponseCode::NoError,
            };
            reply.code(code).because(&denial.to_string())
        }
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
