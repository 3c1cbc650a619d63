//! What is done to a sandbox, by which client: the words that a guard judges and the log keeps.

use serde_json::{Map, Value, json};
use zareba_protocol::ActionEvent;
use zareba_wire::{
    output::StopMeans,
    program::{ProgramLine, ProgramRequest},
};

use crate::Owner;

/// One thing that is done to a sandbox or in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Deed {
    /// An action. Those of a session are recorded as such, before they are judged.
    Action(Box<ActionEvent>),
    /// The output of an action is read while it runs, past the session's own way to it.
    ReadOutput {
        /// The name that the action runs under.
        action: String,
    },
    /// An action is brought to its end, past the session's own way to it.
    StopAction {
        /// The name that the action runs under.
        action: String,
        /// By what means.
        means: StopMeans,
    },
    /// A program with streams of its own.
    Program {
        /// What it is for.
        purpose: ProgramPurpose,
        /// What is started.
        request: Box<ProgramRequest>,
    },
    /// A terminal that runs is looked at, and perhaps typed into.
    AttachTerminal {
        /// Its name.
        name: String,
        /// Whether the client may type into it.
        may_type: bool,
    },
    /// The bytes of a file are read.
    Read {
        /// Which file.
        path: String,
    },
    /// What is at a path is looked up.
    Stat {
        /// Which path.
        path: String,
    },
    /// A directory is listed.
    List {
        /// Which directory.
        path: String,
    },
    /// Changes in a directory are followed.
    Watch {
        /// Which directory.
        path: String,
    },
    /// What has changed in the workspace leaves, as a list or as a patch.
    Changes {
        /// A path in the workspace, or the workspace.
        path: String,
        /// The content leaves as well.
        is_patch: bool,
    },
    /// A file or directory leaves as an archive.
    Download {
        /// What is packed.
        path: String,
    },
    /// A file or directory is copied to the machine that the sandbox runs on.
    CopyFrom {
        /// The path inside.
        path: String,
    },
    /// A file gets new content.
    Write {
        /// Which file.
        path: String,
    },
    /// A file is stored, or an archive is unpacked.
    Upload {
        /// The directory.
        path: String,
        /// The name that it was sent under.
        file_name: String,
    },
    /// A file or directory of the machine that the sandbox runs on is copied into it.
    CopyTo {
        /// The directory inside.
        path: String,
    },
    /// A directory is made.
    MakeDirectory {
        /// Which directory.
        path: String,
    },
    /// Something gets another name.
    Rename {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// A file, link or directory is removed.
    Remove {
        /// Which path.
        path: String,
        /// A directory goes with all that is in it.
        is_recursive: bool,
    },
    /// A terminal's program is ended.
    CloseTerminal {
        /// Its name.
        name: String,
    },
    /// A tool is removed.
    RemoveTool {
        /// Its name.
        name: String,
    },
    /// Hosts of tools begin anew.
    ResetTools,
    /// Variables of its shells are set.
    SetVariables {
        /// Their names; values are never told.
        names: Vec<String>,
    },
    /// A connection to a port inside.
    Port {
        /// Which port.
        port: u16,
    },
    /// The ports that programs inside listen on are looked up.
    ListPorts,
    /// A port gets an address that works without a key.
    SharePort {
        /// Which port.
        port: u16,
    },
    /// The address of a port ends.
    UnsharePort {
        /// Which port.
        port: u16,
    },
    /// A key for this one session is made.
    CreateKey {
        /// What it allows.
        scope: RequesterScope,
    },
    /// A ticket is made, which opens one stream.
    CreateTicket,
    /// Limits or labels of the session change.
    Update,
    /// The sandbox as a whole changes.
    Manage(SandboxChange),
}

/// What a program is started for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProgramPurpose {
    /// A client wants its streams.
    #[default]
    Streams,
    /// People look at it and type into it.
    Terminal {
        /// The name of the terminal.
        name: String,
    },
    /// It hosts tools that agents call.
    ToolHost,
    /// It prints which ports programs listen on; the server starts it.
    PortTable,
}

/// How a sandbox changes as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxChange {
    /// Its processes are frozen.
    Pause,
    /// They go on.
    Resume,
    /// Its files are sealed.
    Checkpoint,
    /// Its files go back to a sealed state.
    Rollback,
    /// A second sandbox with the same files is made.
    Fork,
    /// It ends.
    Close,
    /// It ends, and the log of its session is removed.
    Purge,
}

/// How the log keeps a deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recording {
    /// Before it begins, durably, and again when it has ended.
    Around,
    /// Afterwards; equal ones of a short while are counted in one record.
    Counted,
}

/// The client that asks for a deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// Who it acts for.
    pub owner: Owner,
    /// The name of its key; `None` where no key is needed.
    pub key: Option<String>,
    /// What the key allows.
    pub scope: Option<RequesterScope>,
    /// The API that it uses.
    pub surface: Surface,
}

/// What a client's key allows; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequesterScope {
    /// To look.
    Read,
    /// To use sessions of its owner.
    Session,
    /// To use sessions of everyone.
    Admin,
}

/// An API through which deeds are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The server's own.
    Api,
    /// OpenHands' action execution server.
    OpenHands,
    /// CAMEL's tool server.
    Camel,
    /// The Model Context Protocol.
    Mcp,
    /// A shared port, of which a visitor knows the address.
    Preview,
    /// A command of this program, without a server.
    Cli,
    /// The session itself, for its tools.
    Session,
}

impl Deed {
    /// The action, if it is one.
    pub(crate) fn into_action(self) -> Option<ActionEvent> {
        match self {
            Self::Action(action) => Some(*action),
            _ => None,
        }
    }

    /// The word for its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Action(_) => "action",
            Self::ReadOutput { .. } => "read_output",
            Self::StopAction { .. } => "stop_action",
            Self::Program { purpose, .. } => match purpose {
                ProgramPurpose::Streams => "program",
                ProgramPurpose::Terminal { .. } => "terminal",
                ProgramPurpose::ToolHost => "tool_host",
                ProgramPurpose::PortTable => "list_ports",
            },
            Self::AttachTerminal { .. } => "attach_terminal",
            Self::Read { .. } => "read",
            Self::Stat { .. } => "stat",
            Self::List { .. } => "list",
            Self::Watch { .. } => "watch",
            Self::Changes { .. } => "changes",
            Self::Download { .. } => "download",
            Self::CopyFrom { .. } => "copy_from",
            Self::Write { .. } => "write",
            Self::Upload { .. } => "upload",
            Self::CopyTo { .. } => "copy_to",
            Self::MakeDirectory { .. } => "make_directory",
            Self::Rename { .. } => "rename",
            Self::Remove { .. } => "remove",
            Self::CloseTerminal { .. } => "close_terminal",
            Self::RemoveTool { .. } => "remove_tool",
            Self::ResetTools => "reset_tools",
            Self::SetVariables { .. } => "set_variables",
            Self::Port { .. } => "port",
            Self::ListPorts => "list_ports",
            Self::SharePort { .. } => "share_port",
            Self::UnsharePort { .. } => "unshare_port",
            Self::CreateKey { .. } => "create_key",
            Self::CreateTicket => "create_ticket",
            Self::Update => "update",
            Self::Manage(change) => change.as_str(),
        }
    }

    /// Whether it only gives back, or lets rest and go on, what an earlier deed has opened: such a deed must be
    /// possible also when the log of its session is full.
    pub(crate) const fn takes_back(&self) -> bool {
        matches!(
            self,
            Self::CloseTerminal { .. }
                | Self::RemoveTool { .. }
                | Self::ResetTools
                | Self::UnsharePort { .. }
                | Self::Manage(SandboxChange::Pause | SandboxChange::Resume)
        )
    }

    /// What looks and changes nothing is counted, and so are connections to ports and tickets, of
    /// which a browser opens and needs many.
    pub(crate) const fn recording(&self) -> Recording {
        match self {
            Self::AttachTerminal { .. }
            | Self::ReadOutput { .. }
            | Self::Read { .. }
            | Self::Stat { .. }
            | Self::List { .. }
            | Self::Watch { .. }
            | Self::Changes { .. }
            | Self::Download { .. }
            | Self::CopyFrom { .. }
            | Self::Port { .. }
            | Self::ListPorts
            | Self::CreateTicket
            | Self::Program {
                purpose: ProgramPurpose::PortTable,
                ..
            } => Recording::Counted,
            _ => Recording::Around,
        }
    }

    /// It as the log keeps it: names of variables and never their values.
    pub fn to_value(&self) -> Value {
        let mut value = self.details();
        if let Value::Object(details) = &mut value {
            let mut whole = Map::new();
            whole.insert("kind".to_owned(), self.kind().into());
            whole.append(details);
            return Value::Object(whole);
        }
        json!({ "kind": self.kind() })
    }

    fn details(&self) -> Value {
        match self {
            Self::Action(action) => json!({ "action": action.to_value() }),
            Self::ReadOutput { action } => json!({ "action": action }),
            Self::StopAction { action, means } => {
                json!({ "action": action, "means": means.as_str() })
            }
            Self::Program {
                purpose: ProgramPurpose::PortTable,
                ..
            }
            | Self::ListPorts
            | Self::ResetTools
            | Self::CreateTicket
            | Self::Update
            | Self::Manage(_) => json!({}),
            Self::Program { purpose, request } => program(purpose, request),
            Self::AttachTerminal { name, may_type } => {
                json!({ "name": name, "may_type": may_type })
            }
            Self::Read { path }
            | Self::Stat { path }
            | Self::List { path }
            | Self::Watch { path }
            | Self::Download { path }
            | Self::CopyFrom { path }
            | Self::CopyTo { path }
            | Self::Write { path }
            | Self::MakeDirectory { path } => json!({ "path": path }),
            Self::Changes { path, is_patch } => json!({ "path": path, "patch": is_patch }),
            Self::Upload { path, file_name } => json!({ "path": path, "file_name": file_name }),
            Self::Rename { from, to } => json!({ "path": from, "to": to }),
            Self::Remove { path, is_recursive } => {
                json!({ "path": path, "recursive": is_recursive })
            }
            Self::CloseTerminal { name } | Self::RemoveTool { name } => json!({ "name": name }),
            Self::SetVariables { names } => json!({ "names": names }),
            Self::Port { port } | Self::SharePort { port } | Self::UnsharePort { port } => {
                json!({ "port": port })
            }
            Self::CreateKey { scope } => json!({ "scope": scope.as_str() }),
        }
    }
}

fn program(purpose: &ProgramPurpose, request: &ProgramRequest) -> Value {
    let mut details = Map::new();
    if let ProgramPurpose::Terminal { name } = purpose {
        details.insert("name".to_owned(), name.as_str().into());
    }
    match &request.program {
        ProgramLine::Argv(words) => details.insert("argv".to_owned(), words.as_slice().into()),
        ProgramLine::Shell(line) => details.insert("command".to_owned(), line.as_str().into()),
    };
    if let Some(directory) = &request.directory {
        details.insert("cwd".to_owned(), directory.as_str().into());
    }
    if !request.environment.is_empty() {
        let names = request.environment.iter().map(|(name, _)| name.as_str());
        details.insert("env".to_owned(), names.collect::<Vec<_>>().into());
    }
    details.insert("tty".to_owned(), request.terminal.is_some().into());
    Value::Object(details)
}

impl SandboxChange {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Checkpoint => "checkpoint",
            Self::Rollback => "rollback",
            Self::Fork => "fork",
            Self::Close => "close",
            Self::Purge => "purge",
        }
    }
}

impl Requester {
    /// The person at this machine, who uses no server and no key.
    pub fn cli() -> Self {
        Self {
            owner: Owner("local".to_owned()),
            key: None,
            scope: None,
            surface: Surface::Cli,
        }
    }

    /// The session itself, for an owner.
    pub(crate) const fn session(owner: Owner) -> Self {
        Self {
            owner,
            key: None,
            scope: None,
            surface: Surface::Session,
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut value = Map::new();
        value.insert("owner".to_owned(), self.owner.0.as_str().into());
        if let Some(key) = &self.key {
            value.insert("key".to_owned(), key.as_str().into());
        }
        if let Some(scope) = self.scope {
            value.insert("scope".to_owned(), scope.as_str().into());
        }
        value.insert("surface".to_owned(), self.surface.as_str().into());
        Value::Object(value)
    }

    /// It as a record has it; `None` for what is no client.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let known = |name: &str| text(name).map(str::to_owned);
        let mut scopes = RequesterScope::ALL.into_iter();
        let mut surfaces = Surface::ALL.into_iter();
        Some(Self {
            owner: Owner(known("owner")?),
            key: known("key"),
            scope: scopes.find(|scope| Some(scope.as_str()) == text("scope")),
            surface: surfaces.find(|surface| Some(surface.as_str()) == text("surface"))?,
        })
    }
}

impl RequesterScope {
    const ALL: [Self; 3] = [Self::Read, Self::Session, Self::Admin];

    /// The word for it, as keys have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Session => "session",
            Self::Admin => "admin",
        }
    }
}

impl Surface {
    const ALL: [Self; 7] = [
        Self::Api,
        Self::OpenHands,
        Self::Camel,
        Self::Mcp,
        Self::Preview,
        Self::Cli,
        Self::Session,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::OpenHands => "openhands",
            Self::Camel => "camel",
            Self::Mcp => "mcp",
            Self::Preview => "preview",
            Self::Cli => "cli",
            Self::Session => "session",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requester_is_found_again_in_a_record() {
        for surface in Surface::ALL {
            let scopes = RequesterScope::ALL.into_iter().map(Some);
            for scope in scopes.chain([None]) {
                let requester = Requester {
                    owner: Owner("ann".to_owned()),
                    key: scope.map(|_| "k1".to_owned()),
                    scope,
                    surface,
                };
                let found = Requester::from_value(&requester.to_value());
                assert_eq!(found, Some(requester));
            }
        }
        assert_eq!(Requester::from_value(&json!({ "owner": "ann" })), None);
    }
}
