//! One scope for all that touches files, however it is asked for.

use std::{fs, future::poll_fn, os::unix::fs::symlink, time::Duration};

use bytes::Bytes;
use futures_core::Stream;
use tempfile::TempDir;
use zareba_protocol::{
    Action, EditFile, FindFiles, Observation, ObservationKind, ReadFile, SearchFiles, WriteFile,
};
use zareba_wire::{ArchiveFormat, UploadTreatment};

use super::*;
use crate::{ExecutorOptions, FileScope, Linting, User};

/// A workspace `w` with a link `link` to the directory `out` beside it.
async fn start(scope: FileScope) -> (TempDir, Executor) {
    let outer = tempfile::tempdir().unwrap();
    fs::create_dir(outer.path().join("w")).unwrap();
    fs::create_dir(outer.path().join("out")).unwrap();
    fs::write(outer.path().join("out/secret"), "secret").unwrap();
    symlink("../out", outer.path().join("w/link")).unwrap();
    let options = ExecutorOptions {
        working_dir: outer.path().join("w"),
        user: User::current().unwrap(),
        environment: Vec::new(),
        shell: None,
        no_change_timeout: Duration::from_secs(30),
        timeout: Duration::from_secs(30),
        scope,
        linting: Linting::Off,
        state_dir: None,
    };
    (outer, Executor::start(options).await.unwrap())
}

async fn act(executor: &Executor, action: Action) -> Observation {
    let event = ActionEvent::from(action);
    let answer = Executor::execute(executor, event).await;
    answer.observation
}

fn read(path: &str) -> Action {
    Action::Read(ReadFile {
        path: path.to_owned(),
        ..crate::files::fixture::read_action(path)
    })
}

fn actions(path: &str) -> [Action; 5] {
    [
        read(path),
        Action::Write(WriteFile {
            path: path.to_owned(),
            content: "mine".to_owned(),
            start: 0,
            end: -1,
            thought: String::new(),
            security_risk: Default::default(),
        }),
        Action::Edit(EditFile {
            path: path.to_owned(),
            command: "view".to_owned(),
            ..Default::default()
        }),
        Action::Glob(FindFiles {
            pattern: "*".to_owned(),
            path: Some(path.to_owned()),
            ..Default::default()
        }),
        Action::Grep(SearchFiles {
            pattern: "secret".to_owned(),
            path: Some(path.to_owned()),
            ..Default::default()
        }),
    ]
}

async fn store(executor: &Executor, destination: &std::path::Path) -> Result<(), String> {
    let request = Upload {
        file_name: "new".to_owned(),
        destination: destination.to_owned(),
        treatment: UploadTreatment::Store,
        room: None,
    };
    let stored = ActionService::upload(executor, request, Box::pin(Once(Some(Bytes::new())))).await;
    stored.map_err(|error| error.to_string())
}

async fn fetch(executor: &Executor, path: &std::path::Path) -> Result<(), String> {
    let request = Download {
        path: path.to_owned(),
        format: ArchiveFormat::Tar,
    };
    let stream = ActionService::download(executor, request).await;
    let mut stream = stream.map_err(|error| error.to_string())?;
    while let Some(piece) = poll_fn(|context| stream.as_mut().poll_next(context)).await {
        piece.unwrap();
    }
    Ok(())
}

struct Once(Option<Bytes>);

impl Stream for Once {
    type Item = std::io::Result<Bytes>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.take().map(Ok))
    }
}

#[tokio::test]
async fn the_working_directory_is_all_that_files_searches_and_transfers_reach() {
    let (outer, executor) = start(FileScope::WorkingDirectory).await;
    let root = outer.path().canonicalize().unwrap();
    let out = root.join("out");
    for path in [out.join("secret"), root.join("w/link/secret")] {
        let shown = path.to_str().unwrap();
        let refusal = format!(
            "[Errno 13] Permission denied: '{shown}' (outside the workspace; only paths in '{}' can be used)",
            root.join("w").display()
        );
        for action in actions(shown) {
            let said = act(&executor, action.clone()).await;
            let expected = match &said.kind {
                ObservationKind::Edit(_) => {
                    format!("ERROR:\nRan into {refusal} while trying to read {shown}")
                }
                _ => refusal.clone(),
            };
            assert_eq!(said.content, expected, "{action:?}");
        }
        assert_eq!(store(&executor, &path).await, Err(refusal.clone()));
        assert_eq!(fetch(&executor, &path).await, Err(refusal));
        let listed = executor.list_files(path.parent().map(|path| path.display().to_string()));
        assert_eq!(listed.await, Vec::<String>::new());
    }
    assert_eq!(fs::read_to_string(out.join("secret")).unwrap(), "secret");
    assert_eq!(store(&executor, &root.join("w/sub")).await, Ok(()));
    assert_eq!(executor.list_files(None).await, ["sub/"]);
    executor.shut_down().await;
}

#[tokio::test]
async fn the_whole_file_system_is_reached_when_the_sandbox_is_the_wall() {
    let (outer, executor) = start(FileScope::WholeFilesystem).await;
    let out = outer.path().join("out");
    let secret = out.join("secret").display().to_string();
    assert_eq!(act(&executor, read(&secret)).await.content, "secret");
    assert_eq!(store(&executor, &outer.path().join("w/link")).await, Ok(()));
    let listed = executor.list_files(Some(out.display().to_string())).await;
    assert_eq!(listed, ["new", "secret"]);
    assert_eq!(fetch(&executor, &out).await, Ok(()));
    executor.shut_down().await;
}

#[tokio::test]
async fn transfers_take_names_that_are_not_text_as_listings_show_them() {
    let (outer, executor) = start(FileScope::WholeFilesystem).await;
    let shown = outer.path().join("w/caf\\xe9");
    assert_eq!(store(&executor, &shown).await, Ok(()));
    assert_eq!(executor.list_files(None).await, ["caf\\xe9/", "link/"]);
    assert_eq!(fetch(&executor, &shown).await, Ok(()));
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9");
    assert!(outer.path().join("w").join(name).join("new").exists());
    executor.shut_down().await;
}
