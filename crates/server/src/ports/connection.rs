//! A client's own connection to a port in a sandbox.

use std::{io, sync::Arc};

use axum::{extract::State, response::Response};
use http::{HeaderMap, Version};
use tokio::{
    io::{AsyncWriteExt as _, copy_bidirectional},
    net::TcpStream,
};
use zareba_api::operations::ports::UPGRADE_NAME;
use zareba_runtime::Sandbox as _;
use zareba_session::Surface;
use zareba_wire::serving::{RawConnection, Takeover, TakeoverEnd};

use super::proxy::{CONNECT_TIMEOUT, refused, silent};
use crate::{
    app::App,
    auth::Principal,
    error::ApiError,
    request::{Open, Place},
    upgrade::{self, Leave},
};

/// Connects to a port inside and takes the connection over for its bytes.
pub(crate) async fn connect(
    State(app): State<Arc<App>>,
    principal: Principal,
    place: Open,
    Place((session, port)): Place<(String, u16)>,
    version: Version,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    upgrade::require(version, &headers, UPGRADE_NAME)?;
    if port == 0 {
        return Err(ApiError::invalid("0 is no port"));
    }
    let session = app.session(&principal, &session).await?;
    let sandbox = session.access(principal.requester(Surface::Api)).await?;
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, sandbox.connect_port(port)).await;
    let inside = connected
        .map_err(|_| silent())?
        .map_err(|error| refused(error, port))?;
    let leave = Leave::new(&app, session, principal, place);
    let open = app.telemetry.stream("port");
    let takeover = Takeover::new(TakeoverEnd::AtDrain, |connection| async move {
        let _open = open;
        tokio::select! {
            carried = carry(connection, inside) => if let Err(error) = carried {
                tracing::debug!(%error, "a connection to a port ended");
            },
            () = leave.over() => {}
        }
    });
    Ok(upgrade::switch(UPGRADE_NAME, takeover))
}

async fn carry(mut connection: RawConnection, mut inside: TcpStream) -> io::Result<()> {
    inside.write_all(&connection.read_ahead).await?;
    copy_bidirectional(&mut connection.io, &mut inside).await?;
    Ok(())
}
