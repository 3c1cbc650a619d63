//! How much an image may cost (G-5), and the counters that hold it to that.
//!
//! The counters belong to one import. They sit in the readers, so a bomb is stopped by the byte
//! that is too much and not after it has been written.

use std::{
    cell::Cell,
    io::{self, Read},
};

/// An archive may swell without any regard to its ratio up to this size.
const RATIO_FREE_BYTES: u64 = 64 * 1024 * 1024;
/// Beyond that, how many bytes one compressed byte may become.
const RATIO_MAX: u64 = 200;
/// Longest manifest, index or configuration.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Most layers of an image. Other tools stop at 127.
pub(crate) const LAYERS_MAX: usize = 128;

/// What one image may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of all its archives together, extension records counted.
    pub entries_max: u64,
    /// Bytes of all its archives together when they are not compressed.
    pub unpacked_bytes_max: u64,
    /// Bytes of one layer as it is transported.
    pub blob_bytes_max: u64,
}

impl Limits {
    /// Room for every image that people use, and an end for those made to hurt.
    pub const STANDARD: Self = Self {
        entries_max: 1_000_000,
        unpacked_bytes_max: 20 * 1024 * 1024 * 1024,
        blob_bytes_max: 10 * 1024 * 1024 * 1024,
    };
}

/// Which limit an image has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    #[error("it has more than {max} entries")]
    Entries { max: u64 },
    #[error("unpacked it has more than {max} bytes")]
    UnpackedBytes { max: u64 },
    #[error("one of its layers has more than {max} bytes")]
    BlobBytes { max: u64 },
    #[error("it swells to more than {RATIO_MAX} times its compressed size")]
    Ratio,
    #[error("it has more than {LAYERS_MAX} layers")]
    Layers,
}

impl LimitExceeded {
    /// Takes the limit out of an error that a metered reader gave.
    pub(crate) fn behind(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<LimitExceeded> for io::Error {
    fn from(limit: LimitExceeded) -> Self {
        Self::new(io::ErrorKind::FileTooLarge, limit)
    }
}

/// What an import has used of its limits.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    entries: Cell<u64>,
    unpacked_bytes: Cell<u64>,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            entries: Cell::new(0),
            unpacked_bytes: Cell::new(0),
        }
    }

    pub(crate) fn charge_entries(&self, count: u64) -> Result<(), LimitExceeded> {
        let max = self.limits.entries_max;
        charge(&self.entries, count, max).ok_or(LimitExceeded::Entries { max })
    }

    pub(crate) fn charge_unpacked(&self, bytes: u64) -> Result<(), LimitExceeded> {
        let max = self.limits.unpacked_bytes_max;
        charge(&self.unpacked_bytes, bytes, max).ok_or(LimitExceeded::UnpackedBytes { max })
    }

    /// Refuses a blob by the size that it says or has.
    pub(crate) fn check_blob(&self, bytes: u64) -> Result<(), LimitExceeded> {
        let max = self.limits.blob_bytes_max;
        if bytes <= max {
            Ok(())
        } else {
            Err(LimitExceeded::BlobBytes { max })
        }
    }
}

fn charge(counter: &Cell<u64>, amount: u64, max: u64) -> Option<()> {
    let used = counter.get().checked_add(amount)?;
    counter.set(used);
    (used <= max).then_some(())
}

/// Counts what passes, so that the reader above can be held to a ratio, and tells of it.
pub(crate) struct Counted<'a, R> {
    pub(crate) inner: R,
    pub(crate) count: &'a Cell<u64>,
    pub(crate) tell: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count
            .set(self.count.get().saturating_add(count as u64));
        (self.tell)(self.count.get());
        Ok(count)
    }
}

/// Charges what passes, and compares it with the compressed bytes that it came from.
#[derive(Debug)]
pub(crate) struct Metered<'a, R> {
    inner: R,
    budget: &'a Budget,
    compressed: &'a Cell<u64>,
    bytes: u64,
}

impl<'a, R> Metered<'a, R> {
    pub(crate) fn new(inner: R, budget: &'a Budget, compressed: &'a Cell<u64>) -> Self {
        Self {
            inner,
            budget,
            compressed,
            bytes: 0,
        }
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.budget.charge_unpacked(count as u64)?;
        self.bytes = self.bytes.saturating_add(count as u64);
        let allowed = self.compressed.get().saturating_mul(RATIO_MAX);
        if self.bytes > allowed.saturating_add(RATIO_FREE_BYTES) {
            return Err(LimitExceeded::Ratio.into());
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(entries_max: u64, unpacked_bytes_max: u64) -> Budget {
        Budget::new(Limits {
            entries_max,
            unpacked_bytes_max,
            blob_bytes_max: 5,
        })
    }

    #[test]
    fn a_limit_is_reached_and_then_passed() {
        let budget = budget(3, 10);
        assert_eq!(budget.charge_entries(3), Ok(()));
        let past = Err(LimitExceeded::Entries { max: 3 });
        assert_eq!(budget.charge_entries(1), past);
        assert_eq!(budget.charge_unpacked(10), Ok(()));
        let past = Err(LimitExceeded::UnpackedBytes { max: 10 });
        assert_eq!(budget.charge_unpacked(1), past);
        assert_eq!(budget.charge_unpacked(u64::MAX), past);
        assert_eq!(budget.check_blob(5), Ok(()));
        let past = Err(LimitExceeded::BlobBytes { max: 5 });
        assert_eq!(budget.check_blob(6), past);
    }

    #[test]
    fn a_stream_may_swell_up_to_the_ratio_and_not_beyond() {
        let budget = budget(1, u64::MAX);
        let compressed = Cell::new(1);
        let allowed = RATIO_FREE_BYTES + RATIO_MAX;
        let mut within = Metered::new(io::repeat(0).take(allowed), &budget, &compressed);
        assert_eq!(io::copy(&mut within, &mut io::sink()).ok(), Some(allowed));
        let mut beyond = Metered::new(io::repeat(0).take(allowed + 1), &budget, &compressed);
        let error = io::copy(&mut beyond, &mut io::sink()).unwrap_err();
        assert_eq!(LimitExceeded::behind(&error), Some(LimitExceeded::Ratio));
    }
}
