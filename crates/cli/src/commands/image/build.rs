//! `zareba image build` and `zareba image prune`: images of the Docker Engine.

mod reporter;

use std::path::PathBuf;

use serde_json::json;
use tokio::runtime::{self, Runtime};
use zareba_config::Override;
use zareba_protocol::ErrorClass;
use zareba_runtime_docker::{
    BuildError, BuildManner, BuildOrder, BuildSource, BuilderChoice, BuiltFrom, BuiltImage,
    ImageBuilder, PruneOrder, Recipe, RecipeFiles, Reuse,
};

use self::reporter::Reporter;
use crate::{
    arguments::{BuildArguments, BuilderName, OutputFormat, PruneArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::Place,
    say,
    signals::Signals,
    table::size,
};

/// What images of `--base` are called when nobody says it.
const REPOSITORY: &str = "zareba/runtime";

/// Flags that are settings.
pub(super) fn flags(arguments: &BuildArguments) -> Vec<Override> {
    let network = arguments.network.clone();
    let network = network.map(|network| Override::new("--network", "docker.network", network));
    let pull = arguments
        .pull
        .then(|| Override::new("--pull", "docker.pull", "missing"));
    network.into_iter().chain(pull).collect()
}

/// Builds an image and prints its name. A signal ends the build.
pub(super) fn build(
    context: &Context,
    place: &Place<'_>,
    arguments: &BuildArguments,
) -> Result<Exit, Failure> {
    let builder = place.docker_for_builds()?.image_builder();
    let builder = builder.for_operator();
    let work = Work::read(arguments)?;
    let reporter = Reporter::new(context.globals.output);
    let built = runtime()?.block_on(async {
        let mut signals = Signals::watch()?;
        let listener = reporter.listener();
        tokio::select! {
            built = work.perform(&builder, arguments, &listener) => {
                built.map(Ok).map_err(|error| failure(&error))
            }
            signal = signals.next() => Ok(Err(signal)),
        }
    });
    reporter.end();
    match built? {
        Ok(image) => tell(context, &image),
        Err(signal) => Ok(Exit::Command(128 + signal)),
    }
}

/// Removes what the Engine keeps of builds, and says how much that was.
pub(super) fn prune(
    context: &Context,
    place: &Place<'_>,
    arguments: &PruneArguments,
) -> Result<Exit, Failure> {
    let builder = place.docker_for_builds()?.image_builder();
    let builder = builder.for_operator();
    let order = PruneOrder {
        all: arguments.all,
        keep_bytes: arguments.keep,
    };
    let pruned = runtime()?.block_on(builder.prune(&order));
    let pruned = pruned.map_err(|error| failure(&error))?;
    match context.globals.output {
        OutputFormat::Json => {
            let (results, bytes) = (pruned.results, pruned.bytes);
            say::line(json!({ "results": results, "size_bytes": bytes }))?;
        }
        OutputFormat::Text => say::note(format_args!(
            "removed {} results of builds, {}",
            pruned.results,
            size(pruned.bytes)
        )),
    }
    Ok(Exit::Success)
}

/// What is to be built.
enum Work {
    Dockerfile {
        names: Vec<String>,
        values: Vec<(String, String)>,
    },
    Recipe(Recipe),
}

impl Work {
    fn read(arguments: &BuildArguments) -> Result<Self, Failure> {
        let Some(base) = arguments.base.clone() else {
            if arguments.tags.is_empty() {
                let message = "an image needs a name";
                return Err(Failure::new(Exit::Usage, message).hint("give it one by `--tag NAME`"));
            }
            return Ok(Self::Dockerfile {
                names: arguments.tags.clone(),
                values: values(&arguments.arguments)?,
            });
        };
        let repository = match arguments.tags.as_slice() {
            [] => REPOSITORY.to_owned(),
            [one] => one.clone(),
            _ => {
                let message = "with `--base` there is one name, and tags come by themselves";
                return Err(Failure::new(Exit::Usage, message));
            }
        };
        Ok(Self::Recipe(Recipe {
            repository,
            base,
            packages: arguments.apt.clone(),
            commands: arguments.commands.clone(),
            files: arguments.copy.as_deref().map(files).transpose()?,
        }))
    }

    async fn perform(
        self,
        builder: &ImageBuilder,
        arguments: &BuildArguments,
        listener: &zareba_runtime_docker::BuildListener,
    ) -> Result<BuiltImage, BuildError> {
        let manner = BuildManner {
            builder: match arguments.builder {
                BuilderName::Best => BuilderChoice::Best,
                BuilderName::Classic => BuilderChoice::Classic,
                BuilderName::Buildkit => BuilderChoice::BuildKit,
            },
            reuse: if arguments.fresh {
                Reuse::Nothing
            } else {
                Reuse::Everything
            },
            ..BuildManner::default()
        };
        let platform = arguments.platform.clone();
        match self {
            Self::Recipe(recipe) => builder.make(&recipe, platform, manner, listener).await,
            Self::Dockerfile { names, values } => {
                let source = BuildSource::Directory {
                    directory: arguments.directory.clone(),
                    dockerfile: dockerfile(arguments),
                };
                let order = BuildOrder {
                    source,
                    names,
                    platform,
                    arguments: values,
                    manner,
                };
                builder.build(order, listener).await
            }
        }
    }
}

/// From where we are, as for the docker command, and not from the context.
fn dockerfile(arguments: &BuildArguments) -> Option<PathBuf> {
    let file = arguments.file.as_ref()?;
    if file.starts_with(&arguments.directory) {
        return Some(file.clone());
    }
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    let directory = std::path::absolute(&arguments.directory).ok()?;
    match absolute.strip_prefix(&directory) {
        Ok(below) => Some(below.to_owned()),
        Err(_) => Some(absolute),
    }
}

fn values(texts: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let read = |text: &String| {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair.ok_or_else(|| {
            let message = format!("`--build-arg` has `{text}`, which gives no value");
            Failure::new(Exit::Usage, message).hint("write `NAME=VALUE`")
        })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.iter().map(read).collect()
}

fn files(text: &str) -> Result<RecipeFiles, Failure> {
    let parts = text.rsplit_once(':').filter(|(from, _)| !from.is_empty());
    let (directory, target) = parts.ok_or_else(|| {
        let message = format!("`--copy` has `{text}`, which does not say where to");
        Failure::new(Exit::Usage, message).hint("write `DIRECTORY:PATH`")
    })?;
    Ok(RecipeFiles {
        directory: PathBuf::from(directory),
        target: target.to_owned(),
    })
}

fn tell(context: &Context, image: &BuiltImage) -> Result<Exit, Failure> {
    if image.left_out > 0 {
        let count = image.left_out;
        say::note(format_args!("left out {count} devices, pipes and sockets"));
    }
    let name = image.names.first().map_or("", String::as_str);
    match context.globals.output {
        OutputFormat::Text => say::line(name)?,
        OutputFormat::Json => say::line(json!({
            "name": name,
            "names": image.names,
            "id": image.id,
            "from": match image.from {
                BuiltFrom::Nothing => "nothing",
                BuiltFrom::Lock => "lock",
                BuiltFrom::Versioned => "versioned",
                BuiltFrom::Base => "base",
            },
        }))?,
    }
    Ok(Exit::Success)
}

fn failure(error: &BuildError) -> Failure {
    let exit = match error.class() {
        ErrorClass::Invalid | ErrorClass::NotFound => Exit::Usage,
        ErrorClass::Disconnected => Exit::Start,
        _ => Exit::Failure,
    };
    Failure::of(exit, error)
}

fn runtime() -> Result<Runtime, Failure> {
    let built = runtime::Builder::new_current_thread().enable_all().build();
    built.or_fail(Exit::Start, "cannot start")
}
