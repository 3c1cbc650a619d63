//! One layer: streamed to the disk, checked on the way, continued where a connection broke.

use bytes::Bytes;
use reqwest::{Response, StatusCode, Url, header::CONTENT_RANGE};

use super::{
    Part, Patience, PullError,
    connection::{Connection, Wanted, broken},
    documents::Descriptor,
    layout::{Layout, Sink},
    tries::Tries,
};

/// Fetches a blob into the layout. `report` hears how many bytes have come, each time more do.
pub(super) async fn fetch(
    connection: &Connection,
    patience: &Patience,
    layout: &Layout,
    blob: &Descriptor,
    report: impl Fn(u64),
) -> Result<(), PullError> {
    let part = Part::Layer {
        digest: blob.digest.clone(),
    };
    let mut download = Download {
        part: &part,
        url: connection.address.blob(&blob.digest),
        size: blob.size,
        received: 0,
        sink: layout.sink(&blob.digest)?,
    };
    let mut tries = Tries::new(patience);
    while let Err(failure) = download.advance(connection, &report).await {
        tries.again(failure).await?;
    }
    let written = download.sink.finish().await?;
    if written.digest != blob.digest {
        return Err(PullError::DigestMismatch {
            part,
            expected: blob.digest.clone(),
            actual: written.digest,
        });
    }
    written.keep()
}

/// A blob of which some has come.
struct Download<'a> {
    part: &'a Part,
    url: Url,
    size: u64,
    received: u64,
    sink: Sink,
}

impl Download<'_> {
    /// One try to get the rest. What has come stays, whatever happens.
    async fn advance(
        &mut self,
        connection: &Connection,
        report: &impl Fn(u64),
    ) -> Result<(), PullError> {
        if self.received == self.size && self.received > 0 {
            return Ok(());
        }
        let mut response = connection
            .get(Wanted {
                part: self.part,
                url: &self.url,
                accept: "*/*",
                skip: self.received,
            })
            .await?;
        let mut skip = self.skip(&response)?;
        let rest = self.size - self.received;
        let announced = response.content_length();
        if let Some(announced) = announced.filter(|announced| *announced != skip + rest) {
            let received = announced.saturating_sub(skip).saturating_add(self.received);
            return Err(self.wrong_size(received));
        }
        while let Some(mut piece) = self.next(&mut response).await? {
            let known =
                piece.split_to(piece.len().min(usize::try_from(skip).unwrap_or(usize::MAX)));
            skip -= known.len() as u64;
            self.take(piece).await?;
            report(self.received);
        }
        if self.received < self.size {
            return Err(self.wrong_size(self.received));
        }
        Ok(())
    }

    /// How many bytes of the answer are there already: all of them when the server does not
    /// continue but begins again.
    fn skip(&self, response: &Response) -> Result<u64, PullError> {
        if response.status() == StatusCode::OK {
            return Ok(self.received);
        }
        let range = response.headers().get(CONTENT_RANGE);
        let range = range.and_then(|range| range.to_str().ok()).unwrap_or("");
        if self.received > 0 && starts_at(range, self.received) {
            return Ok(0);
        }
        Err(PullError::InvalidDocument {
            part: self.part.clone(),
            problem: "another range of it came than was asked for".to_owned(),
        })
    }

    async fn next(&self, response: &mut Response) -> Result<Option<Bytes>, PullError> {
        let piece = response.chunk().await;
        piece.map_err(broken(self.part, self.received))
    }

    async fn take(&mut self, piece: Bytes) -> Result<(), PullError> {
        let received = self.received.saturating_add(piece.len() as u64);
        if received > self.size {
            return Err(self.wrong_size(received));
        }
        self.sink.write(piece).await?;
        self.received = received;
        Ok(())
    }

    fn wrong_size(&self, received: u64) -> PullError {
        PullError::SizeMismatch {
            part: self.part.clone(),
            declared: self.size,
            received,
        }
    }
}

/// Whether a `Content-Range` is the one that begins at `first`.
fn starts_at(range: &str, first: u64) -> bool {
    range
        .strip_prefix("bytes ")
        .and_then(|range| range.split_once('-'))
        .is_some_and(|(start, _)| start.trim().parse() == Ok(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_known_by_its_first_byte() {
        assert!(starts_at("bytes 5-9/10", 5));
        assert!(starts_at("bytes 5-9/*", 5));
        for other in [
            "",
            "bytes",
            "bytes 4-9/10",
            "bytes */10",
            "5-9/10",
            "bytes -5",
        ] {
            assert!(!starts_at(other, 5), "{other}");
        }
    }
}
