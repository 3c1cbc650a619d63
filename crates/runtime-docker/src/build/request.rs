//! A build in the words of the Engine's interface.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{BuildError, BuildManner, BuilderChoice, Reuse, call::has_buildkit};
use crate::{NetworkChoice, Reach, docker::Shared, engine::EngineKind};

/// A step runs as root of its container, and a crash in it would start the machine's program for crashes
/// outside: the one limit that keeps the kernel from it is 1 (NS-7). BuildKit of Engines before version 23
/// takes no limits.
const CORE: &str = r#"[{"Name":"core","Soft":1,"Hard":1}]"#;
/// The same in Podman's words.
const CORE_FOR_PODMAN: &str = r#"["core=1:1"]"#;

/// What is asked for, beside what is sent.
pub(super) struct Request {
    pub(super) names: Vec<String>,
    pub(super) platform: Option<String>,
    pub(super) arguments: Vec<(String, String)>,
    pub(super) manner: BuildManner,
}

impl Request {
    /// The parameters of the request.
    pub(super) async fn query(
        &self,
        shared: &Shared,
        dockerfile: &Path,
    ) -> Result<Vec<(&'static str, String)>, BuildError> {
        let network = network(&shared.options.network);
        let is_buildkit = self.is_for_buildkit(shared, &network).await?;
        let arguments = self.arguments.iter();
        let arguments: Map<_, _> = arguments
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let mut query: Vec<_> = self.names.iter().map(|name| ("t", name.clone())).collect();
        query.extend([
            ("dockerfile", dockerfile.to_string_lossy().into_owned()),
            ("buildargs", Value::from(arguments).to_string()),
            ("networkmode", network.mode),
            ("ulimits", core(shared.engine().await?.kind()).to_owned()),
            ("version", if is_buildkit { "2" } else { "1" }.to_owned()),
            ("rm", "true".to_owned()),
            ("forcerm", "true".to_owned()),
        ]);
        if self.manner.reuse == Reuse::Nothing {
            query.push(("nocache", "true".to_owned()));
        }
        let platform = self.platform.as_ref().or(shared.options.platform.as_ref());
        query.extend(platform.map(|platform| ("platform", platform.clone())));
        Ok(query)
    }

    async fn is_for_buildkit(
        &self,
        shared: &Shared,
        network: &BuildNetwork,
    ) -> Result<bool, BuildError> {
        let engine = shared.engine().await?;
        match self.manner.builder {
            BuilderChoice::Classic => Ok(false),
            BuilderChoice::Best => Ok(network.is_plain && has_buildkit(&engine).await?),
            BuilderChoice::BuildKit if !network.is_plain => {
                let reason = "BuildKit cannot use that network; use the classic builder";
                Err(BuildError::invalid(reason))
            }
            BuilderChoice::BuildKit if !has_buildkit(&engine).await? => {
                let reason = "the Engine is too old for BuildKit; use the classic builder";
                Err(BuildError::invalid(reason))
            }
            BuilderChoice::BuildKit => Ok(true),
        }
    }
}

fn core(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Podman => CORE_FOR_PODMAN,
        EngineKind::Docker => CORE,
    }
}

/// What steps of a build reach.
struct BuildNetwork {
    mode: String,
    /// BuildKit has it too.
    is_plain: bool,
}

fn network(choice: &NetworkChoice) -> BuildNetwork {
    let (mode, is_plain) = match choice {
        // No network of a build reaches this machine and nothing else.
        NetworkChoice::Nothing | NetworkChoice::Own(Reach::Inside) => ("none", true),
        NetworkChoice::Own(Reach::Everywhere) => ("default", true),
        NetworkChoice::Named(name) => (name.as_str(), false),
        NetworkChoice::Host => ("host", false),
    };
    BuildNetwork {
        mode: mode.to_owned(),
        is_plain,
    }
}
