//! Running actions, each under a name, so that a lost answer is asked for and nothing runs twice.

use std::time::{Duration, Instant};

use serde_json::Value;
use zareba_api::{ActionAccepted, IDEMPOTENCY_KEY, operations::actions};
use zareba_protocol::{ActionEvent, ObservationEvent, SessionId};

use crate::{
    Client, ClientError,
    ask::{Answer, Ask, Repeat},
};

/// Beyond an action's own timeout: its answer still has to be recorded, written and sent.
const GRACE: Duration = Duration::from_secs(10);
/// An action without a timeout of its own is waited for this long.
const ACTION_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long one request waits for an observation; then it is asked for again.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// An observation. A file that is read travels whole, and JSON may double its size.
pub(crate) const OBSERVATION_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The status of an answer that says that there is none yet.
const ACCEPTED: u16 = 202;

impl Client {
    /// Runs an action and waits for its observation, somewhat longer than the action's own
    /// timeout. Dropping the future stops nothing.
    ///
    /// # Errors
    /// Whatever kept the action from being recorded or its observation from coming. A failed
    /// command is an observation.
    pub async fn run(
        &self,
        session: &SessionId,
        action: ActionEvent,
    ) -> Result<ObservationEvent, ClientError> {
        let key = format!("c-{:032x}", rand::random::<u128>());
        self.run_named(session, action, &key).await
    }

    /// The same under a name of the caller's: a second request with the same name gets the answer
    /// of the first, also from another process.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when the name was used for another action.
    pub async fn run_named(
        &self,
        session: &SessionId,
        action: ActionEvent,
        key: &str,
    ) -> Result<ObservationEvent, ClientError> {
        let patience = action.hard_timeout().unwrap_or(ACTION_TIMEOUT);
        let patience = patience.saturating_add(GRACE);
        let deadline = Instant::now().checked_add(patience);
        let ask = self.action(session, &action, key)?.query("wait", "true");
        let answer = self.ask(ask.within(patience)).await?;
        if answer.status != ACCEPTED {
            return self.observation(session, answer).await;
        }
        let accepted: ActionAccepted = answer.parse()?;
        loop {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => WAIT_MAX,
            };
            let wait = left.min(WAIT_MAX);
            if let Some(observation) = self.answer(session, accepted.action, wait).await? {
                return Ok(observation);
            }
            if left.is_zero() {
                return Err(ClientError::Timeout { waited: patience });
            }
        }
    }

    /// Has an action recorded, and returns its number; it runs on.
    ///
    /// # Errors
    /// Whatever kept the action from being recorded.
    pub async fn submit(
        &self,
        session: &SessionId,
        action: &ActionEvent,
        key: &str,
    ) -> Result<ActionAccepted, ClientError> {
        let ask = self.action(session, action, key)?.query("wait", "false");
        self.ask_for(ask).await
    }

    /// The observation of an action, if it comes within `wait`.
    ///
    /// # Errors
    /// When there is no such action, and whatever kept the answer from coming.
    pub async fn answer(
        &self,
        session: &SessionId,
        action: u64,
        wait: Duration,
    ) -> Result<Option<ObservationEvent>, ClientError> {
        let number = action.to_string();
        let ask = Ask::new(self, &actions::ANSWER, &[session.as_str(), &number])?
            .query("wait", &wait.as_secs_f64().to_string())
            .within(wait.saturating_add(GRACE))
            .at_most(OBSERVATION_BYTES_MAX);
        let answer = self.ask(ask).await?;
        if answer.status == ACCEPTED {
            return Ok(None);
        }
        self.observation(session, answer).await.map(Some)
    }

    fn action(
        &self,
        session: &SessionId,
        action: &ActionEvent,
        key: &str,
    ) -> Result<Ask<'static>, ClientError> {
        Ok(Ask::new(self, &actions::RUN, &[session.as_str()])?
            .header(IDEMPOTENCY_KEY, key)?
            .text(action.to_json())
            .repeated(Repeat::Always)
            .at_most(OBSERVATION_BYTES_MAX))
    }

    async fn observation(
        &self,
        session: &SessionId,
        answer: Answer,
    ) -> Result<ObservationEvent, ClientError> {
        let mut document: Value = answer.parse()?;
        self.put_back(session, &mut document).await?;
        ObservationEvent::from_value(document).map_err(|error| ClientError::Nonsense {
            problem: error.to_string(),
        })
    }
}
