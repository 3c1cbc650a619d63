//! From settings to what stands around a sandbox.

use zareba_config::{
    HomeTools, NetworkReach, Settings, SystemMode as SystemSetting, WorkspaceMode as Mode,
};
use zareba_egress::{Limits, Policy, Rule, RuleError};
use zareba_runtime_native::{
    DiskLimit, HomeAccess, Reachable, SystemMode, Usage, Walls, WorkspaceMode,
};

use super::asked::strictness;
use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// What the settings say of the walls. Rules are read also where no network uses them, so that
/// a mistake in them shows early.
pub(super) fn walls(settings: &Settings) -> Result<Walls, Failure> {
    let native = &settings.native;
    let policy = policy(settings)?;
    Ok(Walls {
        workspace: match native.workspace_mode {
            Mode::CopyOnWrite => WorkspaceMode::CopyOnWrite,
            Mode::ReadWrite => WorkspaceMode::ReadWrite,
            Mode::ReadOnly => WorkspaceMode::ReadOnly,
        },
        system: match native.system {
            SystemSetting::CopyOnWrite => SystemMode::CopyOnWrite,
            SystemSetting::ReadOnly => SystemMode::ReadOnly,
        },
        guarded: native.guarded_names.clone(),
        home_tools: match native.home_tools {
            HomeTools::Off => HomeAccess::Hidden,
            HomeTools::ReadOnly => HomeAccess::ReadOnly,
        },
        network: match native.network {
            NetworkReach::None => Reachable::Nothing,
            NetworkReach::Filtered => Reachable::Listed(policy),
            NetworkReach::Host => Reachable::Everything,
        },
        usage: Usage {
            memory_bytes: native.memory.bytes(),
            pids: native.pids,
            cpu_millis: native.cpus.millis(),
            disk: DiskLimit {
                bytes: native.disk.bytes(),
                inodes: u64::from(native.inodes),
            },
        },
        strictness: strictness(settings),
    })
}

pub(super) fn policy(settings: &Settings) -> Result<Policy, Failure> {
    let native = &settings.native;
    let allow = rules(&native.allow).or_fail(Exit::Configuration, "cannot use `native.allow`")?;
    let deny = rules(&native.deny).or_fail(Exit::Configuration, "cannot use `native.deny`")?;
    Policy::new(allow, deny, Limits::default())
        .or_fail(Exit::Configuration, "cannot use the rules of the network")
}

fn rules(texts: &[String]) -> Result<Vec<Rule>, RuleError> {
    texts.iter().map(|text| Rule::parse(text)).collect()
}
