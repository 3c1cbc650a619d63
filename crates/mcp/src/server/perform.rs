//! From a call to what came of it.

use rmcp::{RoleServer, model::JsonObject, service::RequestContext};
use serde::de::DeserializeOwned;
use serde_json::Value;
use zareba_protocol::ErrorClass;

use super::{
    PlaceError, Workplace,
    answer::Answer,
    catalog::BuiltIn,
    changes,
    command::{Backgrounds, Commander},
    files,
};

/// Performs a tool that every sandbox has. Whatever goes wrong is an answer as well.
pub(super) async fn perform(
    tool: BuiltIn,
    arguments: Option<JsonObject>,
    place: &dyn Workplace,
    backgrounds: &Backgrounds,
    context: &RequestContext<RoleServer>,
) -> Answer {
    let commander = Commander {
        place,
        backgrounds,
        context,
    };
    let answer = async {
        match tool {
            BuiltIn::RunCommand => commander.run(read(tool, arguments)?).await,
            BuiltIn::ReadOutput => commander.output(read(tool, arguments)?).await,
            BuiltIn::SendInput => commander.input(read(tool, arguments)?).await,
            BuiltIn::Interrupt => commander.interrupt(read(tool, arguments)?).await,
            BuiltIn::ReadFile => files::read(place, read(tool, arguments)?).await,
            BuiltIn::WriteFile => files::write(place, read(tool, arguments)?).await,
            BuiltIn::ListFiles => files::list(place, read(tool, arguments)?).await,
            BuiltIn::EditFile => files::edit(place, read(tool, arguments)?).await,
            BuiltIn::FindFiles => files::find(place, read(tool, arguments)?).await,
            BuiltIn::SearchFiles => files::search(place, read(tool, arguments)?).await,
            BuiltIn::WorkspaceDiff => changes::diff(place, read(tool, arguments)?).await,
        }
    };
    answer.await.unwrap_or_else(Answer::from)
}

fn read<T: DeserializeOwned>(
    tool: BuiltIn,
    arguments: Option<JsonObject>,
) -> Result<T, PlaceError> {
    let arguments = Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(arguments).map_err(|error| PlaceError {
        class: ErrorClass::Invalid,
        message: format!("`{}` cannot take these arguments: {error}", tool.name()),
    })
}
