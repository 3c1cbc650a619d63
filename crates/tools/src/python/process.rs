//! One life of a worker process: what is under way in it, and its end.
//!
//! Two tasks belong to it. The writer passes lines on in the order in which they were given to it,
//! so that a caller who goes away leaves no half line. The reader hands out answers until the
//! process ends, and then answers whoever still waits.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use zareba_wire::program::{
    ProgramConnection, ProgramEvent, ProgramEvents, ProgramExit, ProgramInput,
};

use super::message::{Done, Ready, Reply, ReplyReader, Request};

/// Lines that wait to be written.
const LINES_MAX: usize = 64;

/// What is kept of what the process itself complains about, to say why it died.
const COMPLAINTS_BYTES_MAX: usize = 8 * 1024;

/// A process that runs.
pub(super) struct Process {
    lines: mpsc::Sender<Bytes>,
    shared: Arc<Shared>,
    next_id: AtomicU64,
    /// How long a call that was cancelled may take to end.
    grace: Duration,
    runtime: tokio::runtime::Handle,
}

struct Shared {
    calls: Mutex<Calls>,
    complaints: Mutex<VecDeque<u8>>,
    /// Says that the process is to be ended.
    kill: watch::Sender<bool>,
}

struct Calls {
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// Why the process is no more.
    end: Option<String>,
}

/// What came of a call, or what became of the process.
pub(super) type Answer = Result<Done, String>;

/// A call that is under way. Dropping it cancels the call.
pub(super) struct UnderWay {
    id: u64,
    process: Arc<Process>,
    answer: oneshot::Receiver<Answer>,
    is_over: bool,
}

impl Process {
    /// Takes a program that was just started. The receiver gets its first message.
    pub(super) fn begin(
        connection: ProgramConnection,
        grace: Duration,
    ) -> (Arc<Self>, oneshot::Receiver<Result<Ready, String>>) {
        let (input, events) = connection.split();
        let (lines, waiting) = mpsc::channel(LINES_MAX);
        let (ready, is_ready) = oneshot::channel();
        let shared = Arc::new(Shared {
            calls: Mutex::new(Calls {
                waiting: HashMap::new(),
                end: None,
            }),
            complaints: Mutex::new(VecDeque::new()),
            kill: watch::Sender::new(false),
        });
        tokio::spawn(write(waiting, input));
        tokio::spawn(Arc::clone(&shared).read(events, ready));
        let process = Arc::new(Self {
            lines,
            shared,
            next_id: AtomicU64::new(1),
            grace,
            runtime: tokio::runtime::Handle::current(),
        });
        (process, is_ready)
    }

    /// Whether it can be asked for anything.
    pub(super) fn is_alive(&self) -> bool {
        self.shared.calls().end.is_none()
    }

    /// How many calls are under way.
    pub(super) fn calls(&self) -> usize {
        self.shared.calls().waiting.len()
    }

    /// Passes a line on; `false` when there is nobody to take it.
    pub(super) async fn send(&self, line: Bytes) -> bool {
        self.lines.send(line).await.is_ok()
    }

    /// Begins a call: its number, to be asked for by the line that is sent then.
    pub(super) fn begin_call(self: &Arc<Self>) -> Result<UnderWay, String> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        let mut calls = self.shared.calls();
        if let Some(end) = &calls.end {
            return Err(end.clone());
        }
        calls.waiting.insert(id, sender);
        drop(calls);
        Ok(UnderWay {
            id,
            process: Arc::clone(self),
            answer,
            is_over: false,
        })
    }

    /// Ends it. Whoever waits is told why.
    pub(super) fn kill(&self, why: &str) {
        self.shared.end(why);
        self.shared.kill.send_replace(true);
    }

    /// Tells a call to stop, and ends the process when it does not.
    fn cancel(self: Arc<Self>, id: u64) {
        if !self.shared.calls().waiting.contains_key(&id) {
            return;
        }
        let asked = Request::Cancel { id }.line().ok();
        let is_asked = asked.is_some_and(|line| self.lines.try_send(line).is_ok());
        if !is_asked {
            self.kill("a call had to be stopped, and its interpreter took no word");
            return;
        }
        let runtime = self.runtime.clone();
        runtime.spawn(async move {
            let (sender, ended) = oneshot::channel();
            match self.shared.calls().waiting.get_mut(&id) {
                Some(waiting) => *waiting = sender,
                None => return,
            }
            if tokio::time::timeout(self.grace, ended).await.is_err() {
                self.kill("a call was stopped and did not end");
            }
        });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.kill.send_replace(true);
    }
}

impl UnderWay {
    /// Its number.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Waits for what comes of it.
    pub(super) async fn answer(mut self) -> Answer {
        let answer = (&mut self.answer).await;
        self.is_over = true;
        answer.unwrap_or_else(|_| Err("its host was ended".to_owned()))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.is_over {
            Arc::clone(&self.process).cancel(self.id);
        }
    }
}

/// Writes lines until there is nobody who sends or takes any.
async fn write(mut lines: mpsc::Receiver<Bytes>, input: ProgramInput) {
    while let Some(line) = lines.recv().await {
        if input.write_stdin(line).await.is_err() {
            return;
        }
    }
}

impl Shared {
    /// Reads until the process ends or is to be ended; dropping the events ends it then.
    async fn read(
        self: Arc<Self>,
        mut events: ProgramEvents,
        ready: oneshot::Sender<Result<Ready, String>>,
    ) {
        let mut kill = self.kill.subscribe();
        let mut ready = Some(ready);
        let why = tokio::select! {
            why = self.hand_out(&mut events, &mut ready) => why,
            _ = kill.wait_for(|kill| *kill) => "it was ended".to_owned(),
        };
        self.end(&why);
        if let Some(ready) = ready {
            let _ = ready.send(Err(self.calls().end.clone().unwrap_or(why)));
        }
    }

    /// Hands out what comes, and returns why nothing comes any more.
    async fn hand_out(
        &self,
        events: &mut ProgramEvents,
        ready: &mut Option<oneshot::Sender<Result<Ready, String>>>,
    ) -> String {
        let mut reader = ReplyReader::default();
        loop {
            match events.next().await {
                Some(ProgramEvent::Stdout(bytes)) => reader.push(&bytes),
                Some(ProgramEvent::Stderr(bytes)) => {
                    self.keep_complaint(&bytes);
                    continue;
                }
                Some(ProgramEvent::Exit(exit)) => return self.death(exit),
                Some(ProgramEvent::Error(message)) => return message,
                None => return "the way to its interpreter broke".to_owned(),
            }
            loop {
                match reader.next() {
                    Ok(None) => break,
                    Ok(Some(Reply::Done(done))) => self.answer(done),
                    Ok(Some(Reply::Ready(loaded))) => {
                        if let Some(ready) = ready.take() {
                            let _ = ready.send(Ok(loaded));
                        }
                    }
                    Err(nonsense) => return format!("its interpreter was ended: {nonsense}"),
                }
            }
        }
    }

    fn answer(&self, done: Done) {
        // A number that nobody waits for is none of ours, or somebody was told already.
        if let Some(waiting) = self.calls().waiting.remove(&done.id) {
            let _ = waiting.send(Ok(done));
        }
    }

    fn death(&self, exit: ProgramExit) -> String {
        let how = match exit {
            ProgramExit::Code(code) => format!("its interpreter ended with exit code {code}"),
            ProgramExit::Signal(signal) => format!("its interpreter was ended by signal {signal}"),
        };
        let complaints = self.complaints();
        let (front, back) = complaints.as_slices();
        let text = [front, back].concat();
        match String::from_utf8_lossy(&text).trim() {
            "" => how,
            text => format!("{how}, after it printed:\n{text}\n"),
        }
    }

    /// Answers everybody, once.
    fn end(&self, why: &str) {
        let mut calls = self.calls();
        let end = calls.end.get_or_insert_with(|| why.to_owned()).clone();
        for (_, waiting) in calls.waiting.drain() {
            let _ = waiting.send(Err(end.clone()));
        }
    }

    fn keep_complaint(&self, bytes: &[u8]) {
        let mut complaints = self.complaints();
        complaints.extend(bytes);
        let surplus = complaints.len().saturating_sub(COMPLAINTS_BYTES_MAX);
        complaints.drain(..surplus);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complaints(&self) -> MutexGuard<'_, VecDeque<u8>> {
        let complaints = self.complaints.lock();
        complaints.unwrap_or_else(PoisonError::into_inner)
    }
}
