//! Programs with streams of their own, from the host's end.

use std::time::Duration;

use http::{
    HeaderValue, Method, StatusCode,
    header::{CONNECTION, UPGRADE},
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;

use super::{ClientError, DOCUMENT_BYTES_MAX, ExecutorClient, pool::Carrier, read_whole};
use crate::program::{ProgramConnection, ProgramRequest, StartProgramError, UPGRADE_NAME, follow};

/// How long an executor may take to start a program.
const START_TIMEOUT: Duration = Duration::from_secs(30);

impl ExecutorClient {
    /// Starts a program and returns once it runs. The connection is carried by a task that ends
    /// with it; dropping it ends the program.
    ///
    /// # Errors
    /// [`ClientError::Program`] when the program cannot be started, otherwise whatever kept the
    /// answer from coming.
    pub async fn start_program(
        &self,
        request: &ProgramRequest,
    ) -> Result<ProgramConnection, ClientError> {
        request.check()?;
        let upgraded = tokio::time::timeout(START_TIMEOUT, self.upgrade(request)).await;
        let waited = START_TIMEOUT;
        let upgraded = upgraded.unwrap_or(Err(ClientError::Timeout { waited }))?;
        Ok(follow(TokioIo::new(upgraded), "executor"))
    }

    async fn upgrade(&self, request: &ProgramRequest) -> Result<Upgraded, ClientError> {
        let mut asked = self.request(Method::POST, "/programs", Some(request.to_json()));
        let headers = asked.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(UPGRADE_NAME));
        let (response, lease) = self.pool.send(asked, Carrier::Task).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = hyper::upgrade::on(response).await;
            return upgraded.map_err(|error| ClientError::Disconnected {
                source: error.into(),
            });
        }
        let refusal = read_whole(response, lease, DOCUMENT_BYTES_MAX).await;
        Err(refusal.err().unwrap_or(ClientError::InvalidAnswer {
            problem: "a program was started without a connection to it".to_owned(),
        }))
    }
}

impl From<StartProgramError> for ClientError {
    fn from(error: StartProgramError) -> Self {
        Self::Program(error)
    }
}
