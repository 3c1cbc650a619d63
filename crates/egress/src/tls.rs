//! Reads which server a TLS client asks for, out of its first message and nothing else.
//!
//! Strict where a server could read something else than we do: one server name, one extension
//! that holds it, no length that does not add up. TLS itself is passed on untouched.

use crate::denial::Fault;
use crate::host::HostName;

/// The first byte of a TLS connection: a handshake record.
pub(crate) const HANDSHAKE: u8 = 0x16;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// Longest record that a client may send in the clear.
const RECORD_BYTES_MAX: usize = 1 << 14;

/// What the bytes of a connection say so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// The greeting is not complete.
    More,
    /// The greeting asks for this server, or for none in particular.
    Wants(Option<HostName>),
}

/// Reads a greeting that may be split over records, and may not be there completely.
pub(crate) fn read_hello(bytes: &[u8]) -> Result<Hello, Fault> {
    let mut message = Vec::new();
    let mut records = Reader(bytes);
    loop {
        if let Some(body) = complete(&message)? {
            return server_name(body).map(Hello::Wants);
        }
        match record(&mut records)? {
            Some(part) => message.extend_from_slice(part),
            None => return Ok(Hello::More),
        }
    }
}

/// The next whole record's content; `None` when it has not arrived.
fn record<'a>(reader: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Fault> {
    let header = reader.0;
    if let Some(kind) = header.first()
        && *kind != HANDSHAKE
    {
        return Err(Fault::Tls);
    }
    if header.get(1).is_some_and(|major| *major != 3) {
        return Err(Fault::Tls);
    }
    let [_, _, _, high, low, rest @ ..] = header else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if length == 0 || length > RECORD_BYTES_MAX {
        return Err(Fault::Tls);
    }
    let Some((content, rest)) = rest.split_at_checked(length) else {
        return Ok(None);
    };
    reader.0 = rest;
    Ok(Some(content))
}

/// The body of the greeting, when all of it has arrived.
fn complete(message: &[u8]) -> Result<Option<&[u8]>, Fault> {
    let Some(kind) = message.first() else {
        return Ok(None);
    };
    if *kind != CLIENT_HELLO {
        return Err(Fault::Tls);
    }
    let [_, high, middle, low, body @ ..] = message else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([0, *high, *middle, *low]);
    let length = usize::try_from(length).map_err(|_| Fault::TooLong)?;
    if body.len() > length {
        // Another message in the same record; nothing follows a greeting before its answer.
        return Err(Fault::Tls);
    }
    Ok((body.len() == length).then_some(body))
}

fn server_name(body: &[u8]) -> Result<Option<HostName>, Fault> {
    let mut reader = Reader(body);
    reader.take(2 + 32)?; // Version and random.
    reader.short_list()?; // Session.
    reader.long_list()?; // Cipher suites.
    reader.short_list()?; // Compression methods.
    if reader.is_empty() {
        return Ok(None);
    }
    let mut extensions = Reader(reader.long_list()?);
    reader.end()?;
    let mut name = None;
    while !extensions.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long_list()?;
        if kind == SERVER_NAME {
            let is_first = name.replace(host_name(content)?).is_none();
            if !is_first {
                return Err(Fault::Tls);
            }
        }
    }
    Ok(name)
}

/// The one entry of a list of server names.
fn host_name(content: &[u8]) -> Result<HostName, Fault> {
    let mut extension = Reader(content);
    let mut list = Reader(extension.long_list()?);
    extension.end()?;
    let [kind] = list.take(1)? else {
        return Err(Fault::Tls);
    };
    let name = list.long_list()?;
    list.end()?;
    if *kind != HOST_NAME {
        return Err(Fault::Tls);
    }
    // A server name is ASCII on the wire; what would need translation is not one.
    let text = str::from_utf8(name).map_err(|_| Fault::ServerName)?;
    if !text.is_ascii() {
        return Err(Fault::ServerName);
    }
    HostName::parse(text).map_err(|_| Fault::ServerName)
}

/// Bytes that are left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn end(&self) -> Result<(), Fault> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(Fault::Tls)
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Fault::Tls)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u16, Fault> {
        let bytes = self.take(2)?.try_into().map_err(|_| Fault::Tls)?;
        Ok(u16::from_be_bytes(bytes))
    }

    /// What a length of one byte announces.
    fn short_list(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.take(1)?.first().copied().ok_or(Fault::Tls)?;
        self.take(length.into())
    }

    /// What a length of two bytes announces.
    fn long_list(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.number()?;
        self.take(length.into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// What a real client sends first.
    pub(crate) fn hello(server: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let server = server.to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), server).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    fn wants(name: &str) -> Result<Hello, Fault> {
        Ok(Hello::Wants(Some(HostName::parse(name).unwrap())))
    }

    /// The same message in records of `size` bytes.
    fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in hello[5..].chunks(size) {
            bytes.extend([HANDSHAKE, 3, 1]);
            bytes.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }

    /// A greeting with these extensions only.
    fn with_extensions(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([0; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend(extensions);
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        message.extend(body);
        let mut record = vec![HANDSHAKE, 3, 1];
        record.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
        record.extend(message);
        record
    }

    fn name_extension(name: &[u8]) -> Vec<u8> {
        let length = |extra: usize| u16::try_from(name.len() + extra).unwrap().to_be_bytes();
        let mut bytes = vec![0, 0];
        bytes.extend(length(5));
        bytes.extend(length(3));
        bytes.push(HOST_NAME);
        bytes.extend(length(0));
        bytes.extend(name);
        bytes
    }

    #[test]
    fn a_real_greeting_is_read() {
        assert_eq!(
            read_hello(&hello("www.Example.com")),
            wants("www.example.com")
        );
        assert_eq!(read_hello(&hello("1.2.3.4")), Ok(Hello::Wants(None)));
    }

    #[test]
    fn a_greeting_in_pieces_is_waited_for() {
        let hello = hello("example.com");
        for end in 0..hello.len() {
            assert_eq!(read_hello(&hello[..end]), Ok(Hello::More), "{end}");
        }
        for size in [1, 7, 100] {
            assert_eq!(read_hello(&in_records(&hello, size)), wants("example.com"));
        }
    }

    #[test]
    fn names_that_two_readers_could_read_differently_are_refused_eg_4() {
        let name = name_extension(b"example.com");
        assert_eq!(read_hello(&with_extensions(&name)), wants("example.com"));

        let twice = [name_extension(b"example.com"), name_extension(b"evil.org")].concat();
        assert_eq!(read_hello(&with_extensions(&twice)), Err(Fault::Tls));

        let mut list = vec![0, 0, 0, 21, 0, 19];
        for name in [b"a.ex", b"b.ex"] {
            list.extend([HOST_NAME, 0, 4]);
            list.extend(name);
        }
        list.extend([0; 5]);
        assert_eq!(read_hello(&with_extensions(&list)), Err(Fault::Tls));

        for bad in [
            &b"exa\0mple.com"[..],
            b"",
            b"a b",
            b"1.2.3.4",
            b"\xff",
            "bücher.example".as_bytes(),
        ] {
            let found = read_hello(&with_extensions(&name_extension(bad)));
            assert_eq!(found, Err(Fault::ServerName), "{bad:?}");
        }
    }

    #[test]
    fn a_greeting_without_a_name_wants_nobody() {
        assert_eq!(read_hello(&with_extensions(&[])), Ok(Hello::Wants(None)));
    }

    #[test]
    fn what_is_no_greeting_is_refused_at_once() {
        for bytes in [
            &[0x17, 3, 3][..],
            &[HANDSHAKE, 2],
            &[HANDSHAKE, 3, 1, 0, 0],
            &[HANDSHAKE, 3, 1, 0xff, 0xff],
            &[HANDSHAKE, 3, 1, 0, 1, 2],
        ] {
            assert_eq!(read_hello(bytes), Err(Fault::Tls), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_hello(&bytes);
            let _ = read_hello(&with_extensions(&bytes));
        }

        #[test]
        fn a_damaged_greeting_is_read_without_a_panic(at in 0_usize..200, byte: u8) {
            let mut hello = hello("example.com");
            if let Some(place) = hello.get_mut(at) {
                *place = byte;
            }
            let _ = read_hello(&hello);
        }
    }
}
