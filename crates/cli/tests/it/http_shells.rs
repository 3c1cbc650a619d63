//! Shells over HTTP: order, parallelism, clients that go away, limits and ends.

use std::{
    io::{Read as _, Write as _},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::http_client::{Executor, KEY, content, exit_code};

fn start() -> Result<Executor> {
    Executor::start(&[], &[])
}

fn on_shell(name: &str, command: &str) -> Value {
    json!({
        "action": "run",
        "args": { "command": command, "blocking": true },
        "timeout": 30.0,
        "shell": name,
    })
}

#[test]
fn shells_of_different_names_share_nothing_but_the_files() -> Result<()> {
    let executor = start()?;
    executor.act(&on_shell("a", "x=1; cd /tmp; echo shared > /dev/null"))?;
    assert_eq!(
        content(&executor.act(&on_shell("b", "echo \"[$x]\""))?),
        "[]"
    );
    assert_eq!(
        content(&executor.act(&on_shell("a", "echo \"[$x]\" $PWD"))?),
        "[1] /tmp"
    );
    Ok(())
}

#[test]
fn a_bad_shell_name_is_refused_and_names_the_rule() -> Result<()> {
    let executor = start()?;
    let body = serde_json::to_vec(&json!({ "action": on_shell("../x", "true") }))?;
    let answer = executor.send("POST", "/execute_action", "application/json", &body)?;
    ensure!(
        answer.status == 500 && answer.text().contains("shell"),
        "{}",
        answer.text()
    );
    Ok(())
}

#[test]
fn different_shells_run_at_once_and_a_read_waits_for_none() -> Result<()> {
    let executor = start()?;
    std::fs::write(executor.workspace()?.join("f"), "text\n")?;
    // Each shell waits for the other one's file: in turn, neither would ever end.
    let meet = |own: &str, other: &str| {
        format!(
            "mkfifo {own} 2>/dev/null; : > {own}.here; until [ -e {other}.here ]; do sleep 0.01; done; echo {own}"
        )
    };
    std::thread::scope(|scope| -> Result<()> {
        let first = scope.spawn(|| executor.act(&on_shell("a", &meet("a", "b"))));
        let third = scope.spawn(|| {
            executor.act(&on_shell(
                "c",
                "until [ -e a.here ]; do sleep 0.01; done; cat f",
            ))
        });
        let read = executor.act(&json!({ "action": "read", "args": { "path": "f" } }))?;
        assert_eq!(content(&read), "text\n");
        assert_eq!(
            content(&executor.act(&on_shell("b", &meet("b", "a")))?),
            "b"
        );
        assert_eq!(content(&first.join().ok().context("a panicked")??), "a");
        assert_eq!(content(&third.join().ok().context("c panicked")??), "text");
        Ok(())
    })
}

#[test]
fn actions_on_one_shell_run_in_the_order_in_which_they_came() -> Result<()> {
    let executor = start()?;
    std::thread::scope(|scope| -> Result<()> {
        let slow = scope.spawn(|| {
            executor.run(
                "echo slow >> order; until [ -e go ]; do sleep 0.01; done; echo end >> order",
                30.0,
            )
        });
        // The second is sent when the first is known to run.
        let order = executor.workspace()?.join("order");
        while !order.exists() {
            std::thread::yield_now();
        }
        let second = scope.spawn(|| executor.run("echo second >> order", 30.0));
        std::fs::write(executor.workspace()?.join("go"), "")?;
        slow.join().ok().context("slow panicked")??;
        second.join().ok().context("second panicked")??;
        assert_eq!(std::fs::read_to_string(order)?, "slow\nend\nsecond\n");
        Ok(())
    })
}

#[test]
fn a_client_that_goes_away_leaves_its_command_running_and_the_shell_usable() -> Result<()> {
    let executor = start()?;
    let body = serde_json::to_vec(&json!({ "action": {
        "action": "run",
        "args": { "command": "echo begun > begun; until [ -e go ]; do sleep 0.01; done; echo still here", "blocking": true },
        "timeout": 60.0,
    }}))?;
    let mut stream = executor.connect()?;
    let length = body.len();
    write!(
        stream,
        "POST /execute_action HTTP/1.1\r\nHost: localhost\r\nX-Session-API-Key: {KEY}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(&body)?;
    let begun = executor.workspace()?.join("begun");
    while !begun.exists() {
        std::thread::yield_now();
    }
    drop(stream);
    let meanwhile = executor.run("echo no", 5.0)?;
    ensure!(
        meanwhile["extras"]["metadata"]["suffix"]
            .as_str()
            .is_some_and(|suffix| suffix.contains("is NOT executed")),
        "{meanwhile}"
    );
    std::fs::write(executor.workspace()?.join("go"), "")?;
    let rest = executor.run("", 30.0)?;
    assert_eq!((content(&rest), exit_code(&rest)), ("still here", 0));
    assert_eq!(executor.output("echo usable")?, "usable");
    Ok(())
}

#[test]
fn a_command_of_a_megabyte_runs() -> Result<()> {
    let executor = start()?;
    let long = "x".repeat(1024 * 1024);
    let observation = executor.run(&format!("y='{long}'; echo ${{#y}}"), 60.0)?;
    assert_eq!(
        (content(&observation), exit_code(&observation)),
        ("1048576", 0)
    );
    Ok(())
}

#[test]
fn long_output_is_cut_and_the_whole_of_it_is_in_the_file_that_is_named() -> Result<()> {
    let executor = start()?;
    let observation = executor.run("seq 1 200000", 60.0)?;
    let metadata = &observation["extras"]["metadata"];
    ensure!(
        content(&observation).chars().count() == 30_047,
        "{}",
        content(&observation).len()
    );
    ensure!(
        content(&observation).contains("[... Observation truncated due to length ...]"),
        "no marker"
    );
    let file = metadata["output_file"].as_str().context("no file")?;
    let whole = std::fs::read_to_string(file)?.replace('\r', "");
    let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    ensure!(whole == expected, "the file holds {} bytes", whole.len());
    // The terminal wrote each line end as two characters.
    assert_eq!(metadata["output_bytes"], json!(expected.len() + 200_000));
    Ok(())
}

#[test]
fn the_key_and_our_own_variables_do_not_reach_the_shell() -> Result<()> {
    let executor = Executor::start(&[("ZAREBA_LOG", "warn"), ("APP_PORT_1", "50000")], &[])?;
    let environment = executor.output("env")?;
    ensure!(environment.contains("APP_PORT_1=50000"), "{environment}");
    for secret in [KEY, "SESSION_API_KEY", "ZAREBA_"] {
        ensure!(
            !environment.contains(secret),
            "{secret} is in {environment}"
        );
    }
    assert_eq!(executor.output("env")?, environment);
    // Nor is it to be had from the process that keeps it.
    let theft = executor.run(
        &format!(
            "tr '\\0' '\\n' < /proc/{}/environ | grep -c {KEY}",
            executor.pid()
        ),
        10.0,
    )?;
    assert_eq!(content(&theft).lines().last(), Some("0"), "{theft}");
    Ok(())
}

#[test]
fn a_stop_signal_ends_the_executor_with_everything_that_it_started() -> Result<()> {
    let executor = start()?;
    // A job of the shell, a daemon that left its session, and a command under way.
    executor.output("sleep 1000 & echo $! > job; setsid -f sh -c 'echo $$ > daemon; exec sleep 1000'; until [ -s daemon ]; do sleep 0.01; done")?;
    executor.run("echo $$ > shell; sleep 1000", 0.2)?;
    let workspace = executor.workspace()?;
    let pids: Vec<String> = ["job", "daemon", "shell"]
        .into_iter()
        .map(|name| {
            Ok(std::fs::read_to_string(workspace.join(name))?
                .trim()
                .to_owned())
        })
        .collect::<Result<_>>()?;
    let lives = |pid: &str| std::path::Path::new(&format!("/proc/{pid}")).exists();
    ensure!(pids.iter().all(|pid| lives(pid)), "{pids:?}");
    let temporary = executor.temporary();
    ensure!(
        std::fs::read_dir(&temporary)?.count() > 0,
        "the state directory is elsewhere"
    );
    let began = Instant::now();
    let (status, directory) = executor.stop()?;
    ensure!(status.success(), "{status}");
    ensure!(
        began.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        began.elapsed()
    );
    let left: Vec<&String> = pids.iter().filter(|pid| lives(pid)).collect();
    ensure!(
        left.is_empty(),
        "{left:?} of job, daemon and shell {pids:?} live"
    );
    assert_eq!(std::fs::read_dir(directory.path().join("tmp"))?.count(), 0);
    assert!(!directory.path().join("socket").exists());
    Ok(())
}

#[test]
fn garbage_gets_an_answer_and_the_server_lives() -> Result<()> {
    let executor = start()?;
    let mut stream = executor.connect()?;
    stream.write_all(b"\x00\xff\x13garbage\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    ensure!(
        answer.starts_with(b"HTTP/1.1 400"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    assert_eq!(executor.output("echo fine")?, "fine");
    Ok(())
}
