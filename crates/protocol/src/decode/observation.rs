//! Reads an observation as a client does: leniently, because servers differ.

use serde_json::Value;

use super::{DecodeError, FieldError, envelope::Document, legacy};
use crate::{Observation, ObservationEvent, observation::contract, python_repr};

impl ObservationEvent {
    /// Reads an observation from JSON text.
    ///
    /// # Errors
    /// When the text is no JSON, nests deeper than 128 levels, or is no valid observation.
    pub fn from_json(json: &[u8]) -> Result<Self, DecodeError> {
        Self::from_value(Document::parse(json)?)
    }

    /// Reads an observation from a JSON value.
    ///
    /// Keys that nobody knows are ignored, also inside `extras`, and old spellings are understood.
    ///
    /// # Errors
    /// When its type is not known, or a field is missing or has the wrong type.
    pub fn from_value(value: Value) -> Result<Self, DecodeError> {
        let mut document = Document::new(value)?;
        let Some(kind) = document.keys.get("observation") else {
            return Err(DecodeError::NoType {
                event: python_repr::of_object(&document.keys),
            });
        };
        let contract = kind.as_str().and_then(contract::find).ok_or_else(|| {
            DecodeError::UnknownObservation {
                kind: python_repr::of(kind),
            }
        })?;
        let invalid = |error| DecodeError::invalid_field(contract.kind, "extras", error);

        let mut extras = document.take_object("extras").map_err(invalid)?;
        legacy::modernise_extras(&mut extras);
        let kind = (contract.parse)(extras).map_err(invalid)?;
        let content = document
            .take_text("content")
            .map_err(invalid)?
            .unwrap_or_default();
        let source = document.take_source()?;
        Self::with_envelope(Observation { content, kind }, &mut document)
            .map(|event| Self { source, ..event })
            .map_err(invalid)
    }

    fn with_envelope(
        observation: Observation,
        document: &mut Document,
    ) -> Result<Self, FieldError> {
        Ok(Self {
            id: document.take_number("id")?,
            timestamp: document.take_text("timestamp")?,
            source: None,
            cause: document.take_number("cause")?,
            tool_call_metadata: document.take("tool_call_metadata"),
            llm_metrics: document.take("llm_metrics"),
            observation,
        })
    }
}
