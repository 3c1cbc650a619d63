//! Streams that pass a door: how many bytes there were, and what they were, by their SHA-256.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use zareba_wire::ByteStream;

/// What has passed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    passed: Arc<Mutex<Passed>>,
}

#[derive(Debug, Default)]
struct Passed {
    bytes: u64,
    hash: Sha256,
}

impl Measured {
    /// The same stream, measured as it is read.
    pub(super) fn through(&self, content: ByteStream) -> ByteStream {
        let measured = self.clone();
        Box::pin(content.inspect(move |piece| {
            if let Ok(piece) = piece {
                let mut passed = measured.lock();
                passed.bytes += piece.len() as u64;
                passed.hash.update(piece);
            }
        }))
    }

    /// Says what has passed.
    pub(super) fn tell(&self, entry: &mut Map<String, Value>) {
        entry.insert("bytes".to_owned(), self.bytes().into());
        entry.insert("sha256".to_owned(), self.sha256().into());
    }

    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    pub(super) fn sha256(&self) -> String {
        let digest = self.lock().hash.clone().finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls back with what has passed when a stream is dropped.
pub(super) fn on_drop(
    content: ByteStream,
    told: impl FnOnce(&Measured) + Send + 'static,
) -> ByteStream {
    struct Teller<F: FnOnce(&Measured)> {
        measured: Measured,
        told: Option<F>,
    }

    impl<F: FnOnce(&Measured)> Drop for Teller<F> {
        fn drop(&mut self) {
            if let Some(told) = self.told.take() {
                told(&self.measured);
            }
        }
    }

    let measured = Measured::default();
    let content = measured.through(content);
    let teller = Teller {
        measured,
        told: Some(told),
    };
    Box::pin(content.inspect(move |_| {
        // Named as a whole, so that the closure owns all of it.
        let _ = &teller;
    }))
}
