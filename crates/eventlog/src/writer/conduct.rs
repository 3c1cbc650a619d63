//! The loop: takes what waits, has it written, answers, and lives through trouble.

use std::sync::Arc;

use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    Backend, Deed, Done, Failure, Imported, Message, Settled, Shared, Task, group::Group,
    trouble::Trouble,
};
use crate::{Appended, Health, LogError, Patience};

/// A conductor as all have it who may write. It is gone once the log is closed.
pub(crate) type Post<B> = Arc<Mutex<Option<Conductor<B>>>>;

/// Conducts until the log is closed or every handle to it is gone.
pub(crate) async fn conduct<B: Backend>(
    post: Post<B>,
    mut queue: mpsc::UnboundedReceiver<Message>,
) {
    let answer = run(&post, &mut queue).await;
    let Some(mut conductor) = post.lock().await.take() else {
        return;
    };
    let outcome = conductor.finish().await;
    // Whoever hears that the log is closed may open it again.
    drop(conductor);
    if let Some(answer) = answer {
        let _ = answer.send(outcome);
    }
}

type CloseAnswer = oneshot::Sender<Result<(), LogError>>;

/// Has tasks written, answers, and knows how things stand.
#[derive(Debug)]
pub(crate) struct Conductor<B> {
    pub(super) backend: B,
    shared: Arc<Shared>,
    state: State,
}

#[derive(Debug)]
enum State {
    Well,
    Troubled(Box<Trouble>),
    Broken(String),
}

/// What the loop does next.
enum Step {
    Take(Box<Message>),
    /// There is nothing to take, and perhaps something to try again.
    Wait(Option<Instant>),
    Tidied,
    End,
}

async fn run<B: Backend>(
    post: &Mutex<Option<Conductor<B>>>,
    queue: &mut mpsc::UnboundedReceiver<Message>,
) -> Option<CloseAnswer> {
    let mut has_chores = true;
    loop {
        let step = {
            let mut conductor = post.lock().await;
            conductor.as_mut()?.step(queue, &mut has_chores).await
        };
        // Others may write while it waits.
        let message = match step {
            Step::Take(message) => Some(*message),
            Step::Wait(None) => Some(queue.recv().await?),
            Step::Wait(Some(retry_at)) => tokio::select! {
                message = queue.recv() => Some(message?),
                () = sleep_until(retry_at) => None,
            },
            Step::Tidied => continue,
            Step::End => return None,
        };
        let mut conductor = post.lock().await;
        let conductor = conductor.as_mut()?;
        let Some(message) = message else {
            conductor.retry().await;
            continue;
        };
        let (group, other) = Group::gather(message, queue);
        has_chores |= group.has_removal();
        if !group.tasks.is_empty() {
            conductor.take(group).await;
        }
        match other {
            Some(Message::Close(answer)) => return Some(answer),
            Some(Message::Failed(task, failure)) => conductor.take_failed(task, failure).await,
            Some(Message::Task(_) | Message::KeepUp) | None => {}
        }
        conductor.backend.keep_up();
    }
}

impl<B: Backend> Conductor<B> {
    /// Begins. A database that could not be opened for lack of space (`unopened` says how) is
    /// opened as soon as there is some.
    pub(crate) fn begin(backend: B, shared: Arc<Shared>, unopened: Option<String>) -> Post<B> {
        let state = match unopened {
            Some(reason) => State::Troubled(Box::new(Trouble::unopened(reason))),
            None => State::Well,
        };
        Arc::new(Mutex::new(Some(Self {
            backend,
            shared,
            state,
        })))
    }

    pub(super) fn is_well(&self) -> bool {
        matches!(self.state, State::Well)
    }

    async fn step(
        &mut self,
        queue: &mut mpsc::UnboundedReceiver<Message>,
        has_chores: &mut bool,
    ) -> Step {
        match &self.state {
            State::Well if *has_chores => match queue.try_recv() {
                Ok(message) => Step::Take(Box::new(message)),
                Err(mpsc::error::TryRecvError::Disconnected) => Step::End,
                Err(mpsc::error::TryRecvError::Empty) => {
                    *has_chores = self.backend.tidy().await;
                    self.backend.keep_up();
                    Step::Tidied
                }
            },
            State::Well | State::Broken(_) => Step::Wait(None),
            State::Troubled(trouble) => Step::Wait(Some(trouble.retry_at())),
        }
    }

    /// Deals with a group as things stand.
    async fn take(&mut self, group: Group) {
        match &mut self.state {
            State::Well => self.write(group).await,
            State::Troubled(trouble) => {
                trouble.admit(group);
                if trouble.is_on_reserve() {
                    self.write_backlog().await;
                }
                self.tell();
            }
            State::Broken(reason) => {
                let reason = reason.clone();
                group.refuse(|| LogError::Io {
                    source: reason.clone().into(),
                });
            }
        }
    }

    /// Deals with a task that was not written on the way around the queue.
    async fn take_failed(&mut self, task: Task, failure: Failure) {
        let group = Group { tasks: vec![task] };
        match (&mut self.state, failure) {
            (State::Well, failure) => self.suffer(group, failure).await,
            (State::Troubled(trouble), Failure::Lost { in_doubt: true, .. }) => {
                trouble.doubt(group);
            }
            (State::Troubled(_) | State::Broken(_), _) => self.take(group).await,
        }
    }

    async fn write(&mut self, mut group: Group) {
        match self.backend.write(&mut group.deeds()).await {
            Ok(outcomes) => self.answer(group, outcomes),
            Err(failure) => self.suffer(group, failure).await,
        }
    }

    pub(super) fn answer(&self, group: Group, outcomes: Vec<Result<Done, LogError>>) {
        for (task, outcome) in group.tasks.into_iter().zip(outcomes) {
            match (&task.deed, &outcome) {
                (_, Ok(Done::Appended(Appended::New(record)))) => {
                    let ends = &self.shared.ends;
                    ends.advance(&record.session, record.sequence + 1);
                }
                (Deed::Import(records), Ok(_)) => {
                    for Imported { row, .. } in records {
                        self.shared.ends.advance(&row.session, row.sequence + 1);
                    }
                }
                (Deed::Remove(session), Ok(_)) => self.shared.ends.remove(session),
                _ => {}
            }
            task.answer(outcome);
        }
    }

    /// The first failure after things were well.
    async fn suffer(&mut self, group: Group, failure: Failure) {
        let trouble = match failure {
            Failure::Refused(source) => return refuse(group, source),
            Failure::Broken(reason) => return self.give_up(vec![group], reason),
            Failure::Full(reason) => {
                self.warn(&reason);
                let mut trouble = Trouble::full(reason, self.backend.open_reserve());
                trouble.admit(group);
                trouble
            }
            Failure::Lost { reason, in_doubt } => {
                self.warn(&reason);
                let mut trouble = Trouble::lost(reason);
                if in_doubt {
                    trouble.doubt(group);
                } else {
                    trouble.admit(group);
                }
                trouble
            }
        };
        tracing::warn!(reason = trouble.reason(), "the event log cannot be written");
        self.state = State::Troubled(Box::new(trouble));
        // A lost database may be there at once, and the reserve is.
        self.retry().await;
    }

    /// Tries to leave the trouble; what fails is tried again later.
    async fn retry(&mut self) {
        if !(self.reconnect().await && self.settle().await && self.write_backlog().await) {
            return self.tell();
        }
        let State::Troubled(trouble) = &mut self.state else {
            return;
        };
        match self.backend.refill_reserve() {
            Ok(()) => self.recover().await,
            Err(failure) => {
                trouble.failed_again(&failure);
                self.tell();
            }
        }
    }

    async fn reconnect(&mut self) -> bool {
        let State::Troubled(trouble) = &mut self.state else {
            return false;
        };
        if !trouble.is_lost() {
            return true;
        }
        match self.backend.reopen().await {
            Ok(()) => {
                trouble.found();
                true
            }
            Err(failure) => self.still_troubled(failure),
        }
    }

    /// Asks what became of entries whose outcome is unknown. They are never simply repeated.
    async fn settle(&mut self) -> bool {
        loop {
            let State::Troubled(trouble) = &mut self.state else {
                return false;
            };
            let Some(task) = trouble.next_doubtful() else {
                return true;
            };
            match self.backend.settle(&task.deed).await {
                Err(failure) => return self.still_troubled(failure),
                Ok(Settled::NotWritten) => trouble.doubtful_was_not_written(),
                Ok(Settled::Written(done)) => {
                    if let Done::Appended(Appended::New(record)) = &done {
                        let end = record.sequence + 1;
                        self.shared.ends.advance(&record.session, end);
                    }
                    if let Some(task) = trouble.take_doubtful() {
                        task.answer(Ok(done));
                    }
                }
                Ok(Settled::Unknowable(error)) => {
                    tracing::error!(%error, "it cannot be found out whether an entry was written");
                    if let Some(task) = trouble.take_doubtful() {
                        task.answer(Err(error));
                    }
                }
            }
        }
    }

    async fn write_backlog(&mut self) -> bool {
        loop {
            let State::Troubled(trouble) = &mut self.state else {
                return false;
            };
            let Some(mut group) = trouble.next_group() else {
                return true;
            };
            match self.backend.write(&mut group.deeds()).await {
                Ok(outcomes) => self.answer(group, outcomes),
                Err(Failure::Refused(source)) => refuse(group, source),
                Err(Failure::Lost {
                    reason,
                    in_doubt: true,
                }) => {
                    trouble.doubt(group);
                    return self.still_troubled(Failure::Lost {
                        reason,
                        in_doubt: true,
                    });
                }
                Err(failure) => {
                    trouble.put_back(group);
                    return self.still_troubled(failure);
                }
            }
        }
    }

    fn still_troubled(&mut self, failure: Failure) -> bool {
        if let State::Troubled(trouble) = &mut self.state {
            match failure {
                Failure::Broken(reason) => {
                    let groups = trouble.take_all();
                    self.give_up(groups, reason);
                }
                failure => trouble.failed_again(&failure),
            }
        }
        false
    }

    async fn recover(&mut self) {
        let State::Troubled(trouble) = std::mem::replace(&mut self.state, State::Well) else {
            return;
        };
        tracing::info!(reason = trouble.reason(), "the event log is written again");
        let mut notes = Group {
            tasks: trouble.notes().map(Task::unheard).collect(),
        };
        if !notes.tasks.is_empty() {
            // Not `self.write`, which could come back here: a note is not worth a second trouble.
            match self.backend.write(&mut notes.deeds()).await {
                Ok(outcomes) => self.answer(notes, outcomes),
                Err(failure) => tracing::warn!(?failure, "cannot record that the log was away"),
            }
        }
        self.shared.health.send_replace(Health::Durable);
    }

    fn give_up(&mut self, groups: Vec<Group>, reason: String) {
        tracing::error!(
            reason,
            "the event log accepts nothing until it is opened again"
        );
        self.warn(&reason);
        for group in groups {
            group.refuse(|| LogError::Io {
                source: reason.clone().into(),
            });
        }
        self.state = State::Broken(reason);
    }

    /// Publishes that nothing can be written, before anybody is sent away because of it.
    fn warn(&self, reason: &str) {
        self.shared.health.send_replace(Health::NotDurable {
            reason: reason.to_owned(),
            waiting: 0,
        });
    }

    /// Publishes how things stand.
    fn tell(&self) {
        if let State::Troubled(trouble) = &self.state {
            let health = Health::NotDurable {
                reason: trouble.reason().to_owned(),
                waiting: trouble.waiting(),
            };
            self.shared.health.send_if_modified(|told| {
                let is_news = *told != health;
                *told = health;
                is_news
            });
        }
    }

    /// The end: one last try, then everybody who still waits is sent away.
    async fn finish(&mut self) -> Result<(), LogError> {
        if matches!(self.state, State::Troubled(_)) {
            self.retry().await;
        }
        let mut unwritten = None;
        if let State::Troubled(trouble) = &mut self.state {
            let (count, reason) = (trouble.waiting(), trouble.reason().to_owned());
            unwritten = (count > 0).then_some(LogError::Unwritten { count, reason });
            let error = trouble.error();
            for group in trouble.take_all() {
                group.refuse(&error);
            }
        }
        let closed = self.backend.close().await;
        self.shared.ends.close();
        unwritten.map_or(closed, Err)
    }
}

/// Gives a group back that cannot be written while others can.
fn refuse(group: Group, source: Box<dyn std::error::Error + Send + Sync>) {
    tracing::error!(%source, "a group of records was refused");
    let reason = source.to_string();
    group.refuse(|| LogError::Io {
        source: reason.clone().into(),
    });
}

/// Whether a task may wait while nothing can be written.
pub(super) fn may_wait(task: &Task) -> bool {
    task.patience() == Patience::Kept
}
