//! Connections into a session: to a program with streams of its own, or to a port.
//!
//! What is said on them is not HTTP any more. `zareba-api` describes the frames of a program,
//! whoever holds the connection speaks them.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, StatusCode, header};
use zareba_api::{
    StartProgram,
    operations::{ports, programs},
};
use zareba_protocol::SessionId;

use crate::{Client, ClientError};

/// Bytes both ways. Dropping it ends what is at its other end.
pub type Connection = reqwest::Upgraded;

/// How long a session may take to wake up and start a program, or to be connected to.
const BEGIN: Duration = Duration::from_secs(60);

impl Client {
    /// Starts a program and returns the connection that carries the frames of its streams.
    /// Dropping it ends the program. It is asked for once: a second one could run beside it.
    ///
    /// # Errors
    /// Whatever kept it from being started.
    pub async fn start_program(
        &self,
        session: &SessionId,
        program: &StartProgram,
    ) -> Result<Connection, ClientError> {
        let url = self.url(programs::START.path, &[session.as_str()])?;
        let body = serde_json::to_vec(program).map_err(|error| ClientError::Invalid {
            problem: error.to_string(),
        })?;
        let request = self
            .keyed(Method::POST, url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        self.take_over(request, programs::UPGRADE_NAME).await
    }

    /// Connects to a port that a program in the session listens on.
    ///
    /// # Errors
    /// When nothing listens there, and whatever kept the connection from being made.
    pub async fn connect_port(
        &self,
        session: &SessionId,
        port: u16,
    ) -> Result<Connection, ClientError> {
        let parts = [session.as_str(), &port.to_string()];
        let url = self.url(ports::CONNECT.path, &parts)?;
        let request = self.keyed(Method::GET, url);
        self.take_over(request, ports::UPGRADE_NAME).await
    }

    async fn take_over(
        &self,
        request: RequestBuilder,
        name: &'static str,
    ) -> Result<Connection, ClientError> {
        let request = request
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, name);
        let begun = async {
            let response = self.send_upgrade(request).await?;
            let upgraded = response.upgrade().await;
            upgraded.map_err(|error| ClientError::broken(self.place(), error))
        };
        let waited = BEGIN;
        let begun = tokio::time::timeout(waited, begun).await;
        begun.unwrap_or(Err(ClientError::Timeout { waited }))
    }

    /// Sends a request whose answer must be another protocol.
    pub(crate) async fn send_upgrade(
        &self,
        request: RequestBuilder,
    ) -> Result<reqwest::Response, ClientError> {
        let response = request
            .send()
            .await
            .map_err(|error| ClientError::broken(self.place(), error))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        Err(self.refusal(response).await)
    }
}
