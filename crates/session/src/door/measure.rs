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
        let passed = self.lock();
        entry.insert("bytes".to_owned(), passed.bytes.into());
        let digest = passed.hash.clone().finalize();
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        entry.insert("sha256".to_owned(), digits.into());
    }

    fn lock(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls back with the number of bytes when a stream is dropped.
pub(super) fn on_drop(content: ByteStream, told: impl FnOnce(u64) + Send + 'static) -> ByteStream {
    struct Counter<F: FnOnce(u64)> {
        bytes: u64,
        told: Option<F>,
    }

    impl<F: FnOnce(u64)> Drop for Counter<F> {
        fn drop(&mut self) {
            if let Some(told) = self.told.take() {
                told(self.bytes);
            }
        }
    }

    let mut counter = Counter {
        bytes: 0,
        told: Some(told),
    };
    Box::pin(content.inspect(move |piece| {
        // Named as a whole, so that the closure owns all of it.
        let counter = &mut counter;
        counter.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
    }))
}
