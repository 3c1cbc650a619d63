//! The runtime on another server of ours: the conformance suite over the whole server.

use std::time::Duration;

use zareba_protocol::{Action, ErrorClass, RunCommand, RuntimeStatus};
use zareba_runtime::{Runtime as _, RuntimeError, Sandbox, SandboxId, SandboxSpec, SandboxState};
use zareba_runtime_remote::{
    ApiKey, Farewell, OpenHandsOptions, OpenHandsRuntime, VariableStore, ZarebaOptions,
    ZarebaRuntime,
};
use zareba_testkit::{conformance::Backend, traces};

use crate::{provider::Kind, site::Site};

/// A server of ours and a runtime that uses it.
pub(crate) struct Remote {
    pub(crate) runtime: ZarebaRuntime,
    pub(crate) site: Site,
}

impl Backend for Remote {
    fn runtime(&self) -> &dyn zareba_runtime::Runtime {
        &self.runtime
    }

    fn traces(&self, mark: &str) -> Vec<String> {
        let mut found = traces::processes(mark);
        for kind in ["cli", "native"] {
            let entries = traces::entries(&self.site.state.path().join(kind));
            found.extend(entries.into_iter().filter(|path| !path.ends_with("/.lock")));
        }
        found
    }
}

fn options() -> ZarebaOptions {
    ZarebaOptions::default()
}

pub(crate) async fn remote(kind: Kind) -> Remote {
    let site = Site::start(kind).await;
    let runtime = ZarebaRuntime::new(site.client(), options());
    Remote { runtime, site }
}

async fn make() -> Remote {
    remote(Kind::Cli).await
}

zareba_testkit::conformance_suite!(make);

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec {
        id: None,
        image: None,
        workspace: None,
        environment: Vec::new(),
        no_change_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(30),
        request: zareba_runtime::SandboxRequest::default(),
        on_status: None,
    }
}

pub(crate) async fn output(sandbox: &dyn Sandbox, command: &str) -> Result<String, RuntimeError> {
    let action = Action::Run(RunCommand::new(command));
    Ok(sandbox.run_action(action.into()).await?.observation.content)
}

#[tokio::test]
async fn a_paused_session_wakes_when_it_is_used() {
    let remote = remote(Kind::Native).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    output(&*sandbox, "kept=here").await.unwrap();
    sandbox.pause().await.unwrap();
    let listed = remote.runtime.list().await.unwrap();
    assert_eq!(listed[0].state, SandboxState::Paused);
    assert_eq!(output(&*sandbox, "echo $kept").await.unwrap(), "here");
    sandbox.pause().await.unwrap();
    let again = remote.runtime.attach(sandbox.id()).await.unwrap();
    assert_eq!(again.status(), RuntimeStatus::Ready);
    assert_eq!(output(&*again, "echo $kept").await.unwrap(), "here");
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test]
async fn what_the_other_servers_runtime_cannot_do_is_told_as_such() {
    let remote = make().await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    let error = sandbox.pause().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unsupported);
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test]
async fn a_large_file_is_read_whole() {
    let remote = make().await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    output(&*sandbox, "yes 0123456789abcdef | head -c 4000000 > large")
        .await
        .unwrap();
    let read = Action::Read(zareba_protocol::ReadFile::new("large"));
    let answer = sandbox.run_action(read.into()).await.unwrap();
    assert_eq!(answer.observation.content.len(), 4_000_000);
    sandbox.close().await.unwrap();
    remote.site.stop().await;
}

#[tokio::test]
async fn a_session_may_outlive_its_handle_and_is_ended_by_its_name() {
    let site = Site::start(Kind::Cli).await;
    let options = ZarebaOptions {
        farewell: Farewell::Leave,
        ..options()
    };
    let runtime = ZarebaRuntime::new(site.client(), options);
    let id = SandboxId::new("kept").unwrap();
    let spec = SandboxSpec {
        id: Some(id.clone()),
        ..spec()
    };
    drop(runtime.create(spec).await.unwrap());
    let again = runtime.attach(&id).await.unwrap();
    assert_eq!(output(&*again, "echo here").await.unwrap(), "here");
    runtime.destroy(&id).await.unwrap();
    let error = runtime.destroy(&id).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NotFound { .. }), "{error}");
    assert_eq!(runtime.list().await.unwrap(), []);
    site.stop().await;
}

/// The facade behind the whole server: its gate, its keys, its accept loop.
#[tokio::test]
async fn the_other_api_of_the_same_server_works_with_the_same_key() {
    let site = Site::start(Kind::Cli).await;
    let runtime = OpenHandsRuntime::new(OpenHandsOptions {
        variables: VariableStore::DefaultShell,
        ..OpenHandsOptions::new(&site.url, ApiKey::new(&site.admin).unwrap())
    })
    .unwrap();
    let sandbox = runtime.create(spec()).await.unwrap();
    assert_eq!(output(&*sandbox, "echo here").await.unwrap(), "here");
    sandbox.close().await.unwrap();
    let wrong = OpenHandsRuntime::new(OpenHandsOptions::new(
        &site.url,
        ApiKey::new("zrb_wrong").unwrap(),
    ))
    .unwrap();
    let error = wrong.create(spec()).await.err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("403"), "{cause}");
    site.stop().await;
}
