//! Variables of an executor that runs already, from the host's end.

use http::Method;

use super::{ClientError, DOCUMENT_BYTES_MAX, ExecutorClient, QUERY_TIMEOUT};
use crate::{server::variables::ROUTE, variables::VariableChanges};

impl ExecutorClient {
    /// Sets and removes variables of all shells, programs and terminals.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with 404 or 501 when the executor cannot do that, with 400 when it
    /// has too many variables; otherwise whatever kept the answer from coming.
    pub async fn set_variables(&self, changes: &VariableChanges) -> Result<(), ClientError> {
        let body = changes.to_json().to_string();
        let request = self.request(Method::POST, ROUTE, Some(body));
        self.document(request, QUERY_TIMEOUT, DOCUMENT_BYTES_MAX)
            .await
            .map(drop)
    }
}
