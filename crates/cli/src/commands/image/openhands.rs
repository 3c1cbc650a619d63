//! `zareba image openhands`: an image of the Docker Engine with our executor in OpenHands' place.

use serde_json::json;
use tokio::runtime;

use crate::{
    arguments::OutputFormat,
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Place},
    say,
    signals::Signals,
};

/// Makes the image and prints its name.
pub(super) fn make(
    context: &Context,
    place: &Place<'_>,
    base: &str,
    tag: &str,
) -> Result<Exit, Failure> {
    let docker = place.docker_for_images()?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    runtime.block_on(async {
        let mut signals = Signals::watch()?;
        let mut making = Box::pin(docker.make_openhands_image(base, tag));
        let made = tokio::select! {
            made = &mut making => made,
            signal = signals.next() => {
                // What is begun on the Engine is brought to its end, unless somebody asks twice.
                tokio::select! {
                    _ = making => {}
                    _ = signals.next() => {}
                }
                return Ok(Exit::Command(128 + signal));
            }
        };
        let id = made.map_err(|error| sandbox::failure(&error))?;
        match context.globals.output {
            OutputFormat::Text => say::line(tag)?,
            OutputFormat::Json => say::line(json!({ "name": tag, "id": id, "base": base }))?,
        }
        say::note(format_args!(
            "OpenHands starts it with SANDBOX_RUNTIME_CONTAINER_IMAGE={tag}"
        ));
        Ok(Exit::Success)
    })
}
