//! The command line and environment of an executor, and starts that fail.

use std::{process::Command, sync::LazyLock};

use zareba_runtime::RuntimeError;

use super::*;

fn options(environment: &[(&str, &str)]) -> NativeOptions {
    let environment = environment.iter();
    NativeOptions {
        state_dir: "/nowhere".into(),
        images: PathBuf::new(),
        environment: environment
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        shell: Some("/bin/bash".into()),
        scope: FileScope::WorkingDirectory,
        linting: Linting::On,
    }
}

fn variables() -> Result<Variables, RuntimeError> {
    Variables::new(vec![("LD_PRELOAD".to_owned(), "x.so".to_owned())])
}

fn order<'a>(
    program: &'a Path,
    directory: &'a Path,
    options: &'a NativeOptions,
    variables: &'a Variables,
) -> Order<'a> {
    static SPAWNER: LazyLock<Spawner> = LazyLock::new(|| Spawner::new(Path::new("/nowhere")));
    static SANDBOX: LazyLock<SandboxId> = LazyLock::new(|| SandboxId::new("local-1").unwrap());
    Order {
        program,
        options,
        directory,
        working_dir: Some(Path::new("/w")),
        no_change_timeout: Duration::from_millis(1500),
        sandbox: &SANDBOX,
        variables,
        tether: Tether::Lifeline,
        image: None,
        walls: None,
        spawner: &SPAWNER,
    }
}

#[test]
fn variables_for_shells_cannot_change_the_executor() {
    let options = options(&[
        ("PATH", "/bin"),
        ("SESSION_API_KEY", "another's"),
        ("ZAREBA_LOG", "debug"),
        ("ZAREBA_CONFIG", "mine.toml"),
        ("ZAREBA_SHELL_PROGRAM", "/bin/sh"),
    ]);
    let variables = variables().unwrap();
    let order = order(Path::new("zareba"), Path::new("/d"), &options, &variables);
    let expected = [
        ("PATH", "/bin"),
        ("ZAREBA_LOG", "debug"),
        ("ZAREBA_ENV_ZAREBA_EXECUTOR_SANDBOX", "local-1"),
        ("ZAREBA_ENV_LD_PRELOAD", "x.so"),
        ("ZAREBA_SHELL_NO_CHANGE_TIMEOUT", "1.5"),
        ("ZAREBA_SHELL_PROGRAM", "/bin/bash"),
        ("ZAREBA_FILES_SCOPE", "workspace"),
        ("ZAREBA_FILES_AUTO_LINT", "true"),
    ];
    let expected: Vec<(OsString, OsString)> = expected
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    assert_eq!(environment(&order), expected);
}

#[test]
fn a_socket_that_no_address_can_hold_is_refused_with_advice() {
    let options = options(&[]);
    let variables = variables().unwrap();
    let directory = PathBuf::from(format!("/{}", "d".repeat(100)));
    let error = spawn(&order(
        Path::new("zareba"),
        &directory,
        &options,
        &variables,
    ))
    .unwrap_err();
    assert!(
        matches!(error, StartServerError::PathTooLong { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_program_that_fails_is_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("zareba");
    let script = "#!/bin/sh\necho 'no shell for you' >&2\nexit 3\n";
    write_program(&program, script);
    for tether in [Tether::Lifeline, Tether::Free] {
        let place = tempfile::tempdir().unwrap();
        let (options, variables) = (options(&[]), variables().unwrap());
        let order = Order {
            tether,
            ..order(&program, place.path(), &options, &variables)
        };
        let Spawned {
            mut server,
            readiness,
            ..
        } = spawn(&order).unwrap();
        let error = readiness.ready(async {}).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the executor ended before it was ready, having written: no shell for you"
        );
        server.end().await;
    }
}

#[tokio::test]
async fn closing_the_lifeline_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("zareba");
    write_program(&program, "#!/bin/sh\necho ready\nread line\n");
    let (options, variables) = (options(&[]), variables().unwrap());
    let order = order(&program, directory.path(), &options, &variables);
    let Spawned {
        mut server,
        readiness,
        ..
    } = spawn(&order).unwrap();
    readiness.ready(async {}).await.unwrap();
    assert!(!server.process.has_ended());
    server.end().await;
    assert!(server.process.has_ended());
}

/// By another process: a descriptor of ours that is open for writing, inherited by a fork of
/// another test, would keep the program from being started.
fn write_program(path: &Path, text: &str) {
    let status = Command::new("sh")
        .args(["-c", "printf %s \"$1\" >\"$0\" && chmod 700 \"$0\""])
        .arg(path)
        .arg(text)
        .status()
        .unwrap();
    assert!(status.success());
}
