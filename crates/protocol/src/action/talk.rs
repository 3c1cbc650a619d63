//! The actions that nobody executes: what an agent says, thinks and decides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentState, RecallKind, SecurityRisk};

/// `message`: text between agent and user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// The text.
    pub content: String,
    /// Files that belong to it.
    #[serde(default)]
    pub file_urls: Option<Vec<String>>,
    /// Pictures that belong to it.
    #[serde(default)]
    pub image_urls: Option<Vec<String>>,
    /// The agent waits for an answer.
    #[serde(default)]
    pub wait_for_response: bool,
    /// The agent's own estimate.
    #[serde(default)]
    pub security_risk: SecurityRisk,
}

impl SendMessage {
    /// Says `content` without waiting for an answer.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ..Self::default()
        }
    }
}

/// `system`: the agent's system prompt and tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemMessage {
    /// The prompt.
    pub content: String,
    /// The tools, in the shape the language model was given.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
    /// Version of the agent software.
    #[serde(default)]
    pub openhands_version: Option<String>,
    /// Class of the agent.
    #[serde(default)]
    pub agent_class: Option<String>,
}

/// `think`: a note of the agent to itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Think {
    /// The note.
    #[serde(default)]
    pub thought: String,
}

impl Think {
    /// Notes `thought`.
    pub fn new(thought: impl Into<String>) -> Self {
        Self {
            thought: thought.into(),
        }
    }
}

/// `finish`: the agent is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// What it has to say at the end.
    #[serde(default)]
    pub final_thought: String,
    /// Named results.
    #[serde(default)]
    pub outputs: Map<String, Value>,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
}

/// `reject`: the agent gives the task back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reject {
    /// Named results.
    #[serde(default)]
    pub outputs: Map<String, Value>,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
}

/// `delegate`: hand a task to another agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delegate {
    /// The other agent.
    pub agent: String,
    /// What it gets.
    pub inputs: Map<String, Value>,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
}

/// `recall`: fetch knowledge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    /// Of which kind.
    pub recall_type: RecallKind,
    /// About what.
    #[serde(default)]
    pub query: String,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
}

/// `change_agent_state`: switch the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeAgentState {
    /// The new state.
    pub agent_state: AgentState,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
}

/// `condensation`: drop events from the agent's view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condensation {
    /// The events, one by one.
    #[serde(default)]
    pub forgotten_event_ids: Option<Vec<i64>>,
    /// Or the first of a range.
    #[serde(default)]
    pub forgotten_events_start_id: Option<i64>,
    /// And the last of it.
    #[serde(default)]
    pub forgotten_events_end_id: Option<i64>,
    /// What stands in their place.
    #[serde(default)]
    pub summary: Option<String>,
    /// And where.
    #[serde(default)]
    pub summary_offset: Option<i64>,
}

/// `task_tracking`: the agent's list of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrackTasks {
    /// `view` or `plan`.
    #[serde(default = "view")]
    pub command: String,
    /// The tasks.
    #[serde(default)]
    pub task_list: Vec<TaskItem>,
    /// Why the agent asks.
    #[serde(default)]
    pub thought: String,
}

impl Default for TrackTasks {
    fn default() -> Self {
        Self {
            command: view(),
            task_list: Vec::new(),
            thought: String::new(),
        }
    }
}

/// One task of a [`TrackTasks`] list; other keys are kept as they came.
pub type TaskItem = Map<String, Value>;

/// `loop_recovery`: how to leave a loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopRecovery {
    /// Which way out.
    #[serde(default = "first_option")]
    pub option: i64,
}

impl Default for LoopRecovery {
    fn default() -> Self {
        Self {
            option: first_option(),
        }
    }
}

fn first_option() -> i64 {
    1
}

fn view() -> String {
    "view".to_owned()
}
