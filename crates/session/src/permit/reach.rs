//! What the holder of a key may let a session reach, where that is less than the operator's settings allow.

use zareba_runtime::{
    Grant, NetworkGrant, NetworkRequest, RequestField, Runtime, SandboxRequest,
    request::is_stricter,
};

use super::beyond;
use crate::SessionError;

/// The network in which hosts can be listed.
const FILTERED: &str = "filtered";
/// The network that every key may ask for.
const NONE: &str = "none";

/// What a session of a key may reach; `None` sets no bound of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermittedReach {
    /// Networks, with those that are stricter than one of them. `none` is always among them.
    pub networks: Option<Vec<String>>,
    /// Rules that cover every host of a filtered network. No other network that reaches anything is
    /// permitted then, because no other one is held to hosts.
    pub hosts: Option<Vec<String>>,
}

impl PermittedReach {
    fn is_bounded(&self) -> bool {
        self.networks.is_some() || self.hosts.is_some()
    }

    fn permits(&self, mode: &str) -> bool {
        let is_listed = self.networks.as_ref().is_none_or(|networks| {
            let covers = |network: &String| network == mode || is_stricter(mode, network);
            networks.iter().any(covers)
        });
        let is_held_to_hosts = self.hosts.is_none() || mode == FILTERED;
        mode == NONE || (is_listed && is_held_to_hosts)
    }

    /// Refuses a network that the key may not ask for, and closes one that nobody has asked for.
    pub(super) fn settle(
        &self,
        request: &mut SandboxRequest,
        own: Option<&NetworkGrant>,
        runtime: &dyn Runtime,
    ) -> Result<(), SessionError> {
        if !self.is_bounded() {
            return Ok(());
        }
        let Some(own) = own else {
            return Err(self.beyond_networks("a network that the runtime does not tell"));
        };
        let asked = request.network.as_ref();
        let asked_mode = asked.and_then(|network| match &network.mode {
            Some(mode) => Some(mode.clone()),
            None => network.allow.is_some().then(|| FILTERED.to_owned()),
        });
        let mode = match asked_mode {
            Some(mode) if self.permits(&mode) => mode,
            Some(mode) => return Err(self.beyond_networks(&mode)),
            None if self.permits(&own.mode) => own.mode.clone(),
            None => self.loosest_below(&own.mode, runtime),
        };
        let network = request.network.get_or_insert_default();
        if mode != own.mode || network.mode.is_some() {
            network.mode = Some(mode.clone());
        }
        if let (FILTERED, Some(hosts)) = (mode.as_str(), &self.hosts) {
            network.allow = Some(hosts_within(hosts, network, runtime)?);
        }
        if *network == NetworkRequest::default() {
            request.network = None;
        }
        Ok(())
    }

    /// The first network of the key that is stricter than the runtime's own and that the runtime has.
    fn loosest_below(&self, own: &str, runtime: &dyn Runtime) -> String {
        let filtered = [FILTERED.to_owned()];
        let candidates = match (&self.hosts, &self.networks) {
            (Some(_), _) => filtered.as_slice(),
            (None, networks) => networks.as_deref().unwrap_or_default(),
        };
        let fits = |mode: &&String| {
            self.permits(mode)
                && is_stricter(mode, own)
                && runtime.grant(&asking_for(mode.as_str())).is_ok()
        };
        candidates
            .iter()
            .find(fits)
            .map_or(NONE, String::as_str)
            .to_owned()
    }

    /// Refuses a sandbox that is not held to what the key may reach: best effort is no way around that.
    pub(crate) fn require_held(&self, grant: &Grant) -> Result<(), SessionError> {
        if !self.is_bounded() {
            return Ok(());
        }
        let of_network = [
            RequestField::Network,
            RequestField::Allow,
            RequestField::Deny,
        ];
        let mode = grant.network.as_ref().map(|network| network.mode.as_str());
        let is_held = !grant
            .not_held
            .iter()
            .any(|field| of_network.contains(field));
        match mode {
            Some(mode) if is_held && self.permits(mode) => Ok(()),
            mode => {
                Err(self
                    .beyond_networks(mode.unwrap_or("a network that the runtime does not tell")))
            }
        }
    }

    fn beyond_networks(&self, asked: &str) -> SessionError {
        let listed = match (&self.hosts, &self.networks) {
            (Some(_), _) if self.permits(FILTERED) => format!("`{FILTERED}` or `{NONE}`"),
            (None, Some(networks)) if !networks.is_empty() => networks
                .iter()
                .map(|network| format!("`{network}`"))
                .collect::<Vec<_>>()
                .join(", "),
            _ => format!("`{NONE}`"),
        };
        let hint = format!(
            "ask for {listed} and a runtime that holds it, or use a key that may have more"
        );
        beyond(RequestField::Network, asked, &listed, hint)
    }
}

/// The rules of a filtered network: those that were asked for, each covered by the key's, or what the
/// operator's rules and the key's both let through.
fn hosts_within(
    hosts: &[String],
    network: &NetworkRequest,
    runtime: &dyn Runtime,
) -> Result<Vec<String>, SessionError> {
    if let Some(asked) = &network.allow {
        for rule in asked {
            if !runtime.rules_cover(hosts, rule) {
                let hint = "ask for hosts of the key's own list, or use a key that may have more";
                let most = "the hosts of the key's list";
                return Err(beyond(RequestField::Allow, rule, most, hint.to_owned()));
            }
        }
        return Ok(asked.clone());
    }
    let filtered = runtime.grant(&asking_for(FILTERED))?.network;
    let of_operator = filtered.map(|network| network.allow).unwrap_or_default();
    let within_operator = hosts.iter().filter(|host| runtime.covers_rule(host));
    let mut both: Vec<String> = within_operator.cloned().collect();
    for rule in of_operator {
        if runtime.rules_cover(hosts, &rule) && !both.contains(&rule) {
            both.push(rule);
        }
    }
    Ok(both)
}

fn asking_for(mode: &str) -> SandboxRequest {
    SandboxRequest {
        network: Some(NetworkRequest {
            mode: Some(mode.to_owned()),
            ..NetworkRequest::default()
        }),
        ..SandboxRequest::default()
    }
}
