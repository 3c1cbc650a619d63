//! The task that owns one shell.
//!
//! It alone reads the terminal, the reports and the process, so everything that happens to a
//! shell happens in one order. It takes one turn at a time; others wait. Only input and keys do
//! not: they go to the command that somebody waits for, whose own turn tells what comes of them.
//! A turn whose asker went away ends, and the command it waited for goes on, as after a timeout.
//!
//! Output is always read, also when nobody waits: what background jobs write between two
//! commands is shown with the second.

use std::{collections::VecDeque, io, path::PathBuf, sync::Arc};

use bytes::Bytes;
use tokio::{
    sync::{Notify, broadcast, mpsc, oneshot, watch},
    task::yield_now,
    time::Instant,
};
use zareba_terminal::{Child, ExitReason, Limits, Screen};
use zareba_wire::output::StopMeans;

use super::{
    heard::{Interrupting, end_of},
    keys::Key,
    process::{ShellProcess, ShellSpec, StartShellError},
    report::{Report, Subject},
    spill::Spill,
    start,
    state::{Running, State, Waiter, may_type, sleep_until},
    turn::{Ask, Ended, Outcome, Patience, Previous, Request, ShellLost, Turn},
};
use crate::outputs::ActionOutput;

/// What a shell's terminal remembers. OpenHands' own tests need between 10,001 and 11,360 lines.
pub(super) const SCREEN_LIMITS: Limits = Limits {
    lines: 11_000,
    history_bytes: 32 * 1024 * 1024,
};

/// Bytes taken from the terminal at once; the kernel hands out at most a page.
const CHUNK_BYTES: usize = 16 * 1024;

/// Output taken before others get their turn: a fraction of a millisecond to most programs.
const FLOOD_TURN_BYTES: usize = CHUNK_BYTES;

/// Output taken after a command's end was reported. All that it wrote is in the kernel's
/// buffer by then, which is far smaller; background jobs may go on writing for ever.
const DRAIN_MAX_BYTES: usize = 1024 * 1024;

/// Turns that wait for theirs here; more wait in the channel, and input behind them.
const BACKLOG_MAX: usize = 64;

/// A terminal in line mode drops what a line has beyond this.
const LINE_MAX_BYTES: usize = 4094;

/// The task's state.
pub(super) struct Actor {
    pub(super) spec: ShellSpec,
    pub(super) process: Option<ShellProcess>,
    pub(super) screen: Screen,
    pub(super) spill: Spill,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) output: broadcast::Sender<Bytes>,
    /// Told when the shell shall end, whoever waits for it.
    pub(super) closing: Arc<Notify>,
    /// The shell's directory, for those who resolve paths.
    pub(super) place: watch::Sender<PathBuf>,
    pub(super) state: State,
    waiter: Option<Waiter>,
    /// Asked for while somebody waited.
    backlog: VecDeque<Request>,
    /// Typed, and not yet taken by the terminal.
    input: VecDeque<u8>,
    pub(super) interrupting: Option<Interrupting>,
    last_id: u64,
    last_ended: u64,
    last_search_path: String,
    /// The shell ended while nothing ran, and nobody was told yet.
    replaced_unnoticed: bool,
    /// Shells that ended, whose background jobs may live on until we end too.
    lost: Vec<Child>,
    chunk: Vec<u8>,
}

pub(super) enum Event {
    Deadline,
    Reported,
    ShellEnded(io::Result<ExitReason>),
    Readable,
    Writable,
    AskerGone,
    Stop(StopMeans),
    LookAgain,
    Asked(Option<Request>),
}

impl Actor {
    pub(super) fn new(
        spec: ShellSpec,
        name: &str,
        directory: PathBuf,
        requests: mpsc::Receiver<Request>,
    ) -> Self {
        Self {
            screen: Screen::new(spec.size, SCREEN_LIMITS),
            spill: Spill::new(&spec.outputs, name, spec.owner),
            spec,
            process: None,
            requests,
            output: broadcast::Sender::new(64),
            closing: Arc::default(),
            place: watch::Sender::new(directory),
            state: State::Idle,
            waiter: None,
            backlog: VecDeque::new(),
            input: VecDeque::new(),
            interrupting: None,
            last_id: 0,
            last_ended: 0,
            last_search_path: String::new(),
            replaced_unnoticed: false,
            lost: Vec::new(),
            chunk: vec![0; CHUNK_BYTES],
        }
    }

    /// Starts a shell and waits until it can take commands.
    async fn start_shell(&mut self) -> Result<(), StartShellError> {
        let process = self.spawn_shell()?;
        self.take_over(process, || {}).await
    }

    pub(super) fn spawn_shell(&self) -> Result<ShellProcess, StartShellError> {
        ShellProcess::start(&self.spec, &self.place.borrow())
    }

    /// Waits until a shell can take commands. `ready` is called as soon as that is certain: who
    /// asks for something then waits for the rest of it here.
    pub(super) async fn take_over(
        &mut self,
        process: ShellProcess,
        ready: impl FnOnce(),
    ) -> Result<(), StartShellError> {
        let (process, report) = start::until_ready(process, self.spec.size).await?;
        ready();
        if let Some(shortcomings) = process.shortcomings() {
            tracing::warn!(program = %process.program.display(), "{shortcomings}");
        }
        self.process = Some(process);
        self.with_process(ShellProcess::arm);
        self.note_place(&report);
        // What came together with the first report.
        self.take_reports();
        Ok(())
    }

    /// Serves until nobody is left who could ask.
    pub(super) async fn serve(mut self) {
        loop {
            match self.next_event().await {
                Event::Deadline => self.run_out_of_patience(),
                Event::Reported => self.take_reports(),
                Event::ShellEnded(reason) => self.shell_ended(reason).await,
                Event::Readable => {
                    if self.take_output(FLOOD_TURN_BYTES) >= FLOOD_TURN_BYTES {
                        yield_now().await;
                    }
                }
                Event::Writable => self.type_pending(),
                Event::AskerGone => self.waiter = None,
                Event::Stop(means) => self.stop(means),
                Event::LookAgain => self.interrupt_again(),
                Event::Asked(Some(Request::Resize(size))) => {
                    self.spec.size = size;
                    self.screen.resize(size);
                    if let Some(process) = &self.process {
                        let _ = process.pty.resize(size);
                    }
                }
                Event::Asked(Some(request)) if self.waiter.is_some() => self.postpone(request),
                Event::Asked(Some(Request::Turn {
                    ask,
                    patience,
                    reply,
                    heard,
                })) => {
                    self.take_turn(ask, patience, reply, heard).await;
                }
                Event::Asked(None) => return,
            }
        }
    }

    /// Somebody waits for a command: input goes to it, everything else takes its turn later.
    fn postpone(&mut self, request: Request) {
        match request {
            Request::Turn {
                ask: ask @ (Ask::Type(_) | Ask::Press(_)),
                reply,
                ..
            } if matches!(self.state, State::Running(_)) => {
                let outcome = self.type_in(ask).err().unwrap_or(Outcome::Passed);
                let _ = reply.send(Turn::bare(outcome));
            }
            request => self.backlog.push_back(request),
        }
    }

    async fn next_event(&mut self) -> Event {
        let deadline = self.waiter.as_ref().and_then(Waiter::deadline);
        let free = self.waiter.is_none();
        if free && let Some(request) = self.backlog.pop_front() {
            return Event::Asked(Some(request));
        }
        let listens = free || self.backlog.len() < BACKLOG_MAX;
        let Some(process) = &mut self.process else {
            return tokio::select! {
                () = self.closing.notified() => Event::Asked(None),
                request = self.requests.recv() => Event::Asked(request),
            };
        };
        let look = self.interrupting.as_ref().map(Interrupting::next_look);
        let types = !self.input.is_empty() && may_type(process, &self.state);
        let ShellProcess {
            pty,
            child,
            reports,
            ..
        } = process;
        tokio::select! {
            biased;
            () = self.closing.notified() => Event::Asked(None),
            () = sleep_until(deadline) => Event::Deadline,
            () = reports.arrived() => Event::Reported,
            reason = child.wait() => Event::ShellEnded(reason),
            _ = pty.readable() => Event::Readable,
            _ = pty.writable(), if types => Event::Writable,
            end = end_of(&mut self.waiter) => end,
            () = sleep_until(look) => Event::LookAgain,
            request = self.requests.recv(), if listens => Event::Asked(request),
        }
    }

    // Turns.

    async fn take_turn(
        &mut self,
        ask: Ask,
        patience: Patience,
        reply: oneshot::Sender<Turn>,
        heard: Option<Arc<ActionOutput>>,
    ) {
        let stops = heard.as_ref().map(|output| output.stops());
        if stops.as_ref().is_some_and(|stops| stops.borrow().is_some()) {
            let _ = reply.send(Turn::bare(Outcome::Withdrawn));
            return;
        }
        if self.process.is_none()
            && let Err(error) = self.start_shell().await
        {
            let _ = reply.send(Turn::bare(Outcome::NoShell(error)));
            return;
        }
        match (std::mem::replace(&mut self.state, State::Idle), ask) {
            (State::Idle, Ask::Run(command)) => {
                self.submit(command, None);
                self.begin_output(heard.as_deref(), 0);
            }
            (State::Finished(_, ended), Ask::Run(command)) => {
                let output = self.screen.unseen().text;
                self.screen.clear();
                self.submit(
                    command,
                    Some(Previous {
                        status: ended.status,
                        output,
                    }),
                );
                self.begin_output(heard.as_deref(), 0);
            }
            (
                State::Idle,
                Ask::Press(Key {
                    control: Some(control),
                    ..
                }),
            ) => {
                let shell = self.idle_shell();
                let _ = reply.send(Turn::bare(Outcome::IdleKey { control, shell }));
                return;
            }
            (State::Idle, Ask::Wait | Ask::Type(_) | Ask::Press(_)) => {
                let _ = reply.send(Turn::bare(Outcome::NothingRunning));
                return;
            }
            (State::Running(running), Ask::Run(_)) => {
                self.state = State::Running(running);
                self.reply(reply, Outcome::Busy);
                return;
            }
            (State::Running(running), ask) => {
                self.begin_output(heard.as_deref(), running.seen);
                self.state = State::Running(running);
                if let Err(outcome) = self.type_in(ask) {
                    self.reply(reply, outcome);
                    return;
                }
            }
            (State::Finished(running, ended), ask) => {
                self.begin_output(heard.as_deref(), running.seen);
                self.state = State::Running(running);
                let before = !matches!(ask, Ask::Wait);
                let outcome = if before {
                    Outcome::EndedBefore(ended)
                } else {
                    Outcome::Ended(ended)
                };
                self.reply(reply, outcome);
                return;
            }
        }
        let now = Instant::now();
        self.waiter = Some(Waiter {
            reply,
            patience,
            since: now,
            last_output: now,
            heard,
            stops,
        });
    }

    fn submit(&mut self, command: String, previous: Option<Previous>) {
        self.last_id += 1;
        self.spill.start();
        let id = self.last_id;
        self.with_process(|process| process.submit(id, &command));
        let untaken = Some(command);
        self.state = State::Running(Running {
            id,
            since: Instant::now(),
            untaken,
            observed: false,
            seen: 0,
            previous,
        });
    }

    /// The shell stands at its prompt; what it has not taken may be lost on the way.
    fn submit_again(&mut self) {
        if let (Some(process), State::Running(running)) = (&mut self.process, &self.state)
            && let Some(command) = &running.untaken
            && process.submit_again(running.id, command).is_err()
        {
            process.child.kill_session();
        }
    }

    /// Does something with the shell. A shell whose channels fail is of no more use: it is
    /// killed, and its end noticed like any other.
    fn with_process(&mut self, act: impl FnOnce(&mut ShellProcess) -> io::Result<()>) {
        if let Some(process) = &mut self.process
            && act(process).is_err()
        {
            process.child.kill_session();
        }
    }

    pub(super) fn type_in(&mut self, ask: Ask) -> Result<(), Outcome> {
        let bytes = match ask {
            Ask::Wait | Ask::Run(_) => return Ok(()),
            Ask::Press(key) => {
                // A shell that stopped itself would never see the key.
                if let Some(process) = &self.process {
                    process.child.resume_if_stopped();
                }
                key.bytes
            }
            Ask::Type(text) => {
                let cooked = self
                    .process
                    .as_ref()
                    .is_some_and(|process| process.pty.reads_lines().unwrap_or(true));
                if cooked && text.split('\n').any(|line| line.len() > LINE_MAX_BYTES) {
                    return Err(Outcome::LineTooLong {
                        limit: LINE_MAX_BYTES,
                    });
                }
                let mut bytes = text.replace('\n', "\r").into_bytes();
                bytes.push(b'\r');
                bytes
            }
        };
        self.input.extend(bytes);
        self.type_pending();
        Ok(())
    }

    fn type_pending(&mut self) {
        let ready = self
            .process
            .as_ref()
            .filter(|process| may_type(process, &self.state));
        let Some(process) = ready else { return };
        while !self.input.is_empty() {
            match process.pty.write(self.input.as_slices().0) {
                Ok(0) => return,
                Ok(taken) => drop(self.input.drain(..taken)),
                Err(_) => return self.input.clear(),
            }
        }
    }

    fn run_out_of_patience(&mut self) {
        let Some(waiter) = self.waiter.take() else {
            return;
        };
        let outcome = match waiter.patience.silence {
            Some(silence) if waiter.last_output.elapsed() >= silence => Outcome::Silent(silence),
            _ => Outcome::TimedOut(waiter.patience.total.unwrap_or_default()),
        };
        self.reply_to(waiter, outcome);
    }

    /// Ends the turn of the one who waits, and what is heard of it.
    fn reply_to(&mut self, waiter: Waiter, outcome: Outcome) {
        if let Some(output) = &waiter.heard {
            output.end();
        }
        self.reply(waiter.reply, outcome);
    }

    /// Ends a turn with all that is new on the screen.
    fn reply(&mut self, reply: oneshot::Sender<Turn>, outcome: Outcome) {
        let over = matches!(outcome, Outcome::Ended(_) | Outcome::EndedBefore(_));
        let written = self.spill.recording().written();
        let (continued, previous) = match &mut self.state {
            State::Running(running) => {
                running.seen = written;
                (
                    std::mem::replace(&mut running.observed, true),
                    running.previous.take(),
                )
            }
            State::Idle | State::Finished(..) => (false, None),
        };
        let output = self.screen.unseen();
        if over {
            self.screen.clear();
            self.state = State::Idle;
        } else {
            self.screen.mark_seen();
        }
        let _ = reply.send(Turn {
            outcome,
            output,
            continued,
            full: self.spill.full_output(),
            previous,
            replaced_before: std::mem::take(&mut self.replaced_unnoticed),
        });
    }

    // What the shell does.

    fn take_reports(&mut self) {
        while let Some(report) = self
            .process
            .as_mut()
            .and_then(|process| process.reports.reader.next())
        {
            match (report.subject, &self.state) {
                (Subject::Ended(id), State::Running(running)) if running.id == id => {
                    self.last_ended = id;
                    self.take_end(report);
                }
                // A key had to be pressed, because the shell would not take its command.
                (Subject::Interrupted, State::Running(running)) if running.is_overdue() => {
                    self.with_process(ShellProcess::withdraw);
                    self.take_end(report);
                }
                (Subject::Begun, _) => {
                    self.with_process(ShellProcess::begun);
                    continue;
                }
                (Subject::Taken(id), _) => {
                    // Another number is not ours: then somebody wrote to the body, and what was there
                    // is still to be taken.
                    if let (Some(process), State::Running(running)) =
                        (&mut self.process, &mut self.state)
                        && running.id == id
                    {
                        process.taken();
                        running.untaken = None;
                    }
                    self.type_pending();
                    continue;
                }
                (Subject::Waiting(number), _) => {
                    self.submit_again();
                    self.with_process(|process| process.let_go(number));
                    continue;
                }
                // Reported twice, by the trigger and by the prompt.
                (Subject::Ended(id), _) if id == self.last_ended => continue,
                // The trigger was read, and no command of ours came of it.
                (Subject::Ended(_) | Subject::Interrupted, _) => self.submit_again(),
            }
            // After the reply, so that nobody waits for it.
            self.with_process(ShellProcess::arm);
        }
    }

    fn take_end(&mut self, report: Report) {
        self.take_output(DRAIN_MAX_BYTES);
        self.note_place(&report);
        self.command_ended(Ended {
            status: report.status,
            background: report.background,
            directory: PathBuf::from(report.directory),
            search_path: report.search_path,
            shell_lost: None,
        });
    }

    fn command_ended(&mut self, ended: Ended) {
        self.input.clear();
        self.interrupting = None;
        let waiter = self.waiter.take();
        if let Some(waiter) = waiter.filter(|waiter| !waiter.reply.is_closed()) {
            self.reply_to(waiter, Outcome::Ended(ended));
        } else if let State::Running(running) = std::mem::replace(&mut self.state, State::Idle) {
            self.state = State::Finished(running, ended);
        }
    }

    async fn shell_ended(&mut self, reason: io::Result<ExitReason>) {
        // Its last words may have been overtaken by its end.
        if let Some(process) = &mut self.process {
            process.reports.drain();
        }
        self.take_reports();
        self.take_output(DRAIN_MAX_BYTES);
        if let Some(process) = self.process.take() {
            self.lost.retain(Child::has_company);
            self.lost.push(process.child);
        }
        if !self.place.borrow().is_dir() {
            self.place.send_replace(PathBuf::from("/"));
        }
        // A failure is told to the next asker, who makes us try again.
        let _ = self.start_shell().await;
        let (status, signal) = match reason {
            Ok(ExitReason::Signal(signal)) => (128 + i64::from(signal), Some(signal)),
            Ok(ExitReason::Code(code)) => (i64::from(code), None),
            Err(_) => (-1, None),
        };
        match &mut self.state {
            State::Running(running) => {
                let (id, untaken) = (running.id, running.untaken.take());
                // The new shell gets what the old one never took; once, lest it end the same way.
                if let Some(command) = untaken.filter(|_| self.process.is_some()) {
                    self.replaced_unnoticed = true;
                    self.with_process(|process| process.submit(id, &command));
                } else {
                    let shell_lost = Some(ShellLost { signal });
                    self.command_ended(Ended {
                        status,
                        shell_lost,
                        ..self.idle_shell()
                    });
                }
            }
            State::Idle | State::Finished(..) => self.replaced_unnoticed = true,
        }
    }

    /// Takes what the terminal has, and says how much that was; no more than `limit` and a chunk.
    fn take_output(&mut self, limit: usize) -> usize {
        let mut taken = 0;
        let Some(process) = &self.process else {
            return taken;
        };
        while taken < limit {
            match process.pty.read(&mut self.chunk) {
                Ok(Some(length @ 1..)) => {
                    taken += length;
                    let bytes = &self.chunk[..length];
                    self.screen.feed(bytes);
                    self.spill.push(bytes);
                    if self.output.receiver_count() > 0 {
                        let _ = self.output.send(Bytes::copy_from_slice(bytes));
                    }
                }
                Ok(Some(0) | None) => break,
                Err(_) => {
                    process.child.kill_session();
                    break;
                }
            }
        }
        if taken > 0 {
            if let Some(waiter) = &mut self.waiter {
                waiter.last_output = Instant::now();
            }
            self.answer_queries();
        }
        taken
    }

    /// Programs may ask the terminal where the cursor is, and wait for the answer.
    fn answer_queries(&mut self) {
        let replies = self.screen.take_replies();
        if !replies.is_empty() && matches!(self.state, State::Running(_)) {
            self.input.extend(replies);
            self.type_pending();
        }
    }

    fn note_place(&mut self, report: &Report) {
        self.last_search_path.clone_from(&report.search_path);
        self.place.send_if_modified(|place| {
            let moved = place.as_os_str() != report.directory.as_str();
            if moved {
                *place = PathBuf::from(&report.directory);
            }
            moved
        });
    }

    fn idle_shell(&self) -> Ended {
        Ended {
            status: 0,
            background: None,
            directory: self.place.borrow().clone(),
            search_path: self.last_search_path.clone(),
            shell_lost: None,
        }
    }
}
