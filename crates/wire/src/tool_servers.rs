//! What the HTTP surface asks of whoever keeps servers of tools: programs that speak the Model
//! Context Protocol, which clients push here and then talk to all at once.
//!
//! The protocol itself is nobody's business here: its messages pass as they are.

use tokio::io::DuplexStream;

use crate::BoxFuture;

/// A program that is a server of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProgram {
    /// What it is called.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables beside those that every program has.
    pub environment: Vec<(String, String)>,
}

/// Keeps servers of tools and connects clients to them.
pub trait ToolServers: Send + Sync {
    /// Replaces the whole set, for clients that are connected too. Dropping the future may leave
    /// either set.
    ///
    /// # Errors
    /// What does not work of the new set, in words; the rest does.
    fn replace(&self, programs: Vec<ToolProgram>) -> BoxFuture<'_, Result<(), String>>;

    /// Connects a client; `None` before there was a set.
    fn connect(&self) -> Option<ToolClient>;
}

/// A client's connection: one message to a line, each way. Dropping it ends it.
#[derive(Debug)]
pub struct ToolClient {
    /// The client's end.
    pub stream: DuplexStream,
}
