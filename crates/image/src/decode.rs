//! Bytes as they were before compression, told by their first bytes and not by any label.

use std::io::{self, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const MAGIC_BYTES: usize = 4;
/// Largest window of zstd, as an exponent: 128 MiB, which is what its own tool takes.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// A stream together with the bytes that were read from it to see what it is.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// A stream that is plain, gzip or zstd.
pub(crate) enum Decoder<R: Read> {
    Plain(Whole<R>),
    Gzip(Box<MultiGzDecoder<Whole<R>>>),
    Zstd(zstd::Decoder<'static, BufReader<Whole<R>>>),
}

impl<R: Read> Decoder<R> {
    pub(crate) fn new(mut stream: R) -> io::Result<Self> {
        let mut magic = Vec::with_capacity(MAGIC_BYTES);
        let wanted = MAGIC_BYTES as u64;
        stream.by_ref().take(wanted).read_to_end(&mut magic)?;
        let is_gzip = magic.starts_with(&GZIP);
        let is_zstd = magic.starts_with(&ZSTD);
        let whole = Cursor::new(magic).chain(stream);
        if is_gzip {
            return Ok(Self::Gzip(Box::new(MultiGzDecoder::new(whole))));
        }
        if is_zstd {
            let mut decoder = zstd::Decoder::new(whole)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            return Ok(Self::Zstd(decoder));
        }
        Ok(Self::Plain(whole))
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Gzip(stream) => stream.read(buffer),
            Self::Zstd(stream) => stream.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn decoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        Decoder::new(bytes)?.read_to_end(&mut decoded)?;
        Ok(decoded)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_kind_of_compression_is_told_by_its_first_bytes() {
        assert_eq!(decoded(b"plain").unwrap(), b"plain");
        assert_eq!(decoded(b"").unwrap(), b"");
        assert_eq!(decoded(&gzip(b"packed")).unwrap(), b"packed");
        let both = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(decoded(&both).unwrap(), b"one two");
        let zstd = zstd::encode_all(&b"packed"[..], 3).unwrap();
        assert_eq!(decoded(&zstd).unwrap(), b"packed");
    }

    #[test]
    fn a_stream_that_is_cut_short_is_an_error() {
        let gzip = gzip(b"some bytes that are packed");
        assert!(decoded(&gzip[..gzip.len() - 9]).is_err());
        let zstd = zstd::encode_all(&b"some bytes"[..], 3).unwrap();
        assert!(decoded(&zstd[..zstd.len() - 3]).is_err());
    }
}
