//! Gets what a registry wants to see before it answers.

use reqwest::{
    Url,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue},
};
use serde::Deserialize;

use super::{
    Part, PullError,
    address::host_of,
    challenge::Challenge,
    connection::{Connection, read_body},
    credentials::secret_header,
};

/// A token and what is said about it; real ones have a few thousand bytes.
const TOKEN_BYTES_MAX: u64 = 256 * 1024;

/// What a token service answers; the two names are for the same thing.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl Connection {
    /// A permission in place of `used`, which did not suffice. `None` when there is none to be
    /// had.
    pub(super) async fn renew(
        &self,
        part: &Part,
        challenge: &Challenge,
        used: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, PullError> {
        let mut current = self.authorization.lock().await;
        if current.as_ref() != used {
            // Another request was faster.
            return Ok(current.clone());
        }
        let renewed = match challenge {
            Challenge::Basic => self.credentials.as_ref().and_then(|own| own.header()),
            Challenge::Bearer {
                realm,
                service,
                scope,
            } => {
                let url = self.token_url(part, realm, service.as_deref(), scope.as_deref())?;
                Some(self.token(part, url).await?)
            }
        };
        current.clone_from(&renewed);
        Ok(renewed)
    }

    fn token_url(
        &self,
        part: &Part,
        realm: &str,
        service: Option<&str>,
        scope: Option<&str>,
    ) -> Result<Url, PullError> {
        let mut url = self.address.realm(realm).map_err(|forbidden| {
            let problem = format!("the registry names a token service, but {forbidden}");
            permission(part, &problem)
        })?;
        let mut query = url.query_pairs_mut();
        query.append_pair("scope", scope.unwrap_or(&self.scope));
        if let Some(service) = service {
            query.append_pair("service", service);
        }
        if let Some(credentials) = &self.credentials {
            query.append_pair("account", credentials.username());
        }
        drop(query);
        Ok(url)
    }

    /// The service has the password, so it is asked directly or not at all: no redirects.
    async fn token(&self, part: &Part, url: Url) -> Result<HeaderValue, PullError> {
        let service = Part::Token {
            service: host_of(&url),
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(header) = self.credentials.as_ref().and_then(|own| own.header()) {
            headers.insert(AUTHORIZATION, header);
        }
        let response = self.execute(&service, url, headers).await?;
        let response = self.accepted(&service, response).await?;
        let body = read_body(&service, response, TOKEN_BYTES_MAX).await?;
        // The decoder's words may quote the token.
        let answer: TokenAnswer = serde_json::from_slice(&body)
            .map_err(|_| permission(part, "the token service's answer makes no sense"))?;
        answer
            .token
            .or(answer.access_token)
            .filter(|token| !token.is_empty())
            .and_then(|token| secret_header(&format!("Bearer {token}")))
            .ok_or_else(|| permission(part, "the token service's answer has no usable token"))
    }
}

fn permission(part: &Part, problem: &str) -> PullError {
    PullError::Permission {
        part: part.clone(),
        problem: problem.to_owned(),
    }
}
