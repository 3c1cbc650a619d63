//! Actions that run at most once, however often they are asked for.
//!
//! A host that lost its connection, or that was itself killed, cannot know whether its action
//! ran. So it gives the action a name and asks again with the same one: while the first runs, the
//! second waits with it, and afterwards it gets what came of the first. Such an action belongs to
//! a task of its own and not to whoever asked. Whoever asks again and says that there is no time
//! ends the wait for a command, which then goes on as after a timeout.

use std::{
    collections::{HashMap, VecDeque},
    fmt, io, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};
use zareba_protocol::{Observation, ObservationEvent};

/// Named actions that may run at once. Not more than results are kept, so that whoever comes back
/// finds what became of all that were under way.
const RUNNING_MAX: usize = RESULTS_MAX;

/// Results that are kept.
const RESULTS_MAX: usize = 256;

/// Bytes of results that are kept, as JSON. Beyond them the oldest are forgotten, but not that
/// they were there: none of the last [`RESULTS_MAX`] actions runs a second time.
const RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

const FORGOTTEN: &str = "ERROR: The action has run, and what came of it is no longer kept: results of \
    later actions took its place. Look at what it did before you ask for it again.";
const FAULT: &str =
    "ERROR: The action failed by a fault in the executor; other actions still work.";

type Answer = Arc<ObservationEvent>;

/// The named actions of one executor. Dropping it stops those that run.
#[derive(Default)]
pub(crate) struct Once {
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Default)]
struct Ledger {
    running: HashMap<String, Running>,
    results: HashMap<String, Kept>,
    /// The names of results, the oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

struct Running {
    answer: watch::Receiver<Option<Answer>>,
    enough: Arc<Notify>,
    task: Option<AbortHandle>,
}

enum Kept {
    Whole { answer: Answer, bytes: usize },
    Forgotten,
}

impl Once {
    /// Does `work` under a name, or gives what came of it when the name was used before.
    /// Dropping the future stops nothing.
    #[cfg(test)]
    pub(crate) async fn run(
        &self,
        name: String,
        work: impl Future<Output = ObservationEvent> + Send + 'static,
    ) -> ObservationEvent {
        self.run_until(name, Arc::default(), work).await
    }

    /// The same for work that can be asked to come to an end, by `enough`.
    pub(crate) async fn run_until(
        &self,
        name: String,
        enough: Arc<Notify>,
        work: impl Future<Output = ObservationEvent> + Send + 'static,
    ) -> ObservationEvent {
        let mut answer = match self.enter(name, enough, work) {
            Ok(answer) => answer,
            Err(known) => return Arc::unwrap_or_clone(known),
        };
        let answer = answer.wait_for(Option::is_some).await;
        let answer = answer.ok().and_then(|answer| answer.clone());
        answer.map_or_else(|| error(FAULT), Arc::unwrap_or_clone)
    }

    /// Asks what runs under a name to come to an end, if anything does.
    pub(crate) fn hurry(&self, name: &str) {
        if let Some(running) = lock(&self.ledger).running.get(name) {
            running.enough.notify_one();
        }
    }

    /// Whether a name was used.
    pub(crate) fn knows(&self, name: &str) -> bool {
        let ledger = lock(&self.ledger);
        ledger.running.contains_key(name) || ledger.results.contains_key(name)
    }

    /// What to wait for, or the answer when there is nothing to wait for.
    fn enter(
        &self,
        name: String,
        enough: Arc<Notify>,
        work: impl Future<Output = ObservationEvent> + Send + 'static,
    ) -> Result<watch::Receiver<Option<Answer>>, Answer> {
        let mut ledger = lock(&self.ledger);
        if let Some(running) = ledger.running.get(&name) {
            return Ok(running.answer.clone());
        }
        match ledger.results.get(&name) {
            Some(Kept::Whole { answer, .. }) => return Err(Arc::clone(answer)),
            Some(Kept::Forgotten) => return Err(Arc::new(error(FORGOTTEN))),
            None => {}
        }
        if ledger.running.len() >= RUNNING_MAX {
            let refusal = format!(
                "ERROR: The action was NOT run: {RUNNING_MAX} actions are under way; wait for one to end."
            );
            return Err(Arc::new(error(&refusal)));
        }
        let (told, answer) = watch::channel(None);
        let end = End {
            ledger: Arc::clone(&self.ledger),
            name: name.clone(),
            told,
            answer: None,
        };
        let running = Running {
            answer: answer.clone(),
            enough,
            task: None,
        };
        ledger.running.insert(name.clone(), running);
        // The lock is held, so the end cannot be written down before the beginning.
        let task = tokio::spawn(async move { end.with(work.await) });
        if let Some(running) = ledger.running.get_mut(&name) {
            running.task = Some(task.abort_handle());
        }
        Ok(answer)
    }
}

impl Drop for Once {
    fn drop(&mut self) {
        // Not under the lock: a task that is stopped writes down its end.
        let running = mem::take(&mut lock(&self.ledger).running);
        for task in running.into_values().filter_map(|running| running.task) {
            task.abort();
        }
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Once").finish_non_exhaustive()
    }
}

/// Tells and writes down how a named action ended, whatever ended it.
struct End {
    ledger: Arc<Mutex<Ledger>>,
    name: String,
    told: watch::Sender<Option<Answer>>,
    answer: Option<ObservationEvent>,
}

impl End {
    /// Ends with an answer; dropping it is an end without one.
    fn with(mut self, answer: ObservationEvent) {
        self.answer = Some(answer);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let answer = Arc::new(self.answer.take().unwrap_or_else(|| error(FAULT)));
        // Told first: whoever waits need not wait for the counting.
        self.told.send_replace(Some(Arc::clone(&answer)));
        let bytes = size(&answer);
        lock(&self.ledger).keep(mem::take(&mut self.name), answer, bytes);
    }
}

impl Ledger {
    fn keep(&mut self, name: String, answer: Answer, bytes: usize) {
        self.running.remove(&name);
        self.order.push_back(name.clone());
        self.bytes += bytes;
        self.results.insert(name, Kept::Whole { answer, bytes });
        while self.order.len() > RESULTS_MAX {
            let oldest = self.order.pop_front();
            if let Some(kept) = oldest.and_then(|name| self.results.remove(&name)) {
                self.bytes -= kept.bytes();
            }
        }
        // The newest stays whatever its size, which the wire limits.
        let older = self.order.len() - 1;
        for name in self.order.iter().take(older) {
            if self.bytes <= RESULT_BYTES_MAX {
                break;
            }
            if let Some(kept) = self.results.get_mut(name) {
                self.bytes -= kept.bytes();
                *kept = Kept::Forgotten;
            }
        }
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        match self {
            Self::Whole { bytes, .. } => *bytes,
            Self::Forgotten => 0,
        }
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error(text: &str) -> ObservationEvent {
    Observation::error(text).into()
}

/// The size of an observation as JSON.
fn size(answer: &ObservationEvent) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Neither an event nor a counter refuses to be written.
    let _ = serde_json::to_writer(&mut count, answer);
    count.0
}

#[cfg(test)]
#[path = "once_tests.rs"]
mod tests;
