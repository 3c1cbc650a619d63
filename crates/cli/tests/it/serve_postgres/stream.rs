//! Events of a session as they come, read line by line.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};

use crate::support::PATIENCE;

/// A stream of events from the first on.
pub(super) struct Stream {
    lines: BufReader<UnixStream>,
    /// The number of the next event.
    next: u64,
}

impl Stream {
    pub(super) fn open(socket: &Path, key: &str, session: &str) -> Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = format!(
            "GET /v1/sessions/{session}/events/stream HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut lines = BufReader::new(stream);
        let mut first = String::new();
        lines.read_line(&mut first)?;
        ensure!(first.starts_with("HTTP/1.1 200 "), "{first}");
        Ok(Self { lines, next: 0 })
    }

    /// Reads on until it has seen the event with this number; none may be missing.
    pub(super) fn read_until(&mut self, last: u64) -> Result<()> {
        while self.next <= last {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line);
            let length = read.with_context(|| format!("event {} does not come", self.next))?;
            ensure!(length > 0, "the stream ended before event {}", self.next);
            if let Some(number) = line.strip_prefix("id: ") {
                let number: u64 = number.trim_end().parse()?;
                ensure!(
                    number == self.next,
                    "{number} comes in place of {}",
                    self.next
                );
                self.next += 1;
            }
        }
        Ok(())
    }
}
