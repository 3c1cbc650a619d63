//! What a caller may ask of a sandbox: less than the operator's settings give, and more only where the
//! operator or the key's own maxima say so.

mod parts;
mod reach;

use zareba_protocol::amounts::show_bytes;
use zareba_runtime::{
    Grant, NetworkGrant, NetworkRequest, RequestField, Runtime, SandboxRequest,
    request::is_stricter,
};

use crate::{NewSession, SessionError};

pub use parts::PermittedParts;
pub use reach::PermittedReach;

/// The most that may be asked for; `None` sets no bound of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestMaxima {
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u32>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Bytes that changes to files may take.
    pub disk_bytes: Option<u64>,
}

/// What the operator lets callers ask for beyond what the runtime's own settings give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Amounts; `None` is what the runtime's own settings give.
    pub maxima: RequestMaxima,
    /// Networks beside the runtime's own and those that are stricter.
    pub networks: Vec<String>,
    /// Which hosts a filtered network may let through.
    pub rules: PermittedRules,
}

/// Which hosts a filtered network may let through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermittedRules {
    /// Those that the operator's own rules let through.
    #[default]
    Configured,
    /// Whatever a rule can name, private addresses as well.
    Any,
}

/// The request as it is made of the runtime: within all bounds, and with the bounds that are
/// below what the runtime would give by itself.
pub(crate) fn permitted(
    new: &NewSession,
    runtime: &dyn Runtime,
    permissions: &Permissions,
) -> Result<SandboxRequest, SessionError> {
    let usual = runtime.grant(&SandboxRequest::default())?;
    let mut request = new.request.clone();
    let times = new.scale.map_or(1, std::num::NonZeroU8::get);
    if times > 1 && usual.memory_bytes.is_none() {
        return Err(SessionError::Invalid {
            message: format!(
                "the runtime `{}` limits neither memory nor processors",
                runtime.name()
            ),
        });
    }
    amounts(
        &mut request,
        &usual,
        times.into(),
        new.maxima,
        permissions.maxima,
    )?;
    if let (Some(asked), Some(own)) = (request.workspace_mode, usual.workspace_mode)
        && asked > own
    {
        let (asked, own) = (asked.as_str(), own.as_str());
        let hint = format!("ask for `{own}`; the operator chooses it by `native.workspace_mode`");
        return Err(beyond(RequestField::WorkspaceMode, asked, own, hint));
    }
    if let (Some(asked), Some(own)) = (&request.network, &usual.network) {
        network(asked, own, runtime, permissions)?;
    }
    // Only what a key closes further is changed here: what was asked for is permitted by now.
    let own = usual.network.as_ref();
    new.reach.settle(&mut request, own, runtime)?;
    Ok(request)
}

fn amounts(
    request: &mut SandboxRequest,
    usual: &Grant,
    times: u32,
    of_key: RequestMaxima,
    of_operator: RequestMaxima,
) -> Result<(), SessionError> {
    let bytes = |asked, usual: Option<u64>, times: u32, of_key, of_operator| Amount {
        asked,
        usual: usual.map(|usual| usual.saturating_mul(times.into())),
        is_scaled: times > 1,
        of_key,
        of_operator,
    };
    let count =
        |asked: Option<u32>, usual: Option<u32>, times, of_key: Option<u32>, own: Option<u32>| {
            let wide = |number: Option<u32>| number.map(u64::from);
            bytes(wide(asked), wide(usual), times, wide(of_key), wide(own))
        };
    let narrow =
        |number: Option<u64>| number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let processors = |millis: u64| (millis as f64 / 1000.0).to_string();
    let RequestMaxima {
        memory_bytes,
        cpu_millis,
        pids,
        disk_bytes,
    } = of_key;
    let memory = bytes(
        request.memory_bytes,
        usual.memory_bytes,
        times,
        memory_bytes,
        of_operator.memory_bytes,
    );
    request.memory_bytes = memory.settle(RequestField::Memory, show_bytes)?;
    let disk = bytes(
        request.disk_bytes,
        usual.disk_bytes,
        1,
        disk_bytes,
        of_operator.disk_bytes,
    );
    request.disk_bytes = disk.settle(RequestField::Disk, show_bytes)?;
    let pids = count(request.pids, usual.pids, 1, pids, of_operator.pids);
    request.pids = narrow(pids.settle(RequestField::Pids, |pids| pids.to_string())?);
    let cpus = count(
        request.cpu_millis,
        usual.cpu_millis,
        times,
        cpu_millis,
        of_operator.cpu_millis,
    );
    request.cpu_millis = narrow(cpus.settle(RequestField::Cpus, processors)?);
    Ok(())
}

/// One amount and what bounds it.
struct Amount {
    asked: Option<u64>,
    /// What the runtime gives by itself.
    usual: Option<u64>,
    is_scaled: bool,
    of_key: Option<u64>,
    of_operator: Option<u64>,
}

impl Amount {
    /// What to ask of the runtime.
    fn settle(
        self,
        field: RequestField,
        show: impl Fn(u64) -> String,
    ) -> Result<Option<u64>, SessionError> {
        let asked = self.asked.or(self.usual.filter(|_| self.is_scaled));
        let of_operator = self.of_operator.or(self.usual);
        let most = match (of_operator, self.of_key) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let Some(most) = most else { return Ok(asked) };
        match asked {
            Some(asked) if asked > most => {
                let hint = match self.of_key {
                    Some(of_key) if of_key == most => {
                        format!(
                            "ask for {} or less, or use a key that may have more",
                            show(most)
                        )
                    }
                    _ => format!(
                        "ask for {} or less; the operator raises the maximum by `sessions.{field}_max`",
                        show(most)
                    ),
                };
                Err(beyond(field, &show(asked), &show(most), hint))
            }
            // What the runtime gives by itself may be more than somebody may have.
            None if self.usual.is_some_and(|usual| usual > most) => Ok(Some(most)),
            asked => Ok(asked),
        }
    }
}

fn network(
    asked: &NetworkRequest,
    own: &NetworkGrant,
    runtime: &dyn Runtime,
    permissions: &Permissions,
) -> Result<(), SessionError> {
    let NetworkRequest {
        mode,
        allow,
        deny: _,
    } = asked;
    let mode = match mode {
        Some(mode) => mode.as_str(),
        None if allow.is_some() => "filtered",
        None => own.mode.as_str(),
    };
    let is_listed = permissions.networks.iter().any(|listed| listed == mode);
    if !(mode == own.mode || is_stricter(mode, &own.mode) || is_listed) {
        let hint = format!(
            "ask for `{}` or a stricter one; the operator permits others by `sessions.networks`",
            own.mode
        );
        return Err(beyond(RequestField::Network, mode, &own.mode, hint));
    }
    if permissions.rules == PermittedRules::Any {
        return Ok(());
    }
    for rule in allow.iter().flatten() {
        if !runtime.covers_rule(rule) {
            let hint = "ask for hosts of the operator's own list; the operator adds to it by `native.allow`, or permits all by `sessions.network_rules`";
            let most = "the hosts of the operator's list";
            return Err(beyond(RequestField::Allow, rule, most, hint.to_owned()));
        }
    }
    Ok(())
}

fn beyond(field: RequestField, asked: &str, most: &str, hint: String) -> SessionError {
    let shown: String = asked.chars().take(200).collect();
    SessionError::NotPermitted {
        field,
        message: format!(
            "`{field}` may be at most {most}, and {} was asked for",
            shown.escape_debug()
        ),
        hint,
    }
}

#[cfg(test)]
#[path = "permit_tests.rs"]
mod tests;
