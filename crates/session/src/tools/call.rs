//! Calling a tool of a session, and stopping a call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use zareba_eventlog::Record;
use zareba_protocol::{Action, ErrorClass, ObservationEvent, UseTool};
use zareba_tools::{Arguments, Call, observation};

use crate::{conductor::Conductor, event};

/// Stops a call of a tool when it is dropped, unless the call is [kept](Self::keep) or has ended.
#[derive(Debug)]
pub(crate) struct CallGuard {
    session: Arc<Conductor>,
    action: u64,
    is_kept: AtomicBool,
}

impl CallGuard {
    pub(crate) fn new(session: &Arc<Conductor>, action: u64) -> Self {
        Self {
            session: Arc::clone(session),
            action,
            is_kept: AtomicBool::new(false),
        }
    }

    /// The call goes on, whether or not anybody waits for it.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut() {
            self.session.pending.stop(self.action);
        }
    }
}

impl Conductor {
    /// Calls a tool; `None` when the server ends before anything is known.
    pub(crate) async fn call_tool(
        self: &Arc<Self>,
        number: u64,
        call: &UseTool,
        timeout: Option<Duration>,
    ) -> Option<ObservationEvent> {
        let run = async {
            // A host that sleeps with its sandbox would not answer.
            if let Err(error) = self.awake().await.map(drop) {
                return event::failure_of(&error);
            }
            if self.tools.registry.get(&call.name).is_none() {
                self.source_tools().await;
            }
            let asked = Call {
                arguments: Arguments {
                    positional: call.positional.clone(),
                    named: call.arguments.clone(),
                },
                timeout: timeout.or(Some(self.common.options.timeout)),
                is_validated: !call.unchecked,
            };
            let result = self.tools.registry.call(&call.name, asked).await;
            observation(&call.name, result).into()
        };
        self.until_unwanted(number, run).await
    }

    /// What comes of a call, unless it is dropped before because nobody wants it any more.
    pub(super) async fn until_unwanted(
        &self,
        number: u64,
        run: impl Future<Output = ObservationEvent>,
    ) -> Option<ObservationEvent> {
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            answer = run => Some(answer),
            _ = closing.wait_for(|closing| *closing) => {
                Some(unknown("the session was closed while it ran"))
            }
            () = self.pending.stopped(number) => {
                Some(unknown("it was stopped, as whoever had asked for it went away"))
            }
            () = self.letting_go() => None,
        }
    }
}

/// What is said of a call that nobody can say more about.
pub(crate) fn unknown(why: &str) -> ObservationEvent {
    event::failure(
        ErrorClass::Disconnected.as_str(),
        format!(
            "ERROR: The outcome of the tool is unknown: {why}. It may have run, in whole or in part; look before you call it again."
        ),
    )
}

/// Whether a record is of a call of a tool, also when it is not whole.
pub(crate) fn is_call(record: &Record) -> bool {
    let kind = record.payload.get("action").and_then(|kind| kind.as_str());
    matches!(kind, Some("call_tool" | "call_tool_mcp"))
}

/// Whether an action is a call of a tool.
pub(crate) fn is_call_action(action: &Action) -> bool {
    matches!(action, Action::CallTool(_) | Action::CallToolMcp(_))
}
