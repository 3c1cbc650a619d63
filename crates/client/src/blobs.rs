//! Large parts of an event, which the server keeps apart and refers to by their digest.

use bytes::Bytes;
use serde_json::Value;
use zareba_api::operations::events;
use zareba_protocol::SessionId;

use crate::{Client, ClientError, actions::OBSERVATION_BYTES_MAX, ask::Ask};

/// Parts of one event that are put back; an event has a handful.
const PARTS_MAX: usize = 256;

/// A part that is kept apart.
struct Reference {
    digest: String,
    is_json: bool,
}

impl Client {
    /// The bytes that an event refers to by their digest, in hexadecimal.
    ///
    /// # Errors
    /// When the event refers to none such, and whatever kept the answer from coming.
    pub async fn blob(
        &self,
        session: &SessionId,
        event: u64,
        digest: &str,
    ) -> Result<Bytes, ClientError> {
        let ask = Ask::new(self, &events::BLOB, &[session.as_str(), digest])?
            .query("event", &event.to_string())
            .at_most(OBSERVATION_BYTES_MAX);
        Ok(self.ask(ask).await?.document)
    }

    /// Puts every part of an event back that the server has replaced by a reference.
    pub(crate) async fn put_back(
        &self,
        session: &SessionId,
        event: &mut Value,
    ) -> Result<(), ClientError> {
        let Some(number) = event.get("id").and_then(Value::as_u64) else {
            return Ok(());
        };
        for _ in 0..PARTS_MAX {
            let Some((place, reference)) = find(event) else {
                return Ok(());
            };
            let part = self.blob(session, number, &reference.digest).await?;
            *place = if reference.is_json {
                crate::ask::parse(&part)?
            } else {
                String::from_utf8_lossy(&part).into()
            };
        }
        Err(ClientError::Nonsense {
            problem: format!("an event has more than {PARTS_MAX} parts that are kept apart"),
        })
    }
}

/// The first reference in a value, and where it stands.
fn find(value: &mut Value) -> Option<(&mut Value, Reference)> {
    if let Some(reference) = reference_of(value) {
        return Some((value, reference));
    }
    match value {
        Value::Array(items) => items.iter_mut().find_map(find),
        Value::Object(fields) => fields.values_mut().find_map(find),
        _ => None,
    }
}

fn reference_of(value: &Value) -> Option<Reference> {
    let fields = value.as_object()?;
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let (digest, form) = (text("$blob")?, text("form")?);
    let is_reference = fields.len() == 4
        && fields.contains_key("bytes")
        && fields.contains_key("head")
        && digest.len() == 64
        && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_reference.then(|| Reference {
        digest: digest.to_owned(),
        is_json: form == "json",
    })
}
