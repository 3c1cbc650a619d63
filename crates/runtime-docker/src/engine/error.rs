//! Why the Engine did not do what it was asked for, in kinds that callers act on.

use std::{error::Error as StdError, io};

use bollard::errors::Error as Reply;

/// What kept the Engine from doing something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineFault {
    /// There is nobody to ask, or the connection broke.
    Unreachable,
    /// We may not ask.
    Denied,
    /// There was no answer in time.
    TimedOut,
    /// What was named is not there.
    Missing,
    /// Something else has the name, or is being done.
    Conflict,
    /// A port that was to be published is taken.
    PortTaken,
    /// The Engine's disk is full.
    NoSpace,
    /// The request makes no sense to it.
    Refused,
    /// It tried and failed.
    Failed,
}

/// Why the Engine did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[error("the Docker Engine cannot {deed}{}", hint(*fault))]
pub struct EngineError {
    /// What was attempted, as a verb phrase.
    pub deed: String,
    /// What was in the way.
    pub fault: EngineFault,
    /// What the Engine or the system said. Where no answer came, what the HTTP client says above the
    /// system's word is left out: it names only itself.
    pub source: Box<dyn StdError + Send + Sync>,
}

impl EngineError {
    pub(crate) fn new(deed: impl Into<String>, reply: Reply) -> Self {
        let fault = fault_of(&reply);
        Self {
            deed: deed.into(),
            fault,
            source: match fault {
                EngineFault::Unreachable | EngineFault::Denied => deepest(&reply).into(),
                _ => Box::new(reply),
            },
        }
    }
}

/// What to do about it, where that is not in the Engine's own words.
fn hint(fault: EngineFault) -> &'static str {
    match fault {
        EngineFault::Unreachable => ", because it cannot be reached; is it running?",
        EngineFault::Denied => {
            ", because this user may not ask it; join the group that owns its socket"
        }
        EngineFault::TimedOut => ", because it did not answer in time",
        EngineFault::NoSpace => ", because its disk is full; remove images or containers",
        EngineFault::PortTaken => ", because a port is taken",
        EngineFault::Missing
        | EngineFault::Conflict
        | EngineFault::Refused
        | EngineFault::Failed => "",
    }
}

fn fault_of(reply: &Reply) -> EngineFault {
    match reply {
        Reply::DockerResponseServerError {
            status_code,
            message,
        } => fault_of_answer(*status_code, message),
        Reply::RequestTimeoutError => EngineFault::TimedOut,
        Reply::DockerStreamError { error } => fault_of_answer(500, error),
        Reply::JsonDataError { .. } | Reply::JsonSerdeError { .. } => EngineFault::Failed,
        // Its source is not itself but what is behind it.
        Reply::IOError { err } => fault_of_io(Some(err.kind())),
        other => fault_of_io(io_kind(other)),
    }
}

fn fault_of_io(kind: Option<io::ErrorKind>) -> EngineFault {
    match kind {
        Some(io::ErrorKind::PermissionDenied) => EngineFault::Denied,
        _ => EngineFault::Unreachable,
    }
}

/// The Engine has no codes beside the status; these words are all that tells a full disk and a
/// taken port from any other failure.
fn fault_of_answer(status: u16, message: &str) -> EngineFault {
    let says = |words: &str| message.contains(words);
    if says("no space left on device") || says("disk quota exceeded") {
        return EngineFault::NoSpace;
    }
    if says("port is already allocated") || says("address already in use") {
        return EngineFault::PortTaken;
    }
    match status {
        404 => EngineFault::Missing,
        409 => EngineFault::Conflict,
        401 | 403 => EngineFault::Denied,
        400..=499 => EngineFault::Refused,
        _ => EngineFault::Failed,
    }
}

/// The last of an error's causes, in words.
fn deepest(error: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

fn io_kind(error: &(dyn StdError + 'static)) -> Option<io::ErrorKind> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        current = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status_code: u16, message: &str) -> EngineFault {
        let message = message.to_owned();
        fault_of(&Reply::DockerResponseServerError {
            status_code,
            message,
        })
    }

    #[test]
    fn answers_are_told_apart() {
        assert_eq!(answer(404, "No such image"), EngineFault::Missing);
        assert_eq!(answer(409, "name in use"), EngineFault::Conflict);
        assert_eq!(answer(400, "bad parameter"), EngineFault::Refused);
        assert_eq!(answer(500, "oops"), EngineFault::Failed);
        let full = "mkdir /x: no space left on device";
        assert_eq!(answer(500, full), EngineFault::NoSpace);
        let taken = "Bind for 127.0.0.1:80 failed: port is already allocated";
        assert_eq!(answer(500, taken), EngineFault::PortTaken);
    }

    #[test]
    fn a_missing_engine_is_told_from_a_forbidden_one() {
        let reply = |kind: io::ErrorKind| Reply::from(io::Error::from(kind));
        let missing = EngineError::new("list containers", reply(io::ErrorKind::NotFound));
        assert_eq!(missing.fault, EngineFault::Unreachable);
        assert!(missing.source.source().is_none(), "{}", missing.source);
        assert_eq!(
            missing.to_string(),
            "the Docker Engine cannot list containers, because it cannot be reached; is it running?"
        );
        let forbidden = EngineError::new("start", reply(io::ErrorKind::PermissionDenied));
        assert_eq!(forbidden.fault, EngineFault::Denied);
    }
}
