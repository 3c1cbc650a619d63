//! What a sandbox has changed in its workspace: as a list, and as a patch.
//!
//! Paths are relative to the workspace and written as file operations write them: a name that is
//! not UTF-8 is escaped. Every name and every byte of a patch was chosen by the sandbox.

/// The most changes that are listed.
pub const CHANGES_MAX: usize = 100_000;

/// The most bytes of one patch.
pub const PATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How a line of a patch begins that names what the patch leaves out. Such lines precede the first
/// file, where `git apply` and `patch` skip them.
pub const LEFT_OUT: &str = "# left out: ";

/// Which changes are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangesRequest {
    /// A file or a directory, relative to the workspace; `None` is the whole workspace.
    pub path: Option<String>,
}

/// The changes of a workspace, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceChanges {
    /// The changes.
    pub changes: Vec<WorkspaceChange>,
    /// What could not be compared; changes in these places are missing from the list.
    pub unread: Vec<UnreadPlace>,
}

/// One changed file, link or empty directory. A directory that holds something is represented by
/// what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceChange {
    /// Its path.
    pub path: String,
    /// How it changed.
    pub kind: ChangeKind,
    /// What it is now, or what it was if it is deleted.
    pub content: ChangedContent,
}

/// How a path changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It did not exist.
    Added,
    /// Its content, its kind or its execute permission differs.
    Modified,
    /// It no longer exists.
    Deleted,
    /// A file with equal content had this path, which no longer exists.
    Renamed {
        /// The earlier path.
        from: String,
    },
}

/// What a path holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedContent {
    /// An empty directory.
    Directory,
    /// A regular file.
    File {
        /// Its length.
        bytes: u64,
        /// Whether its owner may execute it.
        is_executable: bool,
    },
    /// A symbolic link.
    Link {
        /// Where it points.
        target: String,
    },
    /// A pipe, a socket or a device.
    Special,
}

/// A place that could not be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadPlace {
    /// Its path; empty for the workspace itself.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Changes in the format of `git diff`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspacePatch {
    /// The patch. Bytes of text files are in it as they are.
    pub bytes: Vec<u8>,
}

impl ChangeKind {
    /// The letter that lists show for it.
    pub const fn letter(&self) -> char {
        match self {
            Self::Added => 'A',
            Self::Modified => 'M',
            Self::Deleted => 'D',
            Self::Renamed { .. } => 'R',
        }
    }
}

impl WorkspacePatch {
    /// What the patch leaves out, one path with its reason each, in the patch's own words.
    pub fn left_out(&self) -> impl Iterator<Item = String> + '_ {
        let lines = self.bytes.split(|byte| *byte == b'\n');
        let named = lines.map_while(|line| line.strip_prefix(LEFT_OUT.as_bytes()));
        named.map(|line| String::from_utf8_lossy(line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_before_the_first_file_name_what_is_left_out() {
        let bytes = b"# left out: \"a\": a pipe\n# left out: b: binary\ndiff --git a/c b/c\n# left out: d\n";
        let patch = WorkspacePatch {
            bytes: bytes.to_vec(),
        };
        let left_out: Vec<String> = patch.left_out().collect();
        assert_eq!(left_out, ["\"a\": a pipe", "b: binary"]);
    }
}
