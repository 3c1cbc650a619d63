//! `zareba image`: the images that sandboxes can have.

mod build;
mod openhands;
mod progress;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::runtime;
use zareba_config::Environment;
use zareba_image::{
    Digest, Image, ImageError, ImageName, ImageStore,
    registry::{self, PullError, PullOptions, Transport},
};

use self::progress::Reporter;
use crate::{
    arguments::{ImageArguments, ImageCommand, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::Place,
    say,
    signals::Signals,
    table::{size, table},
};

/// How many letters of an id are shown.
const SHORT_ID: usize = 12;

/// Lists the images, as `zareba image ls` does.
pub(crate) fn list_all(context: &Context) -> Result<Exit, Failure> {
    let command = ImageCommand::Ls;
    perform(context, &ImageArguments { command })
}

/// Does what was asked for with the store of this user.
pub(crate) fn perform(context: &Context, arguments: &ImageArguments) -> Result<Exit, Failure> {
    context.require_local("image")?;
    let flags = match &arguments.command {
        ImageCommand::Build(arguments) => build::flags(arguments),
        _ => Vec::new(),
    };
    let configuration = context.configuration(flags)?;
    let place = Place::new(context, &configuration.settings);
    let store = || place.image_store();
    match &arguments.command {
        ImageCommand::Ls => list(context, &store()?),
        ImageCommand::Import { name, path } => import(context, &store()?, path, name.as_deref()),
        ImageCommand::Pull { name, plain_http } => {
            let store = store()?;
            let have = |layer: &Digest| store.has_layer(layer).unwrap_or(false);
            let options = PullOptions {
                have: Some(&have),
                ..options(&context.environment, *plain_http)
            };
            pull(context, &store, name, &options)
        }
        ImageCommand::Openhands { base, tag } => openhands::make(context, &place, base, tag),
        ImageCommand::Build(arguments) => build::build(context, &place, arguments),
        ImageCommand::Prune(arguments) => build::prune(context, &place, arguments),
        ImageCommand::Rm { names } => remove(context, &store()?, names),
    }
}

/// What a failure of the store means for us.
fn failure(error: &ImageError) -> Failure {
    let exit = match error {
        ImageError::Unknown { .. }
        | ImageError::Ambiguous { .. }
        | ImageError::BadName(_)
        | ImageError::NotAnImage { .. }
        | ImageError::SeveralImages { .. }
        | ImageError::Read { .. } => Exit::Usage,
        _ => Exit::Failure,
    };
    Failure::of(exit, error)
}

fn failed_to_pull(error: &PullError) -> Failure {
    let exit = match error {
        PullError::NotFound { .. } => Exit::Usage,
        _ => Exit::Failure,
    };
    Failure::of(exit, error)
}

fn list(context: &Context, store: &ImageStore) -> Result<Exit, Failure> {
    let images = store.list().map_err(|error| failure(&error))?;
    let text: String = match context.globals.output {
        OutputFormat::Json => images
            .iter()
            .map(|image| format!("{}\n", as_json(image)))
            .collect(),
        OutputFormat::Text => {
            let rows: Vec<_> = images.iter().flat_map(rows).collect();
            table(["NAME", "ID", "SIZE", "BUILT"], &rows)
        }
    };
    say::data(text.as_bytes())?;
    Ok(Exit::Success)
}

fn import(
    context: &Context,
    store: &ImageStore,
    source: &Path,
    name: Option<&str>,
) -> Result<Exit, Failure> {
    let mut reporter = Reporter::new(context.globals.output);
    let imported = store.import(source, name, &mut |step| reporter.tell(&step));
    drop(reporter);
    let image = imported.map_err(|error| failure(&error))?;
    if image.skipped_entries > 0 {
        let count = image.skipped_entries;
        say::note(format_args!("left out {count} devices, pipes and sockets"));
    }
    tell(context, &image)?;
    Ok(Exit::Success)
}

/// Fetches the image to a place beside the store, from where it is imported like any other.
fn pull(
    context: &Context,
    store: &ImageStore,
    name: &str,
    options: &PullOptions<'_>,
) -> Result<Exit, Failure> {
    let name = ImageName::parse(name).map_err(|error| Failure::of(Exit::Usage, &error))?;
    let scratch = store.scratch().map_err(|error| failure(&error))?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    let layout = scratch.path().join("layout");
    let mut reporter = Reporter::new(context.globals.output);
    let signal = runtime.block_on(async {
        let mut signals = Signals::watch()?;
        let mut report = |step| reporter.tell(&step);
        tokio::select! {
            pulled = registry::pull(&name, &layout, options, &mut report) => {
                pulled.map_err(|error| failed_to_pull(&error))?;
                Ok(None)
            }
            signal = signals.next() => Ok(Some(signal)),
        }
    })?;
    drop(reporter);
    match signal {
        // The scratch directory goes with us.
        Some(signal) => Ok(Exit::Command(128 + signal)),
        None => import(context, store, &layout, Some(&name.to_string())),
    }
}

fn remove(context: &Context, store: &ImageStore, names: &[String]) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    for name in names {
        match store.remove(name) {
            Ok(removed) => {
                let names: Vec<String> = removed.names.iter().map(ToString::to_string).collect();
                let image = removed.image.map(|id| id.to_string());
                match context.globals.output {
                    OutputFormat::Text => say::line(name)?,
                    OutputFormat::Json => say::line(json!({ "names": names, "image": image }))?,
                }
            }
            Err(error) => {
                let failure = match &error {
                    // To import it first is no help to who wants it gone.
                    ImageError::Unknown { nearest, .. } if nearest.is_empty() => {
                        Failure::new(Exit::Usage, format!("there is no image `{name}`"))
                            .hint("`zareba image ls` lists images")
                    }
                    error => failure(error),
                };
                say::failure(&failure);
                if exit == Exit::Success {
                    exit = failure.exit();
                }
            }
        }
    }
    Ok(exit)
}

/// Where credentials and the way out are, by the names that other tools use.
fn options(environment: &Environment, plain_http: bool) -> PullOptions<'static> {
    let directory = environment.get_os("DOCKER_CONFIG").map(PathBuf::from);
    let home = || Some(Path::new(environment.get_os("HOME")?).join(".docker"));
    let directory = directory.filter(|path| path.is_absolute()).or_else(home);
    let proxy = environment.get("HTTPS_PROXY");
    let proxy = proxy.or(environment.get("https_proxy"));
    PullOptions {
        credentials: directory.map(|directory| directory.join("config.json")),
        transport: if plain_http {
            Transport::PlainHttp
        } else {
            Transport::Secure
        },
        proxy: proxy.filter(|url| !url.is_empty()).map(str::to_owned),
        ..PullOptions::anonymous()
    }
}

fn tell(context: &Context, image: &Image) -> Result<(), Failure> {
    match context.globals.output {
        OutputFormat::Json => say::line(as_json(image)),
        OutputFormat::Text => match image.names.first() {
            Some(name) => say::line(name),
            None => say::line(short(image)),
        },
    }
}

fn as_json(image: &Image) -> Value {
    let names: Vec<String> = image.names.iter().map(ToString::to_string).collect();
    json!({
        "id": image.id.to_string(),
        "names": names,
        "layers": image.layers.len(),
        "size_bytes": image.size_bytes,
        "built": image.created,
    })
}

/// One row for each name.
fn rows(image: &Image) -> Vec<[String; 4]> {
    let row = |name: String| {
        let built = image.created.as_deref().unwrap_or("-");
        // What an image says of itself may be anything.
        let built = built.escape_debug().take(19).collect();
        [name, short(image), size(image.size_bytes), built]
    };
    match image.names.as_slice() {
        [] => vec![row("-".to_owned())],
        names => names.iter().map(|name| row(name.to_string())).collect(),
    }
}

fn short(image: &Image) -> String {
    image.id.hex().chars().take(SHORT_ID).collect()
}
