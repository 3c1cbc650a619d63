//! A command while it runs, from the host's end.

use std::time::Duration;

use http::{HeaderName, Method, StatusCode};
use serde::Deserialize;

use super::{
    ClientError, DOCUMENT_BYTES_MAX, ExecutorClient, QUERY_TIMEOUT, parse, pool::Carrier,
    read_whole_response, transfer::percent_encoded,
};
use crate::{
    output::{OUTPUT_PIECE_BYTES_MAX, OutputPiece, OutputRequest, OutputState, StopRequest},
    server::output::{NEXT_HEADER, OUTPUT_ROUTE, STATE_HEADER, STOP_ROUTE},
};

/// Beyond the wait itself: the answer has to be written and sent.
const GRACE: Duration = Duration::from_secs(5);

impl ExecutorClient {
    /// Some of the output of an action, as soon as there is something new.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with 404 or 501 when the executor cannot do that, otherwise
    /// whatever kept the answer from coming.
    pub async fn read_output(&self, asked: &OutputRequest) -> Result<OutputPiece, ClientError> {
        let target = format!(
            "{OUTPUT_ROUTE}?action={}&from={}&wait_ms={}",
            percent_encoded(&asked.action),
            asked.from,
            asked.wait.as_millis()
        );
        let request = self.request(Method::GET, &target, None);
        let deadline = asked.wait.saturating_add(GRACE);
        let exchange = async {
            let (response, lease) = self.pool.send(request, Carrier::Caller).await?;
            read_whole_response(response, lease, OUTPUT_PIECE_BYTES_MAX).await
        };
        let answered = tokio::time::timeout(deadline, exchange).await;
        let (head, bytes) = answered.unwrap_or(Err(ClientError::Timeout { waited: deadline }))?;
        let word = |name: HeaderName| head.headers.get(name)?.to_str().ok();
        let next = word(NEXT_HEADER).and_then(|text| text.parse().ok());
        let state = word(STATE_HEADER).and_then(OutputState::parse);
        let (StatusCode::OK, Some(next), Some(state)) = (head.status, next, state) else {
            return Err(nonsense("output without its offset and state"));
        };
        if next < asked.from.saturating_add(bytes.len() as u64) {
            return Err(nonsense("output that ends before its bytes do"));
        }
        Ok(OutputPiece { bytes, next, state })
    }

    /// Brings an action to its end before its time, and says whether it was under way.
    ///
    /// # Errors
    /// As [`read_output`](Self::read_output).
    pub async fn stop_action(&self, asked: &StopRequest) -> Result<bool, ClientError> {
        let action = percent_encoded(&asked.action);
        let target = format!(
            "{STOP_ROUTE}?action={action}&means={}",
            asked.means.as_str()
        );
        let request = self.request(Method::POST, &target, None);
        let document = self.document(request, QUERY_TIMEOUT, DOCUMENT_BYTES_MAX);
        let answered: Stopped = parse(&document.await?)?;
        Ok(answered.stopped)
    }
}

#[derive(Deserialize)]
struct Stopped {
    stopped: bool,
}

fn nonsense(what: &str) -> ClientError {
    ClientError::InvalidAnswer {
        problem: what.to_owned(),
    }
}
