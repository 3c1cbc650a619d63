//! Programs with streams of their own: what is asked for, what goes to and fro, and how it is
//! framed on a connection.
//!
//! A program is reached through a [`ProgramConnection`], whose other side ([`ProgramSide`]) the
//! executor holds. In one process these are all there is. Over HTTP the server and the client
//! each hold one of the two and carry frames between them.

mod connection;
mod follow;
mod frame;
mod json;
mod outcome;
mod place;
mod request;
mod signal;

pub use connection::{
    PIECES_MAX, ProgramConnection, ProgramControl, ProgramEvent, ProgramEvents, ProgramGone,
    ProgramInput, ProgramObserver, ProgramSide, StdinPiece,
};
pub use follow::follow;
pub use frame::{
    ClientFrame, FRAME_BYTES_MAX, FrameError, FrameReader, STDIN_WINDOW_BYTES, ServerFrame,
};
pub use outcome::{ProgramExit, StartFailure, StartProgramError};
pub use place::{Place, PlaceError};
pub use request::{
    ProgramLine, ProgramRequest, ProgramStdin, REQUEST_BYTES_MAX, TerminalSize, UPGRADE_NAME,
};
pub use signal::ProgramSignal;
