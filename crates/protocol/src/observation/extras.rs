//! What observations carry beside their text, where that is more than a field or two.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{EditSource, ErrorClass, RecallKind};

/// Extras of an `edit` observation.
///
/// As in the original, `old_content` and `new_content` repeat the action's `old_str` and
/// `new_str` when the editor answers; they hold whole files only for a draft edit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edited {
    /// The path as it was asked for.
    #[serde(default)]
    pub path: String,
    /// The file was there before (always false from the editor).
    #[serde(default)]
    pub prev_exist: bool,
    /// See above.
    #[serde(default)]
    pub old_content: Option<String>,
    /// See above.
    #[serde(default)]
    pub new_content: Option<String>,
    /// Who edited.
    #[serde(default = "draft")]
    pub impl_source: EditSource,
    /// Unified diff without context, empty when nothing changed.
    #[serde(default)]
    pub diff: Option<String>,
    /// Always null; their client requires the key.
    #[serde(default, rename = "_diff_cache")]
    pub diff_cache: Option<Value>,
}

fn draft() -> EditSource {
    EditSource::Draft
}

/// Extras of a `glob` observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesFound {
    /// The directory that was searched.
    pub path: String,
    /// The pattern.
    pub pattern: String,
    /// Absolute paths, sorted.
    pub files: Vec<String>,
    /// There were more than the limit.
    pub truncated: bool,
}

/// Extras of a `grep` observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatchesFound {
    /// The file or directory that was searched.
    pub path: String,
    /// The pattern.
    pub pattern: String,
    /// Files with at least one match.
    pub files: u64,
    /// Lines that matched and are in the content.
    pub matches: u64,
    /// There were more than the limit.
    pub truncated: bool,
}

/// Extras of a `tool` observation: what came of `call_tool`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutcome {
    /// The tool.
    pub name: String,
    /// What it returned; null when it failed.
    #[serde(default)]
    pub result: Value,
    /// The result as the tool's side wrote it, where that is no strict JSON: Python writes `NaN`
    /// and `Infinity`, which are null in `result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// What it printed.
    #[serde(default)]
    pub stdout: String,
    /// What it printed as errors.
    #[serde(default)]
    pub stderr: String,
    /// It printed more than is kept.
    #[serde(default)]
    pub truncated: bool,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<ToolFailure>,
}

/// Why a tool failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolFailure {
    /// The class of the exception that it raised, or a stable word of ours such as `timed_out`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What callers act on.
    pub class: ErrorClass,
    /// What went wrong.
    pub message: String,
    /// Where the exception came from.
    #[serde(default)]
    pub traceback: Option<String>,
}

/// Extras of a `browse` observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(
    missing_docs,
    reason = "the fields are the wire words of the browser contract"
)]
pub struct Browsed {
    pub url: String,
    pub trigger_by_action: String,
    pub screenshot: String,
    pub screenshot_path: Option<String>,
    pub set_of_marks: String,
    pub error: bool,
    pub goal_image_urls: Vec<Value>,
    pub open_pages_urls: Vec<String>,
    pub active_page_index: i64,
    pub dom_object: Map<String, Value>,
    pub axtree_object: Map<String, Value>,
    pub extra_element_properties: Map<String, Value>,
    pub last_browser_action: String,
    pub last_browser_action_error: String,
    pub focused_element_bid: String,
    pub filter_visible_only: bool,
}

impl Default for Browsed {
    fn default() -> Self {
        Self {
            url: String::new(),
            trigger_by_action: String::new(),
            screenshot: String::new(),
            screenshot_path: None,
            set_of_marks: String::new(),
            error: false,
            goal_image_urls: Vec::new(),
            open_pages_urls: Vec::new(),
            active_page_index: -1,
            dom_object: Map::new(),
            axtree_object: Map::new(),
            extra_element_properties: Map::new(),
            last_browser_action: String::new(),
            last_browser_action_error: String::new(),
            focused_element_bid: String::new(),
            filter_visible_only: false,
        }
    }
}

/// Extras of a `recall` observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(
    missing_docs,
    reason = "the fields are the wire words of the recall contract"
)]
pub struct Recalled {
    pub recall_type: RecallKind,
    #[serde(default)]
    pub repo_name: String,
    #[serde(default)]
    pub repo_directory: String,
    #[serde(default)]
    pub repo_branch: String,
    #[serde(default)]
    pub repo_instructions: String,
    #[serde(default)]
    pub runtime_hosts: BTreeMap<String, Value>,
    #[serde(default)]
    pub additional_agent_instructions: String,
    #[serde(default)]
    pub date: String,
    #[serde(default)]
    pub custom_secrets_descriptions: BTreeMap<String, String>,
    #[serde(default)]
    pub conversation_instructions: String,
    #[serde(default)]
    pub working_dir: String,
    #[serde(default)]
    pub microagent_knowledge: Vec<Value>,
}
