//! Requests as OpenHands' client sends them.

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::provider::Provider;

pub(crate) const ALICE: &str = "use-key-alice";
pub(crate) const BOB: &str = "use-key-bob";

/// A client of one provider.
pub(crate) struct Api<'a> {
    provider: &'a Provider,
    http: Client,
    key: &'static str,
}

impl<'a> Api<'a> {
    pub(crate) fn new(provider: &'a Provider, key: &'static str) -> Self {
        // Needed to make any client, though nothing here uses TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().no_proxy().build().unwrap();
        Self {
            provider,
            http,
            key,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.provider.url);
        self.http.request(method, url).header("x-api-key", self.key)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        answer(self.request(Method::POST, path).json(&body)).await
    }

    /// Starts a session that must start.
    pub(crate) async fn start(&self, name: &str) -> Value {
        self.start_with(json!({ "session_id": name, "image": "some/image:tag" }))
            .await
    }

    pub(crate) async fn start_with(&self, body: Value) -> Value {
        let (status, document) = self.post("/start", body).await;
        assert_eq!(status, StatusCode::OK, "{document}");
        document
    }

    pub(crate) fn runtime(&self, started: &Value) -> Runtime {
        Runtime {
            http: self.http.clone(),
            url: started["url"].as_str().unwrap().to_owned(),
            key: started["session_api_key"].as_str().unwrap().to_owned(),
        }
    }
}

/// The action execution API of one session.
pub(crate) struct Runtime {
    http: Client,
    pub(crate) url: String,
    key: String,
}

impl Runtime {
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        request.header("x-session-api-key", &self.key)
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn act(&self, action: Value) -> (StatusCode, Value) {
        let body = json!({ "action": action });
        answer(self.request(Method::POST, "/execute_action").json(&body)).await
    }

    /// Runs a command that must be answered.
    pub(crate) async fn run(&self, command: &str) -> Value {
        let args = json!({ "command": command, "blocking": true });
        let action = json!({ "action": "run", "args": args, "timeout": 30 });
        let (status, observation) = self.act(action).await;
        assert_eq!(status, StatusCode::OK, "{observation}");
        observation
    }

    pub(crate) async fn output(&self, command: &str) -> String {
        let observation = self.run(command).await;
        let code = &observation["extras"]["metadata"]["exit_code"];
        assert_eq!(*code, 0, "{observation}");
        observation["content"].as_str().unwrap().to_owned()
    }
}

pub(crate) async fn answer(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let body = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}
