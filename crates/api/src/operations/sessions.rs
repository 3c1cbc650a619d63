//! Making, finding and ending sessions.

use crate::{
    Access, Answer, ChangeList, Content, CreateSession, Deadline, ErrorCode, Method, Operation,
    Parameter, ParameterType, Payload, Session, SessionPage, SetVariables, UpdateSession,
    operation::of,
};

const GROUP: &str = "sessions";
const COLLECTION: &str = "/v1/sessions";
const ITEM: &str = "/v1/sessions/{session}";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[
    &CREATE,
    &LIST,
    &GET,
    &UPDATE,
    &DELETE,
    &PAUSE,
    &RESUME,
    &KEEP_ALIVE,
    &INSPECT,
    &SET_VARIABLES,
    &CHANGES,
];

/// Makes a session.
pub const CREATE: Operation = Operation {
    id: "create_session",
    method: Method::Post,
    path: COLLECTION,
    access: Access::Session,
    deadline: Deadline::Long,
    group: GROUP,
    summary: "Make a session",
    description: "Answers when the session is ready, or with `wait=false` once it is recorded. A \
                  client that goes away while it waits does not stop it.",
    parameters: &[Parameter::query(
        "wait",
        ParameterType::Flag,
        "Whether to wait until it is ready; true when left out.",
    )],
    body: Some(Content::json(of::<CreateSession>)),
    answers: &[
        Answer::with(201, "It is ready.", Content::json(of::<Session>)),
        Answer::with(202, "It is being started.", Content::json(of::<Session>)),
    ],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::Exists,
        ErrorCode::QuotaExceeded,
        ErrorCode::StartFailed,
        ErrorCode::BackendUnavailable,
        ErrorCode::Unsupported,
        ErrorCode::LogFull,
    ],
};

/// Lists sessions.
pub const LIST: Operation = Operation {
    id: "list_sessions",
    method: Method::Get,
    path: COLLECTION,
    access: Access::Read,
    deadline: Deadline::Short,
    group: GROUP,
    summary: "List sessions",
    description: "Those of the key's owner, or of everyone for a key that may do everything; by \
                  name, closed ones included.",
    parameters: &[
        Parameter::query(
            "after",
            ParameterType::Text,
            "The last name of the page before.",
        ),
        Parameter::query("limit", ParameterType::Count, "How many at most."),
    ],
    body: None,
    answers: &[Answer::with(
        200,
        "A page of them.",
        Content::json(of::<SessionPage>),
    )],
    errors: &[],
};

/// Shows a session.
pub const GET: Operation = Operation {
    id: "get_session",
    path: ITEM,
    summary: "Show a session",
    description: "Also one that is closed.",
    parameters: &[],
    answers: &[Answer::with(
        200,
        "The session.",
        Content::json(of::<Session>),
    )],
    errors: &[ErrorCode::NotFound],
    ..LIST
};

/// Changes a session.
pub const UPDATE: Operation = Operation {
    id: "update_session",
    method: Method::Patch,
    path: ITEM,
    access: Access::Session,
    deadline: Deadline::Short,
    group: GROUP,
    summary: "Change a session",
    description: "Changes when it goes to sleep, when it ends, or its labels, and records that in \
                  its log. What the operator's settings and the key do not permit is refused. Not \
                  for keys of one session.",
    parameters: &[],
    body: Some(Content::json(of::<UpdateSession>)),
    answers: &[Answer::with(
        200,
        "How it is then.",
        Content::json(of::<Session>),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::Conflict,
        ErrorCode::GuardDenied,
    ],
};

/// Ends a session.
pub const DELETE: Operation = Operation {
    id: "delete_session",
    method: Method::Delete,
    path: ITEM,
    access: Access::Session,
    deadline: Deadline::Long,
    summary: "End a session",
    description: "Ends its sandbox and keeps its log, unless that is to go as well. Ending twice \
                  is no error. It is answered under overload.",
    parameters: &[Parameter::query(
        "purge",
        ParameterType::Flag,
        "Whether the log goes as well; false when left out.",
    )],
    answers: &[Answer::empty(204, "It has ended.")],
    errors: &[ErrorCode::NotFound, ErrorCode::GuardDenied],
    ..GET
};

/// Freezes a session.
pub const PAUSE: Operation = Operation {
    id: "pause_session",
    method: Method::Post,
    path: "/v1/sessions/{session}/pause",
    access: Access::Session,
    deadline: Deadline::Long,
    summary: "Freeze a session",
    description: "Its processes stand still until something is asked of it. Pausing twice is no \
                  error.",
    answers: &[Answer::with(
        200,
        "How it is then.",
        Content::json(of::<Session>),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Conflict,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
        ErrorCode::LogFull,
    ],
    ..GET
};

/// Lets a session go on.
pub const RESUME: Operation = Operation {
    id: "resume_session",
    path: "/v1/sessions/{session}/resume",
    summary: "Let a frozen session go on",
    description: "Resuming twice is no error.",
    ..PAUSE
};

/// Counts as use.
pub const KEEP_ALIVE: Operation = Operation {
    id: "keep_session_alive",
    path: "/v1/sessions/{session}/keep_alive",
    deadline: Deadline::Short,
    summary: "Count as use of a session",
    description: "It does not go to sleep for another while.",
    errors: &[ErrorCode::NotFound],
    ..PAUSE
};

/// Looks into a sandbox.
pub const INSPECT: Operation = Operation {
    id: "inspect_session",
    path: "/v1/sessions/{session}/inspect",
    summary: "What stands around a sandbox and what it uses",
    description: "What it says depends on the runtime. A frozen session is woken.",
    access: Access::Session,
    answers: &[Answer::with(
        200,
        "A document for people and programs.",
        Content::json_of(Payload::AnyJson),
    )],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::Conflict,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
    ],
    ..GET
};

/// Sets and removes variables.
pub const SET_VARIABLES: Operation = Operation {
    id: "set_variables",
    method: Method::Post,
    path: "/v1/sessions/{session}/variables",
    access: Access::Session,
    deadline: Deadline::Long,
    summary: "Set and remove variables of everything in a session",
    description: "Programs, terminals, hosts of tools and shells that start get them. A shell that \
                  is there gets them with its next command; a program that runs keeps what it \
                  has. The log has their names and not their values. A frozen session is woken.",
    body: Some(Content::json(of::<SetVariables>)),
    answers: &[Answer::empty(204, "They are set.")],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::Conflict,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
    ],
    ..GET
};

/// Tells what changed in a workspace.
pub const CHANGES: Operation = Operation {
    id: "list_changes",
    path: "/v1/sessions/{session}/changes",
    access: Access::Read,
    deadline: Deadline::Long,
    summary: "What a session has changed in its workspace",
    description: "For workspaces that are copied on write or began empty. A patch is in the format \
                  of `git diff`; what it leaves out, such as binary files, is named in lines before \
                  the first file that begin with `# left out: `. Commands may change files while \
                  they are read.",
    parameters: &[
        Parameter::query(
            "path",
            ParameterType::Text,
            "A file or a directory of the workspace; all of it when left out.",
        ),
        Parameter::query(
            "format",
            ParameterType::OneOf(&["list", "patch"]),
            "`list` or `patch`; list when left out.",
        ),
    ],
    answers: &[
        Answer::with(200, "The list.", Content::json(of::<ChangeList>)),
        Answer::with(
            200,
            "The patch.",
            Content::other("application/octet-stream", Payload::Bytes),
        ),
    ],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::Conflict,
        ErrorCode::GuardDenied,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
    ],
    ..GET
};
