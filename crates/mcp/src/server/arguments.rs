//! What each tool takes. The documentation of a field is what a model reads about it.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunCommand {
    /// The shell text to run. Several commands are joined by `&&` or `;`.
    pub(super) command: String,
    /// Seconds to wait for its end, 120 unless given. After that it goes on, and its output so far
    /// is returned.
    pub(super) timeout: Option<f64>,
    /// Start it in a shell of its own and return at once with that shell's name.
    #[serde(default)]
    pub(super) background: bool,
    /// The shell to run it in: shells with different names run side by side, and each keeps its
    /// directory and variables. The default shell unless given.
    pub(super) shell: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadOutput {
    /// The shell that the command runs in; the default shell unless given.
    pub(super) shell: Option<String>,
    /// Seconds to wait for the command's end, 10 unless given.
    pub(super) timeout: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendInput {
    /// A line to type, or a key: `C-c`, `C-d`, `C-z`, `Up`, `Tab`.
    pub(super) text: String,
    /// The shell that the command runs in; the default shell unless given.
    pub(super) shell: Option<String>,
    /// Seconds to wait for what comes of it, 10 unless given.
    pub(super) timeout: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Interrupt {
    /// The shell that the command runs in; the default shell unless given.
    pub(super) shell: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// The file, absolute or relative to the workspace. A picture is shown as such.
    pub(super) path: String,
    /// The first line to return, counted from 1.
    pub(super) offset: Option<u32>,
    /// How many lines to return at the most.
    pub(super) limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// The file, absolute or relative to the workspace. It is made or replaced.
    pub(super) path: String,
    /// Its whole content. A last line without an end gets one.
    pub(super) content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFiles {
    /// The directory; the workspace unless given.
    pub(super) path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// What to do.
    pub(super) command: EditCommand,
    /// The file, absolute or relative to the workspace.
    pub(super) path: String,
    /// For `create`: the content of the new file.
    pub(super) file_text: Option<String>,
    /// For `str_replace`: the text to replace, which must occur exactly once.
    pub(super) old_str: Option<String>,
    /// For `str_replace` and `insert`: the new text.
    pub(super) new_str: Option<String>,
    /// For `insert`: the line after which the text goes; 0 is the beginning.
    pub(super) insert_line: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EditCommand {
    Create,
    StrReplace,
    Insert,
    UndoEdit,
}

impl EditCommand {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::StrReplace => "str_replace",
            Self::Insert => "insert",
            Self::UndoEdit => "undo_edit",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindFiles {
    /// A glob such as `**/*.rs`.
    pub(super) pattern: String,
    /// The directory to look in; the workspace unless given.
    pub(super) path: Option<String>,
    /// Look at hidden and ignored files too.
    #[serde(default)]
    pub(super) include_ignored: bool,
    /// How many names to return at the most.
    pub(super) limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchFiles {
    /// A regular expression.
    pub(super) pattern: String,
    /// The file or directory to look in; the workspace unless given.
    pub(super) path: Option<String>,
    /// Look only into files whose path matches this glob.
    pub(super) include: Option<String>,
    /// Look at hidden and ignored files too.
    #[serde(default)]
    pub(super) include_ignored: bool,
    /// Upper and lower case are the same.
    #[serde(default)]
    pub(super) ignore_case: bool,
    /// How many matches to return at the most.
    pub(super) limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceDiff {
    /// A file or a directory of the workspace; all of it unless given.
    pub(super) path: Option<String>,
}
