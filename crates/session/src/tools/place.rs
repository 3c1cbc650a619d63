//! A session's sandbox as the place where hosts of tools run.

use std::sync::{Arc, Weak};

use zareba_protocol::ErrorClass;
use zareba_runtime::Sandbox as _;
use zareba_tools::{Place, PlaceError};
use zareba_wire::{
    BoxFuture,
    program::{ProgramConnection, ProgramRequest},
};

use crate::{Door, ProgramPurpose, Requester, SessionError, conductor::Conductor, event};

/// Does not keep the session: its tools are a part of it.
pub(crate) struct SessionPlace {
    session: Weak<Conductor>,
    requester: Option<Requester>,
}

impl SessionPlace {
    /// For hosts that a client starts; without one the session itself does.
    pub(crate) fn of(session: &Arc<Conductor>, requester: Option<Requester>) -> Self {
        Self {
            session: Arc::downgrade(session),
            requester,
        }
    }
}

impl Place for SessionPlace {
    fn start(
        &self,
        request: ProgramRequest,
    ) -> BoxFuture<'_, Result<ProgramConnection, PlaceError>> {
        Box::pin(async move {
            let Some(session) = self.session.upgrade() else {
                return Err(PlaceError {
                    class: ErrorClass::NotFound,
                    message: "the session is no more".to_owned(),
                });
            };
            let _in_use = session.begin_use();
            let started = async {
                let (sandbox, gate) = session.awake().await?;
                let itself = || Requester::session(session.facts.owner.clone());
                let requester = self.requester.clone().unwrap_or_else(itself);
                let sandbox = Door::of_session(&session, requester).open(sandbox);
                let sandbox = sandbox.with_purpose(ProgramPurpose::ToolHost);
                let connection = sandbox.start_program(request).await?;
                drop(gate);
                Ok::<_, SessionError>(connection)
            };
            started.await.map_err(|error| PlaceError {
                class: error.class(),
                message: event::told(&error),
            })
        })
    }
}
