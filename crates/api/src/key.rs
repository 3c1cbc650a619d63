//! Keys and tickets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zareba_protocol::SessionId;

use crate::{Bytes, Cpus, Seconds, SecretText};

/// What a key allows; each scope includes those before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Looking at the owner's sessions.
    Read,
    /// Making and using the owner's sessions.
    Session,
    /// Everyone's sessions, and keys.
    Admin,
}

/// How much the holder of a key may use; what is left out has only the server's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyQuota {
    /// Sessions of the owner that are not closed, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<usize>,
    /// Actions in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions_per_minute: Option<u32>,
    /// Memory that a session may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_max: Option<Bytes>,
    /// Processors that a session may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_max: Option<Cpus>,
    /// Processes and threads that a session may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids_max: Option<u32>,
    /// What a session may ask for its changes to files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_max: Option<Bytes>,
    /// How long a session may live, from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life_max: Option<Seconds>,
    /// Networks that a session may have, such as `filtered`, and those that are stricter; `none` always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub networks: Option<Vec<String>>,
    /// Rules for hosts, such as `pypi.org` or `*.example.com:8443`: a session reaches no other host, and
    /// has no other network than `filtered` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub hosts: Option<Vec<String>>,
    /// Runtimes that a session may have, also one that names none and gets the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub runtimes: Option<Vec<String>>,
    /// Images that a session may name, such as `debian:*`, in which `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub images: Option<Vec<String>>,
    /// Directories of the server's machine that a session may have as its workspace or as the source of a
    /// mount, with those below them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 64)]
    pub workspaces: Option<Vec<String>>,
}

/// What a key shall be like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    /// Whose sessions it is for: 1 to 64 letters, digits, `-`, `_`, `.` and `@`.
    #[schema(pattern = "^[A-Za-z0-9_.@-]{1,64}$")]
    pub owner: String,
    /// What it allows.
    pub scope: KeyScope,
    /// The only session that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub session: Option<SessionId>,
    /// How long it is valid; left out, until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Seconds>,
    /// How much its holder may use.
    #[serde(default)]
    pub quota: KeyQuota,
}

/// What a key for one session shall be like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSessionKey {
    /// What it allows: `session`, when left out, or `read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<KeyScope>,
    /// How long it is valid; never longer than the key that asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Seconds>,
}

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Key {
    /// Its name.
    pub id: String,
    /// Whose sessions it is for.
    pub owner: String,
    /// What it allows.
    pub scope: KeyScope,
    /// The only session that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub session: Option<SessionId>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires: Option<Timestamp>,
    /// How much its holder may use.
    pub quota: KeyQuota,
}

/// A new key with its secret, which is shown this once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedKey {
    /// The key.
    pub key: Key,
    /// What to send as `Authorization: Bearer …`.
    pub secret: SecretText,
}

/// All keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyPage {
    /// The keys, by name.
    pub keys: Vec<Key>,
}

/// What stands for a key in the address of one stream, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// What to give as `ticket`.
    pub ticket: SecretText,
    /// When it ends, used or not.
    #[schema(value_type = String, format = DateTime)]
    pub expires: Timestamp,
}
