//! [`Trouble`]: a time in which nothing, or not everything, can be written.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use serde_json::{Map, json};
use tokio::time::Instant;
use zareba_protocol::SessionId;

use super::{Append, Deed, Failure, Task, backlog::Backlog, conduct::may_wait, group::Group};
use crate::{
    EntryKind, LogError, Patience,
    chain::{now, time_text},
    payload::{Folded, Stored},
};

/// The first and the longest wait before it is tried again.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// In how many sessions the trouble is noted afterwards.
const NOTED_MAX: usize = 256;

/// What is known while it lasts.
#[derive(Debug)]
pub(super) struct Trouble {
    reason: String,
    cause: Cause,
    since: String,
    wait: Duration,
    retry_at: Instant,
    /// Written, or not: to be asked about before anything else is written.
    doubtful: VecDeque<Task>,
    backlog: Backlog,
    hit: HashMap<SessionId, Hit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// There is no space; what was reserved for this is used up or in use.
    Full { is_on_reserve: bool },
    /// The database has to be opened again.
    Lost,
    /// There was no space to open the database at all.
    Unopened,
    /// It was opened again, and nothing is known against it.
    Found,
}

/// What the trouble meant for one session.
#[derive(Clone, Copy, Debug, Default)]
struct Hit {
    kept: u64,
    refused: u64,
}

impl Trouble {
    pub(super) fn full(reason: String, has_reserve: bool) -> Self {
        Self::new(
            reason,
            Cause::Full {
                is_on_reserve: has_reserve,
            },
        )
    }

    pub(super) fn lost(reason: String) -> Self {
        Self::new(reason, Cause::Lost)
    }

    pub(super) fn unopened(reason: String) -> Self {
        Self::new(reason, Cause::Unopened)
    }

    fn new(reason: String, cause: Cause) -> Self {
        Self {
            reason,
            cause,
            since: time_text(now()),
            wait: RETRY_FIRST,
            retry_at: Instant::now(),
            doubtful: VecDeque::new(),
            backlog: Backlog::default(),
            hit: HashMap::new(),
        }
    }

    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    pub(super) fn retry_at(&self) -> Instant {
        self.retry_at
    }

    pub(super) fn waiting(&self) -> usize {
        self.backlog.len() + self.doubtful.len()
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.cause, Cause::Lost | Cause::Unopened)
    }

    pub(super) fn is_on_reserve(&self) -> bool {
        self.cause
            == Cause::Full {
                is_on_reserve: true,
            }
    }

    pub(super) fn found(&mut self) {
        self.cause = Cause::Found;
    }

    /// What those are told who are sent away.
    pub(super) fn error(&self) -> impl Fn() -> LogError + use<> {
        let cause = self.cause;
        let reason = self.reason.clone();
        move || match cause {
            Cause::Full { .. } => LogError::Full,
            Cause::Unopened => LogError::NoSpace,
            Cause::Lost | Cause::Found => LogError::Unavailable {
                reason: reason.clone(),
            },
        }
    }

    /// Takes in what may wait, and sends the rest away.
    pub(super) fn admit(&mut self, group: Group) {
        for task in group.tasks {
            let session = session_of(&task.deed).cloned();
            let refused = if may_wait(&task) {
                self.backlog.push(task)
            } else {
                Some(task)
            };
            if let Some(session) = session {
                self.count(session, refused.is_some());
            }
            if let Some(task) = refused {
                task.answer(Err(self.error()()));
            }
        }
    }

    fn count(&mut self, session: SessionId, is_refused: bool) {
        if self.hit.len() < NOTED_MAX || self.hit.contains_key(&session) {
            let hit = self.hit.entry(session).or_default();
            hit.refused += u64::from(is_refused);
            hit.kept += u64::from(!is_refused);
        }
    }

    /// Takes in a group that may have been written. None of it is sent away before that is known.
    pub(super) fn doubt(&mut self, group: Group) {
        self.doubtful.extend(group.tasks);
    }

    pub(super) fn next_doubtful(&self) -> Option<&Task> {
        self.doubtful.front()
    }

    pub(super) fn take_doubtful(&mut self) -> Option<Task> {
        self.doubtful.pop_front()
    }

    /// The foremost of the doubtful was not written: it is like one that comes only now.
    pub(super) fn doubtful_was_not_written(&mut self) {
        if let Some(task) = self.doubtful.pop_front() {
            self.admit(Group { tasks: vec![task] });
        }
    }

    pub(super) fn next_group(&mut self) -> Option<Group> {
        self.backlog.next_group()
    }

    pub(super) fn put_back(&mut self, group: Group) {
        self.backlog.put_back(group);
    }

    pub(super) fn take_all(&mut self) -> Vec<Group> {
        let doubtful = Group {
            tasks: std::mem::take(&mut self.doubtful).into(),
        };
        std::iter::once(doubtful)
            .chain(std::iter::from_fn(|| self.backlog.next_group()))
            .collect()
    }

    /// Notes why it did not work once more, and waits longer.
    pub(super) fn failed_again(&mut self, failure: &Failure) {
        match failure {
            Failure::Full(reason) => {
                // The reserve is lent once, and lasts until a write into it fails.
                let is_lent = self.is_on_reserve() && self.backlog.len() == 0;
                self.cause = Cause::Full {
                    is_on_reserve: is_lent,
                };
                self.reason.clone_from(reason);
            }
            Failure::Lost { reason, .. } => {
                if self.cause != Cause::Unopened {
                    self.cause = Cause::Lost;
                }
                self.reason.clone_from(reason);
            }
            Failure::Broken(reason) => self.reason.clone_from(reason),
            Failure::Refused(source) => self.reason = source.to_string(),
        }
        self.retry_at = Instant::now() + self.wait;
        self.wait = (self.wait * 2).min(RETRY_MAX);
    }

    /// A note for each session that was hit: the failure itself is part of the record.
    pub(super) fn notes(self) -> impl Iterator<Item = Deed> {
        let until = time_text(now());
        self.hit.into_iter().map(move |(session, hit)| {
            let note = json!({
                "note": "event_log_not_durable",
                "reason": self.reason,
                "since": self.since,
                "until": until,
                "kept": hit.kept,
                "refused": hit.refused,
            });
            Deed::Append(Box::new(Append {
                session,
                kind: EntryKind::Note,
                cause: None,
                key: None,
                folded: Folded {
                    stored: Stored::Inline(note.to_string()),
                    payload: note.as_object().cloned().unwrap_or_else(Map::new),
                    blobs: Vec::new(),
                },
                patience: Patience::None,
                opens: false,
                attempt: None,
            }))
        })
    }
}

fn session_of(deed: &Deed) -> Option<&SessionId> {
    match deed {
        Deed::Append(append) => Some(&append.session),
        Deed::Put { .. } | Deed::Delete(_) | Deed::Remove(_) | Deed::Import(_) => None,
    }
}
