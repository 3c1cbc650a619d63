//! [`Session`]: one sandbox with its log, its shells and its guard.

use std::sync::Arc;

use crate::{
    ActionOutput, AdmittedSandbox, Asked, Deed, Door, Mask, Requester, SandboxChange, SessionError,
    SessionInfo, SessionTools, SessionUpdate, Terminals, asked::Asker, conductor::Conductor,
    lifecycle::Why, path::Origin,
};
use zareba_eventlog::{IdempotencyKey, Record, Subscription};
use zareba_protocol::{ActionEvent, SessionId};
use zareba_wire::output::StopMeans;

/// An action and the caller's name for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionRequest {
    /// What is asked for.
    pub action: ActionEvent,
    /// The caller's name for it: a second request with the same one gets the first one's answer.
    pub key: Option<IdempotencyKey>,
    /// The client that asks, for the log; `None` for what the session itself does.
    pub requester: Option<Requester>,
}

/// One session. Handles are shared; whatever was started goes on when they are dropped.
#[derive(Debug)]
pub struct Session {
    conductor: Arc<Conductor>,
}

impl Session {
    pub(crate) fn of(conductor: Arc<Conductor>) -> Arc<Self> {
        Arc::new(Self { conductor })
    }

    /// Its name.
    pub fn id(&self) -> &SessionId {
        &self.conductor.id
    }

    /// What its owner calls it, where that is not its id.
    pub fn name(&self) -> Option<&SessionId> {
        self.conductor.facts.name.as_ref()
    }

    /// How it is now.
    pub fn info(&self) -> SessionInfo {
        self.conductor.info()
    }

    /// Runs one action along the whole path and returns the record of its observation. A caller
    /// that goes away does not stop it; only the next command on the same shell does not wait for
    /// it, and finds it running as after a timeout. A call of a tool is stopped then, unless it has
    /// a key by which the caller may come back for what came of it.
    ///
    /// # Errors
    /// Only when no action was recorded: state, key, log. Everything later is an observation.
    pub async fn run(&self, request: ActionRequest) -> Result<Arc<Record>, SessionError> {
        self.conductor.ask(request, Asker::Owner).answer().await
    }

    /// Asks for an action whose number is wanted even if its observation takes too long.
    pub fn ask(&self, request: ActionRequest) -> Asked {
        self.conductor.ask(request, Asker::Follower)
    }

    /// Records an action and returns its record; it runs on, and its observation can be had by
    /// [`answer`](Self::answer) or from the events.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn submit(&self, request: ActionRequest) -> Result<Arc<Record>, SessionError> {
        let begun = self.conductor.accept(request, Origin::Caller).await?;
        Ok(begun.record)
    }

    /// Waits for the observation of an action. May be dropped and called again.
    ///
    /// # Errors
    /// When there is no such action, or the log cannot be read.
    pub async fn answer(&self, action: u64) -> Result<Arc<Record>, SessionError> {
        self.conductor.answer(action).await
    }

    /// Reads what an action writes, while it runs and for a while afterwards. The guard judges that;
    /// it is not recorded, since what is read is not told to agents.
    ///
    /// # Errors
    /// When there is no such action, the log cannot be read or the guard denies it.
    pub async fn output(
        &self,
        action: u64,
        requester: &Requester,
    ) -> Result<ActionOutput, SessionError> {
        let output = ActionOutput::of(Arc::clone(&self.conductor), action).await?;
        let deed = Deed::ReadOutput {
            action: action.to_string(),
        };
        self.conductor.judge(&deed, requester).await?;
        Ok(output)
    }

    /// Brings an action to its end before its time: its observation tells of that. One that has
    /// ended stays as it is. Recorded as a note.
    ///
    /// # Errors
    /// When there is no such action, or its runtime cannot do that.
    pub async fn stop(
        &self,
        action: u64,
        means: StopMeans,
        requester: &Requester,
    ) -> Result<(), SessionError> {
        self.conductor.stop_action(action, means, requester).await
    }

    /// Its events, from a number on.
    pub fn events(&self, from: u64) -> Subscription {
        let log = &self.conductor.common.log;
        log.subscribe(self.id().clone(), from)
    }

    /// What hides its secrets in what is shown of it: the records have passed it, streams of its
    /// terminals and programs have not.
    pub fn mask(&self) -> &Mask {
        &self.conductor.mask
    }

    /// Its terminals, which people look at and type into.
    pub fn terminals(&self) -> &Terminals {
        &self.conductor.terminals
    }

    /// Its tools, which agents call by the action `call_tool`.
    pub fn tools(&self) -> SessionTools {
        SessionTools::of(Arc::clone(&self.conductor))
    }

    /// Its sandbox, awake, for what is no action: files, programs, ports. It is in the hands of
    /// this client, and each of its deeds is judged and recorded. Counts as use.
    ///
    /// # Errors
    /// When it has none, or that cannot be woken.
    pub async fn access(&self, requester: Requester) -> Result<AdmittedSandbox, SessionError> {
        self.conductor.require_unclosed("use its sandbox")?;
        let _in_use = self.conductor.begin_use();
        let (sandbox, _gate) = self.conductor.awake().await?;
        Ok(self.door(requester).open(sandbox))
    }

    /// Judges and records what a client does that does not reach the sandbox.
    pub fn door(&self, requester: Requester) -> Door {
        Door::of_session(&self.conductor, requester)
    }

    /// Counts as use, and nothing else: it does not go to sleep for another while.
    pub fn keep_alive(&self) {
        self.conductor.touch();
    }

    /// Changes when it goes to sleep, when it ends or how it is labelled, and records that.
    ///
    /// # Errors
    /// When it has ended, the caller may not have that, or it cannot be written down.
    pub async fn update(
        &self,
        update: SessionUpdate,
        requester: &Requester,
    ) -> Result<(), SessionError> {
        self.conductor.update(update, requester).await
    }

    /// Freezes it for a client. Pausing twice is no error.
    ///
    /// # Errors
    /// When the guard denies it, the runtime cannot, or it has no sandbox.
    pub async fn pause_for(&self, client: &Requester) -> Result<(), SessionError> {
        self.conductor.pause_for(client.clone()).await
    }

    /// Lets it go on for a client. Resuming twice is no error.
    ///
    /// # Errors
    /// As [`pause_for`](Self::pause_for).
    pub async fn resume_for(&self, client: &Requester) -> Result<(), SessionError> {
        self.conductor.resume_for(client.clone()).await
    }

    /// Ends its sandbox for a client; the log stays. Closing twice is no error.
    ///
    /// # Errors
    /// When the guard denies it, or the sandbox cannot be ended.
    pub async fn close_for(&self, client: &Requester) -> Result<(), SessionError> {
        let end = SandboxChange::Close;
        self.conductor.close_for(end, client.clone()).await
    }

    /// The same before the log is removed, which the guard judges, too: see
    /// [`Sessions::remove`](crate::Sessions::remove).
    ///
    /// # Errors
    /// As [`close_for`](Self::close_for).
    pub async fn close_for_removal(&self, client: &Requester) -> Result<(), SessionError> {
        let end = SandboxChange::Purge;
        self.conductor.close_for(end, client.clone()).await
    }

    /// Freezes it in its own name: no client asks, so that no guard judges and no deed is recorded.
    ///
    /// # Errors
    /// When the runtime cannot, or it has no sandbox.
    pub async fn pause(&self) -> Result<(), SessionError> {
        self.conductor.pause().await
    }

    /// Lets it go on in its own name.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<(), SessionError> {
        self.conductor.touch();
        self.conductor.resume().await
    }

    /// Ends its sandbox in its own name; the log stays. Closing twice is no error.
    ///
    /// # Errors
    /// When the sandbox cannot be ended.
    pub async fn close(&self) -> Result<(), SessionError> {
        self.conductor.close(Why::Asked).await
    }
}
