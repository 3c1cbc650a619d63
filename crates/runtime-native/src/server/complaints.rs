//! What an executor writes to its standard error: logged, and the end of it kept for the error
//! that tells why it did not start.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{io::AsyncReadExt as _, net::unix::pipe, task::JoinHandle};

/// How much of the end is kept: a message and its reasons.
const TAIL_BYTES: usize = 4096;

/// How long the rest may take to arrive from an executor that has closed its other output.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where an executor complains.
#[derive(Debug)]
pub(super) enum Complaints {
    /// To us, who read along as long as it lives.
    Piped {
        tail: Arc<Mutex<Vec<u8>>>,
        drained: JoinHandle<()>,
    },
    /// To a file, because it may outlive us.
    InFile(PathBuf),
}

impl Complaints {
    /// Reads along in a task, which ends with the executor.
    pub(super) fn piped(mut source: pipe::Receiver) -> Self {
        let tail: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&tail);
        let drained = tokio::spawn(async move {
            let mut chunk = [0; TAIL_BYTES];
            while let Ok(length @ 1..) = source.read(&mut chunk).await {
                let text = String::from_utf8_lossy(&chunk[..length]);
                tracing::debug!(target: "zareba_runtime_native::server", "server: {}", text.trim_end());
                keep_tail(
                    &mut kept.lock().unwrap_or_else(PoisonError::into_inner),
                    &chunk[..length],
                );
            }
        });
        Self::Piped { tail, drained }
    }

    /// The end of what was written.
    pub(super) async fn text(self) -> String {
        let bytes = match self {
            Self::Piped { tail, drained } => {
                let _ = tokio::time::timeout(PATIENCE, drained).await;
                tail.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Self::InFile(path) => read_tail(path).unwrap_or_default(),
        };
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

fn keep_tail(tail: &mut Vec<u8>, more: &[u8]) {
    tail.extend_from_slice(more);
    let surplus = tail.len().saturating_sub(TAIL_BYTES);
    tail.drain(..surplus);
}

fn read_tail(path: PathBuf) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES as u64)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES as u64).read_to_end(&mut tail)?;
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = Vec::new();
        keep_tail(&mut tail, &[b'a'; 5000]);
        keep_tail(&mut tail, b"end");
        assert_eq!(
            (tail.len(), &tail[TAIL_BYTES - 4..]),
            (TAIL_BYTES, b"aend".as_slice())
        );
    }

    #[test]
    fn a_file_is_read_from_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, format!("{}end", "a".repeat(5000))).unwrap();
        let tail = read_tail(path).unwrap();
        assert_eq!(
            (tail.len(), &tail[TAIL_BYTES - 4..]),
            (TAIL_BYTES, b"aend".as_slice())
        );
    }
}
