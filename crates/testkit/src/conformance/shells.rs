//! Commands, their ends, and the shells that they run in.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use zareba_protocol::{
    Action, ActionEvent, BrowseUrl, ObservationKind, RunCommand, truncate_middle,
};

use super::{
    Failure, Trial,
    trial::{command_of, ended, output, output_in, perform, run, run_in},
};

/// Directory, variables, functions and aliases.
pub async fn state_is_kept_between_commands(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkdir sub; cd sub").await?;
    output(
        &*sandbox,
        "A='one  two'; greet() { echo \"hello $1\"; }; alias short='echo long'",
    )
    .await?;
    let ran = run(
        &*sandbox,
        "basename \"$PWD\"; echo \"$A\"; greet you; short",
    )
    .await?;
    assert_eq!(ended(&ran), (0, "sub\none  two\nhello you\nlong"));
    let inside = sandbox.workspace().join("sub").display().to_string();
    assert_eq!(ran.metadata.working_dir, Some(inside));
    sandbox.close().await?;
    Ok(())
}

/// Of programs, subshells, missing programs and signals.
pub async fn exit_codes_are_told(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let expected = [
        ("true", 0),
        ("false", 1),
        ("(exit 42)", 42),
        ("no-such-program-anywhere 2>/dev/null", 127),
        ("sh -c 'kill -9 $$'", 137),
    ];
    for (command, status) in expected {
        let ran = run(&*sandbox, command).await?;
        assert_eq!(ran.metadata.exit_code, status, "{command}: {ran:?}");
    }
    sandbox.close().await?;
    Ok(())
}

/// It goes on, and what is typed reaches it.
pub async fn a_silent_command_is_told_of_and_takes_input(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let ask = Action::Run(RunCommand::new("echo who; read name; echo \"hello $name\""));
    let ran = perform(&*sandbox, ask).await?;
    assert_eq!(ended(&ran), (-1, "who"));
    let suffix = &ran.metadata.suffix;
    ensure!(
        suffix.starts_with("\n[The command has no new output after 1 seconds. "),
        "{suffix}"
    );
    let refused = run(&*sandbox, "echo another").await?;
    let suffix = &refused.metadata.suffix;
    ensure!(
        suffix.starts_with("\n[Your command \"echo another\" is NOT executed. "),
        "{suffix}"
    );
    let ran = perform(&*sandbox, Action::Run(RunCommand::input("you"))).await?;
    assert_eq!(ended(&ran), (0, "hello you"));
    sandbox.close().await?;
    Ok(())
}

/// Its output so far comes at once, the rest when it is asked for.
pub async fn a_command_outlives_its_timeout(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkfifo gate").await?;
    let slow = ActionEvent::from(command_of("echo first; cat gate")).with_timeout(0.5);
    let ran = perform(&*sandbox, slow).await?;
    assert_eq!(ended(&ran), (-1, "first"));
    let suffix = &ran.metadata.suffix;
    ensure!(
        suffix.starts_with("\n[The command timed out after 0.5 seconds. "),
        "{suffix}"
    );
    output_in(&*sandbox, "other", "echo second > gate").await?;
    let rest = perform(&*sandbox, command_of("")).await?;
    assert_eq!(ended(&rest), (0, "second"));
    sandbox.close().await?;
    Ok(())
}

/// The end of input, and an interruption.
pub async fn keys_reach_the_running_program(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let waiting = ActionEvent::from(command_of("cat > typed")).with_timeout(0.5);
    assert_eq!(perform(&*sandbox, waiting).await?.metadata.exit_code, -1);
    let typed = Action::Run(RunCommand::input("a line"));
    assert_eq!(perform(&*sandbox, typed).await?.metadata.exit_code, -1);
    let end = perform(&*sandbox, Action::Run(RunCommand::input("C-d"))).await?;
    assert_eq!(end.metadata.exit_code, 0);
    assert_eq!(output(&*sandbox, "cat typed").await?, "a line");
    let waiting = ActionEvent::from(command_of("sleep 1000")).with_timeout(0.5);
    assert_eq!(perform(&*sandbox, waiting).await?.metadata.exit_code, -1);
    let interrupted = perform(&*sandbox, Action::Run(RunCommand::input("C-c"))).await?;
    assert_eq!(ended(&interrupted), (130, "^C"));
    sandbox.close().await?;
    Ok(())
}

/// Each end of a named pipe waits for the other.
pub async fn shells_run_at_the_same_time(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkfifo there back").await?;
    let (first, second) = tokio::join!(
        output_in(&*sandbox, "one", "echo ping > there; cat back"),
        output_in(&*sandbox, "two", "cat there; echo pong > back"),
    );
    assert_eq!((first?.as_str(), second?.as_str()), ("pong", "ping"));
    sandbox.close().await?;
    Ok(())
}

/// Also when none waits for the one before.
pub async fn actions_on_one_shell_run_in_the_order_they_were_asked_for(
    trial: &Trial,
) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let note = |number: u8| {
        let sandbox = &*sandbox;
        async move { output(sandbox, &format!("echo {number} >> order")).await }
    };
    tokio::try_join!(
        note(1),
        note(2),
        note(3),
        note(4),
        note(5),
        note(6),
        note(7),
        note(8)
    )?;
    assert_eq!(
        output(&*sandbox, "cat order").await?,
        "1\n2\n3\n4\n5\n6\n7\n8"
    );
    sandbox.close().await?;
    Ok(())
}

/// Each with what belongs to it.
pub async fn many_actions_at_once_are_each_answered(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..32_u32 {
        let sandbox = Arc::clone(&sandbox);
        tasks.spawn(async move {
            let shell = format!("shell-{}", number % 8);
            let ran = run_in(
                &*sandbox,
                &shell,
                &format!("echo {number}; (exit {number})"),
            )
            .await?;
            let expected = (i64::from(number), number.to_string());
            ensure!(
                ended(&ran) == (expected.0, expected.1.as_str()),
                "{number}: {ran:?}"
            );
            Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    sandbox.close().await?;
    Ok(())
}

/// The command goes on, and the next action finds the shell in order.
pub async fn a_dropped_future_does_not_wedge_the_shell(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkfifo begun gate").await?;
    let asked = Arc::clone(&sandbox);
    let waits = tokio::spawn(async move {
        asked
            .run_action(command_of("echo yes > begun; cat gate > passed").into())
            .await
    });
    assert_eq!(output_in(&*sandbox, "other", "cat begun").await?, "yes");
    waits.abort();
    let error = waits
        .await
        .err()
        .context("the future was answered before it was dropped")?;
    assert!(error.is_cancelled());
    let busy = run(&*sandbox, "echo too early").await?;
    assert_eq!(busy.metadata.exit_code, -1, "{busy:?}");
    output_in(&*sandbox, "other", "echo went on > gate").await?;
    let end = perform(&*sandbox, command_of("")).await?;
    assert_eq!(end.metadata.exit_code, 0, "{end:?}");
    assert_eq!(output(&*sandbox, "cat passed").await?, "went on");
    sandbox.close().await?;
    Ok(())
}

/// The observation says so, and the directory is kept.
pub async fn a_shell_that_ends_is_replaced(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkdir sub; cd sub; A=1").await?;
    let ran = run(&*sandbox, "exit 3").await?;
    assert_eq!(
        (ran.metadata.exit_code, ran.metadata.shell_restarted),
        (3, true),
        "{ran:?}"
    );
    assert_eq!(
        output(&*sandbox, "echo \"$(basename \"$PWD\") [$A]\"").await?,
        "sub []"
    );
    sandbox.close().await?;
    Ok(())
}

/// Nothing of it is lost: the observation names the file.
pub async fn long_output_is_cut_in_the_middle_and_kept_whole(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let lines: Vec<String> = (1..=9000).map(|number| number.to_string()).collect();
    let whole = lines.join("\n");
    let ran = run(&*sandbox, "seq 1 9000").await?;
    assert_eq!(ended(&ran), (0, truncate_middle(&whole).as_ref()));
    let file = ran
        .metadata
        .output_file
        .context("no file has the whole output")?;
    let whole_length = whole.len() + 1;
    let counted = output(&*sandbox, &format!("tr -d '\\r' < '{file}' | wc -c")).await?;
    assert_eq!(counted.trim(), whole_length.to_string());
    sandbox.close().await?;
    Ok(())
}

/// In commands, output and names of files.
pub async fn text_of_any_language_passes(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let text = "žluťoučký kůň, 日本語, 🦀, اَلْعَرَبِيَّةُ";
    assert_eq!(output(&*sandbox, &format!("echo '{text}'")).await?, text);
    output(&*sandbox, "touch 'ж 日本.txt'").await?;
    assert_eq!(sandbox.list_files(None).await?, ["ж 日本.txt"]);
    sandbox.close().await?;
    Ok(())
}

/// By an observation: an error is for when we break our own promise.
pub async fn an_action_that_nobody_can_perform_is_answered(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let browse = Action::Browse(BrowseUrl::new("about:blank"));
    let answer = sandbox.run_action(browse.into()).await?;
    let kind = &answer.observation.kind;
    ensure!(
        matches!(
            kind,
            ObservationKind::Error { .. } | ObservationKind::Browse(_)
        ),
        "{kind:?}"
    );
    let several = sandbox
        .run_action(command_of("echo 1\necho 2").into())
        .await?;
    let kind = &several.observation.kind;
    ensure!(matches!(kind, ObservationKind::Error { .. }), "{kind:?}");
    assert_eq!(ended(&run(&*sandbox, "echo fine").await?), (0, "fine"));
    sandbox.close().await?;
    Ok(())
}
