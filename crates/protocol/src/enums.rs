//! The closed sets of words that appear as values on the wire.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Who caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EventSource {
    /// The agent.
    Agent,
    /// The person it works for.
    User,
    /// The runtime itself.
    Environment,
}

/// Where an action stands in a confirmation dialogue; the executor does not act on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationState {
    /// May run.
    #[default]
    Confirmed,
    /// Was refused by a person.
    Rejected,
    /// Waits for a person.
    AwaitingConfirmation,
}

/// The risk that the agent itself claims for an action, a number on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "i8", try_from = "i8")]
pub enum SecurityRisk {
    /// Nobody said (−1).
    #[default]
    Unknown,
    /// Harmless (0).
    Low,
    /// Worth a look (1).
    Medium,
    /// Dangerous (2).
    High,
}

impl From<SecurityRisk> for i8 {
    fn from(risk: SecurityRisk) -> Self {
        match risk {
            SecurityRisk::Unknown => -1,
            SecurityRisk::Low => 0,
            SecurityRisk::Medium => 1,
            SecurityRisk::High => 2,
        }
    }
}

impl TryFrom<i8> for SecurityRisk {
    type Error = UnknownRisk;

    fn try_from(number: i8) -> Result<Self, Self::Error> {
        match number {
            -1 => Ok(Self::Unknown),
            0 => Ok(Self::Low),
            1 => Ok(Self::Medium),
            2 => Ok(Self::High),
            other => Err(UnknownRisk(other)),
        }
    }
}

impl JsonSchema for SecurityRisk {
    fn schema_name() -> Cow<'static, str> {
        "SecurityRisk".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The risk that the agent itself claims: -1 unknown, 0 low, 1 medium, 2 high.",
            "type": "integer",
            "enum": [-1, 0, 1, 2],
        })
    }
}

/// A number that stands for no [`SecurityRisk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a security risk: use -1, 0, 1 or 2")]
pub struct UnknownRisk(pub i8);

/// Which implementation an `edit` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EditSource {
    /// The message-based editor that runs in the executor.
    #[default]
    #[serde(rename = "oh_aci")]
    Editor,
    /// A draft rewritten by a language model, on the host.
    #[serde(rename = "llm_based_edit")]
    Draft,
}

/// Which implementation a `read` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReadSource {
    /// The file's text, or a data URL.
    #[default]
    #[serde(rename = "default")]
    Plain,
    /// The editor's numbered `view`.
    #[serde(rename = "oh_aci")]
    Editor,
}

/// What a `recall` looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecallKind {
    /// What the agent should know of the workspace.
    WorkspaceContext,
    /// Knowledge triggered by words of the query.
    Knowledge,
}

/// The state of an agent, as `change_agent_state` and `agent_state_changed` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the variants are the wire words and explain themselves"
)]
pub enum AgentState {
    Loading,
    Running,
    AwaitingUserInput,
    Paused,
    Stopped,
    Finished,
    Rejected,
    Error,
    AwaitingUserConfirmation,
    UserConfirmed,
    UserRejected,
    RateLimited,
}

impl EventSource {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
            Self::Environment => "environment",
        }
    }

    /// The source that the wire calls `word`.
    pub fn from_wire(word: &str) -> Option<Self> {
        [Self::Agent, Self::User, Self::Environment]
            .into_iter()
            .find(|source| source.as_str() == word)
    }
}

impl AgentState {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Running => "running",
            Self::AwaitingUserInput => "awaiting_user_input",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Finished => "finished",
            Self::Rejected => "rejected",
            Self::Error => "error",
            Self::AwaitingUserConfirmation => "awaiting_user_confirmation",
            Self::UserConfirmed => "user_confirmed",
            Self::UserRejected => "user_rejected",
            Self::RateLimited => "rate_limited",
        }
    }
}
