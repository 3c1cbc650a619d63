//! Ways out of a `native` sandbox, tried from inside: one test per attempt.
//!
//! A refusal counts only with its reason: every test asks for the error that the wall in question
//! gives, goes on to use the sandbox, and looks at what the attempt would have changed outside.
//! Where it does no harm the same attempt is made without the walls, and has to fare better there:
//! what fails everywhere proves nothing. `docs/escapes.md` says which wall stops what.

mod descriptors;
mod files;
mod kernel;
mod network;
mod processes;
mod program;
mod python;
mod resources;
mod sockets;
mod transfers;

use std::{path::Path, sync::Arc};

use zareba_protocol::{Action, ObservationKind, RunCommand};
use zareba_runtime::{Runtime as _, Sandbox, SandboxSpec, Strictness};
use zareba_runtime_native::{
    DiskLimit, NativeRuntime, Reachable, SystemMode, Usage, Walls, WorkspaceMode,
};

use crate::fixture::{self, Fixture, output, spec};

const MIB: u64 = 1024 * 1024;

const MEMORY_BYTES: u64 = 256 * MIB;

/// What most attempts are made behind.
const WALLS: Walls = Walls {
    workspace: WorkspaceMode::CopyOnWrite,
    system: SystemMode::CopyOnWrite,
    guarded: Vec::new(),
    home_tools: zareba_runtime_native::HomeAccess::Hidden,
    network: Reachable::Nothing,
    usage: Usage {
        memory_bytes: MEMORY_BYTES,
        pids: 64,
        cpu_millis: 2000,
        disk: DiskLimit {
            bytes: 256 * MIB,
            inodes: 50_000,
        },
    },
    strictness: Strictness::Strict,
};

/// The same with a workspace whose changes reach the machine.
fn open_workspace() -> Walls {
    Walls {
        workspace: WorkspaceMode::ReadWrite,
        guarded: [".envrc", ".vscode"].map(str::to_owned).to_vec(),
        ..WALLS
    }
}

/// A sandbox that attempts are made in.
struct Prison {
    fixture: Fixture<NativeRuntime>,
    sandbox: Arc<dyn Sandbox>,
}

impl Prison {
    async fn new() -> Self {
        Self::of(fixture::native_with(WALLS), spec()).await
    }

    /// A sandbox that works in a directory of the machine.
    async fn at(walls: Walls, workspace: &Path) -> Self {
        let spec = SandboxSpec {
            workspace: Some(workspace.to_owned()),
            ..spec()
        };
        Self::of(fixture::native_with(walls), spec).await
    }

    async fn of(fixture: Fixture<NativeRuntime>, spec: SandboxSpec) -> Self {
        let sandbox = fixture.runtime.create(spec).await.unwrap();
        Self { fixture, sandbox }
    }

    /// The status of a command, and what it printed.
    async fn shell(&self, command: &str) -> (i64, String) {
        let action = Action::Run(RunCommand {
            blocking: true,
            ..RunCommand::new(command)
        });
        let answer = self.sandbox.run_action(action.into()).await.unwrap();
        let content = answer.observation.content;
        match answer.observation.kind {
            ObservationKind::Run(run) => (run.metadata.exit_code, content),
            other => panic!("`{command}` came to {other:?}: {content}"),
        }
    }

    /// What an attempt, which is an expression of Python, comes to.
    async fn attempt(&self, expression: &str) -> String {
        self.python(&python::shown(expression)).await
    }

    /// What a program that must end well prints.
    async fn python(&self, program: &str) -> String {
        let (status, shown) = self.shell(&python::inside(program)).await;
        assert_eq!(status, 0, "{program}\n{shown}");
        shown
    }

    /// Attempts one thing, which must come to `expected`, and ends.
    async fn finds(self, expression: &str, expected: &str) {
        assert_eq!(self.attempt(expression).await, expected, "{expression}");
        self.end().await;
    }

    /// The sandbox is well after all that, and leaves nothing behind.
    async fn end(self) {
        assert_eq!(output(&*self.sandbox, "echo well").await, "well");
        self.sandbox.close().await.unwrap();
        assert_eq!(self.fixture.leftovers(), [""; 0]);
    }
}

/// Who fares better with the same attempt outside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    /// Everybody.
    Everybody,
    /// Root; others are refused by the kernel whether there are walls or not.
    Root,
    /// Nobody whom we could ask: it would change the machine, or few kernels have it.
    Nobody,
}

/// An attempt that comes to `expected` inside, and to something else outside.
async fn refused(expression: &str, expected: &str, control: Control) {
    let is_root = rustix::process::geteuid().is_root();
    if control == Control::Everybody || control == Control::Root && is_root {
        let outside = python::outside(&python::shown(expression));
        assert_ne!(outside, expected, "outside it is no better: {expression}");
    }
    Prison::new().await.finds(expression, expected).await;
}

/// A file of the machine that everybody may read, in a directory that everybody may enter.
struct Treasure {
    directory: tempfile::TempDir,
    content: String,
}

impl Treasure {
    fn hide() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        let content = format!("treasure of {}", directory.path().display());
        std::fs::write(directory.path().join("treasure"), &content).unwrap();
        Self { directory, content }
    }

    fn path(&self) -> String {
        self.directory.path().join("treasure").display().to_string()
    }

    /// Nothing came in, and nothing was done to it.
    fn assert_untouched(&self) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.directory.path().join("treasure");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), self.content);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644 & !umask());
        assert_eq!(std::fs::read_dir(self.directory.path()).unwrap().count(), 1);
    }
}

/// What new files of ours lack; the kernel tells without setting another one.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    u32::from_str_radix(line.unwrap().trim(), 8).unwrap()
}
