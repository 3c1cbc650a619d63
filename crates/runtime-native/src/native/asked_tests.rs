//! Tests of what a request gets.

use zareba_runtime::{Strictness, WorkspaceMode};

use super::*;
use crate::{DiskLimit, SystemMode};

fn walls(network: Reachable) -> Walls {
    Walls {
        workspace: WorkspaceMode::CopyOnWrite,
        system: SystemMode::CopyOnWrite,
        guarded: Vec::new(),
        home_tools: crate::HomeAccess::Hidden,
        network,
        usage: Usage {
            memory_bytes: 1 << 30,
            pids: 256,
            cpu_millis: 1000,
            disk: DiskLimit {
                bytes: 1 << 30,
                inodes: 1000,
            },
        },
        strictness: Strictness::Strict,
    }
}

fn policy(allow: &[&str], deny: &[&str]) -> Policy {
    let rules = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| Rule::parse(text).unwrap())
            .collect()
    };
    Policy::new(rules(allow), rules(deny), Limits::default()).unwrap()
}

fn network(mode: Option<&str>, allow: Option<&[&str]>, deny: &[&str]) -> SandboxRequest {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    SandboxRequest {
        network: Some(NetworkRequest {
            mode: mode.map(str::to_owned),
            allow: allow.map(owned),
            deny: owned(deny),
        }),
        ..SandboxRequest::default()
    }
}

#[test]
fn nothing_asked_is_the_operators_walls() {
    let walls = walls(Reachable::Nothing);
    let answer = answer(&walls, None, &SandboxRequest::default()).unwrap();
    assert_eq!((answer.walls, answer.not_held), (walls, Vec::new()));
}

#[test]
fn rules_that_allow_replace_the_operators_and_rules_that_deny_join_them() {
    let rules = policy(&["a.example"], &["bad.example"]);
    let listed = |request: &SandboxRequest| {
        let answer = answer(&walls(Reachable::Nothing), Some(&rules), request).unwrap();
        answer.walls.network
    };
    assert_eq!(
        listed(&network(None, Some(&["b.example"]), &["c.b.example"])),
        Reachable::Listed(policy(&["b.example"], &["bad.example", "c.b.example"]))
    );
    assert_eq!(
        listed(&network(Some("filtered"), None, &[])),
        Reachable::Listed(rules.clone())
    );
    let nothing = network(Some("filtered"), Some(&[]), &[]);
    assert_eq!(
        listed(&nothing),
        Reachable::Listed(policy(&[], &["bad.example"]))
    );
}

#[test]
fn rules_without_a_filter_and_unknown_networks_are_refused_by_name() {
    let refused = |request: &SandboxRequest| {
        let error = answer(&walls(Reachable::Nothing), None, request).unwrap_err();
        match error {
            RuntimeError::Unhonoured { field, .. } => field,
            other => panic!("{other}"),
        }
    };
    let (one, none): (Option<&[&str]>, &[&str]) = (Some(&["a.example"]), &[]);
    assert_eq!(
        refused(&network(Some("none"), one, none)),
        RequestField::Allow
    );
    assert_eq!(
        refused(&network(Some("host"), None, &["a.example"])),
        RequestField::Deny
    );
    assert_eq!(
        refused(&network(None, None, &["a.example"])),
        RequestField::Deny
    );
    assert_eq!(
        refused(&network(Some("bridge"), None, none)),
        RequestField::Network
    );
}

#[test]
fn what_a_sandbox_of_this_kind_never_has_is_refused_or_named() {
    let request = SandboxRequest {
        user: Some("1000".to_owned()),
        mounts: vec!["/a:/a".to_owned()],
        ..SandboxRequest::default()
    };
    let walls = walls(Reachable::Nothing);
    answer(&walls, None, &request).unwrap_err();
    let request = SandboxRequest {
        strictness: Strictness::BestEffort,
        ..request
    };
    let answer = answer(&walls, None, &request).unwrap();
    assert_eq!(answer.not_held, [RequestField::User, RequestField::Mounts]);
    let walls = Walls {
        strictness: Strictness::BestEffort,
        ..walls
    };
    assert_eq!(answer.walls, walls);
}

#[test]
fn a_rule_is_covered_by_the_operators_rules_or_by_an_open_network() {
    let rules = policy(&["*.crates.io"], &[]);
    let covers = |network: Reachable, rule| covers_rule(&walls(network), Some(&rules), rule);
    assert!(covers(Reachable::Nothing, "static.crates.io"));
    assert!(!covers(Reachable::Nothing, "crates.io"));
    assert!(!covers(
        Reachable::Listed(policy(&["a.example"], &[])),
        "static.crates.io"
    ));
    assert!(covers(Reachable::Everything, "10.0.0.1"));
}
