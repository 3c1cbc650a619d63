//! From a name that a client chose to a session of ours.
//!
//! A client starts its `session_id` again after it was stopped, while a session of ours never
//! comes back. So each name has a generation, which is counted up when its session has ended, and
//! owner, name and generation give the session's id. Two starts at once, on one server or on two,
//! thereby mean the same session, without a lock.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use zareba_eventlog::{DocumentName, EventLog, Expected, LogError};
use zareba_session::{Owner, SessionId};

use super::answer::Refusal;

/// The kind of the documents with generations.
const KIND: &str = "openhands-name";
/// What a client's name may have in bytes.
const NAME_BYTES_MAX: usize = 256;

/// A client's name for a session, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    owner: Owner,
    text: String,
}

/// How often a name was used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    number: u64,
    /// The version of its document; none for the first.
    version: Option<u64>,
}

impl Name {
    pub(super) fn new(owner: &Owner, text: &str) -> Result<Self, Refusal> {
        let is_valid =
            (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
        if !is_valid {
            return Err(Refusal::invalid(format!(
                "a session_id has 1 to {NAME_BYTES_MAX} bytes and no control characters"
            )));
        }
        Ok(Self {
            owner: owner.clone(),
            text: text.to_owned(),
        })
    }

    /// The id of the session that this name means in a generation.
    pub(super) fn session(&self, generation: Generation) -> Result<SessionId, Refusal> {
        let digest = self.digest(Some(generation.number));
        SessionId::new(format!("oh-{}", &digest[..32]))
            .map_err(|error| Refusal::invalid(error.to_string()))
    }

    /// The generation that counts now.
    pub(super) async fn generation(&self, log: &EventLog) -> Result<Generation, LogError> {
        let document = log.store().get(self.document()).await?;
        Ok(match document {
            None => Generation {
                number: 0,
                version: None,
            },
            Some(document) => Generation {
                number: document.value["generation"].as_u64().unwrap_or_default(),
                version: Some(document.version),
            },
        })
    }

    /// Counts up from a generation whose session has ended, unless somebody else did already.
    pub(super) async fn renew(
        &self,
        log: &EventLog,
        ended: Generation,
    ) -> Result<Generation, LogError> {
        let value = json!({
            "generation": ended.number + 1,
            "owner": self.owner.0,
            "session_id": self.text,
        });
        let expected = ended.version.map_or(Expected::Absent, Expected::Version);
        match log.store().put(self.document(), value, expected).await {
            Ok(_) | Err(LogError::Conflict { .. }) => self.generation(log).await,
            Err(error) => Err(error),
        }
    }

    fn document(&self) -> DocumentName {
        DocumentName {
            kind: KIND,
            name: self.digest(None),
        }
    }

    fn digest(&self, generation: Option<u64>) -> String {
        let mut hash = Sha256::new();
        for part in [&self.owner.0, &self.text] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        if let Some(number) = generation {
            hash.update(number.to_be_bytes());
        }
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(owner: &str, text: &str, number: u64) -> SessionId {
        let name = Name::new(&Owner(owner.to_owned()), text).unwrap();
        let version = None;
        name.session(Generation { number, version }).unwrap()
    }

    #[test]
    fn owner_name_and_generation_tell_sessions_apart() {
        assert_eq!(id("a", "b", 0), id("a", "b", 0));
        let others = [
            id("a", "b", 1),
            id("b", "a", 0),
            id("ab", "c", 0),
            id("a", "bc", 0),
        ];
        for other in others {
            assert_ne!(id("a", "b", 0), other);
        }
        assert_ne!(id("ab", "c", 0), id("a", "bc", 0));
    }

    #[test]
    fn names_that_nobody_could_show_are_refused() {
        let owner = Owner("a".to_owned());
        for text in ["", "a\nb", "\0", &"x".repeat(NAME_BYTES_MAX + 1)] {
            assert!(Name::new(&owner, text).is_err(), "{text:?}");
        }
        assert!(Name::new(&owner, "日本 / 1").is_ok());
    }
}
