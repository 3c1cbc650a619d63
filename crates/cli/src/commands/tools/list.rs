//! `zareba tools ls` and `zareba tools schema`.

use zareba_tools::{Origin, ToolDefinition};

use super::source::Source;
use crate::{
    arguments::{ListToolsArguments, OutputFormat, SchemaFormat, ToolSchemaArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
    table::table,
};

const HEADINGS: [&str; 3] = ["TOOL", "FROM", "DESCRIPTION"];

/// Lists tools.
pub(super) fn ls(context: &Context, arguments: &ListToolsArguments) -> Result<Exit, Failure> {
    let entrypoints = &arguments.entrypoints;
    Source::visit(context, &arguments.source, entrypoints, async |source| {
        let tools = source.definitions().await?;
        match context.globals.output {
            OutputFormat::Text => {
                let rows: Vec<_> = tools.iter().map(row).collect();
                say::text(&table(HEADINGS, &rows))?;
            }
            OutputFormat::Json => {
                for tool in &tools {
                    let line = serde_json::to_string(tool);
                    say::line(line.or_fail(Exit::Failure, "cannot write a definition")?)?;
                }
            }
        }
        Ok(found(&tools))
    })
}

/// Prints definitions as one JSON array.
pub(super) fn schema(context: &Context, arguments: &ToolSchemaArguments) -> Result<Exit, Failure> {
    let entrypoints = &arguments.entrypoints;
    Source::visit(context, &arguments.source, entrypoints, async |source| {
        let tools = source.definitions().await?;
        let all: Vec<_> = tools
            .iter()
            .map(|tool| match arguments.format {
                SchemaFormat::Openai => tool.openai(),
                SchemaFormat::Mcp => tool.mcp(),
            })
            .collect();
        let text = match context.globals.output {
            OutputFormat::Text => serde_json::to_string_pretty(&all),
            OutputFormat::Json => serde_json::to_string(&all),
        };
        say::text_of_others(&text.or_fail(Exit::Failure, "cannot write the definitions")?)?;
        Ok(found(&tools))
    })
}

/// Nothing to be found is an answer of no.
fn found(tools: &[ToolDefinition]) -> Exit {
    match tools {
        [] => Exit::Negative,
        _ => Exit::Success,
    }
}

fn row(tool: &ToolDefinition) -> [String; 3] {
    let from = match &tool.origin {
        Origin::Rust => "this program",
        Origin::Python { entrypoint } => entrypoint,
        Origin::Command { command } => command,
        Origin::Mcp { server } => server,
    };
    [
        tool.name.to_string(),
        from.to_owned(),
        tool.description.lines().next().unwrap_or("-").to_owned(),
    ]
}
