//! The path of an action: recorded, judged, run, and what came of it recorded.
//!
//! Who walks it goes to its end, so that a caller who goes away changes nothing: see `asked`.
//! Whatever happens on it, behind the record of an action there is one way out, and that
//! is an observation.

use std::{future::poll_fn, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;
use zareba_eventlog::{Appended, Health, IdempotencyKey, LogError, Patience, Record};
use zareba_protocol::{
    Action, ActionEvent, ConfirmationState, ErrorClass, Observation, ObservationEvent,
    ObservationKind, SecurityRisk,
};
use zareba_runtime::{RuntimeError, Sandbox, Turn, is_input};

use crate::{
    ActionRequest, Deed, Door, Requester, SessionError, SessionState, Verdict,
    conductor::{Conductor, Ending, InUse},
    event,
    outlived::shell_used,
    pending::{Answer, Outcome, UnderWay},
};

/// Actions of one session that may be under way at once: fewer than an executor runs under names.
pub(crate) const ACTIONS_MAX: usize = 200;

/// How often an action is handed over, when the way to its sandbox breaks and that goes on.
const ATTEMPTS_MAX: usize = 3;

/// Whose action it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A caller's.
    Caller,
    /// Ours, while the session is being started.
    Setup,
}

/// An action that is recorded.
pub(crate) struct Begun {
    pub(crate) record: Arc<Record>,
    /// How to wait for its observation, when it is under way here.
    pub(crate) answer: Option<Answer>,
    /// What is left to do; nothing for one that was there before.
    pub(crate) rest: Option<Rest>,
}

/// The way from the record of an action to the record of what came of it.
pub(crate) struct Rest {
    under_way: UnderWay,
    action: ActionEvent,
    requester: Requester,
    turn: Turn,
    _in_use: Option<InUse>,
    _place: OwnedSemaphorePermit,
}

impl Conductor {
    /// Walks the path of one action until it is recorded.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        request: ActionRequest,
        origin: Origin,
    ) -> Result<Begun, SessionError> {
        // Whoever comes while it is being closed is no user: closing waits until there is none.
        let is_closing = *self.closing.borrow();
        let in_use = (!is_closing).then(|| self.begin_use());
        // Before any wait: those who wait hold their action in memory and count, too.
        let place = Arc::clone(&self.places).try_acquire_owned();
        let Some(place) = place.ok().filter(|_| !is_closing) else {
            let refusal = match is_closing {
                true => self.wrong_state("run actions"),
                false => too_many(),
            };
            let record = self.repeated(request, refusal).await?;
            return Ok(self.known(record));
        };
        let action = request.action.clone();
        let requester = self.requester(request.requester.clone());
        self.wait_for_recovery(&action).await;
        let turn = self.turns.wait(&action).await;
        let (record, is_new) = self.record_action(request, origin).await?;
        if !is_new {
            return Ok(self.known(record));
        }
        let asked = Some(Arc::new(action.clone()));
        let (under_way, answer) = self.pending.begin(record.sequence, asked);
        let rest = Rest {
            under_way,
            action,
            requester,
            turn,
            _in_use: in_use,
            _place: place,
        };
        Ok(Begun {
            record,
            answer: Some(answer),
            rest: Some(rest),
        })
    }

    fn known(&self, record: Arc<Record>) -> Begun {
        Begun {
            answer: self.pending.answer(record.sequence),
            record,
            rest: None,
        }
    }

    /// Walks the rest of the path of an action that was begun.
    pub(crate) async fn end(self: &Arc<Self>, rest: Rest) -> Option<Outcome> {
        let Rest {
            under_way,
            action,
            requester,
            turn,
            _in_use,
            _place,
        } = rest;
        self.finish(under_way, action, requester, turn).await
    }

    /// The client that asks for an action, or the session itself.
    pub(crate) fn requester(&self, client: Option<Requester>) -> Requester {
        client.unwrap_or_else(|| Requester::session(self.facts.owner.clone()))
    }

    /// Walks the rest of the path, from the record of an action on. `None` when that is left to
    /// the server that comes after us.
    pub(crate) async fn finish(
        self: &Arc<Self>,
        under_way: UnderWay,
        action: ActionEvent,
        requester: Requester,
        turn: Turn,
    ) -> Option<Outcome> {
        let number = under_way.action;
        let (source, metadata) = (action.source, action.tool_call_metadata.clone());
        let performed =
            AssertUnwindSafe(self.perform(number, action, requester, turn)).catch_unwind();
        let answer = match performed.await {
            Ok(answer) => answer?,
            Err(_) => event::failure(
                ErrorClass::Internal.as_str(),
                "ERROR: The action failed by a fault in the server; other actions still work.",
            ),
        };
        let answer = ObservationEvent {
            source,
            tool_call_metadata: metadata,
            ..answer
        };
        let outcome = self.record_answer(number, &answer).await?;
        under_way.end(outcome.clone());
        Some(outcome)
    }

    /// What comes of an action; `None` when the server ends before that is known.
    async fn perform(
        self: &Arc<Self>,
        number: u64,
        action: ActionEvent,
        requester: Requester,
        turn: Turn,
    ) -> Option<ObservationEvent> {
        if let Some(answer) = answer_without_sandbox(&action.action) {
            return Some(answer.into());
        }
        let door = Door::of_session(self, requester);
        let (deed, sandbox) = (Deed::Action(action.into()), self.sandbox_id().ok());
        let mut closing = self.closing.subscribe();
        let verdict = tokio::select! {
            biased;
            verdict = door.assess(&deed, sandbox.as_ref()) => verdict,
            _ = closing.wait_for(|closing| *closing) => return Some(closed()),
            () = self.letting_go() => return None,
        };
        if let Verdict::Deny { risk, reason } = verdict {
            return Some(self.deny(number, risk, &reason).await);
        }
        let action = deed.into_action()?;
        if let Action::CallTool(call) = &action.action {
            return self.call_tool(number, call, action.hard_timeout()).await;
        }
        if let Action::CallToolMcp(call) = &action.action {
            return self
                .call_tool_mcp(number, call, action.hard_timeout())
                .await;
        }
        let action = ActionEvent {
            id: i64::try_from(number).ok(),
            once: Some(self.once_name(number)),
            ..action
        };
        self.release_shell(number, &action);
        let shell = shell_used(&action);
        let answer = self.run_inside(action, turn).await?;
        self.outlived.note(shell, &answer);
        Some(answer)
    }

    /// The name under which an executor runs an action at most once.
    pub(crate) fn once_name(&self, number: u64) -> String {
        format!("{}/{number}", self.id)
    }

    async fn deny(&self, number: u64, risk: SecurityRisk, reason: &str) -> ObservationEvent {
        let verdict = json!({
            "verdict": "deny",
            "risk": i8::from(risk),
            "reason": self.mask.text(reason),
        });
        let note = event::note_entry(Some(number), "guard", event::object(verdict));
        self.record_aside(note).await;
        event::failure("guard_denied", format!("ERROR: guard_denied: {reason}"))
    }

    /// Runs an action in the sandbox. As it has a name to run once under, it can be handed over
    /// again when the way there breaks.
    pub(crate) async fn run_inside(
        self: &Arc<Self>,
        action: ActionEvent,
        turn: Turn,
    ) -> Option<ObservationEvent> {
        let mut turn = turn;
        let mut attempt = 1;
        loop {
            let error = match self.hand_over(&action, turn.take()).await? {
                Ok(answer) => return Some(answer),
                Err(error) => error,
            };
            // The server that has it now hands the action over, or has done so.
            if self.is_elsewhere() {
                return None;
            }
            attempt += 1;
            let again = match &error {
                SessionError::Runtime(RuntimeError::Paused { .. }) => {
                    self.resume_anyhow().await.is_ok()
                }
                SessionError::Runtime(RuntimeError::Disconnected { .. }) => {
                    !self.notice_loss().await
                }
                _ => false,
            };
            if !again || attempt > ATTEMPTS_MAX {
                tracing::warn!(session = %self.id, error = event::chain(&error), "an action could not be run");
                return Some(event::failure_of(&error));
            }
        }
    }

    /// Gives an action to the sandbox, awake, and waits for what comes of it. The turn ends when
    /// the sandbox has it.
    async fn hand_over(
        self: &Arc<Self>,
        action: &ActionEvent,
        turn: Turn,
    ) -> Option<Result<ObservationEvent, SessionError>> {
        let run = async {
            let (sandbox, gate) = self.awake().await?;
            let mut run = sandbox.run_action(action.clone());
            let mut held = Some((turn, gate));
            let answer = poll_fn(|context| {
                let polled = run.as_mut().poll(context);
                // Once it was polled, it has its place in the sandbox's own queue.
                held = None;
                polled
            });
            Ok(answer.await?)
        };
        let span = tracing::info_span!("sandbox", runtime = self.facts.runtime);
        tokio::select! {
            biased;
            result = run.instrument(span) => Some(result),
            () = self.letting_go() => None,
        }
    }

    /// Waits until the server waits for nothing any more.
    pub(crate) async fn letting_go(&self) {
        let mut ending = self.common.ending.subscribe();
        // The sender lives as long as we do.
        let _ = ending.wait_for(|ending| *ending == Ending::LettingGo).await;
    }

    /// Waits until the server waits for nothing any more, and the log cannot be written.
    async fn leaving_unwritten(&self) {
        self.letting_go().await;
        let mut health = self.common.log.store().health();
        let _ = health.wait_for(|health| *health != Health::Durable).await;
    }

    async fn wait_for_recovery(&self, action: &ActionEvent) {
        if !is_input(action) {
            let mut recovered = self.recovered.subscribe();
            let mut is_away = self.is_away.subscribe();
            // The senders are ours, so that there is always an end.
            tokio::select! {
                _ = recovered.wait_for(|recovered| *recovered) => {}
                _ = is_away.wait_for(|is_away| *is_away) => {}
            }
        }
    }

    /// Records an action, and says whether it is a new one.
    async fn record_action(
        &self,
        request: ActionRequest,
        origin: Origin,
    ) -> Result<(Arc<Record>, bool), SessionError> {
        let ActionRequest {
            action,
            key,
            requester,
        } = request;
        if let Some(before) = self.before(&action, key.as_ref()).await? {
            return Ok((before, false));
        }
        self.require_open(origin)?;
        let entry = event::action_entry(&action, key, requester.as_ref(), &self.mask);
        let payload = entry.key.as_ref().map(|_| entry.payload.clone());
        let appended = self
            .common
            .log
            .store()
            .append(self.id.clone(), entry, Patience::None);
        match appended.await? {
            Appended::New(record) => Ok((record, true)),
            Appended::Before(record) => same(record, &payload.unwrap_or_default()),
        }
    }

    /// What a request without a place gets: the answer to one that was there before.
    async fn repeated(
        &self,
        request: ActionRequest,
        refusal: SessionError,
    ) -> Result<Arc<Record>, SessionError> {
        let ActionRequest { action, key, .. } = request;
        let before = self.before(&action, key.as_ref()).await?;
        before.ok_or(refusal)
    }

    /// The record of the same action under the same key. A repetition is answered in every state.
    async fn before(
        &self,
        action: &ActionEvent,
        key: Option<&IdempotencyKey>,
    ) -> Result<Option<Arc<Record>>, SessionError> {
        let Some(key) = key else {
            return Ok(None);
        };
        if self.mask.hides(key.as_str()) {
            let message = "an idempotency key must not hold a secret".to_owned();
            return Err(SessionError::Invalid { message });
        }
        let found = self.common.log.store().by_key(self.id.clone(), key.clone());
        let Some(before) = found.await? else {
            return Ok(None);
        };
        let entry = event::action_entry(action, Some(key.clone()), None, &self.mask);
        same(before, &entry.payload).map(|(record, _)| Some(record))
    }

    fn require_open(&self, origin: Origin) -> Result<(), SessionError> {
        if *self.common.ending.borrow() != Ending::No {
            return Err(SessionError::ShuttingDown);
        }
        let open = match (self.state(), origin) {
            (SessionState::Ready | SessionState::Paused, _) => true,
            (SessionState::Starting, Origin::Setup) => true,
            (SessionState::Starting, Origin::Caller) => false,
            (SessionState::Failed | SessionState::Lost | SessionState::Closed, _) => false,
        };
        self.require_here()?;
        if !open || *self.closing.borrow() {
            return Err(self.wrong_state("run actions"));
        }
        if self.pending.count() >= ACTIONS_MAX {
            return Err(too_many());
        }
        Ok(())
    }

    /// Records what came of an action, as long as it takes. `None` when the server ends while the
    /// log cannot be written: the sandbox still has it for the server that comes after us.
    pub(crate) async fn record_answer(
        &self,
        number: u64,
        answer: &ObservationEvent,
    ) -> Option<Outcome> {
        let mut entry = event::observation_entry(number, answer, &self.mask);
        let mut health = self.common.log.store().health();
        let mut shortened = false;
        loop {
            health.borrow_and_update();
            let store = self.common.log.store();
            let appended = tokio::select! {
                biased;
                appended = store.append(self.id.clone(), entry.clone(), Patience::Kept) => appended,
                () = self.leaving_unwritten() => return None,
            };
            match appended {
                Ok(Appended::New(record) | Appended::Before(record)) => {
                    return Some(Outcome::Recorded(record));
                }
                Err(LogError::Full) => {
                    let durable = health.wait_for(|health| *health == Health::Durable);
                    tokio::select! {
                        durable = durable => if durable.is_err() {
                            return Some(Outcome::Unrecorded("the event log is closed".into()));
                        },
                        () = self.leaving_unwritten() => return None,
                    }
                }
                Err(error) if !shortened && error.class() != ErrorClass::Disconnected => {
                    shortened = true;
                    let text = format!(
                        "ERROR: The action has ended, but its observation could not be recorded: {}",
                        event::chain(&error)
                    );
                    let short = event::failure(error.class().as_str(), text);
                    entry = event::observation_entry(number, &short, &self.mask);
                }
                Err(error) => {
                    tracing::error!(session = %self.id, number, %error, "cannot record an observation");
                    return Some(Outcome::Unrecorded(event::chain(&error).into()));
                }
            }
        }
    }
}

fn same(
    before: Arc<Record>,
    payload: &serde_json::Map<String, serde_json::Value>,
) -> Result<(Arc<Record>, bool), SessionError> {
    if event::is_same_request(&before, payload) {
        Ok((before, false))
    } else {
        let sequence = before.sequence;
        Err(SessionError::KeyReused { sequence })
    }
}

fn too_many() -> SessionError {
    SessionError::TooMany {
        message: format!(
            "the session has {ACTIONS_MAX} actions under way, which is the limit; wait for one to end"
        ),
    }
}

fn closed() -> ObservationEvent {
    event::failure(
        ErrorClass::NotFound.as_str(),
        "ERROR: The session was closed before the action could run.",
    )
}

/// The answer to what no sandbox acts on: the agent's own affairs, and what a person has not
/// agreed to.
fn answer_without_sandbox(action: &Action) -> Option<Observation> {
    let confirmation = match action {
        Action::Run(run) => run.confirmation_state,
        Action::RunIpython(cell) => cell.confirmation_state,
        _ => ConfirmationState::Confirmed,
    };
    match (action, confirmation) {
        (Action::Think(_), _) => Some(Observation::thought_logged()),
        (_, ConfirmationState::AwaitingConfirmation) => Some(Observation::null()),
        (_, ConfirmationState::Rejected) => Some(Observation {
            content: "Action has been rejected by the user! Waiting for further user input."
                .to_owned(),
            kind: ObservationKind::UserRejected,
        }),
        (action, ConfirmationState::Confirmed) if !action.is_runnable() => {
            Some(Observation::null())
        }
        (_, ConfirmationState::Confirmed) => None,
    }
}

/// Whether a sandbox says of itself that it has ended.
pub(crate) fn has_ended(sandbox: &dyn Sandbox) -> bool {
    use zareba_protocol::RuntimeStatus::{RuntimeDisconnected, Stopped};
    matches!(sandbox.status(), Stopped | RuntimeDisconnected)
}
