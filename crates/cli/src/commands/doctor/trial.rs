//! Trial sandboxes: the only answer that settles what this machine can do.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::timeout;
use zareba_config::{NetworkReach, RuntimeKind, Settings};
use zareba_protocol::{Action, ActionEvent, RunCommand};
use zareba_runtime::{RuntimeError, SandboxSpec};
use zareba_runtime_native::ServerLifetime;

use super::check::Finding;
use crate::{
    commands::Context,
    enforcement::{self, Layer},
    exit::Exit,
    failure::Failure,
    sandbox::{self, Place},
};

/// How long a trial sandbox may take from its start to its end.
const TRIAL_MAX: Duration = Duration::from_secs(20);

/// What came of a trial.
pub(super) struct Trial {
    pub(super) start: Finding,
    /// What stood around the sandbox; nothing when there was none.
    pub(super) layers: Vec<(&'static str, Finding)>,
}

/// Makes a sandbox, runs a command in it, asks what stands around it and ends it.
pub(super) async fn sandbox(context: &Context, settings: &Settings) -> Trial {
    let mut settings = settings.clone();
    settings.native.network = NetworkReach::None;
    let (start, report) = start(context, &settings).await;
    let layers = report.as_ref().and_then(|it| it.get("enforcement"));
    let layers = layers.map(enforcement::layers).unwrap_or_default();
    let layers = layers.into_iter().map(|layer| (layer.name, finding(layer)));
    Trial {
        start,
        layers: layers.collect(),
    }
}

/// The same with a proxy in the way of its traffic.
pub(super) async fn network(context: &Context, settings: &Settings) -> Finding {
    let mut settings = settings.clone();
    settings.native.network = NetworkReach::Filtered;
    start(context, &settings).await.0
}

/// Whether images can be kept.
pub(super) fn images(context: &Context, settings: &Settings) -> Finding {
    let place = Place::new(context, settings);
    match place.image_store() {
        Ok(_) => Finding::Present(format!("kept in {}", place.images().display())),
        Err(failure) => Finding::Missing(failure.why()),
    }
}

async fn start(context: &Context, settings: &Settings) -> (Finding, Option<Value>) {
    let began = Instant::now();
    match timeout(TRIAL_MAX, attempt(context, settings)).await {
        Ok(Ok(report)) => {
            let took = format!("took {} ms", began.elapsed().as_millis());
            (Finding::Present(took), Some(report))
        }
        Ok(Err(failure)) => (Finding::Missing(failure.why()), None),
        Err(_) => (Finding::Missing("it took too long".to_owned()), None),
    }
}

async fn attempt(context: &Context, settings: &Settings) -> Result<Value, Failure> {
    let place = Place::new(context, settings);
    let backend = place.backend(RuntimeKind::Native, ServerLifetime::WithUs)?;
    let attempt = async || -> Result<Value, RuntimeError> {
        let spec = SandboxSpec {
            image: None,
            workspace: None,
            ..sandbox::spec(settings)
        };
        let made = backend.runtime().create(spec).await?;
        let sandbox = sandbox::admitted(context.surface, made);
        let command = Action::Run(RunCommand::new("true"));
        let ran = sandbox.run_action(ActionEvent::from(command)).await;
        let report = sandbox.inspect().await;
        sandbox.close().await?;
        ran.and(report)
    };
    attempt()
        .await
        .map_err(|error| Failure::of(Exit::Start, &error))
}

fn finding(layer: Layer) -> Finding {
    let Layer { what, missing, .. } = layer;
    match missing.as_slice() {
        [] => Finding::Present(what),
        missing => Finding::Partly(format!("{what}; missing {}", missing.join("; "))),
    }
}
