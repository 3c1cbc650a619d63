//! The way into a database: a bounded queue, and a loop that writes all that waits in it as one
//! transaction; around it (`shortcut`), for an entry that is alone.
//!
//! Both stores share it. A [`Backend`] writes a group or says how it failed; what becomes of the
//! entries then (who waits, who is sent away, when it is tried again) is decided here, once.

mod backlog;
mod conduct;
mod group;
mod shortcut;
mod trouble;
mod ways;

use std::{future::Future, sync::Arc};

use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use zareba_protocol::SessionId;

use crate::{
    Appended, Digest, Document, DocumentName, EntryKind, Expected, Health, IdempotencyKey,
    LogError, Patience, Record,
    chain::Row,
    ends::Ends,
    payload::{Blob, Folded},
};

pub(crate) use conduct::{Conductor, conduct};
pub(crate) use shortcut::{Prompt, Shortcut};

/// The room in the queue is counted in pieces of this size, at least one for each task.
const ROOM_UNIT: usize = 4 * 1024;
/// What may wait to be written: 128 MiB, or this many small tasks.
const ROOM_UNITS: usize = 32 * 1024;

/// Something to write.
#[derive(Debug)]
pub(crate) enum Deed {
    Append(Box<Append>),
    Put {
        name: DocumentName,
        value: Value,
        text: String,
        expected: Expected,
    },
    Delete(DocumentName),
    Remove(SessionId),
    /// Records with their numbers and digests, to go behind what the session has.
    Import(Vec<Imported>),
}

/// A record from elsewhere.
#[derive(Debug)]
pub(crate) struct Imported {
    /// Where it stood, to be named when it does not fit.
    pub(crate) line: u64,
    pub(crate) row: Row,
    pub(crate) blobs: Vec<Blob>,
}

/// An entry on its way.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) session: SessionId,
    pub(crate) kind: EntryKind,
    pub(crate) cause: Option<u64>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) folded: Folded,
    pub(crate) patience: Patience,
    /// Whether it may be the first of a session.
    pub(crate) opens: bool,
    /// The number and digest it had when it was last written without knowing the outcome.
    pub(crate) attempt: Option<(u64, Digest)>,
}

/// What came of a deed.
#[derive(Debug)]
pub(crate) enum Done {
    Appended(Appended),
    Document(Document),
    Nothing,
}

/// A deed and who waits for it.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) deed: Deed,
    pub(crate) bytes: usize,
    answer: Option<oneshot::Sender<Result<Done, LogError>>>,
    _room: Option<OwnedSemaphorePermit>,
}

/// Why a whole group was not written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no space; nothing was written.
    Full(String),
    /// The database is away or its file failed; it may be there again after a reopening.
    Lost {
        reason: String,
        /// Whether the group may have been written all the same.
        in_doubt: bool,
    },
    /// This group cannot be written, others may.
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// Nothing can be written any more.
    Broken(String),
}

/// What became of a deed whose outcome was unknown.
#[derive(Debug)]
pub(crate) enum Settled {
    Written(Done),
    NotWritten,
    /// What is stored in its place cannot be read back, so that neither may be said.
    Unknowable(LogError),
}

impl Settled {
    /// By the record that has the number of an append.
    pub(crate) fn by_record(append: &Append, found: Result<Option<Record>, LogError>) -> Self {
        match found {
            Err(error) => Self::Unknowable(error),
            Ok(found) => {
                let digest = append.attempt.map(|(_, digest)| digest);
                let ours = found.filter(|record| Some(record.digest) == digest);
                ours.map_or(Self::NotWritten, |record| {
                    Self::Written(Done::Appended(Appended::New(Arc::new(record))))
                })
            }
        }
    }

    /// By the document that has the name of a put. Had another writer put one meanwhile, ours would
    /// conflict with it, which writing it again finds out.
    pub(crate) fn by_document(value: &Value, expected: Expected, found: Option<Document>) -> Self {
        let ours = found.filter(|found| {
            let is_next = match expected {
                Expected::Absent => found.version == 1,
                Expected::Version(version) => found.version == version + 1,
                Expected::Anything => true,
            };
            is_next && found.value == *value
        });
        ours.map_or(Self::NotWritten, |document| {
            Self::Written(Done::Document(document))
        })
    }
}

/// A database as the loop sees it. All its methods are called one after the other.
pub(crate) trait Backend: Send {
    /// Writes a group in one transaction: one outcome for each deed, or nothing at all.
    fn write(
        &mut self,
        deeds: &mut [&mut Deed],
    ) -> impl Future<Output = Result<Vec<Result<Done, LogError>>, Failure>> + Send;

    /// Finds out what became of a deed of unknown outcome. The answer is final: what is told to be
    /// not written is not written later either.
    fn settle(&mut self, deed: &Deed) -> impl Future<Output = Result<Settled, Failure>> + Send;

    /// After [`Failure::Lost`]: opens the database again.
    fn reopen(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// After [`Failure::Full`]: gives up what was kept for this, and whether that was anything.
    fn open_reserve(&mut self) -> bool;

    /// Takes the reserve again; the trouble is over when that works.
    fn refill_reserve(&mut self) -> Result<(), Failure>;

    /// Does a piece of what can wait, and says whether there is more of it.
    fn tidy(&mut self) -> impl Future<Output = bool> + Send;

    /// Does what is due after something was written and must not wait for a quiet time.
    fn keep_up(&mut self) {}

    /// Ends in order.
    fn close(&mut self) -> impl Future<Output = Result<(), LogError>> + Send;
}

/// What the loop and the store both see.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) ends: Ends,
    pub(crate) health: watch::Sender<Health>,
}

/// Puts tasks into the queue.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    queue: mpsc::UnboundedSender<Message>,
    room: Arc<Semaphore>,
    /// The way around the queue, for a database that has one.
    shortcut: Option<Arc<dyn Shortcut>>,
}

/// What the queue carries.
#[derive(Debug)]
pub(crate) enum Message {
    Task(Task),
    /// What could not be written on the way around the queue.
    Failed(Task, Failure),
    /// Something was written on that way, and the database has to be kept up.
    KeepUp,
    Close(oneshot::Sender<Result<(), LogError>>),
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            ends: Ends::default(),
            health: watch::Sender::new(Health::Durable),
        })
    }
}

impl Writer {
    /// The two ends of a queue. The room is what bounds it.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (queue, receiver) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(ROOM_UNITS));
        let shortcut = None;
        let writer = Self {
            queue,
            room,
            shortcut,
        };
        (writer, receiver)
    }

    /// Has what is small written at once while nothing else is being written.
    pub(crate) fn with_shortcut(self, shortcut: Arc<dyn Shortcut>) -> Self {
        let shortcut = Some(shortcut);
        Self { shortcut, ..self }
    }

    /// Has something written. Dropped before it is in the queue, nothing happens; after that it
    /// is written all the same.
    pub(crate) async fn write(&self, deed: Deed) -> Result<Done, LogError> {
        let bytes = deed.bytes();
        let units = bytes.div_ceil(ROOM_UNIT).clamp(1, ROOM_UNITS);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(units).await;
        let (answer, outcome) = oneshot::channel();
        let task = Task {
            deed,
            bytes,
            answer: Some(answer),
            _room: Some(room.map_err(|_| LogError::Closed)?),
        };
        if let Some(message) = self.try_now(task, units) {
            // With the queue gone, the task goes, and its outcome tells.
            let _ = self.queue.send(message);
        }
        outcome.await.map_err(|_| LogError::Closed)?
    }

    /// Has a task of so many units done now if it need not wait for others, and returns what is
    /// left to be sent.
    fn try_now(&self, task: Task, units: u32) -> Option<Message> {
        match &self.shortcut {
            // All room but its own is free: nothing is in the queue, or taken out and not done.
            Some(shortcut) if self.room.available_permits() + units as usize == ROOM_UNITS => {
                shortcut.take(task)
            }
            _ => Some(Message::Task(task)),
        }
    }

    /// Writes what waits, and ends the loop.
    pub(crate) async fn close(&self) -> Result<(), LogError> {
        let (answer, outcome) = oneshot::channel();
        (self.queue.send(Message::Close(answer))).map_err(|_| LogError::Closed)?;
        outcome.await.map_err(|_| LogError::Closed)?
    }
}

impl Task {
    /// A task that nobody waits for.
    fn unheard(deed: Deed) -> Self {
        Self {
            bytes: deed.bytes(),
            deed,
            answer: None,
            _room: None,
        }
    }

    fn answer(self, outcome: Result<Done, LogError>) {
        if let Some(answer) = self.answer {
            // Nobody may be waiting any more; that is theirs to decide.
            let _ = answer.send(outcome);
        }
    }

    fn patience(&self) -> Patience {
        match &self.deed {
            Deed::Append(append) => append.patience,
            Deed::Put { .. } | Deed::Delete(_) | Deed::Remove(_) | Deed::Import(_) => {
                Patience::None
            }
        }
    }
}

impl Deed {
    fn bytes(&self) -> usize {
        match self {
            Self::Append(append) => append.folded.bytes(),
            Self::Put { text, .. } => text.len(),
            Self::Delete(_) | Self::Remove(_) => 0,
            Self::Import(records) => records.iter().map(Imported::bytes).sum(),
        }
    }
}

impl Imported {
    pub(crate) fn bytes(&self) -> usize {
        let blobs: usize = self.blobs.iter().map(|blob| blob.bytes.len()).sum();
        self.row.bytes() + blobs
    }
}

impl Append {
    /// The action that it is the observation of. An action has one.
    pub(crate) fn answers(&self) -> Option<u64> {
        self.cause.filter(|_| self.kind == EntryKind::Observation)
    }

    /// The row and the record that it becomes behind a session's last.
    pub(crate) fn place(&self, sequence: u64, previous: Digest) -> Result<(Row, Record), String> {
        let time = crate::chain::now();
        let mut row = Row {
            session: self.session.clone(),
            sequence,
            time: crate::chain::time_text(time),
            kind: self.kind.as_str().to_owned(),
            cause: self.cause,
            key: self.key.as_ref().map(|key| key.as_str().to_owned()),
            stored: self.folded.stored.clone(),
            previous: previous.to_string(),
            digest: String::new(),
        };
        let digest = row.computed()?;
        row.digest = digest.to_string();
        let record = Record {
            session: self.session.clone(),
            sequence,
            time,
            kind: self.kind,
            cause: self.cause,
            key: self.key.clone(),
            payload: self.folded.payload.clone(),
            previous,
            digest,
        };
        Ok((row, record))
    }
}
