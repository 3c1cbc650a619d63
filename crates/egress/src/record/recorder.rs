//! The one task that owns the log and the sums; everybody else sends it decisions.
//!
//! The channel is bounded, so a flood of decisions slows down those who cause it. A disk that
//! takes no more is reported once and does not stop the traffic.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::record::counters::Counters;
use crate::record::decision::Decision;
use crate::record::log::Log;

/// Decisions on their way to the disk.
const QUEUE_MAX: usize = 1024;
/// How long the sums may lag behind; the timer runs only while they do.
const LAG_MAX: Duration = Duration::from_millis(250);

/// Where decisions are sent.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(mpsc::Sender<Decision>);

/// The other end: what is to be done with decisions.
#[derive(Debug)]
pub(crate) struct Recording {
    queue: mpsc::Receiver<Decision>,
    log: Log,
    counters: Counters,
    counters_path: PathBuf,
    has_failed: bool,
}

impl Recorder {
    /// A recorder, and the recording that has to run for it.
    pub(crate) fn new(log: Log, counters_path: PathBuf) -> (Self, Recording) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let recording = Recording {
            queue,
            log,
            counters: Counters::default(),
            counters_path,
            has_failed: false,
        };
        (Self(sender), recording)
    }

    /// A recorder and recording with both files open; the sums begin at zero.
    pub(crate) fn open(
        decisions: &std::path::Path,
        counters: PathBuf,
    ) -> io::Result<(Self, Recording)> {
        Ok(Self::new(Log::open(decisions)?, counters))
    }

    /// Hands a decision over. Waits while the queue is full.
    pub(crate) async fn record(&self, decision: Decision) {
        // The recording ends only after everybody who records.
        let _ = self.0.send(decision).await;
    }
}

impl Recording {
    /// Writes until every [`Recorder`] is gone, then writes the last sums.
    pub(crate) async fn run(mut self) {
        let mut write_at = None;
        loop {
            tokio::select! {
                decision = self.queue.recv() => match decision {
                    Some(decision) => {
                        self.note(&decision);
                        write_at.get_or_insert_with(|| Instant::now() + LAG_MAX);
                    }
                    None => break,
                },
                () = reached(write_at) => {
                    write_at = None;
                    self.write_counters();
                }
            }
        }
        self.write_counters();
    }

    fn note(&mut self, decision: &Decision) {
        self.counters.count(decision);
        let appended = self.log.append(decision);
        self.report(appended, "cannot append to the log of decisions");
    }

    fn write_counters(&mut self) {
        let written = self.counters.write(&self.counters_path);
        self.report(written, "cannot write the sums of decisions");
    }

    fn report(&mut self, outcome: io::Result<()>, deed: &str) {
        match outcome {
            Ok(()) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                tracing::error!(%error, "{deed}; check the space and permissions of its directory");
            }
            Err(_) => {}
        }
    }
}

/// Waits for a point in time, or forever when there is none.
async fn reached(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DecisionKind;

    #[tokio::test(start_paused = true)]
    async fn sums_are_written_soon_and_at_the_end_eg_7() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("egress.json");
        let read =
            || -> Counters { serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap() };
        let log = directory.path().join("log");
        let (recorder, recording) = Recorder::open(&log, path.clone()).unwrap();
        let running = tokio::spawn(recording.run());

        recorder.record(Decision::begin(DecisionKind::Dns)).await;
        tokio::time::sleep(LAG_MAX + Duration::from_millis(1)).await;
        assert_eq!(read().denied, 1);

        recorder.record(Decision::begin(DecisionKind::Dns)).await;
        drop(recorder);
        running.await.unwrap();
        assert_eq!(read().denied, 2);
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 2);
    }
}
