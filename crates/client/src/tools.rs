//! Tools of a session. They are called by running the action `call_tool`.

use std::time::Duration;

use zareba_api::{AddTools, ToolFormat, ToolPage, ToolsAdded, operations::tools};
use zareba_protocol::SessionId;

use crate::{
    Client, ClientError,
    ask::{Ask, Repeat},
};

/// How long an interpreter may take to load what it is asked for, and to begin anew.
const LOADING: Duration = Duration::from_secs(150);

impl Client {
    /// Adds tools to a session.
    ///
    /// # Errors
    /// When a name is taken or nothing can be loaded, and whatever kept the answer from coming.
    pub async fn add_tools(
        &self,
        session: &SessionId,
        new: &AddTools,
    ) -> Result<ToolsAdded, ClientError> {
        let ask = Ask::new(self, &tools::ADD, &[session.as_str()])?;
        self.ask_for(ask.json(new)?.within(LOADING)).await
    }

    /// The tools of a session, described in one of the forms that there are.
    ///
    /// # Errors
    /// When there is no such session, and whatever kept the answer from coming.
    pub async fn tools(
        &self,
        session: &SessionId,
        format: ToolFormat,
    ) -> Result<ToolPage, ClientError> {
        let word = match format {
            ToolFormat::Full => "full",
            ToolFormat::Openai => "openai",
            ToolFormat::Mcp => "mcp",
        };
        let ask = Ask::new(self, &tools::LIST, &[session.as_str()])?;
        self.ask_for(ask.query("format", word)).await
    }

    /// Removes a tool.
    ///
    /// # Errors
    /// When there is none of that name, and whatever kept it from being removed.
    pub async fn remove_tool(&self, session: &SessionId, tool: &str) -> Result<(), ClientError> {
        let ask = Ask::new(self, &tools::REMOVE, &[session.as_str(), tool])?;
        self.ask(ask).await.map(drop)
    }

    /// Puts all tools of a session back to their first state.
    ///
    /// # Errors
    /// When a host cannot be started again, and whatever kept the answer from coming.
    pub async fn reset_tools(&self, session: &SessionId) -> Result<(), ClientError> {
        let ask = Ask::new(self, &tools::RESET, &[session.as_str()])?;
        let ask = ask.within(LOADING).repeated(Repeat::Always);
        self.ask(ask).await.map(drop)
    }
}
