//! The verdict: pure, without a clock and without IO, so that it can be replayed.
//!
//! It knows rules and kinds of addresses. Whether a name was really resolved to an address is
//! the connection's to check.

use std::net::IpAddr;

use crate::class;
use crate::denial::Denial;
use crate::host::HostName;
use crate::literal;
use crate::policy::Policy;
use crate::rule::Rule;

/// Where a connection wants to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The name that led there, when one is known.
    pub name: Option<&'a HostName>,
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// What is to be done with a connection or a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a verdict that is not followed protects nothing"]
pub enum Verdict<'p> {
    /// Let it pass.
    Allow {
        /// The rule that says so.
        rule: &'p Rule,
    },
    /// Stop it.
    Deny {
        /// Why, and what would have to change.
        reason: Denial,
    },
}

impl Policy {
    /// Judges a connection (EG-3, EG-6). Denying rules come first, then rules by address, which
    /// need no name, then rules by name, which open public addresses only.
    pub fn judge(&self, target: Target<'_>) -> Verdict<'_> {
        let Target {
            name,
            address,
            port,
        } = target;
        if let Some(reason) = self.denied(target) {
            return Verdict::Deny { reason };
        }
        if let Some(rule) = self.listing(address, port) {
            return Verdict::Allow { rule };
        }
        let by_name = name.and_then(|name| self.naming(name, port));
        if let Some(name) = name.filter(|_| by_name.is_none()) {
            let name = name.clone();
            let reason = Denial::NamePort { name, port };
            return Verdict::Deny { reason };
        }
        if let Some(special) = class::special(address) {
            let class = special.class;
            let address = literal::canonical(address);
            let reason = Denial::Special { address, class };
            return Verdict::Deny { reason };
        }
        match by_name {
            Some(rule) => Verdict::Allow { rule },
            None => {
                let address = literal::canonical(address);
                let reason = Denial::Address { address, port };
                Verdict::Deny { reason }
            }
        }
    }

    /// Judges a lookup (EG-5): whether some rule allows the name on some port.
    pub fn judge_lookup(&self, name: &HostName) -> Verdict<'_> {
        if name.is_local() {
            let reason = Denial::LocalName { name: name.clone() };
            return Verdict::Deny { reason };
        }
        let mut denying = self.deny().iter().filter(|rule| rule.denies_every_port());
        if let Some(rule) = denying.find(|rule| rule.matches_name(name)) {
            let reason = denial_by(name, rule);
            return Verdict::Deny { reason };
        }
        match self.allow().iter().find(|rule| rule.matches_name(name)) {
            Some(rule) => Verdict::Allow { rule },
            None => {
                let reason = Denial::Name { name: name.clone() };
                Verdict::Deny { reason }
            }
        }
    }

    /// Whether a name may be answered with this address (EG-4); `None` when it may.
    pub fn judge_answer(&self, address: IpAddr) -> Option<Denial> {
        let mut denying = self.deny().iter().filter(|rule| rule.denies_every_port());
        if let Some(rule) = denying.find(|rule| rule.covers_address(address)) {
            return Some(denial_by(address, rule));
        }
        let special = class::special(address)?;
        (!self.lists(address)).then_some(Denial::Special {
            address: literal::canonical(address),
            class: special.class,
        })
    }

    /// Whether some rule opens the address on some port.
    pub(crate) fn lists(&self, address: IpAddr) -> bool {
        self.allow().iter().any(|rule| rule.lists_address(address))
    }

    /// The rule that opens an address on a port, whatever name led there.
    fn listing(&self, address: IpAddr, port: u16) -> Option<&Rule> {
        self.allow()
            .iter()
            .find(|rule| rule.allows_port(port) && rule.lists_address(address))
    }

    fn naming(&self, name: &HostName, port: u16) -> Option<&Rule> {
        self.allow()
            .iter()
            .find(|rule| rule.allows_port(port) && rule.matches_name(name))
    }

    fn denied(&self, target: Target<'_>) -> Option<Denial> {
        if let Some(name) = target.name.filter(|name| name.is_local()) {
            return Some(Denial::LocalName { name: name.clone() });
        }
        let mut rules = self
            .deny()
            .iter()
            .filter(|rule| rule.denies_port(target.port));
        rules.find_map(|rule| match target.name {
            Some(name) if rule.matches_name(name) => Some(denial_by(name, rule)),
            _ if rule.covers_address(target.address) => Some(denial_by(target.address, rule)),
            _ => None,
        })
    }
}

fn denial_by(subject: impl ToString, rule: &Rule) -> Denial {
    Denial::Rule {
        subject: subject.to_string(),
        rule: rule.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::AddressClass;
    use crate::limits::Limits;

    const PUBLIC: &str = "93.184.215.14";

    fn policy(allow: &[&str], deny: &[&str]) -> Policy {
        let rules = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| Rule::parse(text).unwrap())
                .collect()
        };
        Policy::new(rules(allow), rules(deny), Limits::default()).unwrap()
    }

    /// The rule that allows, or the code of the denial.
    fn judge(policy: &Policy, name: &str, address: &str, port: u16) -> String {
        let name = (!name.is_empty()).then(|| HostName::parse(name).unwrap());
        let verdict = policy.judge(Target {
            name: name.as_ref(),
            address: address.parse().unwrap(),
            port,
        });
        match verdict {
            Verdict::Allow { rule } => rule.to_string(),
            Verdict::Deny { reason } => reason.code().to_owned(),
        }
    }

    #[test]
    fn names_are_matched_by_whole_labels_eg_3() {
        let policy = policy(&["example.com", "*.wild.example", "odd.example:8443"], &[]);
        for (name, port, expected) in [
            ("example.com", 443, "example.com"),
            ("example.com", 80, "example.com"),
            ("example.com", 8443, "name_not_allowed"),
            ("www.example.com", 443, "name_not_allowed"),
            ("badexample.com", 443, "name_not_allowed"),
            ("example.com.evil.org", 443, "name_not_allowed"),
            ("a.wild.example", 443, "*.wild.example"),
            ("a.b.wild.example", 443, "*.wild.example"),
            ("wild.example", 443, "name_not_allowed"),
            ("odd.example", 8443, "odd.example:8443"),
            ("odd.example", 443, "name_not_allowed"),
            ("localhost", 443, "local_name"),
        ] {
            assert_eq!(
                judge(&policy, name, PUBLIC, port),
                expected,
                "{name}:{port}"
            );
        }
    }

    #[test]
    fn deny_wins_over_every_allow_eg_3() {
        let policy = policy(
            &[
                "*.example.com",
                "bad.example.com",
                "1.2.3.0/24",
                "a.example.com:8443",
            ],
            &["bad.example.com", "1.2.3.4", "a.example.com:443", "5.6.7.8"],
        );
        for (name, address, port, expected) in [
            ("bad.example.com", PUBLIC, 443, "denied_by_rule"),
            ("good.example.com", PUBLIC, 443, "*.example.com"),
            ("good.example.com", "5.6.7.8", 443, "denied_by_rule"),
            ("", "1.2.3.4", 443, "denied_by_rule"),
            ("", "1.2.3.5", 443, "1.2.3.0/24"),
            ("bad.example.com", "1.2.3.5", 443, "denied_by_rule"),
            ("a.example.com", PUBLIC, 443, "denied_by_rule"),
            ("a.example.com", PUBLIC, 80, "*.example.com"),
            ("a.example.com", PUBLIC, 8443, "a.example.com:8443"),
        ] {
            let found = judge(&policy, name, address, port);
            assert_eq!(found, expected, "{name} {address}:{port}");
        }
    }

    #[test]
    fn a_name_never_leads_to_a_special_address_eg_6() {
        let policy = policy(&["example.com", "10.1.2.3", "169.254.0.0/16"], &[]);
        for (address, expected) in [
            ("127.0.0.1", "special_address"),
            ("169.254.169.254", "special_address"),
            ("::ffff:169.254.169.254", "special_address"),
            ("64:ff9b::a9fe:a9fe", "special_address"),
            ("2002:a9fe:a9fe::", "special_address"),
            ("fd00:ec2::254", "special_address"),
            ("100.100.100.200", "special_address"),
            ("168.63.129.16", "special_address"),
            ("192.0.0.192", "special_address"),
            ("10.1.2.4", "special_address"),
            ("192.168.0.1", "special_address"),
            ("100.64.0.1", "special_address"),
            ("0.0.0.0", "special_address"),
            ("224.0.0.1", "special_address"),
            ("::1", "special_address"),
            ("fe80::1", "special_address"),
            ("10.1.2.3", "10.1.2.3"),
            ("169.254.1.1", "169.254.0.0/16"),
            (PUBLIC, "example.com"),
        ] {
            assert_eq!(
                judge(&policy, "example.com", address, 443),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn an_address_without_a_name_needs_a_rule_by_address_eg_4() {
        let policy = policy(&["example.com", "9.9.9.9:853"], &[]);
        assert_eq!(judge(&policy, "", PUBLIC, 443), "address_not_allowed");
        assert_eq!(judge(&policy, "", "9.9.9.9", 853), "9.9.9.9:853");
        assert_eq!(judge(&policy, "", "9.9.9.9", 443), "address_not_allowed");
        assert_eq!(judge(&policy, "", "10.0.0.1", 443), "special_address");
    }

    #[test]
    fn lookups_are_allowed_for_names_that_some_rule_could_match_eg_5() {
        let policy = policy(
            &["example.com:8443", "*.wild.example", "1.2.3.4"],
            &["no.wild.example", "half.wild.example:80"],
        );
        for (name, is_allowed) in [
            ("example.com", true),
            ("a.wild.example", true),
            ("half.wild.example", true),
            ("no.wild.example", false),
            ("wild.example", false),
            ("data.example.com", false),
            ("localhost", false),
        ] {
            let name = HostName::parse(name).unwrap();
            let is_found = matches!(policy.judge_lookup(&name), Verdict::Allow { .. });
            assert_eq!(is_found, is_allowed, "{name}");
        }
    }

    #[test]
    fn answers_with_special_addresses_are_denied_unless_listed_eg_4() {
        let policy = policy(&["example.com", "10.1.2.3:5432"], &["6.6.6.6"]);
        let judge = |address: &str| policy.judge_answer(address.parse().unwrap());
        assert_eq!(judge(PUBLIC), None);
        assert_eq!(judge("10.1.2.3"), None);
        let address = "10.1.2.4".parse().unwrap();
        let class = AddressClass::Private;
        assert_eq!(judge("10.1.2.4"), Some(Denial::Special { address, class }));
        assert_eq!(
            judge("6.6.6.6").map(|denial| denial.code()),
            Some("denied_by_rule")
        );
    }

    #[test]
    fn a_denial_says_what_is_missing() {
        let policy = policy(&[], &[]);
        let message = |name: Option<&HostName>, address: &str, port| {
            let address = address.parse().unwrap();
            match policy.judge(Target {
                name,
                address,
                port,
            }) {
                Verdict::Deny { reason } => reason.to_string(),
                Verdict::Allow { rule } => panic!("allowed by {rule}"),
            }
        };
        let name = HostName::parse("example.com").unwrap();
        assert_eq!(
            message(Some(&name), PUBLIC, 443),
            "`example.com:443` is not allowed; add `example.com` to native.allow"
        );
        assert_eq!(
            message(Some(&name), PUBLIC, 8443),
            "`example.com:8443` is not allowed; add `example.com:8443` to native.allow"
        );
        assert_eq!(
            message(None, "2606:4700::1", 22),
            "2606:4700::1 port 22 is not allowed; connect by a name that is, or add \
             `[2606:4700::1]:22` to native.allow"
        );
        assert_eq!(
            message(None, "::ffff:169.254.169.254", 80),
            "169.254.169.254 is a cloud metadata service, which only a rule by address opens; \
             add `169.254.169.254` to native.allow if it is meant"
        );
    }
}
