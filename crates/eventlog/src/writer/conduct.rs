//! The loop: takes what waits, has it written, answers, and lives through trouble.

use std::sync::Arc;

use tokio::{
    sync::{mpsc, oneshot},
    time::sleep_until,
};

use super::{
    Backend, Deed, Done, Failure, Imported, Message, Shared, Task, group::Group, trouble::Trouble,
};
use crate::{Appended, Health, LogError, Patience};

/// Conducts until the log is closed or every handle to it is gone. A database that could not be
/// opened for lack of space (`unopened` says how) is opened as soon as there is some.
pub(crate) async fn conduct<B: Backend>(
    backend: B,
    queue: mpsc::UnboundedReceiver<Message>,
    shared: Arc<Shared>,
    unopened: Option<String>,
) {
    let state = match unopened {
        Some(reason) => State::Troubled(Box::new(Trouble::unopened(reason))),
        None => State::Well,
    };
    let mut conductor = Conductor {
        backend,
        shared,
        state,
    };
    let answer = conductor.run(queue).await;
    let outcome = conductor.finish().await;
    // Whoever hears that the log is closed may open it again.
    drop(conductor);
    if let Some(answer) = answer {
        let _ = answer.send(outcome);
    }
}

type CloseAnswer = oneshot::Sender<Result<(), LogError>>;

struct Conductor<B> {
    backend: B,
    shared: Arc<Shared>,
    state: State,
}

enum State {
    Well,
    Troubled(Box<Trouble>),
    Broken(String),
}

impl<B: Backend> Conductor<B> {
    async fn run(&mut self, mut queue: mpsc::UnboundedReceiver<Message>) -> Option<CloseAnswer> {
        let mut has_chores = true;
        loop {
            let message = match &self.state {
                State::Well if has_chores => match queue.try_recv() {
                    Ok(message) => Some(message),
                    Err(mpsc::error::TryRecvError::Disconnected) => return None,
                    Err(mpsc::error::TryRecvError::Empty) => {
                        has_chores = self.backend.tidy().await;
                        continue;
                    }
                },
                State::Well | State::Broken(_) => Some(queue.recv().await?),
                State::Troubled(trouble) => {
                    let retry_at = trouble.retry_at();
                    tokio::select! {
                        message = queue.recv() => Some(message?),
                        () = sleep_until(retry_at) => None,
                    }
                }
            };
            let Some(message) = message else {
                self.retry().await;
                continue;
            };
            let (group, close) = Group::gather(message, &mut queue);
            has_chores |= group.has_removal();
            self.take(group).await;
            if close.is_some() {
                return close;
            }
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

    async fn write(&mut self, mut group: Group) {
        match self.backend.write(&mut group.deeds()).await {
            Ok(outcomes) => self.answer(group, outcomes),
            Err(failure) => self.suffer(group, failure).await,
        }
    }

    fn answer(&self, group: Group, outcomes: Vec<Result<Done, LogError>>) {
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
            let found = match &task.deed {
                Deed::Append(append) => self.backend.settle(append).await,
                _ => Ok(None),
            };
            match found {
                Err(failure) => return self.still_troubled(failure),
                Ok(Some(record)) => {
                    if let Some(task) = trouble.take_doubtful() {
                        self.shared
                            .ends
                            .advance(&record.session, record.sequence + 1);
                        task.answer(Ok(Done::Appended(Appended::New(Arc::new(record)))));
                    }
                }
                Ok(None) => trouble.doubtful_was_not_written(),
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
