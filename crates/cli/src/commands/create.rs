//! `zareba create`: a sandbox that lives on.

use std::sync::Arc;

use serde_json::json;
use tokio::runtime;
use zareba_config::{Configuration, RuntimeKind};
use zareba_runtime::{RuntimeError, Sandbox, SandboxSpec};
use zareba_runtime_native::ServerLifetime;

use crate::{
    arguments::{CreateArguments, LifeArguments, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::{self, Backend, LAST_WORK, Place, Wanted},
    say,
    signals::Signals,
};

/// Makes the sandbox and prints its name.
pub(crate) fn perform(context: &Context, arguments: &CreateArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
    let name = arguments.name.as_deref().map(sandbox::new_name);
    let wanted = Wanted {
        name: name.transpose()?,
        command: &[],
        life: arguments.life.clone(),
    };
    lasting(context, &configuration, wanted, |_| Ok(()))
}

/// Makes a sandbox that lives on, begins something in it, and prints its name. When that cannot
/// be begun, the sandbox ends.
pub(super) fn lasting(
    context: &Context,
    configuration: &Configuration,
    wanted: Wanted<'_>,
    begin: impl FnOnce(&str) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let settings = &configuration.settings;
    sandbox::require_server_for(context, &wanted.life)?;
    sandbox::require_workspace(context, settings)?;
    // Before the backend, which may need a key: a wish that cannot hold needs none.
    let spec = sandbox::spec_named(context, configuration, wanted.name)?;
    let backend = backend(context, configuration, &wanted.life)?;
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::watch()?;
        let image = spec.image.clone();
        match make(context, &backend, spec, &mut signals).await {
            Ok(Made::Sandbox(sandbox)) => {
                sandbox::tell_not_held(&*sandbox);
                sandbox::note(context, settings, &*sandbox, wanted.command);
                if let Err(failure) = begin(sandbox.id().as_str()) {
                    // One that cannot be ended now is ended by `zareba stop`, and is listed.
                    let _ = sandbox.close().await;
                    return Err(failure);
                }
                tell(context, image.as_deref(), &*sandbox)?;
                Ok(Exit::Success)
            }
            Ok(Made::Nothing(signal)) => Ok(Exit::Command(128 + signal)),
            Err(error) => Err(sandbox::not_started(settings.runtime.kind, &error)),
        }
    });
    runtime.shutdown_timeout(LAST_WORK);
    outcome
}

enum Made {
    Sandbox(Arc<dyn Sandbox>),
    /// A signal came first.
    Nothing(u8),
}

/// A sandbox that is being made has nobody else to end it, so after a signal it is made to its
/// end, and ended.
async fn make(
    context: &Context,
    backend: &Backend,
    spec: SandboxSpec,
    signals: &mut Signals,
) -> Result<Made, RuntimeError> {
    let mut making = backend.runtime().create(spec);
    tokio::select! {
        made = &mut making => {
            made.map(|made| Made::Sandbox(sandbox::admitted(context.surface, made)))
        }
        signal = signals.next() => {
            let end = async {
                if let Ok(sandbox) = making.await {
                    let _ = sandbox.close().await;
                }
            };
            // Whoever asks twice does not want to wait. What is left is swept by the next start.
            tokio::select! {
                () = end => {}
                _ = signals.next() => {}
            }
            Ok(Made::Nothing(signal))
        }
    }
}

fn backend(
    context: &Context,
    configuration: &Configuration,
    life: &LifeArguments,
) -> Result<Backend, Failure> {
    let settings = &configuration.settings;
    if settings.runtime.kind == RuntimeKind::Cli && context.server().is_none() {
        let message = "a sandbox of the runtime `cli` cannot outlive its command";
        return Err(Failure::new(Exit::Usage, message)
            .hint("use `--runtime native`, or `local`, which does not isolate"));
    }
    let lifetime = ServerLifetime::KeptAlive { idle_timeout: None };
    let told = sandbox::server_options(configuration, life);
    Place::new(context, settings).chosen(settings.runtime.kind, lifetime, told)
}

fn tell(context: &Context, image: Option<&str>, sandbox: &dyn Sandbox) -> Result<(), Failure> {
    match context.globals.output {
        OutputFormat::Text => say::line(sandbox.id()),
        OutputFormat::Json => say::line(json!({
            "id": sandbox.id().as_str(),
            "runtime": sandbox.runtime(),
            "image": image,
            "workspace": sandbox.workspace(),
            "not_held": sandbox.not_held().iter().map(|field| field.as_str()).collect::<Vec<_>>(),
        })),
    }
}
