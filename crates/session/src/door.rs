//! The one door to a sandbox: each deed is judged, recorded and only then done.
//!
//! An [`AdmittedSandbox`] is a sandbox in the hands of one [`Requester`]. A session gives out
//! nothing else ([`Session::access`](crate::Session::access)), and commands without a server use
//! the same type with a log that keeps nothing. Every method of the traits is written out here and
//! in `files`: a method that is added to a trait and forgotten here falls back to the trait's
//! default, which refuses, and a test compares the two lists.
//!
//! What changes something is recorded before it begins, as durably as an action, and once more when
//! it has ended; what cannot be recorded is not done. What only looks is recorded afterwards, with
//! equal deeds of a short while in one record, and waits for nothing.

mod counted;
mod files;
mod log;
mod measure;
mod recorder;
mod sandbox;
mod transcript;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use tokio::time::Instant;
use zareba_protocol::SecurityRisk;
use zareba_runtime::{RuntimeError, Sandbox, SandboxId};
use zareba_wire::BoxFuture;

use crate::{
    Deed, DeedContext, Guard, ProgramPurpose, Requester, SessionState, Verdict,
    conductor::Conductor, deed::Recording,
};

use measure::Measured;

pub use log::{BegunDeed, DeedLog, Unkept};
pub(crate) use recorder::DeedRecorder;
pub use transcript::TRANSCRIPT_BYTES_MAX;

/// How long a guard may take. One that does not answer denies.
const GUARD_PATIENCE: Duration = Duration::from_secs(30);

/// A sandbox in the hands of one client.
#[derive(Clone)]
pub struct AdmittedSandbox {
    sandbox: Arc<dyn Sandbox>,
    door: Door,
    purpose: ProgramPurpose,
}

/// What judges and records the deeds of one client.
#[derive(Clone)]
pub struct Door {
    guard: Arc<dyn Guard>,
    log: Arc<dyn DeedLog>,
    session: Option<Arc<Conductor>>,
    requester: Requester,
}

/// A deed that was recorded and has not ended.
pub(crate) struct UnderWay {
    log: Arc<dyn DeedLog>,
    deed: BegunDeed,
    kind: &'static str,
    begun: Instant,
    has_ended: bool,
}

impl AdmittedSandbox {
    /// A sandbox of no session, judged by `guard` and recorded in `log`.
    pub fn new(
        sandbox: Arc<dyn Sandbox>,
        guard: Arc<dyn Guard>,
        log: Arc<dyn DeedLog>,
        requester: Requester,
    ) -> Self {
        let door = Door {
            guard,
            log,
            session: None,
            requester,
        };
        door.open(sandbox)
    }

    /// The same sandbox, with programs that are started for something else.
    #[must_use]
    pub fn with_purpose(&self, purpose: ProgramPurpose) -> Self {
        Self {
            purpose,
            ..self.clone()
        }
    }
}

impl Door {
    pub(crate) fn of_session(session: &Arc<Conductor>, requester: Requester) -> Self {
        Self {
            guard: Arc::clone(&session.common.options.guard),
            log: Arc::clone(&session.deeds) as Arc<dyn DeedLog>,
            session: Some(Arc::clone(session)),
            requester,
        }
    }

    /// The way to a sandbox.
    pub(crate) fn open(self, sandbox: Arc<dyn Sandbox>) -> AdmittedSandbox {
        AdmittedSandbox {
            sandbox,
            door: self,
            purpose: ProgramPurpose::default(),
        }
    }

    /// Admits a deed that does not reach the sandbox: it is judged and counted.
    ///
    /// # Errors
    /// When the guard denies it.
    pub async fn admit(&self, deed: &Deed) -> Result<(), RuntimeError> {
        self.judge(deed, None).await?;
        self.count(deed, Ok(()), 0);
        Ok(())
    }

    /// Does a deed that is no method of a sandbox, as shares of ports and keys are: judged, recorded,
    /// done, recorded. `word` names an error for the log.
    ///
    /// A session that has ended, or that another server has, takes no records here. The deed is told
    /// to the program's own log then.
    ///
    /// # Errors
    /// When the guard denies it, it cannot be recorded or it fails.
    pub async fn carry_out<T, E: From<RuntimeError>>(
        &self,
        deed: Deed,
        word: impl FnOnce(&E) -> &'static str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.judge(&deed, None).await?;
        if !self.takes_records() {
            let by = self.requester.to_value();
            tracing::info!(deed = deed.kind(), %by, "a deed beside a log");
            return work.await;
        }
        if deed.recording() == Recording::Counted {
            let done = work.await;
            self.count(&deed, done.as_ref().map(drop).map_err(word), 0);
            return done;
        }
        let under_way = match self.begin(&deed).await {
            Ok(under_way) => under_way,
            // What takes something back must be possible also when the log has no room left.
            Err(error) if deed.takes_back() => {
                tracing::warn!(deed = deed.kind(), %error, "a deed is not recorded");
                return work.await;
            }
            Err(error) => return Err(error.into()),
        };
        let done = work.await;
        let more = outcome(done.as_ref().map(drop).map_err(word));
        under_way.end(more).await;
        done
    }

    fn takes_records(&self) -> bool {
        let is_ours = |session: &Arc<Conductor>| {
            session.require_ours().is_ok() && session.state() != SessionState::Closed
        };
        self.session.as_ref().is_none_or(is_ours)
    }

    /// Does a deed: judged, recorded, done, recorded. The work is not even begun before it is
    /// allowed; `measured` says what was sent along.
    async fn perform<'a, T>(
        &self,
        deed: Deed,
        sandbox: &SandboxId,
        work: impl FnOnce() -> BoxFuture<'a, Result<T, RuntimeError>> + Send,
        measured: impl FnOnce(&mut Map<String, Value>) + Send,
    ) -> Result<T, RuntimeError> {
        self.judge(&deed, Some(sandbox)).await?;
        if deed.recording() == Recording::Counted {
            let done = work().await;
            self.count(&deed, done.as_ref().map(drop).map_err(word), 0);
            return done;
        }
        let under_way = self.begin(&deed).await?;
        let done = work().await;
        let mut more = outcome(done.as_ref().map(drop).map_err(word));
        measured(&mut more);
        under_way.end(more).await;
        done
    }

    /// Asks the guard. This is the one place that does.
    pub(crate) async fn assess(&self, deed: &Deed, sandbox: Option<&SandboxId>) -> Verdict {
        let info = self.session.as_ref().map(|session| session.info());
        let context = DeedContext {
            requester: &self.requester,
            session: info.as_ref(),
            sandbox,
        };
        // The call itself may panic, too.
        let assessed = async { self.guard.assess(deed, context).await };
        let assessed = AssertUnwindSafe(assessed).catch_unwind();
        match tokio::time::timeout(GUARD_PATIENCE, assessed).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => undecided("the guard failed, and what it cannot judge is denied"),
            Err(_) => undecided("the guard did not answer in time"),
        }
    }

    /// Asks the guard, and records a refusal.
    pub(crate) async fn judge(
        &self,
        deed: &Deed,
        sandbox: Option<&SandboxId>,
    ) -> Result<(), RuntimeError> {
        let Verdict::Deny { risk, reason } = self.assess(deed, sandbox).await else {
            return Ok(());
        };
        let mut note = self.describe(deed, "refused");
        note.insert("risk".to_owned(), i8::from(risk).into());
        note.insert("reason".to_owned(), reason.as_str().into());
        if self.takes_records() {
            self.log.record(None, note).await;
        } else {
            let by = self.requester.to_value();
            tracing::info!(deed = deed.kind(), %by, reason, "a deed beside a log is refused");
        }
        Err(RuntimeError::Denied { reason })
    }

    /// Records that a deed begins.
    pub(crate) async fn begin(&self, deed: &Deed) -> Result<UnderWay, RuntimeError> {
        let begun = self.log.begin(self.describe(deed, "begun")).await?;
        Ok(UnderWay {
            log: Arc::clone(&self.log),
            deed: begun,
            kind: deed.kind(),
            begun: Instant::now(),
            has_ended: false,
        })
    }

    /// Counts a deed that has ended.
    fn count(&self, deed: &Deed, done: Result<(), &'static str>, bytes: u64) {
        let mut entry = self.describe(deed, "done");
        entry.append(&mut outcome(done));
        self.log.count(entry, bytes);
    }

    /// Counts a deed whose content has passed, with its SHA-256.
    fn count_measured(&self, deed: &Deed, measured: &Measured) {
        let mut entry = self.describe(deed, "done");
        entry.append(&mut outcome(Ok(())));
        entry.insert("sha256".to_owned(), measured.sha256().into());
        self.log.count(entry, measured.bytes());
    }

    fn describe(&self, deed: &Deed, state: &str) -> Map<String, Value> {
        let mut entry = Map::new();
        entry.insert("state".to_owned(), state.into());
        entry.insert("deed".to_owned(), deed.to_value());
        entry.insert("by".to_owned(), self.requester.to_value());
        entry
    }
}

impl UnderWay {
    /// Records that it was done, or the class of the error with which it failed.
    pub(crate) async fn end_with(self, done: Result<(), &'static str>) {
        self.end(outcome(done)).await;
    }

    /// Records how it ended.
    async fn end(mut self, more: Map<String, Value>) {
        self.has_ended = true;
        let entry = self.describe(more);
        self.log.record(Some(self.deed.number), entry).await;
    }

    fn describe(&self, mut more: Map<String, Value>) -> Map<String, Value> {
        let mut entry = Map::new();
        entry.insert("state".to_owned(), "ended".into());
        entry.insert("deed".to_owned(), serde_json::json!({ "kind": self.kind }));
        entry.append(&mut more);
        let took = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        entry.insert("duration_ms".to_owned(), took.into());
        entry
    }
}

/// Its client went away in the middle.
impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut more = Map::new();
        more.insert("outcome".to_owned(), "abandoned".into());
        let (log, number, entry) = (Arc::clone(&self.log), self.deed.number, self.describe(more));
        let recording = Arc::clone(&log);
        log.keep(Box::pin(async move {
            recording.record(Some(number), entry).await;
        }));
    }
}

fn undecided(reason: &str) -> Verdict {
    Verdict::Deny {
        risk: SecurityRisk::High,
        reason: reason.to_owned(),
    }
}

/// The word for an error in the log.
fn word(error: &RuntimeError) -> &'static str {
    error.class().as_str()
}

fn outcome(done: Result<(), &'static str>) -> Map<String, Value> {
    let mut more = Map::new();
    match done {
        Ok(()) => more.insert("outcome".to_owned(), "done".into()),
        Err(error) => {
            more.insert("error".to_owned(), error.into());
            more.insert("outcome".to_owned(), "failed".into())
        }
    };
    more
}

impl std::fmt::Debug for AdmittedSandbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AdmittedSandbox")
            .field("sandbox", self.sandbox.id())
            .field("requester", &self.door.requester)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Door")
            .field("requester", &self.requester)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Owner, Surface};

    /// Never says anything.
    struct Silent;

    impl Guard for Silent {
        fn assess<'a>(
            &'a self,
            _deed: &'a Deed,
            _context: DeedContext<'a>,
        ) -> BoxFuture<'a, Verdict> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_guard_that_does_not_answer_denies_the_deed() {
        let door = Door {
            guard: Arc::new(Silent),
            log: Arc::new(Unkept),
            session: None,
            requester: Requester {
                owner: Owner("ann".to_owned()),
                key: None,
                scope: None,
                surface: Surface::Api,
            },
        };
        let begun = Instant::now();
        match door.admit(&Deed::ListPorts).await {
            Err(RuntimeError::Denied { reason }) => {
                assert_eq!(reason, "the guard did not answer in time");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(begun.elapsed(), GUARD_PATIENCE);
    }
}
