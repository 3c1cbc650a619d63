//! `zareba diff`: what a sandbox has changed in its workspace.

use serde_json::{Value, json};
use zareba_runtime::{
    ChangeKind, ChangedContent, ChangesRequest, Sandbox, UnreadPlace, WorkspaceChange,
};

use crate::{
    arguments::{DiffArguments, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::{self, Fleet},
    say,
};

/// Prints the list or the patch.
pub(crate) fn perform(context: &Context, arguments: &DiffArguments) -> Result<Exit, Failure> {
    Fleet::visit(context, async |fleet| {
        let sandbox = fleet.find(&arguments.id).await?.attach().await?;
        let request = ChangesRequest {
            path: arguments.path.clone(),
        };
        if arguments.patch {
            return print_patch(context, &*sandbox, request).await;
        }
        let found = sandbox.changes(request).await;
        let found = found.map_err(|error| sandbox::failure(&error))?;
        let mut text = String::new();
        for change in &found.changes {
            text.push_str(&match context.globals.output {
                OutputFormat::Json => format!("{}\n", as_json(change)),
                OutputFormat::Text => format!("{}\n", say::printable_line(&as_line(change))),
            });
        }
        say::data(text.as_bytes())?;
        Ok(tell_unread(&found.unread))
    })
}

async fn print_patch(
    context: &Context,
    sandbox: &dyn Sandbox,
    request: ChangesRequest,
) -> Result<Exit, Failure> {
    let patch = sandbox.patch(request).await;
    let patch = patch.map_err(|error| sandbox::failure(&error))?;
    let left_out: Vec<String> = patch.left_out().collect();
    if context.globals.output == OutputFormat::Json {
        let text = String::from_utf8_lossy(&patch.bytes);
        say::line(json!({ "patch": text, "left_out": left_out }))?;
    } else {
        say::data(&patch.bytes)?;
    }
    for what in &left_out {
        say::warning(format_args!("not in the patch: {what}"));
    }
    Ok(if left_out.is_empty() {
        Exit::Success
    } else {
        Exit::Negative
    })
}

/// Says what could not be compared. A list with gaps must not look whole.
pub(super) fn tell_unread(unread: &[UnreadPlace]) -> Exit {
    for place in unread {
        let path = if place.path.is_empty() {
            "."
        } else {
            place.path.as_str()
        };
        say::warning(format_args!("cannot compare `{path}`: {}", place.reason));
    }
    if unread.is_empty() {
        Exit::Success
    } else {
        Exit::Negative
    }
}

fn as_line(change: &WorkspaceChange) -> String {
    let letter = change.kind.letter();
    match &change.kind {
        ChangeKind::Renamed { from } => format!("{letter} {from} -> {}", change.path),
        _ => format!("{letter} {}", change.path),
    }
}

fn as_json(change: &WorkspaceChange) -> Value {
    let (word, from) = match &change.kind {
        ChangeKind::Added => ("added", None),
        ChangeKind::Modified => ("modified", None),
        ChangeKind::Deleted => ("deleted", None),
        ChangeKind::Renamed { from } => ("renamed", Some(from)),
    };
    let mut told = json!({ "path": change.path, "change": word });
    if let Some(from) = from {
        told["from"] = from.as_str().into();
    }
    match &change.content {
        ChangedContent::Directory => told["kind"] = "directory".into(),
        ChangedContent::File {
            bytes,
            is_executable,
        } => {
            told["kind"] = "file".into();
            told["size"] = (*bytes).into();
            told["executable"] = (*is_executable).into();
        }
        ChangedContent::Link { target } => {
            told["kind"] = "link".into();
            told["target"] = target.as_str().into();
        }
        ChangedContent::Special => told["kind"] = "special".into(),
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_a_line_and_as_a_document() {
        let change = WorkspaceChange {
            path: "b".to_owned(),
            kind: ChangeKind::Renamed {
                from: "a".to_owned(),
            },
            content: ChangedContent::File {
                bytes: 3,
                is_executable: true,
            },
        };
        assert_eq!(as_line(&change), "R a -> b");
        let expected = json!({
            "path": "b", "change": "renamed", "from": "a", "kind": "file", "size": 3,
            "executable": true,
        });
        assert_eq!(as_json(&change), expected);
    }
}
