//! The profile as it is written down.

use serde::Deserialize;

use super::{compile, error::SeccompError, install::CompiledFilter, ready};

/// The profile that every sandbox gets.
const BUILTIN: &str = include_str!("profile.toml");

/// What an operator may grant beyond the plain profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Debuggers and tracers may look into other processes of the sandbox.
    pub debugging: bool,
    /// Programs may make user namespaces, as browsers do to confine their pages. The kernel must
    /// be told as well: see `user.max_user_namespaces`.
    pub user_namespaces: bool,
    /// Files may get the set-user-ID and set-group-ID bits. Inside they have no effect; a file
    /// that another user of the machine can execute is another matter.
    pub set_id_files: bool,
}

impl Permissions {
    /// Nothing beyond the plain profile.
    pub const NONE: Self = Self {
        debugging: false,
        user_namespaces: false,
        set_id_files: false,
    };

    pub(super) fn include(self, permission: Option<Permission>) -> bool {
        match permission {
            None => true,
            Some(Permission::Debugging) => self.debugging,
            Some(Permission::UserNamespaces) => self.user_namespaces,
            Some(Permission::SetIdFiles) => self.set_id_files,
        }
    }
}

/// A list of decisions about system calls. The file itself explains how they are combined.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeccompProfile {
    pub(super) allow: Vec<Allow>,
    pub(super) deny: Vec<Deny>,
}

impl SeccompProfile {
    /// Our own profile, compiled for this architecture.
    ///
    /// # Errors
    /// When this architecture has none.
    pub fn builtin(permissions: Permissions) -> Result<CompiledFilter, SeccompError> {
        match ready::find(permissions) {
            Some(filter) => Ok(filter),
            None => Self::parse(BUILTIN)?.compile(permissions),
        }
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// When it is not written like one, or an entry does not say what or why.
    pub fn parse(text: &str) -> Result<Self, SeccompError> {
        let profile: Self = toml::from_str(text).map_err(|error| SeccompError::Parse {
            source: Box::new(error),
        })?;
        let allowed = profile
            .allow
            .iter()
            .map(|entry| (&entry.calls, &entry.reason));
        let denied = profile
            .deny
            .iter()
            .map(|entry| (&entry.calls, &entry.reason));
        for (calls, reason) in allowed.chain(denied) {
            let lacks = match (calls.is_empty(), reason.trim().is_empty()) {
                (true, _) => "calls",
                (_, true) => "reason",
                (false, false) => continue,
            };
            return Err(SeccompError::IncompleteEntry {
                lacks,
                calls: calls.clone(),
            });
        }
        Ok(profile)
    }

    /// Turns the decisions into what the kernel runs.
    ///
    /// # Errors
    /// When they contradict each other, or name what does not exist.
    pub fn compile(&self, permissions: Permissions) -> Result<CompiledFilter, SeccompError> {
        compile::compile(self, permissions).map(CompiledFilter::new)
    }
}

/// Calls that may be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Allow {
    pub(super) calls: Vec<String>,
    /// Only with this permission.
    #[serde(rename = "with")]
    pub(super) permission: Option<Permission>,
    #[serde(default)]
    pub(super) when: Vec<Condition>,
    reason: String,
}

/// Calls that must not be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deny {
    pub(super) calls: Vec<String>,
    /// Not with this permission.
    #[serde(rename = "unless")]
    pub(super) permission: Option<Permission>,
    #[serde(default)]
    pub(super) when: Vec<Condition>,
    #[serde(default)]
    pub(super) errno: Errno,
    reason: String,
}

/// The name of one field of [`Permissions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Permission {
    Debugging,
    UserNamespaces,
    SetIdFiles,
}

/// What an argument must be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Condition {
    pub(super) argument: u8,
    pub(super) mask: Option<u32>,
    /// What its low 32 bits may be.
    #[serde(default, rename = "is")]
    pub(super) values: Vec<u32>,
    /// Whether all of its bits are 0: in the place of values.
    pub(super) is_null: Option<bool>,
}

/// What a program is told when a call is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Errno {
    /// Not permitted: the call exists.
    #[default]
    #[serde(rename = "EPERM")]
    NotPermitted,
    /// Not there: programs then use another call.
    #[serde(rename = "ENOSYS")]
    NotThere,
    /// That it was made, though it was not.
    #[serde(rename = "NONE")]
    None,
}
