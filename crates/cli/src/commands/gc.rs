//! `zareba gc`: away with what nobody needs any more.

use serde_json::json;

use crate::{
    arguments::OutputFormat, commands::Context, exit::Exit, failure::Failure, sandbox::Fleet, say,
};

/// Sweeps, and prints which sandboxes are gone.
pub(crate) fn perform(context: &Context) -> Result<Exit, Failure> {
    context.require_local("gc")?;
    Fleet::visit(context, async |fleet| {
        let names = async || -> Result<Vec<String>, Failure> {
            let members = fleet.members().await?;
            let names = members.iter().map(|member| member.summary.id.to_string());
            Ok(names.collect())
        };
        let before = names().await?;
        let removed = fleet.reap().await?;
        let after = names().await?;
        let gone: Vec<_> = before.iter().filter(|name| !after.contains(name)).collect();
        // Opening the store sweeps it.
        fleet.image_store().transpose()?;
        match context.globals.output {
            OutputFormat::Json => say::line(json!({ "sandboxes": gone, "removed": removed }))?,
            OutputFormat::Text => {
                for name in gone {
                    say::line(name)?;
                }
                let places = if removed == 1 { "sandbox" } else { "sandboxes" };
                say::note(format_args!("removed what {removed} {places} had left"));
            }
        }
        Ok(Exit::Success)
    })
}
