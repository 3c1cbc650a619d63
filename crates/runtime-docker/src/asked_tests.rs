//! Tests of what a request gets.

use std::path::PathBuf;

use zareba_runtime::Strictness;

use super::*;
use crate::EngineAddress;

fn options() -> DockerOptions {
    let engine = EngineAddress::Unix(PathBuf::from("/nowhere"));
    DockerOptions::hardened(engine, PathBuf::from("/state"), PathBuf::from("/zareba"))
}

fn network(mode: Option<&str>, allow: Option<&[&str]>) -> SandboxRequest {
    SandboxRequest {
        network: Some(NetworkRequest {
            mode: mode.map(str::to_owned),
            allow: allow.map(|rules| rules.iter().map(|rule| (*rule).to_owned()).collect()),
            deny: Vec::new(),
        }),
        ..SandboxRequest::default()
    }
}

#[track_caller]
fn refused(options: &DockerOptions, request: &SandboxRequest) -> RequestField {
    match answer(options, request).unwrap_err() {
        RuntimeError::Unhonoured { field, .. } => field,
        other => panic!("{other}"),
    }
}

#[test]
fn amounts_and_networks_of_a_request_are_those_of_the_container() {
    let request = SandboxRequest {
        memory_bytes: Some(64 << 20),
        cpu_millis: Some(500),
        pids: Some(99),
        disk_bytes: Some(8 << 20),
        user: Some("1001:1002".to_owned()),
        ..network(Some("machine"), None)
    };
    let answer = answer(&options(), &request).unwrap();
    let user = SandboxUser::Numbers {
        uid: 1001,
        gid: 1002,
    };
    assert_eq!(answer.options.user, user);
    assert_eq!(
        answer.grant(),
        Grant {
            network: Some(NetworkGrant::of("machine")),
            memory_bytes: Some(64 << 20),
            cpu_millis: Some(500),
            pids: Some(99),
            disk_bytes: Some(8 << 20),
            workspace_mode: Some(WorkspaceMode::ReadWrite),
            user: Some("1001:1002".to_owned()),
            not_held: Vec::new(),
        }
    );
}

#[test]
fn a_filter_is_refused_and_passed_over_only_by_closing_the_network() {
    let open = DockerOptions {
        network: NetworkChoice::Host,
        ..options()
    };
    let rules: Option<&[&str]> = Some(&["a.example"]);
    assert_eq!(refused(&open, &network(None, rules)), RequestField::Allow);
    assert_eq!(
        refused(&open, &network(Some("filtered"), None)),
        RequestField::Network
    );
    let loose = SandboxRequest {
        strictness: Strictness::BestEffort,
        ..network(None, rules)
    };
    let answer = answer(&open, &loose).unwrap();
    assert_eq!(answer.options.network, NetworkChoice::Nothing);
    assert_eq!(answer.not_held, [RequestField::Allow]);
}

#[test]
fn root_and_directories_are_the_operators_to_give() {
    let with = |user: Option<&str>, mounts: &[&str]| SandboxRequest {
        user: user.map(str::to_owned),
        mounts: mounts.iter().map(|mount| (*mount).to_owned()).collect(),
        strictness: Strictness::BestEffort,
        ..SandboxRequest::default()
    };
    assert_eq!(
        refused(&options(), &with(Some("0"), &[])),
        RequestField::User
    );
    assert_eq!(
        refused(&options(), &with(Some("1000:0"), &[])),
        RequestField::User
    );
    assert_eq!(
        refused(&options(), &with(None, &["/srv:/srv"])),
        RequestField::Mounts
    );
    let mut listing = options();
    listing.allowed.mounts = Some(vec![PathBuf::from("/srv")]);
    listing.user = SandboxUser::Numbers { uid: 0, gid: 0 };
    answer(&listing, &with(Some("0"), &["/srv:/srv:ro"])).unwrap();
    assert_eq!(
        refused(&listing, &with(None, &["cache:/srv"])),
        RequestField::Mounts
    );
    assert!(answer(&listing, &with(None, &["/a:/b,/c:/d"])).is_err());
    assert!(answer(&listing, &with(Some("agent"), &[])).is_err());
}
