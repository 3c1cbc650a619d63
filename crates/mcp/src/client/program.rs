//! A server that is a program in the sandbox: one JSON document to a line, each way.

use std::{collections::VecDeque, sync::Arc};

use bytes::{Bytes, BytesMut};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::Mutex;
use zareba_wire::program::{
    ProgramConnection, ProgramEvent, ProgramEvents, ProgramExit, ProgramGone, ProgramInput,
};

use super::connection::{Ending, MESSAGE_BYTES_MAX, is_readable, unreadable};

/// What is kept of a server's complaints, for the one who wonders why it ended.
const COMPLAINT_BYTES_MAX: usize = 2048;

/// Lines that are no messages, before a program is taken for something else than a server.
const ODD_LINES_MAX: usize = 1000;

/// The streams of a program as a way to talk to it. Dropping it ends the program.
pub(super) struct ProgramTransport {
    input: Arc<Mutex<Option<ProgramInput>>>,
    events: ProgramEvents,
    partial: BytesMut,
    /// How much of that is known to have no end of a line.
    searched: usize,
    odd_lines: usize,
    complaints: VecDeque<u8>,
    ending: Ending,
}

impl ProgramTransport {
    pub(super) fn new(program: ProgramConnection, ending: Ending) -> Self {
        let (input, events) = program.split();
        Self {
            input: Arc::new(Mutex::new(Some(input))),
            events,
            partial: BytesMut::new(),
            searched: 0,
            odd_lines: 0,
            complaints: VecDeque::new(),
            ending,
        }
    }

    /// The next whole line that came already.
    fn line(&mut self) -> Option<Bytes> {
        let unsearched = self.partial.get(self.searched..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', unsearched) else {
            self.searched = self.partial.len();
            return None;
        };
        let line = self.partial.split_to(self.searched + end + 1);
        self.searched = 0;
        Some(line.freeze())
    }

    fn complain(&mut self, bytes: &[u8]) {
        self.complaints.extend(bytes);
        let surplus = self.complaints.len().saturating_sub(COMPLAINT_BYTES_MAX);
        self.complaints.drain(..surplus);
    }

    fn ended(&mut self, how: &str) {
        let complaints = self.complaints.make_contiguous();
        let complaints = String::from_utf8_lossy(complaints).trim().to_owned();
        self.ending.set(match complaints.as_str() {
            "" => how.to_owned(),
            text => format!("{how}, after it had complained: {text}"),
        });
    }
}

impl Transport<RoleClient> for ProgramTransport {
    type Error = ProgramGone;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), ProgramGone>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| ProgramGone)?;
            line.push(b'\n');
            // Held while it is written: lines must not mix.
            let input = input.lock().await;
            let input = input.as_ref().ok_or(ProgramGone)?;
            input.write_stdin(Bytes::from(line)).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            while let Some(line) = self.line() {
                if !is_readable(&line) {
                    self.ended(&unreadable());
                    return None;
                }
                match serde_json::from_slice(&line) {
                    Ok(message) => return Some(message),
                    Err(_) if line.trim_ascii().is_empty() => {}
                    Err(_) => self.odd_lines += 1,
                }
            }
            if self.partial.len() > MESSAGE_BYTES_MAX {
                let how = format!("it sent a message of more than {MESSAGE_BYTES_MAX} bytes");
                self.ended(&how);
                return None;
            }
            if self.odd_lines > ODD_LINES_MAX {
                self.ended("what it writes are no messages of the protocol");
                return None;
            }
            match self.events.next().await {
                Some(ProgramEvent::Stdout(bytes)) => self.partial.extend_from_slice(&bytes),
                Some(ProgramEvent::Stderr(bytes)) => self.complain(&bytes),
                Some(ProgramEvent::Exit(ProgramExit::Code(code))) => {
                    self.ended(&format!("it ended with exit code {code}"));
                    return None;
                }
                Some(ProgramEvent::Exit(ProgramExit::Signal(signal))) => {
                    self.ended(&format!("signal {signal} ended it"));
                    return None;
                }
                Some(ProgramEvent::Error(message)) => {
                    self.ended(&message);
                    return None;
                }
                None => {
                    self.ended("its connection ended");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), ProgramGone> {
        // The end of its input asks it to go; dropping the rest sees to it that it does. One that
        // does not read may keep somebody writing, whom nobody waits for.
        if let Ok(mut input) = self.input.try_lock() {
            drop(input.take());
        }
        Ok(())
    }
}
