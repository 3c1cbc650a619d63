//! Somebody who reads events as they come.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, ensure};

/// An event that does not come within this time will not come.
const EVENT_WAIT: Duration = Duration::from_secs(60);
/// There are a thousand of them, and an event has about as much.
const BUFFER_BYTES: usize = 2048;

/// A stream of server-sent events.
#[derive(Debug)]
pub(crate) struct Subscriber {
    stream: BufReader<TcpStream>,
    /// The number of the next event.
    next: u64,
}

impl Subscriber {
    /// Sends the request for a stream from the first event on.
    pub(crate) fn open(address: SocketAddr, request: &[u8]) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(EVENT_WAIT))?;
        stream.write_all(request)?;
        let mut stream = BufReader::with_capacity(BUFFER_BYTES, stream);
        let mut status = String::new();
        stream.read_line(&mut status)?;
        ensure!(
            status.starts_with("HTTP/1.1 200 "),
            "no stream: {}",
            status.trim_end()
        );
        Ok(Self { stream, next: 0 })
    }

    /// Reads on until it has seen the event with this number; none may be missing.
    pub(crate) fn read_until(&mut self, last: u64) -> anyhow::Result<()> {
        let mut line = String::new();
        while self.next <= last {
            line.clear();
            let read = self.stream.read_line(&mut line);
            let length = read.with_context(|| format!("event {} does not come", self.next))?;
            ensure!(length > 0, "the stream ended before event {}", self.next);
            if let Some(number) = line.strip_prefix("id: ") {
                let number: u64 = number
                    .trim_end()
                    .parse()
                    .context("an event has no number")?;
                ensure!(
                    number == self.next,
                    "event {number} comes in place of {}",
                    self.next
                );
                self.next += 1;
            }
        }
        Ok(())
    }
}
