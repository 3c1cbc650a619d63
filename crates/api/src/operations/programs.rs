//! Programs of a session with streams of their own.

use crate::{
    Access, Answer, Content, Deadline, ErrorCode, Method, Operation, Parameter, StartProgram,
    operation::of,
};

/// What a connection is upgraded to.
pub const UPGRADE_NAME: &str = "zareba-program";

/// Every operation of this group.
pub const ALL: &[&Operation] = &[&START];

/// Starts a program.
pub const START: Operation = Operation {
    id: "start_program",
    method: Method::Post,
    path: "/v1/sessions/{session}/programs",
    access: Access::Session,
    deadline: Deadline::Long,
    group: "programs",
    summary: "Start a program and hold its streams",
    description: "Takes the connection over once the program runs, and ends the program when the \
                  connection ends. Both ends send frames then: a byte for the kind, four bytes \
                  for the length, big end first, and at most 64 KiB. The client sends 0 input, 1 \
                  the end of input, 2 another size (rows and columns, two bytes each), 3 a signal \
                  by its name. The server sends 0 output, 1 errors, 2 the end as JSON (`code` or \
                  `signal`), 3 why there is no end as JSON (`message`), 4 how many bytes of input \
                  were taken (four bytes); nothing follows 2 and 3. Input may be ahead of what \
                  was taken by 256 KiB. Secrets of the session are hidden in output.",
    parameters: &[
        Parameter::header("connection", "`upgrade`.").required(),
        Parameter::header("upgrade", "`zareba-program`.").required(),
    ],
    body: Some(Content::json(of::<StartProgram>)),
    answers: &[Answer::empty(101, "It runs; frames follow.")],
    errors: &[
        ErrorCode::NotFound,
        ErrorCode::GuardDenied,
        ErrorCode::ProgramNotFound,
        ErrorCode::ProgramNotExecutable,
        ErrorCode::BadDirectory,
        ErrorCode::Conflict,
        ErrorCode::Unsupported,
        ErrorCode::BackendUnavailable,
    ],
};
