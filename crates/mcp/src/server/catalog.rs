//! The tools that every sandbox has.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde_json::Value;

use super::arguments;

/// A tool that every sandbox has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuiltIn {
    RunCommand,
    ReadOutput,
    SendInput,
    Interrupt,
    ReadFile,
    WriteFile,
    ListFiles,
    EditFile,
    FindFiles,
    SearchFiles,
    WorkspaceDiff,
}

impl BuiltIn {
    pub(super) const ALL: [Self; 11] = [
        Self::RunCommand,
        Self::ReadOutput,
        Self::SendInput,
        Self::Interrupt,
        Self::ReadFile,
        Self::WriteFile,
        Self::ListFiles,
        Self::EditFile,
        Self::FindFiles,
        Self::SearchFiles,
        Self::WorkspaceDiff,
    ];

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::RunCommand => "run_command",
            Self::ReadOutput => "read_output",
            Self::SendInput => "send_input",
            Self::Interrupt => "interrupt",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::ListFiles => "list_files",
            Self::EditFile => "edit_file",
            Self::FindFiles => "find_files",
            Self::SearchFiles => "search_files",
            Self::WorkspaceDiff => "workspace_diff",
        }
    }

    /// What people are shown instead of the name.
    const fn title(self) -> &'static str {
        match self {
            Self::RunCommand => "Run a command",
            Self::ReadOutput => "Read a command's output",
            Self::SendInput => "Type at a command",
            Self::Interrupt => "Interrupt a command",
            Self::ReadFile => "Read a file",
            Self::WriteFile => "Write a file",
            Self::ListFiles => "List a directory",
            Self::EditFile => "Edit a file",
            Self::FindFiles => "Find files",
            Self::SearchFiles => "Search in files",
            Self::WorkspaceDiff => "Show changes of the workspace",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::RunCommand => {
                "Run a command in a persistent shell of the sandbox. Directory, variables and jobs \
                 stay from one command to the next. A command that outlives its timeout goes on: \
                 `read_output` waits for it, `send_input` types at it, `interrupt` stops it. Long \
                 output is shortened, and all of it is in a file that is named."
            }
            Self::ReadOutput => {
                "Wait for a command that still runs in a shell, and return what it has written."
            }
            Self::SendInput => {
                "Type a line at the command that runs in a shell, or press a key such as `C-c`."
            }
            Self::Interrupt => "Interrupt the command that runs in a shell, as Ctrl-C does.",
            Self::ReadFile => {
                "Read lines of a text file, or look at a picture. A long file comes in parts; each \
                 says where the next one begins."
            }
            Self::WriteFile => "Make or replace a text file.",
            Self::ListFiles => {
                "List a directory: first directories, with a slash behind, then files."
            }
            Self::EditFile => {
                "Change a text file: `create` a new one, replace one occurrence of a text \
                 (`str_replace`), `insert` lines after a line, or take the last change back \
                 (`undo_edit`)."
            }
            Self::FindFiles => "Find files by a glob. Ignored and hidden files are left out.",
            Self::SearchFiles => {
                "Find lines by a regular expression. Ignored and hidden files are left out."
            }
            Self::WorkspaceDiff => {
                "Show what has changed in the workspace since the sandbox was made, as a patch that \
                 `git apply` takes. It needs no Git repository. Binary files are named only."
            }
        }
    }

    /// What clients may show of it; nobody's safety hangs on that.
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new();
        match self {
            Self::ReadOutput
            | Self::ReadFile
            | Self::ListFiles
            | Self::FindFiles
            | Self::SearchFiles
            | Self::WorkspaceDiff => hints.read_only(true).open_world(false),
            Self::WriteFile | Self::EditFile => {
                hints.read_only(false).destructive(true).open_world(false)
            }
            Self::RunCommand | Self::SendInput | Self::Interrupt => {
                hints.read_only(false).destructive(true).open_world(true)
            }
        }
    }

    pub(super) fn definition(self) -> Tool {
        let schema = match self {
            Self::RunCommand => schema::<arguments::RunCommand>(),
            Self::ReadOutput => schema::<arguments::ReadOutput>(),
            Self::SendInput => schema::<arguments::SendInput>(),
            Self::Interrupt => schema::<arguments::Interrupt>(),
            Self::ReadFile => schema::<arguments::ReadFile>(),
            Self::WriteFile => schema::<arguments::WriteFile>(),
            Self::ListFiles => schema::<arguments::ListFiles>(),
            Self::EditFile => schema::<arguments::EditFile>(),
            Self::FindFiles => schema::<arguments::FindFiles>(),
            Self::SearchFiles => schema::<arguments::SearchFiles>(),
            Self::WorkspaceDiff => schema::<arguments::WorkspaceDiff>(),
        };
        Tool::new(self.name(), self.description(), schema)
            .with_title(self.title())
            .with_annotations(self.annotations())
    }
}

/// The schema of a tool's arguments, without what only other programs of ours would read.
fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let generator = settings
        .with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        })
        .into_generator();
    let mut schema = match generator.into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        // Schemas of structs are objects.
        _ => JsonObject::new(),
    };
    schema.remove("title");
    schema.remove("description");
    Arc::new(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_found_by_its_name_and_describes_each_argument() {
        for tool in BuiltIn::ALL {
            assert_eq!(BuiltIn::of_name(tool.name()), Some(tool));
            let definition = tool.definition();
            assert!(definition.title.is_some_and(|title| title.contains(' ')));
            let schema = definition.input_schema.as_ref();
            assert_eq!(schema["type"], "object", "{}", tool.name());
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name());
            let properties = schema["properties"].as_object().unwrap();
            for (name, property) in properties {
                let description = property["description"].as_str();
                assert!(description.is_some(), "{}.{name}", tool.name());
            }
        }
        assert_eq!(BuiltIn::of_name("nope"), None);
    }

    #[test]
    fn what_must_be_given_is_required() {
        let edit = BuiltIn::EditFile.definition();
        assert_eq!(
            edit.input_schema["required"],
            serde_json::json!(["command", "path"])
        );
        let list = BuiltIn::ListFiles.definition();
        assert_eq!(list.input_schema.get("required"), None);
    }
}
