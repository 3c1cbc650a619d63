//! A workspace in a directory of its own, for tests.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tempfile::TempDir;
use zareba_protocol::{EditFile, Observation, ReadFile, ReadSource, WriteFile};

use super::{Files, Reach, Workspace, WorkspaceSettings};
use crate::{
    editor::{Editor, EditorSettings},
    lint::Linting,
    owner::Owner,
};

/// A workspace with what works on it; the directory goes away with it.
pub(crate) struct Fixture {
    outer: TempDir,
    pub(crate) reach: Arc<Reach>,
    pub(crate) files: Files,
    pub(crate) editor: Editor,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|_| Reach::WholeFilesystem, Owner::Ourselves)
    }

    /// A workspace that nothing may lead out of.
    pub(crate) fn enclosed() -> Self {
        Self::with(|root| Reach::beneath(root).unwrap(), Owner::Ourselves)
    }

    pub(crate) fn with(reach: impl FnOnce(&Path) -> Reach, owner: Owner) -> Self {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("workspace");
        fs::create_dir(&root).unwrap();
        let reach = Arc::new(reach(&root));
        let settings = WorkspaceSettings {
            working_dir: root,
            reach: Arc::clone(&reach),
            owner,
        };
        let workspace = Arc::new(Workspace::new(settings));
        let files = Files::new(Arc::clone(&workspace));
        let editor = editor(workspace, outer.path(), Linting::Off);
        Self {
            outer,
            reach,
            files,
            editor,
        }
    }

    /// A second editor over the same files and the same history, as after a restart.
    pub(crate) fn restarted(&self, linting: Linting) -> Editor {
        editor(
            Arc::clone(&self.files.workspace),
            self.outer.path(),
            linting,
        )
    }

    /// The directory around the workspace.
    pub(crate) fn outside(&self) -> &Path {
        self.outer.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.outer.path().join("workspace")
    }

    /// What an enclosed workspace says of a path that leads out.
    pub(crate) fn outside_refusal(&self, path: &str) -> String {
        format!(
            "[Errno 13] Permission denied: '{path}' (outside the workspace; only paths in '{}' can be used)",
            self.root().display()
        )
    }

    /// The absolute path of a file in the workspace.
    pub(crate) fn path(&self, name: &str) -> String {
        self.root().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.root().join(name), content).unwrap();
        self.path(name)
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.root().join(name)).unwrap().mode() & 0o7777
    }

    /// Names in a directory of the workspace, sorted.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root().join(directory))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn read(&self, path: &str) -> Observation {
        self.read_lines(path, 0, -1)
    }

    pub(crate) fn read_lines(&self, path: &str, start: i64, end: i64) -> Observation {
        let action = ReadFile {
            start,
            end,
            ..read_action(path)
        };
        self.files.read(&action, &self.root())
    }

    pub(crate) fn write(&self, path: &str, content: &str) -> Observation {
        self.write_lines(path, content, 0, -1)
    }

    pub(crate) fn write_lines(
        &self,
        path: &str,
        content: &str,
        start: i64,
        end: i64,
    ) -> Observation {
        let action = WriteFile {
            path: path.to_owned(),
            content: content.to_owned(),
            start,
            end,
            thought: String::new(),
            security_risk: Default::default(),
        };
        self.files.write(&action, &self.root())
    }

    /// What the editor's `view` says, with a range.
    pub(crate) fn view_range(&self, path: &str, range: &[i64]) -> String {
        let action = ReadFile {
            impl_source: ReadSource::Editor,
            view_range: Some(range.to_owned()),
            ..read_action(path)
        };
        self.editor.view_for_read(&action).content
    }

    /// What the editor says to a command without further parameters.
    pub(crate) fn say(&self, command: &str, path: &str) -> String {
        let action = EditFile {
            path: path.to_owned(),
            command: command.to_owned(),
            ..Default::default()
        };
        self.editor.edit(&action).content
    }

    pub(crate) fn create(&self, path: &str, text: &str) -> String {
        self.editor.edit(&create(path, text)).content
    }

    pub(crate) fn str_replace(&self, path: &str, old: &str, new: &str) -> String {
        self.editor.edit(&str_replace(path, old, new)).content
    }

    pub(crate) fn insert(&self, path: &str, line: i64, new: &str) -> String {
        self.editor.edit(&insert(path, line, new)).content
    }
}

pub(crate) fn read_action(path: &str) -> ReadFile {
    ReadFile {
        path: path.to_owned(),
        start: 0,
        end: -1,
        thought: String::new(),
        security_risk: Default::default(),
        impl_source: ReadSource::Plain,
        view_range: None,
    }
}

pub(crate) fn create(path: &str, text: &str) -> EditFile {
    EditFile {
        path: path.to_owned(),
        command: "create".to_owned(),
        file_text: Some(text.to_owned()),
        ..Default::default()
    }
}

pub(crate) fn str_replace(path: &str, old: &str, new: &str) -> EditFile {
    EditFile {
        path: path.to_owned(),
        command: "str_replace".to_owned(),
        old_str: Some(old.to_owned()),
        new_str: Some(new.to_owned()),
        ..Default::default()
    }
}

pub(crate) fn insert(path: &str, line: i64, new: &str) -> EditFile {
    EditFile {
        path: path.to_owned(),
        command: "insert".to_owned(),
        new_str: Some(new.to_owned()),
        insert_line: Some(line.into()),
        ..Default::default()
    }
}

fn editor(workspace: Arc<Workspace>, outer: &Path, linting: Linting) -> Editor {
    Editor::new(
        workspace,
        EditorSettings {
            history_dir: outer.join("undo"),
            linting,
        },
    )
}
