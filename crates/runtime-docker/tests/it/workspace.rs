//! A workspace of this machine: what cannot be changed in it (NS-6), and what is mounted where its path is
//! swapped meanwhile (G-4).

use std::{
    fs,
    os::unix::fs::{chown, symlink},
    path::Path,
    sync::Arc,
};

use zareba_protocol::RuntimeStatus;
use zareba_runtime::{Runtime as _, Sandbox, SandboxSpec, StatusUpdate};
use zareba_runtime_docker::{DockerOptions, Lifetime};

use crate::fixture::{BUSYBOX, fixture_with, output, run, spec};

fn guarding(options: &mut DockerOptions) {
    options.guarded_names = [".envrc", ".vscode"].map(str::to_owned).to_vec();
}

fn spec_in(workspace: &Path) -> SandboxSpec {
    SandboxSpec {
        workspace: Some(workspace.to_owned()),
        ..spec()
    }
}

fn names(directory: &Path) -> Vec<String> {
    let listed = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = listed
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn assert_refused(sandbox: &dyn Sandbox, attempts: &[&str]) {
    for attempt in attempts {
        let (code, said) = run(sandbox, attempt).await;
        assert!(code > 0, "{attempt}: {code} {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn guarded_names_of_a_workspace_can_be_neither_made_nor_changed_ns_6() {
    let workspace = tempfile::tempdir().unwrap();
    let path = |name: &str| workspace.path().join(name);
    fs::create_dir(path(".git")).unwrap();
    fs::create_dir(path("theirs")).unwrap();
    fs::write(path(".envrc"), "theirs").unwrap();
    for name in [".git", "theirs", ".envrc"] {
        chown(path(name), Some(1000), Some(1000)).unwrap();
    }
    let fixture = fixture_with(BUSYBOX, guarding);
    let first = fixture.runtime.create(spec_in(workspace.path())).await;
    let sandbox = fixture
        .runtime
        .create(spec_in(workspace.path()))
        .await
        .unwrap();
    // The first to end leaves the other guarded.
    first.unwrap().close().await.unwrap();
    let attempts = [
        "echo x > .git/config",
        "echo x > .git/hooks/post-checkout",
        "mv .git/hooks .git/moved",
        "mv .git moved",
        "rm -rf .git",
        "echo x >> .envrc",
        "rm -f .envrc",
        "mv .envrc moved",
        "echo x > new && mv -f new .envrc",
        "echo x > .vscode/tasks.json",
        "rmdir .vscode",
        "mv .vscode moved",
        "mv theirs .vscode",
        "touch .vscode",
    ];
    assert_refused(&*sandbox, &attempts).await;
    output(&*sandbox, "echo x > .git/index && echo x > theirs/file").await;
    let inspected = sandbox.inspect().await.unwrap();
    assert_eq!(inspected["relaxed"], serde_json::json!([]));
    sandbox.close().await.unwrap();
    assert_eq!(names(workspace.path()), [".envrc", ".git", "new", "theirs"]);
    assert_eq!(names(&path(".git")), ["config", "hooks", "index"]);
    assert_eq!(names(&path(".git/hooks")), [""; 0]);
    assert_eq!(fs::read_to_string(path(".envrc")).unwrap(), "theirs");
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// No process outside holds it then: the executor does.
#[tokio::test(flavor = "multi_thread")]
async fn stand_ins_of_a_kept_sandbox_stay_while_it_runs_and_come_back_with_it_ns_6() {
    let workspace = tempfile::tempdir().unwrap();
    let stand_ins = [".envrc", ".vscode"];
    let fixture = fixture_with(BUSYBOX, |options| {
        guarding(options);
        options.lifetime = Lifetime::KeptAlive { idle_timeout: None };
    });
    let kept = fixture
        .runtime
        .create(spec_in(workspace.path()))
        .await
        .unwrap();
    let id = kept.id().clone();
    drop(kept);
    let other = fixture_with(BUSYBOX, guarding);
    let fleeting = other
        .runtime
        .create(spec_in(workspace.path()))
        .await
        .unwrap();
    fleeting.close().await.unwrap();
    assert_eq!(names(workspace.path()), stand_ins);
    fixture.runtime.stop(&id).await.unwrap();
    assert_eq!(names(workspace.path()), [""; 0]);
    let again = fixture.runtime.attach(&id).await.unwrap();
    assert_eq!(names(workspace.path()), stand_ins);
    assert_refused(&*again, &["echo x > .vscode/tasks.json", "mv .envrc moved"]).await;
    again.close().await.unwrap();
    assert_eq!(names(workspace.path()), [""; 0]);
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// The Engine looks a path up as root, and through links: a sandbox that can change a directory above another
/// one's workspace could have any directory of the machine mounted.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_above_a_workspace_that_is_swapped_for_a_link_ends_the_start_g_4() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("above/project")).unwrap();
    fs::create_dir_all(path("secret/project")).unwrap();
    let [above, moved, secret] = ["above", "moved", "secret"].map(path);
    let swap = move |update: &StatusUpdate| {
        // The container is made, and not started yet.
        if update.status == RuntimeStatus::RuntimeStarted {
            fs::rename(&above, &moved).unwrap();
            symlink(&secret, &above).unwrap();
        }
    };
    let fixture = fixture_with(BUSYBOX, |_| {});
    let spec = SandboxSpec {
        on_status: Some(Arc::new(swap)),
        ..spec_in(&place.path().join("above/project"))
    };
    let Err(error) = fixture.runtime.create(spec).await else {
        panic!("another directory was mounted");
    };
    let mut causes = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    let causes = causes.join(": ");
    assert!(causes.contains("which was asked for"), "{causes}");
    assert_eq!(fixture.leftovers(), [""; 0]);
}
