//! A session's sandbox as the place where hosts of tools run.

use std::sync::{Arc, Weak};

use zareba_protocol::ErrorClass;
use zareba_tools::{Place, PlaceError};
use zareba_wire::{
    BoxFuture,
    program::{ProgramConnection, ProgramRequest},
};

use crate::{SessionError, conductor::Conductor, event};

/// Does not keep the session: its tools are a part of it.
pub(crate) struct SessionPlace {
    session: Weak<Conductor>,
}

impl SessionPlace {
    pub(crate) fn of(session: &Arc<Conductor>) -> Self {
        Self {
            session: Arc::downgrade(session),
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
