//! What an operator says about a server that speaks the API.

use std::{path::PathBuf, time::Duration};

use crate::{ApiKey, Farewell, VariableStore};

/// What an operator says about a server that speaks the API.
#[derive(Clone, Debug)]
pub struct OpenHandsOptions {
    /// Where the API is, as `https://…`. Never what a user says: it decides whom we talk to.
    pub api_url: String,
    /// The key for it.
    pub api_key: ApiKey,
    /// Hosts besides that of the API, and below it, on which the server may place sandboxes; one
    /// that begins with a dot stands for everything below it.
    pub sandbox_hosts: Vec<String>,
    /// The image that is asked for when nobody says otherwise.
    pub image: Option<String>,
    /// The directory to work in, as programs inside see it, when the server does not say.
    pub workspace: PathBuf,
    /// The user that commands run as, and its number.
    pub user: (String, u32),
    /// How much larger than usual sandboxes are: 1, 2, 4 or 8.
    pub resource_factor: u32,
    /// How long a sandbox may take to answer after it was asked for.
    pub init_timeout: Duration,
    /// How long one request to the API may take.
    pub api_timeout: Duration,
    /// How long an action may take in a sandbox that was found again.
    pub action_timeout: Duration,
    /// What becomes of a sandbox when its handle is dropped.
    pub farewell: Farewell,
    /// Where variables go that are set in a server that is none of ours.
    pub variables: VariableStore,
}

impl OpenHandsOptions {
    /// The usual options for a server.
    pub fn new(api_url: impl Into<String>, api_key: ApiKey) -> Self {
        Self {
            api_url: api_url.into(),
            api_key,
            sandbox_hosts: Vec::new(),
            image: None,
            workspace: "/workspace".into(),
            user: ("openhands".to_owned(), 1000),
            resource_factor: 1,
            init_timeout: Duration::from_secs(180),
            api_timeout: Duration::from_secs(180),
            action_timeout: Duration::from_secs(120),
            farewell: Farewell::Close,
            variables: VariableStore::StartUpFile,
        }
    }

    /// The command line that every client of the API sends.
    pub(super) fn command(&self) -> Vec<String> {
        let (name, number) = &self.user;
        let prefix = "/openhands/micromamba/bin/micromamba run -n openhands poetry run python -u \
                      -m openhands.runtime.action_execution_server 60000";
        let mut words: Vec<String> = prefix.split_whitespace().map(str::to_owned).collect();
        let workspace = self.workspace.display().to_string();
        let number = number.to_string();
        let options = [
            "--working-dir",
            &workspace,
            "--username",
            name,
            "--user-id",
            &number,
        ];
        words.extend(options.map(str::to_owned));
        words.push("--no-enable-browser".to_owned());
        words
    }
}
