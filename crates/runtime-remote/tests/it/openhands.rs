//! The runtime on OpenHands' remote runtime API: the conformance suite over our facade, and what
//! only it promises.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Path, Request},
    http::{HeaderMap, StatusCode},
    response::IntoResponse as _,
    routing::{any, get, post},
};
use serde_json::{Value, json};
use zareba_protocol::{Action, ErrorClass, ObservationKind, RunCommand, RuntimeStatus};
use zareba_runtime::{Runtime as _, RuntimeError, Sandbox, SandboxId, SandboxSpec, SandboxState};
use zareba_runtime_remote::{ApiKey, Farewell, OpenHandsOptions, OpenHandsRuntime, VariableStore};
use zareba_testkit::{conformance::Backend, traces};

use crate::provider::{Kind, Provider};

const KEY: &str = "use-key-alice";

/// A server of ours and a runtime that uses it.
struct Remote {
    runtime: OpenHandsRuntime,
    provider: Provider,
}

impl Backend for Remote {
    fn runtime(&self) -> &dyn zareba_runtime::Runtime {
        &self.runtime
    }

    fn traces(&self, mark: &str) -> Vec<String> {
        let mut found = traces::processes(mark);
        found.extend(self.provider.left());
        found
    }
}

fn options(url: &str) -> OpenHandsOptions {
    OpenHandsOptions {
        // The home of shells without walls is that of whoever runs the tests.
        variables: VariableStore::DefaultShell,
        ..OpenHandsOptions::new(url, ApiKey::new(KEY).unwrap())
    }
}

async fn remote(kind: Kind) -> Remote {
    let provider = Provider::start(kind).await;
    let runtime = OpenHandsRuntime::new(options(&provider.url)).unwrap();
    Remote { runtime, provider }
}

async fn make() -> Remote {
    remote(Kind::Cli).await
}

// All but `lifecycle::a_given_workspace_is_used_and_stays`: the API has no way to say it, which is
// a case of its own below.
zareba_testkit::conformance_cases! { make:
    lifecycle::a_new_sandbox_is_ready_and_knows_its_place
    lifecycle::closing_twice_is_no_error
    lifecycle::statuses_come_in_order
    lifecycle::nothing_can_be_done_after_closing
    lifecycle::closing_stops_an_action_under_way
    lifecycle::closing_ends_everything_inside
    lifecycle::a_dropped_handle_closes_in_the_background
    lifecycle::two_sandboxes_share_nothing
    lifecycle::a_spec_with_a_bad_variable_is_refused
    lifecycle::what_a_backend_cannot_do_it_says
    lifecycle::a_sandbox_is_found_again_where_that_is_promised
    shells::state_is_kept_between_commands
    shells::exit_codes_are_told
    shells::a_silent_command_is_told_of_and_takes_input
    shells::a_command_outlives_its_timeout
    shells::keys_reach_the_running_program
    shells::shells_run_at_the_same_time
    shells::actions_on_one_shell_run_in_the_order_they_were_asked_for
    shells::many_actions_at_once_are_each_answered
    shells::a_dropped_future_does_not_wedge_the_shell
    shells::a_shell_that_ends_is_replaced
    shells::long_output_is_cut_in_the_middle_and_kept_whole
    shells::text_of_any_language_passes
    shells::an_action_that_nobody_can_perform_is_answered
    files::a_file_is_written_read_and_edited
    files::files_are_read_while_a_command_runs
    files::directories_are_listed
    files::a_directory_is_copied_both_ways
    files::one_file_is_copied_both_ways
    files::what_is_not_there_cannot_be_copied
    environment::variables_of_the_spec_reach_every_shell
    environment::added_variables_are_taken_as_they_are
    environment::added_variables_reach_every_shell_and_program
    environment::a_busy_shell_gets_variables_with_its_next_command
}

fn spec() -> SandboxSpec {
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

async fn output(sandbox: &dyn Sandbox, command: &str) -> Result<String, RuntimeError> {
    let action = Action::Run(RunCommand::new(command));
    let observation = sandbox.run_action(action.into()).await?.observation;
    assert!(
        matches!(observation.kind, ObservationKind::Run(_)),
        "{observation:?}"
    );
    Ok(observation.content)
}

#[tokio::test]
async fn a_directory_of_this_machine_is_refused() {
    let remote = make().await;
    let spec = SandboxSpec {
        workspace: Some("/tmp".into()),
        ..spec()
    };
    let error = remote.runtime.create(spec).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Unsupported);
    remote.provider.stop().await;
}

#[tokio::test]
async fn a_paused_sandbox_is_woken_by_an_action_and_by_being_found() {
    let remote = remote(Kind::Native).await;
    let sandbox = remote.runtime.create(spec()).await.unwrap();
    output(&*sandbox, "kept=here").await.unwrap();
    sandbox.pause().await.unwrap();
    assert_eq!(
        remote.runtime.list().await.unwrap()[0].state,
        SandboxState::Paused
    );
    assert_eq!(output(&*sandbox, "echo $kept").await.unwrap(), "here");
    sandbox.pause().await.unwrap();
    let again = remote.runtime.attach(sandbox.id()).await.unwrap();
    assert_eq!(again.status(), RuntimeStatus::Ready);
    assert_eq!(output(&*again, "echo $kept").await.unwrap(), "here");
    sandbox.pause().await.unwrap();
    sandbox.resume().await.unwrap();
    sandbox.close().await.unwrap();
    assert_eq!(remote.runtime.list().await.unwrap(), []);
    remote.provider.stop().await;
}

#[tokio::test]
async fn a_sandbox_may_outlive_its_handle_and_is_ended_by_its_name() {
    let provider = Provider::start(Kind::Cli).await;
    let runtime = OpenHandsRuntime::new(OpenHandsOptions {
        farewell: Farewell::Leave,
        ..options(&provider.url)
    })
    .unwrap();
    let id = SandboxId::new("kept").unwrap();
    let spec = SandboxSpec {
        id: Some(id.clone()),
        ..spec()
    };
    let sandbox = runtime.create(spec).await.unwrap();
    output(&*sandbox, "kept=here").await.unwrap();
    drop(sandbox);
    let again = runtime.attach(&id).await.unwrap();
    assert_eq!(output(&*again, "echo $kept").await.unwrap(), "here");
    runtime.destroy(&id).await.unwrap();
    let error = runtime.destroy(&id).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NotFound { .. }), "{error}");
    let error = output(&*again, "true").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::NotFound);
    provider.stop().await;
}

/// A server that is not ours, or that misbehaves: `answer` decides what its sandbox says.
struct Foreign {
    url: String,
    /// Paths that were asked for, with the headers that tell keys.
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Say = Arc<dyn Fn(&str) -> (StatusCode, Value) + Send + Sync>;

async fn foreign(place: Option<&'static str>, say: Say) -> Foreign {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let place = place.map_or_else(|| format!("{url}/r"), str::to_owned);
    let started = json!({ "runtime_id": "r", "url": place, "session_api_key": "session key" });
    let noted = Arc::clone(&seen);
    let note = move |request: &Request| {
        let path = request.uri().path().to_owned();
        noted
            .lock()
            .unwrap()
            .push((path, request.headers().clone()));
    };
    let note_api = note.clone();
    let router = Router::new()
        .route("/start", post(move || async move { Json(started) }))
        .route(
            "/runtime/{id}",
            get(|Path(id): Path<String>| async move {
                Json(json!({ "runtime_id": id, "pod_status": "ready" }))
            }),
        )
        .route(
            "/{verb}",
            any(move |request: Request| async move {
                note_api(&request);
                Json(json!({}))
            }),
        )
        .route(
            "/r/{*rest}",
            any(move |request: Request| async move {
                note(&request);
                let path = request.uri().path().trim_start_matches("/r").to_owned();
                let (status, body) = say(&path);
                (status, Json(body)).into_response()
            }),
        );
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Foreign { url, seen, task }
}

fn alive(path: &str) -> (StatusCode, Value) {
    match path {
        "/alive" => (StatusCode::OK, json!({ "status": "ok" })),
        _ => (
            StatusCode::INTERNAL_SERVER_ERROR,
            json!({ "detail": "Internal server error: x" }),
        ),
    }
}

/// RH-1: each key goes to where it belongs, and nowhere else.
#[tokio::test]
async fn keys_go_only_to_their_own_side_rh_1() {
    let foreign = foreign(None, Arc::new(alive)).await;
    let runtime = OpenHandsRuntime::new(options(&foreign.url)).unwrap();
    let sandbox = runtime.create(spec()).await.unwrap();
    let error = output(&*sandbox, "true").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Internal);
    sandbox.close().await.unwrap();
    let seen = foreign.seen.lock().unwrap().clone();
    assert!(seen.iter().any(|(path, _)| path == "/stop"), "{seen:?}");
    for (path, headers) in seen {
        let inside = path.starts_with("/r/");
        assert_eq!(headers.contains_key("x-session-api-key"), inside, "{path}");
        assert_eq!(headers.contains_key("x-api-key"), !inside, "{path}");
    }
}

/// RH-1: a redirect could carry the key elsewhere.
#[tokio::test]
async fn redirects_are_not_followed_rh_1() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let say: Say = Arc::new(move |path| match path {
        "/execute_action" => {
            counted.fetch_add(1, Ordering::Relaxed);
            (StatusCode::TEMPORARY_REDIRECT, json!({}))
        }
        _ => alive(path),
    });
    let foreign = foreign(None, say).await;
    let runtime = OpenHandsRuntime::new(options(&foreign.url)).unwrap();
    let sandbox = runtime.create(spec()).await.unwrap();
    let error = output(&*sandbox, "true").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert_eq!(count.load(Ordering::Relaxed), 1);
    sandbox.close().await.unwrap();
}

/// RH-3: the server says where a sandbox is, and a hostile one could name any host.
#[tokio::test]
async fn a_sandbox_on_a_host_that_nobody_trusts_is_refused_and_ended_rh_3() {
    let foreign = foreign(Some("http://169.254.169.254/latest"), Arc::new(alive)).await;
    let runtime = OpenHandsRuntime::new(options(&foreign.url)).unwrap();
    let error = runtime.create(spec()).await.err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("169.254.169.254"), "{cause}");
    let seen = foreign.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].0, "/stop");
}

/// RH-2: a server that is not ours may have run it.
#[tokio::test]
async fn an_action_is_not_sent_twice_to_a_server_that_might_run_it_twice_rh_2() {
    for (status, tries) in [
        (StatusCode::BAD_GATEWAY, 1),
        (StatusCode::INTERNAL_SERVER_ERROR, 1),
        // It sleeps and has not seen it: it is woken, and the action sent once more.
        (StatusCode::SERVICE_UNAVAILABLE, 2),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let say: Say = Arc::new(move |path| match path {
            "/execute_action" => {
                counted.fetch_add(1, Ordering::Relaxed);
                (status, json!({ "detail": "x" }))
            }
            _ => alive(path),
        });
        let foreign = foreign(None, say).await;
        let runtime = OpenHandsRuntime::new(options(&foreign.url)).unwrap();
        let sandbox = runtime.create(spec()).await.unwrap();
        output(&*sandbox, "true").await.unwrap_err();
        assert_eq!(count.load(Ordering::Relaxed), tries, "{status}");
        let lost = status == StatusCode::BAD_GATEWAY;
        let expected = if lost {
            RuntimeStatus::RuntimeDisconnected
        } else {
            RuntimeStatus::Ready
        };
        assert_eq!(sandbox.status(), expected, "{status}");
        sandbox.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_apart() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let runtime = OpenHandsRuntime::new(options(&format!("http://{address}"))).unwrap();
    let error = runtime.create(spec()).await.err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("cannot be reached"), "{cause}");
}

#[tokio::test]
async fn a_given_up_create_ends_what_it_made() {
    let never: Say = Arc::new(|_| (StatusCode::SERVICE_UNAVAILABLE, json!({})));
    let foreign = foreign(None, never).await;
    let mut options = options(&foreign.url);
    options.init_timeout = Duration::from_millis(300);
    let runtime = OpenHandsRuntime::new(options).unwrap();
    let error = runtime.create(spec()).await.err().unwrap();
    assert!(matches!(error, RuntimeError::NotReady { .. }), "{error}");
    let paths: Vec<String> = foreign
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|seen| seen.0.clone())
        .collect();
    assert_eq!(paths.last().map(String::as_str), Some("/stop"), "{paths:?}");
}
