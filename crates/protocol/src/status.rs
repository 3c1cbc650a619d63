//! [`RuntimeStatus`]: what a runtime tells its owner about the life of a sandbox.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A station in the life of a runtime, by the words that OpenHands clients know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RuntimeStatus {
    /// No sandbox runs.
    #[serde(rename = "STATUS$STOPPED")]
    Stopped,
    /// An image is being built.
    #[serde(rename = "STATUS$BUILDING_RUNTIME")]
    BuildingRuntime,
    /// The sandbox is being started.
    #[serde(rename = "STATUS$STARTING_RUNTIME")]
    StartingRuntime,
    /// The sandbox runs; its executor does not answer yet.
    #[serde(rename = "STATUS$RUNTIME_STARTED")]
    RuntimeStarted,
    /// The workspace is being filled.
    #[serde(rename = "STATUS$SETTING_UP_WORKSPACE")]
    SettingUpWorkspace,
    /// The repository's hooks are being installed.
    #[serde(rename = "STATUS$SETTING_UP_GIT_HOOKS")]
    SettingUpGitHooks,
    /// Actions can run.
    #[serde(rename = "STATUS$READY")]
    Ready,
    /// Something failed that no other status names.
    #[serde(rename = "STATUS$ERROR")]
    Error,
    /// The sandbox no longer answers.
    #[serde(rename = "STATUS$ERROR_RUNTIME_DISCONNECTED")]
    RuntimeDisconnected,
    /// The language model refused the credentials.
    #[serde(rename = "STATUS$ERROR_LLM_AUTHENTICATION")]
    LlmAuthentication,
    /// The language model cannot be reached.
    #[serde(rename = "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE")]
    LlmServiceUnavailable,
    /// The language model's server failed.
    #[serde(rename = "STATUS$ERROR_LLM_INTERNAL_SERVER_ERROR")]
    LlmInternalServerError,
    /// The language model wants to be paid.
    #[serde(rename = "STATUS$ERROR_LLM_OUT_OF_CREDITS")]
    LlmOutOfCredits,
    /// The language model refused the content.
    #[serde(rename = "STATUS$ERROR_LLM_CONTENT_POLICY_VIOLATION")]
    LlmContentPolicyViolation,
    /// The agent stopped because it asked too often.
    #[serde(rename = "CHAT_INTERFACE$AGENT_RATE_LIMITED_STOPPED_MESSAGE")]
    AgentRateLimited,
    /// The git provider refused the credentials.
    #[serde(rename = "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR")]
    GitProviderAuthentication,
    /// A request to the language model is being repeated.
    #[serde(rename = "STATUS$LLM_RETRY")]
    LlmRetry,
    /// The agent's memory failed.
    #[serde(rename = "STATUS$ERROR_MEMORY")]
    MemoryError,
}

/// How loudly a status is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StatusLevel {
    /// Progress.
    Info,
    /// Something failed.
    Error,
}

impl RuntimeStatus {
    /// Every status, in the order of the contract.
    pub const ALL: [Self; 18] = [
        Self::Stopped,
        Self::BuildingRuntime,
        Self::StartingRuntime,
        Self::RuntimeStarted,
        Self::SettingUpWorkspace,
        Self::SettingUpGitHooks,
        Self::Ready,
        Self::Error,
        Self::RuntimeDisconnected,
        Self::LlmAuthentication,
        Self::LlmServiceUnavailable,
        Self::LlmInternalServerError,
        Self::LlmOutOfCredits,
        Self::LlmContentPolicyViolation,
        Self::AgentRateLimited,
        Self::GitProviderAuthentication,
        Self::LlmRetry,
        Self::MemoryError,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "STATUS$STOPPED",
            Self::BuildingRuntime => "STATUS$BUILDING_RUNTIME",
            Self::StartingRuntime => "STATUS$STARTING_RUNTIME",
            Self::RuntimeStarted => "STATUS$RUNTIME_STARTED",
            Self::SettingUpWorkspace => "STATUS$SETTING_UP_WORKSPACE",
            Self::SettingUpGitHooks => "STATUS$SETTING_UP_GIT_HOOKS",
            Self::Ready => "STATUS$READY",
            Self::Error => "STATUS$ERROR",
            Self::RuntimeDisconnected => "STATUS$ERROR_RUNTIME_DISCONNECTED",
            Self::LlmAuthentication => "STATUS$ERROR_LLM_AUTHENTICATION",
            Self::LlmServiceUnavailable => "STATUS$ERROR_LLM_SERVICE_UNAVAILABLE",
            Self::LlmInternalServerError => "STATUS$ERROR_LLM_INTERNAL_SERVER_ERROR",
            Self::LlmOutOfCredits => "STATUS$ERROR_LLM_OUT_OF_CREDITS",
            Self::LlmContentPolicyViolation => "STATUS$ERROR_LLM_CONTENT_POLICY_VIOLATION",
            Self::AgentRateLimited => "CHAT_INTERFACE$AGENT_RATE_LIMITED_STOPPED_MESSAGE",
            Self::GitProviderAuthentication => "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR",
            Self::LlmRetry => "STATUS$LLM_RETRY",
            Self::MemoryError => "STATUS$ERROR_MEMORY",
        }
    }

    /// How loudly it is told.
    pub const fn level(self) -> StatusLevel {
        match self {
            Self::Stopped
            | Self::BuildingRuntime
            | Self::StartingRuntime
            | Self::RuntimeStarted
            | Self::SettingUpWorkspace
            | Self::SettingUpGitHooks
            | Self::Ready
            | Self::LlmRetry => StatusLevel::Info,
            Self::Error
            | Self::RuntimeDisconnected
            | Self::LlmAuthentication
            | Self::LlmServiceUnavailable
            | Self::LlmInternalServerError
            | Self::LlmOutOfCredits
            | Self::LlmContentPolicyViolation
            | Self::AgentRateLimited
            | Self::GitProviderAuthentication
            | Self::MemoryError => StatusLevel::Error,
        }
    }
}

impl fmt::Display for RuntimeStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_word_is_the_displayed_one() {
        for status in RuntimeStatus::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.to_string());
        }
    }

    #[test]
    fn every_word_with_error_in_it_is_told_as_one() {
        for status in RuntimeStatus::ALL {
            let expected =
                status.as_str().contains("ERROR") || status == RuntimeStatus::AgentRateLimited;
            assert_eq!(status.level() == StatusLevel::Error, expected, "{status}");
        }
    }
}
