//! The name that an owner gives a session, and the id that is kept for it.
//!
//! Ids are unique among all sessions and are never given again, so an answer about an id that a client
//! chose would tell whether another owner has used it. Owner and name together give the id, therefore: a
//! name means the session of the owner that uses it, and nothing can be learnt of those of others.

use sha2::{Digest as _, Sha256};
use zareba_protocol::SessionId;

use crate::{Owner, SessionError};

/// What ids begin with that were made of an owner and a name.
const PREFIX: &str = "n-";

/// Hexadecimal digits of the digest in an id: 128 bits, so that no two names meet by chance or by search.
const DIGITS: usize = 32;

/// The id of the session that a name means to its owner.
///
/// # Errors
/// None that can happen: an id of digits is always valid.
pub fn own_id(owner: &Owner, name: &SessionId) -> Result<SessionId, SessionError> {
    let mut hash = Sha256::new();
    for part in [owner.0.as_str(), name.as_str()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let digits = digits.get(..DIGITS).unwrap_or(&digits);
    SessionId::new(format!("{PREFIX}{digits}")).map_err(|error| SessionError::Invalid {
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_another_session_to_each_owner() {
        let id = |owner: &str, name: &str| {
            let name = SessionId::new(name).unwrap();
            own_id(&Owner(owner.to_owned()), &name).unwrap()
        };
        assert_eq!(id("ann", "ci"), id("ann", "ci"));
        for other in [
            id("ben", "ci"),
            id("ann", "c"),
            id("an", "nci"),
            id("annc", "i"),
        ] {
            assert_ne!(id("ann", "ci"), other);
        }
    }
}
