//! Tests of what may be asked for.

use std::{num::NonZeroU8, path::PathBuf, time::Duration};

use zareba_executor::{FileScope, Linting};
use zareba_runtime::WorkspaceMode;
use zareba_runtime_native::{
    DiskLimit, LocalOptions, LocalRuntime, NativeOptions, NativeRuntime, Reachable, ServerLifetime,
    SystemMode, Usage, Walls,
};

use super::*;

const MIB: u64 = 1024 * 1024;

fn options() -> (NativeOptions, LocalOptions) {
    let native = NativeOptions {
        state_dir: PathBuf::from("/nowhere"),
        images: PathBuf::from("/nowhere"),
        environment: Vec::new(),
        shell: None,
        scope: FileScope::WholeFilesystem,
        linting: Linting::Off,
    };
    let local = LocalOptions {
        program: PathBuf::from("/nowhere"),
        warm_servers: 0,
        warm_no_change_timeout: Duration::from_secs(30),
        lifetime: ServerLifetime::WithUs,
    };
    (native, local)
}

fn native(network: Reachable) -> NativeRuntime {
    let (native, local) = options();
    let walls = Walls {
        workspace: WorkspaceMode::CopyOnWrite,
        system: SystemMode::CopyOnWrite,
        guarded: Vec::new(),
        home_tools: zareba_runtime_native::HomeAccess::Hidden,
        network,
        usage: Usage {
            memory_bytes: 512 * MIB,
            pids: 256,
            cpu_millis: 2000,
            disk: DiskLimit {
                bytes: 1024 * MIB,
                inodes: 100_000,
            },
        },
        strictness: zareba_runtime::Strictness::Strict,
    };
    NativeRuntime::new(native, local, walls)
}

fn asking(request: SandboxRequest) -> NewSession {
    NewSession {
        request,
        ..NewSession::default()
    }
}

/// Each amount, in the order of [`RequestField`].
fn amounts_of(number: u64) -> [(RequestField, SandboxRequest); 4] {
    let usual = SandboxRequest::default;
    let small = u32::try_from(number).unwrap();
    [
        (
            RequestField::Memory,
            SandboxRequest {
                memory_bytes: Some(number * MIB),
                ..usual()
            },
        ),
        (
            RequestField::Cpus,
            SandboxRequest {
                cpu_millis: Some(small * 1000),
                ..usual()
            },
        ),
        (
            RequestField::Pids,
            SandboxRequest {
                pids: Some(small),
                ..usual()
            },
        ),
        (
            RequestField::Disk,
            SandboxRequest {
                disk_bytes: Some(number * MIB),
                ..usual()
            },
        ),
    ]
}

#[track_caller]
fn refused(outcome: Result<SandboxRequest, SessionError>) -> RequestField {
    match outcome.unwrap_err() {
        SessionError::NotPermitted { field, .. } => field,
        other => panic!("{other}"),
    }
}

#[test]
fn an_amount_may_be_what_the_settings_give_and_not_one_more() {
    let runtime = native(Reachable::Nothing);
    let permissions = Permissions::default();
    for (number, index) in [(512, 0), (2, 1), (256, 2), (1024, 3)] {
        let [at, past] = [number, number + 1].map(|number| amounts_of(number)[index].clone());
        let permitted_at = permitted(&asking(at.1.clone()), &runtime, &permissions);
        assert_eq!(permitted_at.unwrap(), at.1);
        assert_eq!(
            refused(permitted(&asking(past.1), &runtime, &permissions)),
            past.0
        );
    }
}

#[test]
fn the_operators_maxima_raise_that_and_a_keys_own_lower_it() {
    let runtime = native(Reachable::Nothing);
    let maxima = |number: u64| RequestMaxima {
        memory_bytes: Some(number * MIB),
        cpu_millis: Some(u32::try_from(number * 1000).unwrap()),
        pids: Some(u32::try_from(number).unwrap()),
        disk_bytes: Some(number * MIB),
    };
    let permissions = Permissions {
        maxima: maxima(4000),
        ..Permissions::default()
    };
    for index in 0..4 {
        let [(_, at), (field, past)] = [4000, 4001].map(|number| amounts_of(number)[index].clone());
        permitted(&asking(at.clone()), &runtime, &permissions).unwrap();
        assert_eq!(
            refused(permitted(&asking(past), &runtime, &permissions)),
            field
        );
        let mut with_key = asking(at);
        with_key.maxima = maxima(3999);
        assert_eq!(refused(permitted(&with_key, &runtime, &permissions)), field);
    }
}

#[test]
fn who_may_have_less_than_is_usual_and_asks_for_nothing_gets_that() {
    let mut new = NewSession::default();
    new.maxima.memory_bytes = Some(100 * MIB);
    let request = permitted(&new, &native(Reachable::Nothing), &Permissions::default());
    let expected = SandboxRequest {
        memory_bytes: Some(100 * MIB),
        ..SandboxRequest::default()
    };
    assert_eq!(request.unwrap(), expected);
}

#[test]
fn a_factor_is_an_amount_that_explicit_maxima_bound() {
    let runtime = native(Reachable::Nothing);
    let mut new = NewSession {
        scale: NonZeroU8::new(2),
        ..NewSession::default()
    };
    let request = permitted(&new, &runtime, &Permissions::default()).unwrap();
    let scaled = (request.memory_bytes, request.cpu_millis, request.pids);
    assert_eq!(scaled, (Some(1024 * MIB), Some(4000), None));
    new.maxima.memory_bytes = Some(1023 * MIB);
    let outcome = permitted(&new, &runtime, &Permissions::default());
    assert_eq!(refused(outcome), RequestField::Memory);
    new.maxima = RequestMaxima::default();
    let (native, local) = options();
    let without_walls = LocalRuntime::new(native, local);
    let outcome = permitted(&new, &without_walls, &Permissions::default());
    assert!(matches!(outcome, Err(SessionError::Invalid { .. })));
}

fn network(mode: &str, allow: Option<&[&str]>) -> NewSession {
    asking(SandboxRequest {
        network: Some(NetworkRequest {
            mode: Some(mode.to_owned()),
            allow: allow.map(|rules| rules.iter().map(|rule| (*rule).to_owned()).collect()),
            deny: Vec::new(),
        }),
        ..SandboxRequest::default()
    })
}

#[test]
fn a_network_may_be_closed_further_and_opened_only_where_that_is_permitted() {
    let may = |own: Reachable, mode: &str, permissions: &Permissions| {
        permitted(&network(mode, None), &native(own), permissions).is_ok()
    };
    let strict = Permissions::default();
    assert!(may(Reachable::Nothing, "none", &strict));
    assert!(!may(Reachable::Nothing, "filtered", &strict));
    assert!(!may(Reachable::Nothing, "host", &strict));
    for mode in ["none", "filtered", "host"] {
        assert!(may(Reachable::Everything, mode, &strict), "{mode}");
    }
    let filtering = Permissions {
        networks: vec!["filtered".to_owned()],
        ..Permissions::default()
    };
    assert!(may(Reachable::Nothing, "filtered", &filtering));
    assert!(!may(Reachable::Nothing, "host", &filtering));
}

#[test]
fn hosts_must_be_among_the_operators_unless_any_are_permitted() {
    let rules: Option<&[&str]> = Some(&["a.example"]);
    let may = |own: Reachable, rules| {
        let permissions = Permissions {
            networks: vec!["filtered".to_owned()],
            rules,
            ..Permissions::default()
        };
        let new = network("filtered", Some(&["a.example"]));
        permitted(&new, &native(own), &permissions)
    };
    assert_eq!(
        refused(may(Reachable::Nothing, PermittedRules::Configured)),
        RequestField::Allow
    );
    may(Reachable::Nothing, PermittedRules::Any).unwrap();
    may(Reachable::Everything, PermittedRules::Configured).unwrap();
    // A list alone asks for a filter, which is an opening of its own.
    let mut unnamed = network("filtered", rules);
    if let Some(network) = &mut unnamed.request.network {
        network.mode = None;
    }
    let outcome = permitted(
        &unnamed,
        &native(Reachable::Nothing),
        &Permissions::default(),
    );
    assert_eq!(refused(outcome), RequestField::Network);
}

#[test]
fn a_workspace_may_be_shut_further_and_not_opened() {
    let may = |mode| {
        let request = SandboxRequest {
            workspace_mode: Some(mode),
            ..SandboxRequest::default()
        };
        permitted(
            &asking(request),
            &native(Reachable::Nothing),
            &Permissions::default(),
        )
    };
    may(WorkspaceMode::ReadOnly).unwrap();
    may(WorkspaceMode::CopyOnWrite).unwrap();
    assert_eq!(
        refused(may(WorkspaceMode::ReadWrite)),
        RequestField::WorkspaceMode
    );
}

fn of_key(networks: Option<&[&str]>, hosts: Option<&[&str]>) -> PermittedReach {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PermittedReach {
        networks: networks.map(owned),
        hosts: hosts.map(owned),
    }
}

/// What a key gets of a request on a machine whose operator permits every network.
fn with_key(new: NewSession, reach: PermittedReach) -> Result<SandboxRequest, SessionError> {
    let new = NewSession { reach, ..new };
    permitted(
        &new,
        &native(Reachable::Everything),
        &Permissions::default(),
    )
}

#[test]
fn a_key_of_some_networks_gets_no_other_and_nothing_looser_when_it_asks_for_none() {
    let filtered = || of_key(Some(&["filtered"]), None);
    let asked = |mode| with_key(network(mode, None), filtered());
    assert_eq!(refused(asked("host")), RequestField::Network);
    assert_eq!(asked("none").unwrap(), network("none", None).request);
    assert_eq!(
        asked("filtered").unwrap(),
        network("filtered", None).request
    );
    let unasked = with_key(NewSession::default(), filtered());
    assert_eq!(unasked.unwrap(), network("filtered", None).request);
    let none = with_key(NewSession::default(), of_key(Some(&[]), None));
    assert_eq!(none.unwrap(), network("none", None).request);
    let host = with_key(NewSession::default(), of_key(Some(&["host"]), None));
    assert_eq!(host.unwrap(), SandboxRequest::default());
}

#[test]
fn a_key_of_some_hosts_reaches_no_other_host_by_any_network() {
    let hosts = || of_key(None, Some(&["*.example"]));
    let asked = |mode, allow| with_key(network(mode, allow), hosts());
    assert_eq!(refused(asked("host", None)), RequestField::Network);
    let elsewhere: Option<&[&str]> = Some(&["a.example", "pypi.org"]);
    assert_eq!(refused(asked("filtered", elsewhere)), RequestField::Allow);
    let within: Option<&[&str]> = Some(&["a.example"]);
    let permitted = asked("filtered", within).unwrap();
    assert_eq!(permitted, network("filtered", within).request);
    let all = network("filtered", Some(&["*.example"])).request;
    assert_eq!(asked("filtered", None).unwrap(), all);
    assert_eq!(with_key(NewSession::default(), hosts()).unwrap(), all);
    let both = of_key(Some(&["none"]), Some(&["*.example"]));
    let closed = with_key(NewSession::default(), both);
    assert_eq!(closed.unwrap(), network("none", None).request);
}

#[test]
fn a_network_that_is_not_held_is_none_that_a_key_may_have() {
    let grant = |mode: &str, not_held: &[RequestField]| Grant {
        network: Some(NetworkGrant::of(mode)),
        not_held: not_held.to_vec(),
        ..Grant::default()
    };
    let filtered = of_key(Some(&["filtered"]), None);
    filtered.require_held(&grant("filtered", &[])).unwrap();
    filtered
        .require_held(&grant("none", &[RequestField::Memory]))
        .unwrap();
    for held in [
        grant("host", &[]),
        grant("filtered", &[RequestField::Allow]),
        grant("host", &[RequestField::Network]),
        Grant::default(),
    ] {
        filtered.require_held(&held).unwrap_err();
        PermittedReach::default().require_held(&held).unwrap();
    }
}
