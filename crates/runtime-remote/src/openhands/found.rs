//! What the server tells of a sandbox.

use std::path::PathBuf;

use serde::Deserialize;

use crate::ApiKey;

/// How a sandbox is, in the words of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Starting,
    Running,
    Paused,
    Ended,
}

/// A sandbox that the server told of.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) session_id: Option<String>,
    pub(super) runtime_id: String,
    pub(super) url: String,
    pub(super) session_key: Option<ApiKey>,
    pub(super) state: State,
    /// The directory to work in; only servers of ours say so.
    pub(super) workspace: Option<PathBuf>,
    /// The server is one of ours, and knows what is ours on top of the contract.
    pub(super) is_ours: bool,
}

/// The document, as far as it is looked at. Whatever else a server says is its own affair.
#[derive(Deserialize)]
pub(super) struct RuntimeDocument {
    session_id: Option<String>,
    runtime_id: String,
    #[serde(default)]
    url: String,
    session_api_key: Option<String>,
    status: Option<String>,
    zareba: Option<Ours>,
}

#[derive(Deserialize)]
struct Ours {
    workspace: Option<PathBuf>,
}

impl From<RuntimeDocument> for Found {
    fn from(document: RuntimeDocument) -> Self {
        let status = document.status.as_deref().map(str::to_ascii_lowercase);
        let state = match status.as_deref() {
            // The answer to a start need not have any.
            None | Some("starting") => State::Starting,
            Some("running") => State::Running,
            Some("paused") => State::Paused,
            Some(_) => State::Ended,
        };
        let session_key = document.session_api_key.as_deref().and_then(ApiKey::new);
        let is_ours = document.zareba.is_some();
        let workspace = document.zareba.and_then(|ours| ours.workspace);
        Self {
            session_id: document.session_id,
            runtime_id: document.runtime_id,
            url: document.url,
            session_key,
            state,
            workspace: workspace.filter(|path| path.is_absolute()),
            is_ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_other_servers_and_of_ours_are_read() {
        let read = |text: &str| -> Found {
            serde_json::from_str::<RuntimeDocument>(text)
                .unwrap()
                .into()
        };
        let theirs = read(r#"{"runtime_id": "r", "url": "https://r.example", "work_hosts": {}}"#);
        assert_eq!((theirs.state, theirs.is_ours), (State::Starting, false));
        let ours = read(
            r#"{"runtime_id": "r", "url": "u", "status": "Running", "zareba": {"workspace": "/w"}}"#,
        );
        assert_eq!((ours.state, ours.is_ours), (State::Running, true));
        assert_eq!(ours.workspace, Some("/w".into()));
        for (word, state) in [
            ("paused", State::Paused),
            ("stopped", State::Ended),
            ("error", State::Ended),
            ("never heard", State::Ended),
        ] {
            let text = format!(r#"{{"runtime_id": "r", "status": "{word}"}}"#);
            assert_eq!(read(&text).state, state, "{word}");
        }
    }
}
