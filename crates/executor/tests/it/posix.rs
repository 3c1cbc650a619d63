//! Shells that are no bash: what they can do, they do as well.

use std::{
    fs::Permissions,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, Mode, mkfifoat},
    process::{Pid, PidfdFlags, pidfd_open},
};
use tempfile::TempDir;
use zareba_executor::{Executor, ExecutorOptions, FileScope, Linting, User, shell_environment};

use crate::place::{LONG, Place, SLEEPER, blocking, exit_code, metadata};

struct PosixPlace {
    place: Place,
    _programs: TempDir,
}

/// An executor whose shell is `program` under the name `name`.
async fn posix(program: &str, name: &str) -> PosixPlace {
    assert!(
        Path::new(program).exists(),
        "{program} is needed for this test"
    );
    let programs = tempfile::tempdir().unwrap();
    let link = programs.path().join(name);
    symlink(program, &link).unwrap();
    let place = Place::with(|options| options.shell = Some(link)).await;
    PosixPlace {
        place,
        _programs: programs,
    }
}

/// What every shell can do.
async fn check(place: &Place) {
    let steps = [
        ("echo hello", "hello", 0),
        ("false", "", 1),
        ("echo $?", "1", 0),
        (
            "x=1; f() { echo \"f $1\"; return 4; }; alias say='echo said'",
            "",
            0,
        ),
        ("echo $x; f y", "1\nf y", 4),
        ("say so", "said so", 0),
        ("cat <<EOF | tr a-z A-Z\none $x\nEOF", "ONE 1", 0),
        ("for i in 1 2; do\n  echo $i\ndone", "1\n2", 0),
        (
            "echo a\\;b 'it'\\''s' \"\ttab\" | tr '\\t' T",
            "a;b it's Ttab",
            0,
        ),
        ("echo héllo 世界 🎉", "héllo 世界 🎉", 0),
        ("set -x; true", "", 0),
        ("set +x", "", 0),
        ("set -v", "", 0),
        ("echo verbose", "verbose", 0),
        ("set +v", "", 0),
        (
            "printf '%s|' 'a\n\nb' \"'\" '$x' '`' '\\'; echo\n\n",
            "a\n\nb|'|$x|`|\\|",
            0,
        ),
        ("env | grep -c -i '^_*zareba'", "0", 1),
    ];
    for (command, content, code) in steps {
        let observation = place.run(command).await;
        assert_eq!(exit_code(&observation), code, "{observation:?}");
        if !command.contains("set ") {
            assert_eq!(observation.content, content, "{command}");
        }
        assert!(!observation.content.contains("__zareba"), "{observation:?}");
    }
    assert_eq!(exit_code(&place.run("nonexistent_command").await), 127);
    assert_eq!(exit_code(&place.run("echo 'unterminated").await), 2);
    assert_eq!(
        place.run("cd /usr").await,
        place.ended_in(Path::new("/usr"), "cd /usr", "", 0)
    );
    check_signals(place).await;
    check_keys_and_ends(place).await;
}

/// A shell that waits for a command survives signals for which it has a trap, or one without.
async fn check_signals(place: &Place) {
    for (signal, times, trap) in [
        ("USR1", "1 2 3", "trap 'echo caught' USR1; "),
        ("INT", "1", ""),
    ] {
        let mut stream = place.stream().await;
        let send = format!("for i in {times}; do sleep 0.05; kill -{signal} $$; done");
        let later = format!("{trap}({send}; echo sent) &");
        assert_eq!(exit_code(&place.run(&later).await), 0);
        stream.until("sent").await;
        let observation = place.run("wait; echo alive").await;
        assert!(observation.content.ends_with("alive"), "{observation:?}");
        assert!(!metadata(&observation).shell_restarted, "{observation:?}");
        // The shell tells of its job behind this one at the latest.
        place.run("true").await;
    }
}

async fn check_keys_and_ends(place: &Place) {
    place.start(SLEEPER, "here").await;
    assert_eq!(exit_code(&place.input("C-c").await), 130);
    place.start("cat; echo after", "").await;
    assert_eq!(place.input("C-d").await.content, "after");
    place.start("read line; echo \"got $line\"", "").await;
    assert_eq!(place.input("words").await.content, "got words");
    place.start(SLEEPER, "here").await;
    assert_eq!(exit_code(&place.input("C-z").await), 148);
    assert!(place.text("jobs").await.contains("Stopped"));
    let big = "x".repeat(1024 * 1024);
    assert_eq!(
        place.text(&format!("x={big}; echo ${{#x}}")).await,
        "1048576"
    );
    // A shell with stopped jobs would hesitate to go, and `wait` does not wait for those.
    place.run("kill -9 %1; fg").await;
    let ended = place.run("exit 6").await;
    assert_eq!(
        (exit_code(&ended), metadata(&ended).shell_restarted),
        (6, true)
    );
    assert_eq!(place.text("echo \"<$x>\"; pwd").await, "<>\n/usr");
}

/// Ctrl-C at any moment loses no command.
async fn check_races(place: &Place) {
    for round in 0..100u32 {
        let seconds = f64::from(round % 10) / 2000.0;
        let first = place
            .event(blocking("sleep 0.002").with_timeout(seconds))
            .await;
        if exit_code(&first) == -1 {
            place.input("C-c").await;
        }
        let observation = place.run(&format!("echo mark{round}; (exit 9)")).await;
        assert_eq!(exit_code(&observation), 9, "{observation:?}");
        assert!(
            observation.content.ends_with(&format!("mark{round}")),
            "{observation:?}"
        );
    }
}

#[tokio::test]
async fn dash_is_driven() {
    let posix = posix("/bin/dash", "dash").await;
    check(&posix.place).await;
    check_races(&posix.place).await;
}

#[tokio::test]
async fn busybox_is_driven_when_there_is_no_bash() {
    let posix = posix("/bin/busybox", "sh").await;
    check(&posix.place).await;
    check_races(&posix.place).await;
}

#[tokio::test]
async fn without_bash_in_the_search_path_sh_is_found() {
    let programs = tempfile::tempdir().unwrap();
    symlink("/bin/busybox", programs.path().join("sh")).unwrap();
    symlink("/bin/busybox", programs.path().join("cat")).unwrap();
    let place = Place::with(|options| {
        let path = programs.path().as_os_str().to_owned();
        for (name, value) in &mut options.environment {
            if name == "PATH" {
                value.clone_from(&path);
            }
        }
    })
    .await;
    assert_eq!(place.text("echo $0 | cat").await, "sh");
}

#[tokio::test]
async fn bash_under_the_name_of_sh_is_driven_as_a_posix_shell() {
    let posix = posix("/bin/bash", "sh").await;
    check_keys_and_ends_in_usr(&posix.place).await;
}

async fn check_keys_and_ends_in_usr(place: &Place) {
    place.run("cd /usr").await;
    check_keys_and_ends(place).await;
}

/// Options of an executor in `home` with a search path that leads nowhere.
fn options(home: &Path, shell: &str) -> ExecutorOptions {
    let user = User::current().unwrap();
    ExecutorOptions {
        working_dir: home.join("w"),
        environment: shell_environment([("PATH".into(), "/nowhere".into())], [], &user),
        user,
        shell: (!shell.is_empty()).then(|| shell.into()),
        no_change_timeout: LONG,
        timeout: LONG,
        scope: FileScope::WholeFilesystem,
        linting: Linting::Off,
        state_dir: None,
    }
}

#[tokio::test]
async fn a_shell_that_is_not_there_is_named() {
    let home = tempfile::tempdir().unwrap();
    let start = |shell| Executor::start(options(home.path(), shell));
    let error = start("").await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(
        cause,
        "cannot find a shell: neither `bash` nor `sh` is in the search path `/nowhere`"
    );
    let error = start("/bin/false").await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.starts_with("the shell `/bin/false` ended before it was ready"),
        "{cause}"
    );
}

#[tokio::test]
async fn whoever_gives_up_waiting_for_the_first_shell_ends_it() {
    let home = tempfile::tempdir().unwrap();
    let shell = home.path().join("sh");
    let fifo = home.path().join("number");
    let text = format!(
        "#!/bin/sh\necho $$ > {}\nexec /bin/sleep 1000\n",
        fifo.display()
    );
    std::fs::write(&shell, text).unwrap();
    std::fs::set_permissions(&shell, Permissions::from_mode(0o755)).unwrap();
    mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
    let executor = Executor::prepare(options(home.path(), shell.to_str().unwrap())).unwrap();
    let told = tokio::task::spawn_blocking(move || std::fs::read_to_string(fifo).unwrap());
    let number = tokio::select! {
        begun = executor.begin(|| panic!("it is not ready")) => panic!("{begun:?}"),
        number = told => number.unwrap(),
    };
    let pid = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
    // Gone already, or about to be.
    if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
        let wait = move || {
            // Half of what it may take until it is ready: then it would be ended anyway.
            let within = Timespec::try_from(Duration::from_secs(10)).unwrap();
            poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&within)).unwrap()
        };
        let ended = tokio::task::spawn_blocking(wait).await.unwrap();
        assert_eq!(ended, 1, "the shell lives on");
    }
}

#[tokio::test]
async fn readiness_is_told_once_and_before_the_first_command() {
    let home = tempfile::tempdir().unwrap();
    let executor = Executor::prepare(options(home.path(), "/bin/sh")).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let again = tell.clone();
    executor
        .begin(move || tell.send("first").unwrap())
        .await
        .unwrap();
    executor
        .begin(move || again.send("second").unwrap())
        .await
        .unwrap();
    assert_eq!(told.iter().collect::<Vec<_>>(), ["first"]);
    let answer = executor.execute(blocking("echo here")).await;
    assert_eq!(answer.observation.content, "here");
    executor.shut_down().await;
}
