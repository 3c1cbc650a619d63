//! What may be asked of files.

/// Entries of a directory that are told at once, at the most.
pub const LIST_LIMIT_MAX: usize = 1000;

/// What is done about a link at the end of a path. Links on the way are always followed, as far
/// as they may be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// What it leads to is meant.
    #[default]
    Follow,
    /// The link itself is meant.
    Keep,
}

/// Whether the content's SHA-256 is wanted, for which the whole file has to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Digest {
    /// No.
    #[default]
    Skip,
    /// Yes.
    Sha256,
}

/// What is done about missing directories above a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parents {
    /// They must be there.
    #[default]
    Require,
    /// They are made.
    Make,
}

/// How much of a tree is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The one thing that is named.
    #[default]
    One,
    /// That, and all that is below it.
    Tree,
}

/// What is done about something that is in the way of a new name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the request is refused.
    #[default]
    Keep,
    /// It is replaced.
    Replace,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// From here to the end.
    From(u64),
    /// From the first to the last of these, both included. The end of the file may come first.
    Between(u64, u64),
    /// So many at the end, or all when there are fewer.
    Last(u64),
}

/// What a file must be for a write to go ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Not there.
    Absent,
    /// As it was when it had this version.
    Version(String),
    /// With this content, by its SHA-256 in hexadecimal digits.
    Sha256(String),
}

/// Asks what is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatRequest {
    /// The path.
    pub path: String,
    /// What a link at its end means.
    pub links: Links,
    /// Whether the content is hashed.
    pub digest: Digest,
}

/// Asks for the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// The path.
    pub path: String,
    /// Which bytes; `None` is all.
    pub range: Option<ByteRange>,
    /// Whether the content is hashed.
    pub digest: Digest,
}

/// Asks for a file with new content. It is the old one or the new one at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRequest {
    /// The path. A link at its end is followed as far as may be reached.
    pub path: String,
    /// Its permissions; `None` keeps those of a file that is there.
    pub mode: Option<u32>,
    /// What is done about missing directories.
    pub parents: Parents,
    /// What must be there now; `None` is anything.
    pub expected: Option<Expected>,
}

/// Asks for entries of a directory, sorted by the bytes of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// The directory.
    pub path: String,
    /// The name behind which the page begins.
    pub after: Option<String>,
    /// How many entries, at most [`LIST_LIMIT_MAX`].
    pub limit: usize,
}

/// Asks for something to go away. A link goes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoveRequest {
    /// The path.
    pub path: String,
    /// Whether a directory goes with all that is in it.
    pub depth: Depth,
}

/// Asks for another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenameRequest {
    /// The old one. A link is renamed itself.
    pub from: String,
    /// The new one.
    pub to: String,
    /// What is done about something with that name.
    pub existing: Existing,
}

/// Asks for a new directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryRequest {
    /// The path.
    pub path: String,
    /// Its permissions; `None` is what the umask leaves.
    pub mode: Option<u32>,
    /// What is done about missing directories above it. With [`Parents::Make`] it is no error
    /// that the directory is there.
    pub parents: Parents,
}

/// Asks to be told of changes in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// The directory.
    pub path: String,
    /// Whether directories below it are meant too. Links are not followed.
    pub depth: Depth,
}
