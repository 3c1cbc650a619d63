//! Files of a session, as bytes.

use crate::{
    Access, Answer, Content, CreateDirectory, Deadline, ErrorCode, FilePage, FileStatus, Method,
    Operation, Parameter, ParameterType, Payload, RenameFile, operation::of,
};

const GROUP: &str = "files";
const BYTES: &str = "application/octet-stream";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[
    &LIST,
    &STATUS,
    &READ,
    &WRITE,
    &REMOVE,
    &MAKE_DIRECTORY,
    &RENAME,
    &PACK,
    &UNPACK,
    &WATCH,
];

const PATH: Parameter = Parameter::query(
    "path",
    ParameterType::Text,
    "The path; a relative one is meant from the workspace.",
)
.required();
const DIRECTORY: Parameter = Parameter::query(
    "path",
    ParameterType::Text,
    "The directory; the workspace when left out.",
);
const DIGEST: Parameter = Parameter::query(
    "digest",
    ParameterType::OneOf(&["sha256"]),
    "`sha256` hashes the content as well.",
);
const FORMAT: Parameter = Parameter::query(
    "format",
    ParameterType::OneOf(&["tar", "zip"]),
    "`tar` or `zip`; tar when left out.",
);

const LOOKING: &[ErrorCode] = &[
    ErrorCode::NotFound,
    ErrorCode::InvalidPath,
    ErrorCode::NameTooLong,
    ErrorCode::TooManyLinks,
    ErrorCode::GuardDenied,
    ErrorCode::PathOutsideRoot,
    ErrorCode::PermissionDenied,
    ErrorCode::IsADirectory,
    ErrorCode::NotADirectory,
    ErrorCode::NotARegularFile,
    ErrorCode::TooManyOpenFiles,
    ErrorCode::Conflict,
    ErrorCode::Unsupported,
    ErrorCode::BackendUnavailable,
];
const READING: &[ErrorCode] = &[
    ErrorCode::NotFound,
    ErrorCode::InvalidPath,
    ErrorCode::NameTooLong,
    ErrorCode::TooManyLinks,
    ErrorCode::GuardDenied,
    ErrorCode::PathOutsideRoot,
    ErrorCode::PermissionDenied,
    ErrorCode::IsADirectory,
    ErrorCode::NotADirectory,
    ErrorCode::NotARegularFile,
    ErrorCode::RangeNotSatisfiable,
    ErrorCode::FileTooLarge,
    ErrorCode::TooManyOpenFiles,
    ErrorCode::Conflict,
    ErrorCode::Unsupported,
    ErrorCode::BackendUnavailable,
];
const CHANGING: &[ErrorCode] = &[
    ErrorCode::NotFound,
    ErrorCode::InvalidPath,
    ErrorCode::NameTooLong,
    ErrorCode::TooManyLinks,
    ErrorCode::GuardDenied,
    ErrorCode::PathOutsideRoot,
    ErrorCode::PermissionDenied,
    ErrorCode::ReadOnlyFileSystem,
    ErrorCode::IsADirectory,
    ErrorCode::NotADirectory,
    ErrorCode::NotARegularFile,
    ErrorCode::OtherFileSystem,
    ErrorCode::Conflict,
    ErrorCode::Exists,
    ErrorCode::DirectoryNotEmpty,
    ErrorCode::FileBusy,
    ErrorCode::TooManyOpenFiles,
    ErrorCode::DiskFull,
    ErrorCode::DiskQuotaExceeded,
    ErrorCode::Unsupported,
    ErrorCode::BackendUnavailable,
];

/// Lists a directory.
pub const LIST: Operation = Operation {
    id: "list_files",
    method: Method::Get,
    path: "/v1/sessions/{session}/files",
    access: Access::Read,
    deadline: Deadline::Long,
    group: GROUP,
    summary: "List a directory",
    description: "Sorted by the bytes of names. Links are told and not followed.",
    parameters: &[
        DIRECTORY,
        Parameter::query(
            "after",
            ParameterType::Text,
            "The `next` of the page before.",
        ),
        Parameter::query("limit", ParameterType::Count, "How many at most."),
    ],
    body: None,
    answers: &[Answer::with(
        200,
        "A page of it.",
        Content::json(of::<FilePage>),
    )],
    errors: LOOKING,
};

/// Looks at a path.
pub const STATUS: Operation = Operation {
    id: "get_file_status",
    path: "/v1/sessions/{session}/files/status",
    summary: "Look at a path",
    description: "",
    parameters: &[
        PATH,
        Parameter::query(
            "follow",
            ParameterType::Flag,
            "Whether a link at its end is followed; true when left out.",
        ),
        DIGEST,
    ],
    answers: &[Answer::with(
        200,
        "What is there.",
        Content::json(of::<FileStatus>),
    )],
    errors: READING,
    ..LIST
};

/// Reads a file.
pub const READ: Operation = Operation {
    id: "read_file",
    path: "/v1/sessions/{session}/files/content",
    summary: "Read a file",
    description: "Streams the bytes, all of them or one range. The tag is the file's version, or \
                  its hash when that is asked for. A file that becomes shorter while it is read \
                  breaks the answer off.",
    parameters: &[
        PATH,
        DIGEST,
        Parameter::header("range", "One range, such as `bytes=0-99`."),
        Parameter::header("if-none-match", "A tag; 304 when the file still has it."),
    ],
    answers: &[
        Answer::with(200, "The file.", Content::other(BYTES, Payload::Bytes)),
        Answer::with(206, "A part of it.", Content::other(BYTES, Payload::Bytes)),
        Answer::empty(304, "It has not changed."),
    ],
    errors: READING,
    ..LIST
};

/// Writes a file.
pub const WRITE: Operation = Operation {
    id: "write_file",
    method: Method::Put,
    access: Access::Session,
    summary: "Write a file",
    description: "The file is the old one or the new one at any time. With `If-Match` it is \
                  written only when it still has that tag, with `If-None-Match: *` only when it \
                  is not there; a 409 carries the tag that it has now.",
    parameters: &[
        PATH,
        Parameter::query(
            "mode",
            ParameterType::Matching("^[0-7]{1,3}$"),
            "Permissions, in octal digits.",
        ),
        Parameter::query(
            "parents",
            ParameterType::Flag,
            "Whether missing directories are made; false when left out.",
        ),
        Parameter::header("if-match", "The tag that the file must have."),
        Parameter::header("if-none-match", "`*`: the file must not be there."),
    ],
    body: Some(Content::other(BYTES, Payload::Bytes)),
    answers: &[Answer::with(
        200,
        "What is there then.",
        Content::json(of::<FileStatus>),
    )],
    errors: CHANGING,
    ..READ
};

/// Removes a file.
pub const REMOVE: Operation = Operation {
    id: "remove_file",
    method: Method::Delete,
    summary: "Remove a file or a directory",
    description: "A link goes itself, and not what it leads to.",
    parameters: &[
        PATH,
        Parameter::query(
            "recursive",
            ParameterType::Flag,
            "Whether a directory goes with all that is in it; false when left out.",
        ),
    ],
    body: None,
    answers: &[Answer::empty(204, "It is gone.")],
    ..WRITE
};

/// Makes a directory.
pub const MAKE_DIRECTORY: Operation = Operation {
    id: "create_directory",
    method: Method::Post,
    path: "/v1/sessions/{session}/files/directories",
    summary: "Make a directory",
    description: "",
    parameters: &[],
    body: Some(Content::json(of::<CreateDirectory>)),
    answers: &[Answer::with(
        201,
        "What is there then.",
        Content::json(of::<FileStatus>),
    )],
    ..WRITE
};

/// Renames something.
pub const RENAME: Operation = Operation {
    id: "rename_file",
    path: "/v1/sessions/{session}/files/rename",
    summary: "Rename a file or a directory",
    description: "Something that has the new name is replaced only when that is asked for.",
    body: Some(Content::json(of::<RenameFile>)),
    answers: &[Answer::empty(204, "It has the new name.")],
    ..MAKE_DIRECTORY
};

/// Packs a file or a directory.
pub const PACK: Operation = Operation {
    id: "pack_files",
    path: "/v1/sessions/{session}/files/archive",
    summary: "Read a file or a directory as an archive",
    description: "Streams it while it is packed. Links that lead out are not followed.",
    parameters: &[PATH, FORMAT],
    answers: &[Answer::with(
        200,
        "The archive.",
        Content::other(BYTES, Payload::Bytes),
    )],
    ..READ
};

/// Unpacks an archive.
pub const UNPACK: Operation = Operation {
    id: "unpack_files",
    path: "/v1/sessions/{session}/files/archive",
    summary: "Unpack an archive into a directory",
    description: "All of it or nothing: an archive that is broken, too large or names a place \
                  outside the directory leaves no file behind.",
    parameters: &[PATH, FORMAT],
    answers: &[Answer::empty(204, "It is unpacked.")],
    ..WRITE
};

/// Tells of changes.
pub const WATCH: Operation = Operation {
    id: "watch_files",
    path: "/v1/sessions/{session}/files/watch",
    access: Access::ReadOrTicket,
    summary: "Be told of changes in a directory",
    description: "Server-sent events: `data` is a change. It is watched once `ready` has come. \
                  What was missed while nobody was connected is not told again.",
    parameters: &[
        DIRECTORY,
        Parameter::query(
            "recursive",
            ParameterType::Flag,
            "Whether directories below it are meant too; false when left out.",
        ),
        Parameter::query(
            "ticket",
            ParameterType::Text,
            "A ticket instead of a key, for clients that cannot send headers.",
        ),
    ],
    answers: &[Answer::with(
        200,
        "Changes without an end.",
        Content::other("text/event-stream", Payload::Text),
    )],
    errors: LOOKING,
    ..READ
};
