//! Programs with streams of their own, through a real executor.

use std::{fs, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::time::timeout;
use zareba_wire::{
    Endpoint, SessionKey,
    client::{ClientError, ExecutorClient},
    program::{
        ProgramConnection, ProgramEvent, ProgramEvents, ProgramExit, ProgramInput, ProgramLine,
        ProgramRequest, ProgramSignal, ProgramStdin, StartFailure, TerminalSize,
    },
};

use crate::support::{Executor, PATIENCE, ends_within};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Programs that one executor runs at once.
const PROGRAMS_MAX: usize = 64;

fn client(executor: &Executor) -> ExecutorClient {
    let endpoint = Endpoint::Unix(executor.socket().to_owned());
    ExecutorClient::new(endpoint, SessionKey::new(KEY).ok())
}

fn shell(text: &str) -> ProgramRequest {
    ProgramRequest::new(ProgramLine::Shell(text.to_owned()))
}

fn argv(words: &[&str]) -> ProgramRequest {
    let words = words.iter().map(|&word| word.to_owned());
    ProgramRequest::new(ProgramLine::Argv(words.collect()))
}

fn with_stdin(request: ProgramRequest) -> ProgramRequest {
    ProgramRequest {
        stdin: ProgramStdin::Open,
        ..request
    }
}

fn on_terminal(request: ProgramRequest) -> ProgramRequest {
    ProgramRequest {
        terminal: TerminalSize::new(33, 91),
        ..with_stdin(request)
    }
}

async fn start(executor: &Executor, request: ProgramRequest) -> ProgramConnection {
    client(executor).start_program(&request).await.unwrap()
}

async fn refusal(executor: &Executor, request: ProgramRequest) -> StartFailure {
    match client(executor).start_program(&request).await {
        Err(ClientError::Program(error)) => error.reason,
        other => panic!("{other:?}"),
    }
}

/// What came from a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    stdout: String,
    stderr: String,
    exit: Option<ProgramExit>,
}

impl Told {
    /// Takes one event; false after the last one.
    async fn listen(&mut self, events: &mut ProgramEvents) -> bool {
        match timeout(PATIENCE, events.next()).await {
            Ok(Some(ProgramEvent::Stdout(bytes))) => {
                self.stdout.push_str(&String::from_utf8_lossy(&bytes));
            }
            Ok(Some(ProgramEvent::Stderr(bytes))) => {
                self.stderr.push_str(&String::from_utf8_lossy(&bytes));
            }
            Ok(Some(ProgramEvent::Exit(exit))) => self.exit = Some(exit),
            Ok(Some(ProgramEvent::Error(message))) => panic!("{message}; {self:?}"),
            Ok(None) => return false,
            Err(_) => panic!("the program hangs: {self:?}"),
        }
        true
    }

    async fn until(events: &mut ProgramEvents, text: &str) -> Self {
        let mut told = Self::default();
        while !told.stdout.contains(text) {
            assert!(told.listen(events).await, "no `{text}` came: {told:?}");
        }
        told
    }

    async fn all(events: &mut ProgramEvents) -> Self {
        let mut told = Self::default();
        while told.listen(events).await {}
        told
    }
}

async fn run(executor: &Executor, request: ProgramRequest) -> Told {
    let (input, mut events) = start(executor, request).await.split();
    let told = Told::all(&mut events).await;
    drop(input);
    told
}

fn told(stdout: &str, stderr: &str, exit: ProgramExit) -> Told {
    Told {
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        exit: Some(exit),
    }
}

/// A program that tells its number, and that of its child, and is then waited for.
async fn with_numbers(
    executor: &Executor,
    request: ProgramRequest,
) -> (ProgramInput, ProgramEvents, Vec<i32>) {
    let (input, mut events) = start(executor, request).await.split();
    let told = Told::until(&mut events, "ready").await;
    let words = told.stdout.split_whitespace();
    let numbers = words.filter_map(|word| word.parse().ok()).collect();
    (input, events, numbers)
}

/// Waits for the ends of processes, on a thread that may block: the connection is cut by a task.
async fn are_over(numbers: Vec<i32>) {
    let wait = move || {
        for number in numbers {
            let pid = Pid::from_raw(number).unwrap();
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
                assert!(ends_within(&process, PATIENCE), "process {number} goes on");
            }
        }
    };
    tokio::task::spawn_blocking(wait).await.unwrap();
}

#[tokio::test]
async fn output_and_errors_come_apart_with_the_exit_code() {
    let executor = Executor::start();
    assert_eq!(
        run(&executor, shell("echo out; echo err >&2; exit 3")).await,
        told("out\n", "err\n", ProgramExit::Code(3))
    );
    assert_eq!(
        run(&executor, argv(&["printf", "%s|", "a b", "$HOME", ""])).await,
        told("a b|$HOME||", "", ProgramExit::Code(0))
    );
    assert_eq!(
        run(&executor, shell("cat; kill -TERM $$")).await,
        told("", "", ProgramExit::Signal(15))
    );
    // Fields behind the name: group, session and terminal.
    let place = "set -- $(cut -d' ' -f5- /proc/$$/stat); echo $(($1 == $$)) $(($2 == $$)) $3";
    assert_eq!(
        run(&executor, shell(place)).await,
        told("1 1 0\n", "", ProgramExit::Code(0))
    );
}

#[tokio::test]
async fn input_arrives_whole_and_ends() {
    let executor = Executor::start();
    let (input, mut events) = start(&executor, with_stdin(argv(&["sha256sum"])))
        .await
        .split();
    let megabyte = vec![b'x'; 1024 * 1024];
    for _ in 0..3 {
        input.write_stdin(megabyte.clone().into()).await.unwrap();
    }
    input.close_stdin().await.unwrap();
    let expected = run(
        &executor,
        shell("head -c 3145728 /dev/zero | tr '\\0' x | sha256sum"),
    )
    .await;
    assert_eq!(Told::all(&mut events).await, expected);
    // One that reads only the beginning of it does not hold up whoever writes.
    let (input, mut events) = start(
        &executor,
        with_stdin(shell("read -r line; exec <&-; echo $line; sleep 1000")),
    )
    .await
    .split();
    input.write_stdin("first\n".into()).await.unwrap();
    Told::until(&mut events, "first\n").await;
    for _ in 0..3 {
        timeout(PATIENCE, input.write_stdin(megabyte.clone().into()))
            .await
            .unwrap()
            .unwrap();
    }
    input.signal(ProgramSignal::Kill).await.unwrap();
    assert_eq!(
        Told::all(&mut events).await.exit,
        Some(ProgramExit::Signal(9))
    );
}

#[tokio::test]
async fn signals_reach_the_program_and_what_it_waits_for_bs_8() {
    let executor = Executor::start();
    // The signal is for the group, so that what it waits for may end by it, too.
    let script = "trap 'echo got usr1' USR1; trap 'echo got int; exit 5' INT; echo ready; \
                  while :; do sleep 1000 & wait; done";
    let (input, mut events) = start(&executor, shell(script)).await.split();
    Told::until(&mut events, "ready").await;
    input.signal(ProgramSignal::Usr1).await.unwrap();
    Told::until(&mut events, "got usr1").await;
    input.signal(ProgramSignal::Int).await.unwrap();
    assert_eq!(
        Told::all(&mut events).await,
        told("got int\n", "", ProgramExit::Code(5))
    );
    // The child of a shell that waits for it gets it, too.
    let (input, mut events) = start(&executor, shell("echo ready; sleep 1000; echo over"))
        .await
        .split();
    Told::until(&mut events, "ready").await;
    input.signal(ProgramSignal::Term).await.unwrap();
    assert_eq!(
        Told::all(&mut events).await.exit,
        Some(ProgramExit::Signal(15))
    );
}

#[tokio::test]
async fn a_terminal_has_the_size_that_it_is_given() {
    let executor = Executor::start();
    let script = "stty size; tty >/dev/null && echo tty; trap 'stty size' WINCH; echo ready; while :; do read -r line && eval \"$line\"; done";
    let (input, mut events) = start(&executor, on_terminal(argv(&["bash", "-c", script])))
        .await
        .split();
    let seen = Told::until(&mut events, "ready\r\n").await;
    assert!(seen.stdout.contains("33 91\r\ntty\r\n"), "{seen:?}");
    input
        .resize(TerminalSize::new(20, 70).unwrap())
        .await
        .unwrap();
    // bash runs its trap when `read` is through.
    input.write_stdin("true\n".into()).await.unwrap();
    Told::until(&mut events, "20 70\r\n").await;
    input
        .write_stdin("echo err >&2; exit 9\n".into())
        .await
        .unwrap();
    let rest = Told::all(&mut events).await;
    assert!(rest.stdout.contains("err\r\n"), "{rest:?}");
    assert_eq!(
        (rest.stderr.as_str(), rest.exit),
        ("", Some(ProgramExit::Code(9)))
    );
}

#[tokio::test]
async fn the_end_of_input_at_a_terminal_is_the_key_for_it() {
    let executor = Executor::start();
    let (input, mut events) = start(&executor, on_terminal(argv(&["cat"]))).await.split();
    input.write_stdin("line\n".into()).await.unwrap();
    Told::until(&mut events, "line\r\nline\r\n").await;
    input.close_stdin().await.unwrap();
    assert_eq!(
        Told::all(&mut events).await.exit,
        Some(ProgramExit::Code(0))
    );
    let (input, mut events) = start(&executor, on_terminal(shell("echo ready; exec sleep 1000")))
        .await
        .split();
    Told::until(&mut events, "ready").await;
    input.write_stdin("\x03".into()).await.unwrap();
    assert_eq!(
        Told::all(&mut events).await.exit,
        Some(ProgramExit::Signal(2))
    );
}

#[tokio::test]
async fn much_output_and_a_slow_reader_cost_the_executor_no_memory_g_5() {
    const BYTES: usize = 50 * 1024 * 1024;
    let executor = Executor::start();
    let request = shell(&format!("head -c {BYTES} /dev/zero; echo end >&2"));
    let (_input, mut events) = start(&executor, request).await.split();
    let (mut bytes, mut pieces, mut peak) = (0, 0, 0);
    loop {
        match timeout(PATIENCE, events.next()).await.unwrap() {
            Some(ProgramEvent::Stdout(piece)) => bytes += piece.len(),
            Some(ProgramEvent::Stderr(_)) => {}
            other => {
                assert_eq!(other, Some(ProgramEvent::Exit(ProgramExit::Code(0))));
                break;
            }
        }
        pieces += 1;
        if pieces % 50 == 0 {
            // Slow: the program is far ahead of it whenever it can be.
            tokio::time::sleep(Duration::from_millis(10)).await;
            peak = peak.max(private_kilobytes(&executor));
        }
    }
    assert_eq!(bytes, BYTES);
    assert!(peak > 0 && peak < 20 * 1024, "{peak} KiB");
}

/// What it has in memory beside its own file, which is large when it is not optimised.
fn private_kilobytes(executor: &Executor) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", executor.pid())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("RssAnon:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_cut_connection_ends_the_program_and_its_children() {
    let executor = Executor::start();
    let family = "sleep 1000 & echo $$ $! ready; wait; wait";
    // One that ignores being asked is killed, and one that has job control is hung up on.
    let stubborn = "trap '' TERM HUP; sleep 1000 & echo $$ $! ready; while :; do wait; done";
    let jobs = argv(&["bash", "-c", "set -m; sleep 1000 & echo $$ $! ready; wait"]);
    for request in [
        shell(family),
        on_terminal(shell(family)),
        shell(stubborn),
        on_terminal(shell(stubborn)),
        jobs.clone(),
        on_terminal(jobs),
    ] {
        let shown = format!("{request:?}");
        let (input, events, numbers) = with_numbers(&executor, request).await;
        assert_eq!(numbers.len(), 2, "{shown}");
        drop((input, events));
        are_over(numbers).await;
    }
}

#[tokio::test]
async fn what_a_program_leaves_in_its_session_ends_with_it() {
    let executor = Executor::start();
    let left = run(&executor, shell("sleep 1000 & echo $!; exit 0")).await;
    assert_eq!(left.exit, Some(ProgramExit::Code(0)));
    are_over(vec![left.stdout.trim().parse().unwrap()]).await;
}

#[tokio::test]
async fn the_environment_is_that_of_the_shells_without_the_key() {
    let executor = Executor::start_with(|command| {
        command
            .env("SESSION_API_KEY", KEY)
            .env("APP_PORT_1", "50000");
    });
    let mut request = shell("env; echo; pwd");
    request.environment = vec![
        ("ADDED".to_owned(), "two words".to_owned()),
        ("LANG".to_owned(), "C".to_owned()),
    ];
    let seen = run(&executor, request).await.stdout;
    let (variables, directory) = seen.split_once("\n\n").unwrap();
    let has = |line: &str| variables.lines().any(|other| other == line);
    assert!(
        has("APP_PORT_1=50000")
            && has("ADDED=two words")
            && has("LANG=C")
            && has("TERM=xterm-256color"),
        "{seen}"
    );
    assert!(
        !seen.contains("SESSION_API_KEY") && !seen.contains(KEY) && !seen.contains("ZAREBA_"),
        "{seen}"
    );
    let workspace = executor.place().path("workspace").canonicalize().unwrap();
    assert_eq!(directory.trim(), workspace.to_str().unwrap());
    fs::create_dir(workspace.join("sub")).unwrap();
    let mut request = shell("pwd");
    request.directory = Some("sub".to_owned());
    assert_eq!(
        run(&executor, request).await.stdout.trim(),
        workspace.join("sub").to_str().unwrap()
    );
    let stranger = ExecutorClient::new(Endpoint::Unix(executor.socket().to_owned()), None);
    let refused = stranger.start_program(&shell("true")).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Refused { status: 403, .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_program_that_cannot_be_started_has_a_reason() {
    let executor = Executor::start();
    let workspace = executor.place().path("workspace");
    fs::write(workspace.join("plain"), "text").unwrap();
    let elsewhere = |directory: &str| ProgramRequest {
        directory: Some(directory.to_owned()),
        ..argv(&["true"])
    };
    for (request, reason) in [
        (argv(&["no-such-program"]), StartFailure::NotFound),
        (argv(&["./missing"]), StartFailure::NotFound),
        (argv(&["./plain"]), StartFailure::NotExecutable),
        (argv(&["/"]), StartFailure::NotExecutable),
        (elsewhere("/no/such/place"), StartFailure::Directory),
        (elsewhere("plain"), StartFailure::Directory),
        (argv(&["true", &"x".repeat(200_000)]), StartFailure::Invalid),
        (
            argv(&["true", &"x".repeat(2_000_000)]),
            StartFailure::Invalid,
        ),
    ] {
        let shown = format!("{:.80}", format!("{request:?}"));
        assert_eq!(refusal(&executor, request).await, reason, "{shown}");
    }
}

#[tokio::test]
async fn there_are_so_many_programs_at_once_and_no_more_g_5() {
    let executor = Executor::start();
    let mut running = Vec::new();
    for _ in 0..PROGRAMS_MAX {
        running.push(start(&executor, with_stdin(argv(&["cat"]))).await);
    }
    assert_eq!(
        refusal(&executor, argv(&["true"])).await,
        StartFailure::Busy
    );
    let (input, mut events) = running.pop().unwrap().split();
    input.close_stdin().await.unwrap();
    assert_eq!(
        Told::all(&mut events).await.exit,
        Some(ProgramExit::Code(0))
    );
    // Its place is free once its task has ended, which it does after the last word.
    let freed = async {
        while client(&executor)
            .start_program(&argv(&["true"]))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, freed).await.unwrap();
}

#[tokio::test]
async fn programs_end_with_the_executor() {
    let mut executor = Executor::start();
    let (_input, mut events, numbers) = with_numbers(
        &executor,
        shell("trap '' TERM; sleep 1000 & echo $$ $! ready; wait; wait"),
    )
    .await;
    executor.signal(Signal::TERM);
    let (status, said) = executor.wait();
    assert!(status.success(), "{said}");
    are_over(numbers).await;
    let last = timeout(PATIENCE, events.next()).await.unwrap();
    assert!(matches!(last, Some(ProgramEvent::Error(_))), "{last:?}");
}

#[tokio::test]
async fn programs_and_shells_go_before_the_executor_when_memory_runs_out_ns_17() {
    let executor = Executor::start();
    let score = |pid: &str| -> i32 {
        let text = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let own = score(&executor.pid().to_string());
    assert!(own < 500, "{own}");
    let expected = "500";
    let (input, mut events) = start(
        &executor,
        with_stdin(shell("read -r line; cat /proc/$$/oom_score_adj")),
    )
    .await
    .split();
    // It has been set when the program is started.
    input.write_stdin("go\n".into()).await.unwrap();
    assert_eq!(Told::all(&mut events).await.stdout.trim(), expected);
    assert_eq!(executor.run("cat /proc/self/oom_score_adj"), expected);
    assert_eq!(score(&executor.pid().to_string()), own);
}
