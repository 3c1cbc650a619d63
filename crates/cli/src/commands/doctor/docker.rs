//! Whether the runtime `docker` can be used.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, time::Duration};

use tokio::time::timeout;
use zareba_config::Settings;
use zareba_runtime_docker::DockerRuntime;

use super::check::{Check, Finding, Need};
use crate::{commands::Context, exit::Exit, failure::Failure, sandbox::Place};

/// How long the Engine may take to tell about itself.
const ENGINE_PATIENCE: Duration = Duration::from_secs(2);

/// Asks the Engine, and looks at the program that containers would run. Nothing is left behind,
/// so that nobody takes the runtime for used.
pub(super) async fn examine(context: &Context, settings: &Settings) -> Vec<Check> {
    let check = |name, finding| Check {
        name,
        need: Need::Docker,
        finding,
    };
    let runtime = private_directory()
        .map_err(|error| Failure::of(Exit::Failure, &error))
        .and_then(|scratch| {
            let runtime = Place::new(context, settings).docker_in(scratch.path())?;
            Ok((scratch, runtime))
        });
    match runtime {
        Ok((_scratch, runtime)) => vec![
            check("Docker Engine", engine(&runtime).await),
            check("static program", program(&runtime)),
        ],
        Err(failure) => vec![check("Docker Engine", Finding::Missing(failure.why()))],
    }
}

/// For its owner alone, whatever the user's mask permits: the runtime refuses a place that others can write to.
fn private_directory() -> std::io::Result<tempfile::TempDir> {
    tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
}

async fn engine(runtime: &DockerRuntime) -> Finding {
    let report = match timeout(ENGINE_PATIENCE, runtime.probe()).await {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => {
            let failure = Failure::of(Exit::Failure, &error);
            let advice = "install it and start it, or name another by docker.engine";
            return Finding::Missing(failure.hint(advice).why());
        }
        Err(_) => return Finding::Unknown("it does not answer".to_owned()),
    };
    let told = format!(
        "{}, interface {}, control groups {}",
        report.version, report.api, report.cgroups
    );
    match report.problems.as_slice() {
        [] => Finding::Present(told),
        problems => Finding::Partly(format!("{told}; {}", problems.join("; "))),
    }
}

fn program(runtime: &DockerRuntime) -> Finding {
    match runtime.check_program() {
        Ok(()) => Finding::Present("runs in any image".to_owned()),
        Err(error) => {
            let failure = Failure::of(Exit::Failure, &error);
            let advice = "name a static one by docker.program";
            Finding::Missing(failure.hint(advice).why())
        }
    }
}
