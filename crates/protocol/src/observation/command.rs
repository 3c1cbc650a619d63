//! What is known of a command: its output, its end and the shell it ran in.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

/// Extras of a `run` observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandOutput {
    /// The command as it was asked for.
    pub command: String,
    /// What the shell said when the command ended.
    #[serde(default)]
    pub metadata: CommandMetadata,
    /// The command was not meant to be shown.
    #[serde(default)]
    pub hidden: bool,
}

/// What is known of a command beside its output.
///
/// The first eight fields are the OpenHands contract and always written. The others are ours
/// and written only when they say something; their client ignores them here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandMetadata {
    /// Exit status; −1 while the command runs or when there was none.
    #[serde(deserialize_with = "integer_or_text")]
    pub exit_code: i64,
    /// The shell's `$!`, the last background process; −1 when there is none.
    #[serde(deserialize_with = "integer_or_text")]
    pub pid: i64,
    /// Who the shell runs as.
    pub username: Option<String>,
    /// Where the shell runs.
    pub hostname: Option<String>,
    /// The shell's directory after the command.
    pub working_dir: Option<String>,
    /// What `python` means in that shell.
    pub py_interpreter_path: Option<String>,
    /// Text to be shown before the output.
    pub prefix: String,
    /// Text to be shown after the output.
    pub suffix: String,
    /// How many bytes the command wrote, when not all of them are in the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// The file that holds the whole output, when not all of it is in the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_file: Option<String>,
    /// How many bytes that file lacks, because it would have grown past its limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_dropped: Option<u64>,
    /// The signal that ended the command, such as `SIGKILL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The shell ended with this command and was replaced by a new one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shell_restarted: bool,
    /// The limits that were met while the command ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitHit>,
}

/// A limit that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitHit {
    /// What came of it.
    pub kind: LimitKind,
    /// A sentence that names the limit.
    pub message: String,
}

/// What comes of a limit that is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// The answer was due before the command ended; it goes on.
    TimedOut,
    /// The content holds the beginning and the end of the output.
    Truncated,
    /// A process was killed because the sandbox had no memory left.
    OomKilled,
    /// A process or thread was refused because the sandbox had as many as it may.
    PidsLimit,
    /// Processes were killed because the sandbox's files had become too large or too many.
    DiskQuotaExceeded,
}

impl Default for CommandMetadata {
    fn default() -> Self {
        Self {
            exit_code: -1,
            pid: -1,
            username: None,
            hostname: None,
            working_dir: None,
            py_interpreter_path: None,
            prefix: String::new(),
            suffix: String::new(),
            output_bytes: None,
            output_file: None,
            output_dropped: None,
            signal: None,
            shell_restarted: false,
            limits: Vec::new(),
        }
    }
}

impl CommandOutput {
    /// The extras of `command`, about whose end nothing is known yet.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            ..Self::default()
        }
    }
}

impl CommandMetadata {
    /// The exit status of a command that never ended, or of none.
    pub const NO_EXIT_CODE: i64 = -1;

    /// Whether the command ended well.
    pub const fn is_success(&self) -> bool {
        self.exit_code == 0
    }

    /// The output as the agent reads it: between prefix and suffix, then what is known of the
    /// shell and of the command's end, one bracketed line each.
    pub fn text_for_agent(&self, content: &str) -> String {
        let mut text = [&self.prefix, content, &self.suffix].concat();
        // Writing to a string cannot fail.
        if let Some(directory) = said(self.working_dir.as_deref()) {
            let _ = write!(text, "\n[Current working directory: {directory}]");
        }
        if let Some(interpreter) = said(self.py_interpreter_path.as_deref()) {
            let _ = write!(text, "\n[Python interpreter: {interpreter}]");
        }
        if self.exit_code != Self::NO_EXIT_CODE {
            let _ = write!(
                text,
                "\n[Command finished with exit code {}]",
                self.exit_code
            );
        }
        text
    }
}

/// Old servers say nothing by an empty text.
fn said(value: Option<&str>) -> Option<&str> {
    value.filter(|text| !text.is_empty())
}

/// Shells report numbers as text, and old servers passed them on as they came.
fn integer_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let float = match &value {
        Value::Number(number) => match number.as_i64() {
            Some(integer) => return Ok(integer),
            None => number.as_f64(),
        },
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    match float.filter(|float: &f64| float.is_finite()) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the cast saturates, and no status is that large"
        )]
        Some(float) => Ok(float as i64),
        None => Err(D::Error::custom(format_args!(
            "expected a number, got {value}"
        ))),
    }
}
