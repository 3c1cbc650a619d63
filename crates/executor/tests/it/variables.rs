//! Variables that are set while an executor runs: everything that starts and every shell gets them.

use std::{path::Path, time::Duration};

use zareba_protocol::{Action, ActionEvent, RunCommand, ShellName};
use zareba_wire::{
    ActionService as _,
    program::{ProgramEvent, ProgramLine, ProgramRequest, ProgramStdin, TerminalSize},
    variables::VariableChanges,
};

use crate::place::{Place, blocking, exit_code};

/// What a shell, a quotation or a line could be broken by.
const ODD: &str = "it's \"quoted\" $HOME `id` $(id) \\ !bang *\n\nsecond\tline 日本語\r\n";

/// Prints a variable in the brackets that show blanks, by a program and not by the shell.
const SHOW: &str = "python3 -c 'import os; print(repr(os.environ.get(\"GIVEN\")))'";

async fn set(place: &Place, pairs: &[(&str, Option<&str>)]) {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
    let changes = VariableChanges::new(pairs).unwrap();
    place
        .executor
        .set_variables(changes)
        .await
        .unwrap()
        .unwrap();
}

/// The whole output of a program that the executor starts, on pipes or on a terminal.
async fn program(place: &Place, line: &str, terminal: Option<TerminalSize>) -> String {
    let request = ProgramRequest {
        program: ProgramLine::Shell(line.to_owned()),
        directory: None,
        environment: Vec::new(),
        terminal,
        stdin: ProgramStdin::Closed,
    };
    let (_input, mut events) = place.executor.start_program(request).await.unwrap().split();
    let mut output = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            ProgramEvent::Stdout(bytes) | ProgramEvent::Stderr(bytes) => output.extend(bytes),
            _ => {}
        }
    }
    String::from_utf8(output).unwrap()
}

async fn in_shell(place: &Place, shell: &ShellName, command: &str) -> String {
    let event = blocking(command).with_shell(shell.clone());
    place.event(event).await.content
}

async fn once(place: &Place, command: &str) -> String {
    let run = RunCommand {
        is_static: true,
        blocking: true,
        ..RunCommand::new(command)
    };
    place.event(Action::Run(run)).await.content
}

/// What each kind of receiver has, in one order.
async fn received(place: &Place, shells: &[&ShellName]) -> Vec<String> {
    let size = TerminalSize::new(24, 500).unwrap();
    let mut received = vec![place.text(SHOW).await];
    for shell in shells {
        received.push(in_shell(place, shell, SHOW).await);
    }
    received.push(once(place, SHOW).await);
    received.push(program(place, SHOW, None).await.trim().to_owned());
    received.push(program(place, SHOW, Some(size)).await.trim().to_owned());
    received
}

fn python_repr(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('\'', "\\'");
    let value = value
        .replace('\n', "\\n")
        .replace('\t', "\\t")
        .replace('\r', "\\r");
    format!("'{value}'")
}

#[tokio::test]
async fn a_variable_reaches_every_shell_program_and_terminal_and_its_removal_too() {
    let place = Place::new().await;
    let [before, after] = ["before", "after"].map(|name| ShellName::new(name).unwrap());
    assert_eq!(in_shell(&place, &before, "echo here").await, "here");
    for value in [ODD, "", "plain", "-n", "'\""] {
        set(&place, &[("GIVEN", Some(value)), ("OTHER", Some("1"))]).await;
        let shells = [&before, &after];
        assert_eq!(
            received(&place, &shells).await,
            [(); 6].map(|()| python_repr(value))
        );
    }
    set(&place, &[("GIVEN", None)]).await;
    assert_eq!(received(&place, &[&before, &after]).await, ["None"; 6]);
    assert_eq!(place.text("echo $OTHER").await, "1");
}

#[tokio::test]
async fn a_value_of_64_kib_arrives_whole() {
    let place = Place::new().await;
    let value = "'\"$x\n".repeat(13_108);
    set(&place, &[("GIVEN", Some(&value))]).await;
    let measure = "python3 -c 'import os, hashlib; print(hashlib.sha256(os.environb[b\"GIVEN\"]).hexdigest())'";
    let expected = place.text("python3 -c 'import hashlib; print(hashlib.sha256((\"\\x27\\x22$x\\n\" * 13108).encode()).hexdigest())'").await;
    assert_eq!(place.text(measure).await, expected);
    assert_eq!(program(&place, measure, None).await.trim(), expected);
}

#[tokio::test]
async fn a_running_command_keeps_its_variables_and_the_next_one_has_the_new() {
    let place = Place::new().await;
    place.run("mkfifo gate").await;
    let waits = "echo begun; cat gate; echo \"[$GIVEN]\"";
    place.start(waits, "begun\r\n").await;
    set(&place, &[("GIVEN", Some("late"))]).await;
    let other = ShellName::new("other").unwrap();
    in_shell(&place, &other, "echo > gate").await;
    let ended = place.run("").await;
    assert!(ended.content.contains("[]"), "{ended:?}");
    assert_eq!(place.text("echo \"[$GIVEN]\"").await, "[late]");
}

#[tokio::test]
async fn a_shell_that_replaces_another_has_the_variables() {
    let place = Place::new().await;
    set(&place, &[("GIVEN", Some("kept")), ("PWD_OLD", None)]).await;
    place.run("exit 3").await;
    assert!(
        place
            .run("echo \"[$GIVEN]\"")
            .await
            .content
            .starts_with("[kept]")
    );
}

#[tokio::test]
async fn what_an_agent_removed_comes_back_only_when_it_is_set_again() {
    let place = Place::new().await;
    set(&place, &[("GIVEN", Some("1"))]).await;
    assert_eq!(place.text("echo $GIVEN; unset GIVEN").await, "1");
    set(&place, &[("OTHER", Some("2"))]).await;
    assert_eq!(place.text("echo \"[$GIVEN$OTHER]\"").await, "[2]");
    set(&place, &[("GIVEN", Some("1"))]).await;
    assert_eq!(place.text("echo \"[$GIVEN$OTHER]\"").await, "[12]");
}

#[tokio::test]
async fn setting_a_variable_shows_nothing_in_a_shell_that_traces_or_stops_at_errors() {
    let place = Place::new().await;
    for options in [
        "set -x",
        "set +x; set -v",
        "set +v; set -eu",
        "set +eu; set -a",
        "set +a; IFS=n",
    ] {
        place.run(options).await;
        set(&place, &[("GIVEN", Some("7h3-v4lue"))]).await;
        let observation = place.run("echo ${#GIVEN}").await;
        assert_eq!(exit_code(&observation), 0, "{options}: {observation:?}");
        assert!(
            observation.content.ends_with('9'),
            "{options}: {observation:?}"
        );
        assert!(
            !observation.content.contains("v4lue"),
            "{options}: {observation:?}"
        );
        let printed = place
            .run("python3 -c 'import os; print(os.environ[\"GIVEN\"] == \"7h3-\" + \"v4lue\")'")
            .await;
        assert!(printed.content.contains("True"), "{options}: {printed:?}");
        set(&place, &[("GIVEN", None)]).await;
    }
}

#[tokio::test]
async fn a_variable_is_set_though_its_command_is_no_command() {
    let place = Place::new().await;
    set(&place, &[("GIVEN", Some("1"))]).await;
    let broken = place.run("if then").await;
    assert_ne!(exit_code(&broken), 0, "{broken:?}");
    assert_eq!(place.text("echo \"[$GIVEN]\"").await, "[1]");
}

#[tokio::test]
async fn a_read_only_variable_of_a_shell_stays_and_others_are_set() {
    for shell in ["bash", "sh"] {
        let place = Place::with(|options| options.shell = Some(shell.into())).await;
        place.run("readonly GIVEN=own").await;
        set(&place, &[("GIVEN", Some("new")), ("OTHER", Some("2"))]).await;
        assert_eq!(
            place.text("echo \"$GIVEN $OTHER\"").await,
            "own 2",
            "{shell}"
        );
        assert_eq!(
            program(&place, "echo $GIVEN", None).await,
            "new\n",
            "{shell}"
        );
    }
}

#[tokio::test]
async fn a_posix_shell_gets_them_too() {
    let place = Place::with(|options| options.shell = Some("sh".into())).await;
    for value in [ODD, "plain"] {
        set(&place, &[("GIVEN", Some(value))]).await;
        assert_eq!(place.text(SHOW).await, python_repr(value));
    }
    place.run("set -eux").await;
    set(&place, &[("GIVEN", None), ("OTHER", Some("7h3-v4lue"))]).await;
    let observation = place.run("echo ${GIVEN-none} ${#OTHER}").await;
    assert!(observation.content.ends_with("none 9"), "{observation:?}");
    assert!(!observation.content.contains("v4lue"), "{observation:?}");
}

/// Ctrl-C may take the trigger, and the command is handed over twice: its variables are as they
/// should be, whatever the command does with them.
#[tokio::test]
async fn keys_between_two_commands_lose_no_variable() {
    let place = Place::new().await;
    for number in 0..30 {
        let value = number.to_string();
        set(&place, &[("GIVEN", Some(&value))]).await;
        let key = ActionEvent::from(Action::Run(RunCommand::input("C-c")));
        let (pressed, observation) = tokio::join!(
            place.event(key.with_timeout(Duration::from_secs(5).as_secs_f64())),
            place.run("true")
        );
        let printed = place.text("echo \"[$GIVEN]\"").await;
        assert_eq!(
            printed,
            format!("[{number}]"),
            "{pressed:?} {observation:?}"
        );
    }
    assert!(Path::new(&place.directory).is_dir());
}
