//! From what a caller asks of a sandbox to what stands around it.

use zareba_egress::{Limits, Policy, Rule};
use zareba_runtime::{
    Grant, NetworkGrant, NetworkRequest, RequestField, RuntimeError, SandboxRequest,
    request::{Shortfall, refuse_plugins},
};

use super::{
    NAME, Reachable, Usage, Walls,
    disk::DiskLimit,
    holds::{Hold, can_hold},
};

/// The walls of one sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) walls: Walls,
    pub(crate) not_held: Vec<RequestField>,
}

impl Answer {
    /// What is in force behind these walls.
    pub(crate) fn grant(&self) -> Grant {
        let Walls {
            workspace,
            system: _,
            guarded: _,
            home_tools: _,
            network,
            usage,
            strictness,
        } = &self.walls;
        let Usage {
            memory_bytes,
            pids,
            cpu_millis,
            disk,
        } = usage;
        let holds = can_hold(*strictness);
        Grant {
            network: Some(network_grant(network)),
            memory_bytes: holds.memory.holds().then_some(*memory_bytes),
            cpu_millis: holds.cpus.holds().then_some(*cpu_millis),
            pids: holds.pids.holds().then_some(*pids),
            disk_bytes: Some(disk.bytes),
            workspace_mode: Some(*workspace),
            user: None,
            not_held: self.not_held.clone(),
        }
    }
}

/// Decides what a request gets, from the operator's walls and rules.
pub(crate) fn answer(
    walls: &Walls,
    rules: Option<&Policy>,
    request: &SandboxRequest,
) -> Result<Answer, RuntimeError> {
    request.check_amounts()?;
    let SandboxRequest {
        network,
        memory_bytes,
        cpu_millis,
        pids,
        disk_bytes,
        workspace_mode,
        user,
        mounts,
        plugins,
        strictness,
    } = request;
    refuse_plugins(NAME, plugins)?;
    let mut shortfall = Shortfall::new(NAME, *strictness);
    let network = match network {
        Some(asked) => reachable(walls, rules, asked, &mut shortfall)?,
        None => walls.network.clone(),
    };
    let holds = can_hold(*strictness);
    for (field, is_asked, hold) in [
        (RequestField::Memory, memory_bytes.is_some(), holds.memory),
        (RequestField::Cpus, cpu_millis.is_some(), holds.cpus),
        (RequestField::Pids, pids.is_some(), holds.pids),
        (RequestField::Disk, disk_bytes.is_some(), holds.disk),
    ] {
        if let (true, Hold::No { reason, remedy }) = (is_asked, hold) {
            shortfall.lacks(field, reason, remedy)?;
        }
    }
    if user.is_some() {
        let reason = "a sandbox has a user of its own, which is nobody outside";
        let remedy = "leave it out, or use the runtime `docker`";
        shortfall.lacks(RequestField::User, reason, remedy)?;
    }
    if !mounts.is_empty() {
        let reason = "only the workspace of a sandbox comes from this machine";
        let remedy = "put the files into the workspace or upload them, or use the runtime `docker`";
        shortfall.lacks(RequestField::Mounts, reason, remedy)?;
    }
    let usual = walls.usage;
    Ok(Answer {
        walls: Walls {
            workspace: workspace_mode.unwrap_or(walls.workspace),
            system: walls.system,
            guarded: walls.guarded.clone(),
            home_tools: walls.home_tools,
            network,
            usage: Usage {
                memory_bytes: memory_bytes.unwrap_or(usual.memory_bytes),
                pids: pids.unwrap_or(usual.pids),
                cpu_millis: cpu_millis.unwrap_or(usual.cpu_millis),
                disk: DiskLimit {
                    bytes: disk_bytes.unwrap_or(usual.disk.bytes),
                    inodes: usual.disk.inodes,
                },
            },
            strictness: *strictness,
        },
        not_held: shortfall.into_fields(),
    })
}

fn network_grant(network: &Reachable) -> NetworkGrant {
    match network {
        Reachable::Nothing => NetworkGrant::of("none"),
        Reachable::Everything => NetworkGrant::of("host"),
        Reachable::Listed(policy) => NetworkGrant {
            mode: "filtered".to_owned(),
            allow: policy.allow().iter().map(Rule::to_string).collect(),
            deny: policy.deny().iter().map(Rule::to_string).collect(),
        },
    }
}

/// The network of a request. Rules that allow take the place of the operator's, rules that deny
/// stand beside them.
fn reachable(
    walls: &Walls,
    rules: Option<&Policy>,
    asked: &NetworkRequest,
    shortfall: &mut Shortfall,
) -> Result<Reachable, RuntimeError> {
    let NetworkRequest { mode, allow, deny } = asked;
    let has_rules = allow.is_some() || !deny.is_empty();
    let usual = network_grant(&walls.network).mode;
    let mode = match mode {
        Some(mode) => mode.as_str(),
        // Without a word for it, a list of what may be reached means that nothing else may.
        None if allow.is_some() => "filtered",
        None => &usual,
    };
    let own = match &walls.network {
        Reachable::Listed(policy) => Some(policy),
        _ => rules,
    };
    let network = match mode {
        "none" => Reachable::Nothing,
        "host" => Reachable::Everything,
        "filtered" => return listed(own, asked),
        other => {
            let reason = format!("it knows no network `{other}`");
            let remedy = "use `none`, `filtered` or `host`";
            shortfall.lacks(RequestField::Network, reason, remedy)?;
            return Ok(walls.network.clone());
        }
    };
    if has_rules {
        let field = if allow.is_some() {
            RequestField::Allow
        } else {
            RequestField::Deny
        };
        let reason = format!("rules have no meaning for the network `{mode}`");
        shortfall.lacks(
            field,
            reason,
            "ask for the network `filtered`, or leave them out",
        )?;
    }
    Ok(network)
}

fn listed(own: Option<&Policy>, asked: &NetworkRequest) -> Result<Reachable, RuntimeError> {
    let mut allow = own.map_or_else(Vec::new, |own| own.allow().to_vec());
    if let Some(asked) = &asked.allow {
        allow = read(asked, RequestField::Allow)?;
    }
    let mut deny = own.map_or_else(Vec::new, |own| own.deny().to_vec());
    for rule in read(&asked.deny, RequestField::Deny)? {
        if !deny.contains(&rule) {
            deny.push(rule);
        }
    }
    let limits = own.map_or_else(Limits::default, |own| own.limits().clone());
    let policy = Policy::new(allow, deny, limits);
    let policy = policy.map_err(|error| RuntimeError::Invalid {
        message: format!("the rules of the network: {error}"),
    })?;
    Ok(Reachable::Listed(policy))
}

fn read(texts: &[String], field: RequestField) -> Result<Vec<Rule>, RuntimeError> {
    let read = texts.iter().map(|text| Rule::parse(text));
    read.collect::<Result<_, _>>()
        .map_err(|error| RuntimeError::Invalid {
            message: format!("`{field}`: {error}: {}", error.fault),
        })
}

/// Whether the operator's rules let through all that this one does.
pub(crate) fn covers_rule(walls: &Walls, rules: Option<&Policy>, rule: &str) -> bool {
    let own = match &walls.network {
        Reachable::Everything => return true,
        Reachable::Listed(policy) => Some(policy),
        Reachable::Nothing => rules,
    };
    let Ok(asked) = Rule::parse(rule) else {
        return false;
    };
    own.is_some_and(|own| own.allow().iter().any(|own| own.allows_all_of(&asked)))
}

#[cfg(test)]
#[path = "asked_tests.rs"]
mod tests;
