//! Sandboxes in containers of a Docker Engine, beside what the Engine takes by itself.
//!
//! None is started for the sake of a measurement: where no Engine answers, the rows say so.

pub(super) mod create;
pub(super) mod exec;
pub(super) mod warm;

use std::{env, path::PathBuf};

use zareba_runtime_docker::{DockerRuntime, EngineAddress, EngineSources};

use crate::{
    floors::BareEngine, lane::Plan, peers::DockerImage, sandboxes::Sandboxes, setting::Setting,
    table::Row,
};

/// Containers take their time: so much more than other sandboxes.
const PATIENCE: u32 = 10;

/// Measures `what` with the Engine; where there is none, one row says why.
fn with_engine(
    setting: &Setting,
    what: &str,
    measure: impl FnOnce(&Engine) -> anyhow::Result<Vec<Row>>,
) -> anyhow::Result<Vec<Row>> {
    match Engine::find(setting) {
        Ok(engine) => measure(&engine),
        Err(why) => Ok(vec![Row::absent(format!("{what}, p50"), why)]),
    }
}

/// How often whole containers are made.
fn plan(setting: &Setting, runs: usize) -> Plan {
    let plan = setting.effort.slow_plan(runs);
    Plan {
        budget: plan.budget * PATIENCE,
        ..plan
    }
}

/// The Engine that the docker command finds, and an image on it.
struct Engine {
    address: EngineAddress,
    image: DockerImage,
}

impl Engine {
    /// Or why there is none.
    fn find(setting: &Setting) -> Result<Self, String> {
        let image = DockerImage::make(&setting.program.scratch)?;
        let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let address = EngineAddress::resolve(&EngineSources {
            host: env::var("DOCKER_HOST").ok(),
            context: env::var("DOCKER_CONTEXT").ok(),
            config_dir: home.join(".docker"),
            tls_verify: false,
            cert_path: None,
            runtime_dir: None,
        });
        let address = address.map_err(|error| error.to_string())?;
        Ok(Self { address, image })
    }

    /// The same with an image that has bash.
    fn with_bash(&self, setting: &Setting) -> Result<Self, String> {
        Ok(Self {
            address: self.address.clone(),
            image: DockerImage::with_bash(&setting.program.scratch)?,
        })
    }

    fn sandboxes(
        &self,
        setting: &Setting,
        warm: usize,
    ) -> anyhow::Result<Sandboxes<DockerRuntime>> {
        let address = self.address.clone();
        Sandboxes::in_containers(&setting.program, address, self.image.name(), warm)
    }

    fn bare(&self) -> anyhow::Result<BareEngine> {
        BareEngine::connect(&self.address, self.image.name())
    }
}
