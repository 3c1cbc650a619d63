//! What is said of an operation: its row in the table.

use utoipa::{
    ToSchema,
    openapi::{Ref, RefOr, Schema},
};

use crate::ErrorCode;

/// One thing that a client can ask for.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its name in generated clients.
    pub id: &'static str,
    /// Its method.
    pub method: Method,
    /// Its path, with parameters in braces.
    pub path: &'static str,
    /// Who may use it.
    pub access: Access,
    /// How long it may take.
    pub deadline: Deadline,
    /// The group that it belongs to.
    pub group: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What else is to be known.
    pub description: &'static str,
    /// Parameters of the query and headers; those of the path are found in it.
    pub parameters: &'static [Parameter],
    /// What it takes.
    pub body: Option<Content>,
    /// What it answers when all is well.
    pub answers: &'static [Answer],
    /// Codes that are particular to it, beside those that every operation has.
    pub errors: &'static [ErrorCode],
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Looks.
    Get,
    /// Does.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Who may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Everyone. It changes nothing and always says the same.
    Public,
    /// Whoever has a key.
    Read,
    /// Whoever has a key or, in the query, a ticket that was made with one.
    ReadOrTicket,
    /// Whoever has a key that may use sessions.
    Session,
    /// Whoever has such a key or, in the query, a ticket that was made with one.
    SessionOrTicket,
    /// Whoever has a key that may do everything.
    Admin,
    /// Whoever knows the address, which nobody can guess; the handler checks it.
    Capability,
}

/// How long an operation may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deadline {
    /// As long as the server allows any short request.
    Short,
    /// As long as what it waits for, streams or moves; the handler has limits of its own.
    Long,
}

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub place: ParameterPlace,
    /// What it is.
    pub kind: ParameterType,
    /// Whether it must be there.
    pub is_required: bool,
    /// What it means.
    pub description: &'static str,
}

/// Where a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterPlace {
    /// In the query.
    Query,
    /// A header.
    Header,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterType {
    /// `true` or `false`.
    Flag,
    /// A number of 0 or more.
    Count,
    /// Seconds, whole or not.
    Seconds,
    /// Text.
    Text,
    /// Text that this regular expression matches.
    Matching(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
}

impl Parameter {
    /// One of the query that may be left out.
    pub const fn query(name: &'static str, kind: ParameterType, description: &'static str) -> Self {
        Self {
            name,
            place: ParameterPlace::Query,
            kind,
            is_required: false,
            description,
        }
    }

    /// A header that may be left out.
    pub const fn header(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            place: ParameterPlace::Header,
            kind: ParameterType::Text,
            is_required: false,
            description,
        }
    }

    /// The same, but it must be there.
    #[must_use]
    pub const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    /// The same, but only text that this regular expression matches.
    #[must_use]
    pub const fn matching(self, pattern: &'static str) -> Self {
        Self {
            kind: ParameterType::Matching(pattern),
            ..self
        }
    }
}

/// A body of some type.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// Its media type.
    pub media_type: &'static str,
    /// What it holds.
    pub payload: Payload,
}

/// What a body holds.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    /// A type of this crate.
    Type(NamedSchema),
    /// An action's envelope.
    Action,
    /// An observation's envelope.
    Observation,
    /// Text.
    Text,
    /// Any bytes.
    Bytes,
    /// Any JSON.
    AnyJson,
}

/// Gives a type's name, its schema and those that it refers to.
pub type NamedSchema = fn() -> (String, Vec<(String, RefOr<Schema>)>);

impl Content {
    /// JSON of a type.
    pub const fn json(schema: NamedSchema) -> Self {
        Self {
            media_type: "application/json",
            payload: Payload::Type(schema),
        }
    }

    /// JSON that is described elsewhere.
    pub const fn json_of(payload: Payload) -> Self {
        Self {
            media_type: "application/json",
            payload,
        }
    }

    /// Something else than JSON.
    pub const fn other(media_type: &'static str, payload: Payload) -> Self {
        Self {
            media_type,
            payload,
        }
    }
}

/// An answer when all is well.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// What it means.
    pub description: &'static str,
    /// What it holds.
    pub content: Option<Content>,
}

impl Answer {
    /// An answer with a body.
    pub const fn with(status: u16, description: &'static str, content: Content) -> Self {
        Self {
            status,
            description,
            content: Some(content),
        }
    }

    /// An answer without one.
    pub const fn empty(status: u16, description: &'static str) -> Self {
        Self {
            status,
            description,
            content: None,
        }
    }
}

/// The schema of a type, for [`Content::json`].
pub fn of<T: ToSchema>() -> (String, Vec<(String, RefOr<Schema>)>) {
    let mut schemas = Vec::new();
    T::schemas(&mut schemas);
    let name = T::name().into_owned();
    schemas.push((name.clone(), T::schema()));
    (name, schemas)
}

pub(crate) fn reference(name: &str) -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(name))
}
