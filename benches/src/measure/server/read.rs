//! What the door of a session costs a read: the same sandbox runtime with it and without it.
//!
//! Both read in this process, so that nothing but the door stands between them: the session's handle
//! is taken anew for each read, as a server does it for each request.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use futures_util::StreamExt as _;
use tokio::runtime;
use zareba_eventlog::{Durability, EventLog};
use zareba_executor::{FileScope, Linting};
use zareba_runtime::{Runtime, Sandbox, SandboxRequest, SandboxSpec};
use zareba_runtime_native::{CliRuntime, NativeOptions};
use zareba_session::{
    AllowAll, Idle, NewSession, Owner, Permissions, Requester, Session, Sessions, SessionsOptions,
};
use zareba_wire::files::{Digest, ReadRequest};

use crate::{
    executor::Program,
    lane::{Subject, side_by_side},
    quantity::Quantity,
    setting::Setting,
    table::{Goal, Row},
};

const RUNS: usize = 5000;
const FILE: &str = "read.txt";
const BYTES: usize = 1024;
const FLOOR: &str = "without the door";
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn measure(setting: &Setting) -> anyhow::Result<Vec<Row>> {
    let threads = runtime::Builder::new_multi_thread().enable_all().build()?;
    let directory = tempfile::tempdir_in(&setting.program.scratch)?;
    let runtime = in_this_process(&setting.program, directory.path());
    let file = directory.path().join("events.db");
    let log = threads.block_on(EventLog::open_file(&file, Durability::Process))?;
    let (sessions, session) = threads.block_on(session_on(log, Arc::clone(&runtime)))?;
    let sandbox = threads.block_on(runtime.create(spec()))?;
    for workspace in [sandbox.workspace(), session.info().workspace.as_ref()] {
        std::fs::write(workspace.join(FILE), [b'x'; BYTES])?;
    }
    let mut judged = Judged {
        threads: &threads,
        session: &session,
    };
    let mut bare = Bare {
        threads: &threads,
        sandbox: &*sandbox,
    };
    let plan = setting.effort.plan(RUNS);
    let [with, without] = side_by_side([&mut judged, &mut bare], plan)?;
    threads.block_on(async {
        sandbox.close().await?;
        session.close().await?;
        sessions.shut_down(TIMEOUT).await;
        sessions.log().store().close().await?;
        anyhow::Ok(())
    })?;
    let row = |percentile: &str, value, floor| {
        let name = format!("read of 1 KiB through a session's door, {percentile}");
        Row::new(name, Quantity::time(value)).beside(FLOOR, Quantity::time(floor))
    };
    let cost = with.p50().as_secs_f64() - without.p50().as_secs_f64();
    Ok(vec![
        row("p50", with.p50(), without.p50()),
        row("p99", with.p99(), without.p99()),
        Row::new(
            "read of 1 KiB, p50, what the door costs",
            Quantity::Seconds(cost),
        )
        .goal(Goal::AtMost(Quantity::milliseconds(0.1))),
    ])
}

fn in_this_process(program: &Program, state: &std::path::Path) -> Arc<dyn Runtime> {
    Arc::new(CliRuntime::new(NativeOptions {
        state_dir: state.to_owned(),
        images: state.join("images"),
        environment: vec![("HOME".into(), program.home.clone().into())],
        shell: None,
        scope: FileScope::WholeFilesystem,
        linting: Linting::Off,
    }))
}

fn spec() -> SandboxSpec {
    SandboxSpec {
        id: None,
        image: None,
        workspace: None,
        environment: Vec::new(),
        no_change_timeout: TIMEOUT,
        timeout: TIMEOUT,
        request: SandboxRequest::default(),
        on_status: None,
    }
}

async fn session_on(
    log: EventLog,
    runtime: Arc<dyn Runtime>,
) -> anyhow::Result<(Sessions, Arc<Session>)> {
    let options = SessionsOptions {
        runtimes: BTreeMap::from([("cli".to_owned(), runtime)]),
        default_runtime: "cli".to_owned(),
        guard: Arc::new(AllowAll),
        idle_timeout: TIMEOUT,
        when_idle: Idle::Stay,
        life_max: None,
        no_change_timeout: TIMEOUT,
        timeout: TIMEOUT,
        sessions_max: 1,
        owner_sessions_max: 1,
        workspaces: Vec::new(),
        permissions: Permissions::default(),
        hidden: Vec::new(),
    };
    let (sessions, _) = Sessions::start(log, options).await?;
    let owner = Owner("bench".to_owned());
    let session = sessions.create_ready(NewSession::default(), owner).await?;
    Ok((sessions, session))
}

/// Reads through the door of a session.
struct Judged<'a> {
    threads: &'a runtime::Runtime,
    session: &'a Session,
}

/// Reads as the runtime does it.
struct Bare<'a> {
    threads: &'a runtime::Runtime,
    sandbox: &'a dyn Sandbox,
}

impl Subject for Judged<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.threads.block_on(async {
            let sandbox = self.session.access(Requester::cli()).await?;
            read(&sandbox).await
        })?;
        Ok(start.elapsed())
    }
}

impl Subject for Bare<'_> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.threads.block_on(read(self.sandbox))?;
        Ok(start.elapsed())
    }
}

async fn read(sandbox: &dyn Sandbox) -> anyhow::Result<()> {
    let request = ReadRequest {
        path: FILE.to_owned(),
        range: None,
        digest: Digest::Skip,
    };
    let mut content = sandbox.files()?.read(request).await?.stream;
    let mut bytes = 0;
    while let Some(piece) = content.next().await {
        bytes += piece.context("the file cannot be read")?.len();
    }
    anyhow::ensure!(bytes == BYTES, "{bytes} bytes were read");
    Ok(())
}
