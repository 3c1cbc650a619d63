//! OpenHands' APIs over this server's sessions and keys.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use http::request::Parts;
use zareba_api::{Access, KeyScope};
use zareba_eventlog::LogError;
use zareba_facades::openhands::{
    self as facade, KeyCheck, OpenHands, OpenHandsSettings, Reserved, Rights,
};
use zareba_session::Sessions;
use zareba_wire::{BoxFuture, serving::Peer};

use crate::{Authenticator, Denied, Extension, Principal, convert, usage::Exhausted};

/// OpenHands' remote runtime API and the action execution API of every session, for
/// [`Server::with_extension`](crate::Server::with_extension). They check keys by themselves, the
/// server's and those of single sessions, because their answers to strangers are those of the
/// original.
///
/// # Errors
/// When the secret for the keys of sessions cannot be read or made.
pub async fn openhands(
    sessions: &Sessions,
    authenticator: &Authenticator,
    settings: OpenHandsSettings,
) -> Result<Extension, LogError> {
    let session_keys = facade::SessionKeys::of_log(sessions.log()).await?;
    let keys = Arc::new(ServerKeys(authenticator.clone()));
    let apis = OpenHands::new(sessions.clone(), keys, session_keys, settings);
    Ok(Extension::new("openhands").with(Access::Capability, apis.router()))
}

/// The server's keys, as the facade sees them.
struct ServerKeys(Authenticator);

impl KeyCheck for ServerKeys {
    fn principal<'a>(
        &'a self,
        head: &'a Parts,
    ) -> BoxFuture<'a, Result<facade::Principal, facade::Denied>> {
        let peer = head.extensions.get::<Peer>();
        let source = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        Box::pin(async move {
            let checked = self.0.authenticate(&head.headers, source).await;
            checked.map(principal_of).map_err(denied_as)
        })
    }

    fn holder<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<facade::Principal, facade::Denied>> {
        Box::pin(async move {
            match self.0.keys().current(key).await {
                Ok(Some(key)) => Ok(principal_of(key.into())),
                Ok(None) => Err(facade::Denied::WrongKey),
                Err(error) => {
                    tracing::error!(%error, "cannot read keys");
                    Err(facade::Denied::Unavailable)
                }
            }
        })
    }

    fn open(&self, principal: &facade::Principal) -> Result<Reserved, facade::Denied> {
        let place = self.0.usage().stream(&principal.owner);
        place.map(Reserved::new).map_err(too_many)
    }

    fn take_body(
        &self,
        principal: &facade::Principal,
        bytes: usize,
    ) -> Result<Reserved, facade::Denied> {
        let place = self.0.usage().body(&principal.owner, bytes);
        place.map(Reserved::new).map_err(too_many)
    }

    fn count_action(&self, principal: &facade::Principal) -> Result<(), facade::Denied> {
        let counted = self
            .0
            .usage()
            .action(&principal.owner, principal.actions_per_minute);
        counted.map_err(too_many)
    }
}

fn too_many(exhausted: Exhausted) -> facade::Denied {
    facade::Denied::TooMany {
        retry_after: exhausted.wait,
    }
}

fn principal_of(principal: Principal) -> facade::Principal {
    facade::Principal {
        key: principal.key,
        owner: principal.owner,
        rights: match principal.scope {
            KeyScope::Read => Rights::Read,
            KeyScope::Session => Rights::Use,
            KeyScope::Admin => Rights::Administer,
        },
        session: principal.session,
        maxima: convert::maxima(&principal.quota),
        parts: convert::parts(&principal.quota),
        reach: convert::reach(&principal.quota),
        life_max: principal.quota.life_max.map(zareba_api::Seconds::duration),
        sessions_max: principal.quota.sessions,
        actions_per_minute: principal.quota.actions_per_minute,
    }
}

fn denied_as(denied: Denied) -> facade::Denied {
    match denied {
        Denied::Unauthorized => facade::Denied::WrongKey,
        Denied::TooManyWrong { wait } => facade::Denied::TooMany { retry_after: wait },
        Denied::Unavailable => facade::Denied::Unavailable,
    }
}
