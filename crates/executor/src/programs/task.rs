//! The task that owns a running program: the only one to wait for it, signal it and end it.

use std::{io, time::Duration};

use rustix::process::Signal;
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};
use zareba_terminal::{Child, ExitReason};
use zareba_wire::program::{ProgramControl, ProgramEvent, ProgramExit, ProgramSide, ProgramSignal};

use super::{
    input::Input,
    output::{Ended, Output},
    start::size_of,
};

/// How long a program may go on that nobody wants any more.
const GRACE: Duration = Duration::from_secs(2);

/// Output that is still passed on after the end: what pipes hold at most. A process that left
/// the session may go on writing.
const LAST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A program's streams.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) input: Input,
    pub(super) output: Output,
}

/// A program and everything that it needs.
#[derive(Debug)]
pub(super) struct Running {
    /// Dropped, it kills whatever is left of the program's session.
    pub(super) child: Child,
    pub(super) streams: Streams,
    pub(super) side: ProgramSide,
    /// True, or without a sender, once the executor ends.
    pub(super) closing: watch::Receiver<bool>,
}

/// Why the program is not carried on.
enum Outcome {
    Ended(io::Result<ExitReason>),
    /// Its client is gone.
    Unwanted,
}

impl Running {
    /// Carries the program to its end. Nothing of its session is left when this returns.
    pub(super) async fn serve(mut self) {
        let mut closing = self.closing.clone();
        let served = async {
            match self.carry().await {
                Outcome::Ended(ended) => self.finish(ended).await,
                Outcome::Unwanted => self.abandon().await,
            }
        };
        tokio::select! {
            () = served => {}
            // Then the child is killed where it is dropped.
            _ = closing.wait_for(|closing| *closing) => {}
        }
    }

    async fn carry(&mut self) -> Outcome {
        let Self {
            child,
            streams: Streams { input, output },
            side,
            ..
        } = self;
        let mut is_steered = true;
        loop {
            tokio::select! {
                biased;
                () = side.events.closed() => return Outcome::Unwanted,
                control = side.control.recv(), if is_steered => match control {
                    Some(control) => steer(child, output, control),
                    None => is_steered = false,
                },
                ended = child.wait() => return Outcome::Ended(ended),
                () = input.step(&mut side.stdin) => {}
                passed = pass_on(output, &side.events) => if let Err(ended) = passed {
                    output.end(ended);
                },
            }
        }
    }

    /// Passes on what it wrote last, and its end. What it has left running ends with it.
    async fn finish(&mut self, ended: io::Result<ExitReason>) {
        self.side.control.close();
        self.side.stdin.close();
        self.child.kill_session();
        let mut passed = 0;
        while let Some(event) = self.streams.output.now() {
            if let ProgramEvent::Stdout(bytes) | ProgramEvent::Stderr(bytes) = &event {
                passed += bytes.len();
            }
            if self.side.events.send(event).await.is_err() || passed > LAST_BYTES_MAX {
                break;
            }
        }
        let last = match ended {
            Ok(ExitReason::Code(code)) => ProgramEvent::Exit(ProgramExit::Code(code)),
            Ok(ExitReason::Signal(signal)) => ProgramEvent::Exit(ProgramExit::Signal(signal)),
            Err(error) => {
                ProgramEvent::Error(format!("cannot learn how the program ended: {error}"))
            }
        };
        // Nobody may want to know any more.
        let _ = self.side.events.send(last).await;
    }

    /// Lets the program end by itself, for a while: a terminal is closed under it, which sends a
    /// hang-up to its session, and another program is asked to end. Its pipes are closed, too.
    async fn abandon(&mut self) {
        if matches!(self.streams.output, Output::Pipes { .. }) {
            self.child.signal_group(Signal::TERM);
            // One that was stopped can do as it is told only when it goes on.
            self.child.signal_group(Signal::CONT);
        }
        self.streams = Streams {
            input: Input::nowhere(),
            output: Output::Pipes {
                stdout: None,
                stderr: None,
            },
        };
        // Whatever is left then is killed when the child is dropped.
        let _ = timeout(GRACE, self.child.wait()).await;
    }
}

/// Passes the next piece of output on when there is room for it. May be dropped and called
/// again: nothing is read without room.
async fn pass_on(output: &Output, events: &mpsc::Sender<ProgramEvent>) -> Result<(), Ended> {
    let Ok(room) = events.reserve().await else {
        return std::future::pending().await;
    };
    room.send(output.next().await?);
    Ok(())
}

fn steer(child: &Child, output: &Output, control: ProgramControl) {
    match (control, output) {
        (ProgramControl::Resize(size), Output::Terminal(pty)) => {
            if let Err(error) = pty.resize(size_of(size)) {
                tracing::debug!(%error, "cannot resize a terminal");
            }
        }
        (ProgramControl::Resize(_), Output::Pipes { .. }) => {}
        (ProgramControl::Signal(ProgramSignal::Kill), _) => child.kill_session(),
        (ProgramControl::Signal(signal), _) => child.signal_group(number_of(signal)),
    }
}

fn number_of(signal: ProgramSignal) -> Signal {
    match signal {
        ProgramSignal::Hup => Signal::HUP,
        ProgramSignal::Int => Signal::INT,
        ProgramSignal::Quit => Signal::QUIT,
        ProgramSignal::Abrt => Signal::ABORT,
        ProgramSignal::Kill => Signal::KILL,
        ProgramSignal::Usr1 => Signal::USR1,
        ProgramSignal::Usr2 => Signal::USR2,
        ProgramSignal::Alrm => Signal::ALARM,
        ProgramSignal::Term => Signal::TERM,
        ProgramSignal::Cont => Signal::CONT,
        ProgramSignal::Stop => Signal::STOP,
        ProgramSignal::Tstp => Signal::TSTP,
        ProgramSignal::Winch => Signal::WINCH,
    }
}
