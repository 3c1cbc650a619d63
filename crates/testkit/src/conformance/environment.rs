//! Variables of shells.

use std::{fs, path::Path};

use zareba_protocol::{Action, ActionEvent, ErrorClass, RunCommand};
use zareba_runtime::Sandbox;
use zareba_wire::{
    program::{ProgramEvent, ProgramLine, ProgramRequest, ProgramStdin},
    variables::VariableChanges,
};

use super::{
    Failure, Trial,
    trial::{command_of, output, output_in, perform},
};

/// The first one, others, and those for one command.
pub async fn variables_of_the_spec_reach_every_shell(trial: &Trial) -> Result<(), Failure> {
    let mut spec = trial.spec();
    spec.environment
        .push(("GIVEN".to_owned(), "a $HOME 'b'".to_owned()));
    spec.environment.push(("EMPTY".to_owned(), String::new()));
    spec.environment.push(("LANG".to_owned(), "C".to_owned()));
    let sandbox = trial.sandbox_of(spec).await?;
    let show = "sh -c 'echo \"$GIVEN ${EMPTY-unset} $LANG\"'";
    let expected = "a $HOME 'b'  C";
    assert_eq!(output(&*sandbox, show).await?, expected);
    assert_eq!(output_in(&*sandbox, "other", show).await?, expected);
    let once = RunCommand {
        is_static: true,
        ..RunCommand::new(show)
    };
    assert_eq!(
        perform(&*sandbox, Action::Run(once)).await?.content,
        expected
    );
    sandbox.close().await?;
    Ok(())
}

/// Nothing in a value means anything to the shell, and programs get it.
pub async fn added_variables_are_taken_as_they_are(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let here = tempfile::tempdir()?;
    let values = [
        "plain",
        "$HOME `id` $(id) ${X:-y}",
        "it's \"quoted\" \\ and !bang",
        "two\nlines\tand a tab",
        "日本語 🦀",
        "",
    ];
    for value in values {
        set(&*sandbox, &[("ADDED", Some(value))]).await?;
        output(&*sandbox, "sh -c 'printf %s \"$ADDED\"' > value").await?;
        sandbox.copy_from(Path::new("value"), here.path()).await?;
        assert_eq!(fs::read_to_string(here.path().join("value"))?, value);
    }
    set(&*sandbox, &[("one", Some("1")), ("TWO", Some("2"))]).await?;
    set(&*sandbox, &[]).await?;
    assert_eq!(output(&*sandbox, "echo $one $TWO").await?, "1 2");
    set(&*sandbox, &[("one", None)]).await?;
    assert_eq!(output(&*sandbox, "echo ${one-none} $TWO").await?, "none 2");
    sandbox.close().await?;
    Ok(())
}

/// Not only the shell that is there: other shells, those for one command, and programs.
pub async fn added_variables_reach_every_shell_and_program(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output_in(&*sandbox, "before", "true").await?;
    set(&*sandbox, &[("ADDED", Some("here"))]).await?;
    let show = "sh -c 'echo \"${ADDED-unset}\"'";
    for shell in ["before", "after"] {
        assert_eq!(output_in(&*sandbox, shell, show).await?, "here", "{shell}");
    }
    let once = || RunCommand {
        is_static: true,
        ..RunCommand::new(show)
    };
    let alone = perform(&*sandbox, Action::Run(once())).await?;
    assert_eq!(alone.content, "here");
    if let Some(printed) = program_output(&*sandbox, show).await? {
        assert_eq!(printed, "here\n");
    }
    set(&*sandbox, &[("ADDED", None)]).await?;
    for shell in ["before", "after", "later"] {
        assert_eq!(output_in(&*sandbox, shell, show).await?, "unset", "{shell}");
    }
    sandbox.close().await?;
    Ok(())
}

/// It gets them with its next command.
pub async fn a_busy_shell_gets_variables_with_its_next_command(
    trial: &Trial,
) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkfifo gate").await?;
    let slow = ActionEvent::from(command_of("cat gate; echo \"[$LATE]\"")).with_timeout(0.5);
    assert_eq!(perform(&*sandbox, slow).await?.metadata.exit_code, -1);
    set(&*sandbox, &[("LATE", Some("1"))]).await?;
    output_in(&*sandbox, "other", "echo > gate").await?;
    let ended = perform(&*sandbox, command_of("")).await?;
    assert!(ended.content.contains("[]"), "{ended:?}");
    assert_eq!(output(&*sandbox, "echo $LATE").await?, "1");
    sandbox.close().await?;
    Ok(())
}

async fn set(sandbox: &dyn Sandbox, pairs: &[(&str, Option<&str>)]) -> Result<(), Failure> {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)));
    sandbox.set_variables(VariableChanges::new(pairs)?).await?;
    Ok(())
}

/// What a program writes; `None` where there are only shells.
async fn program_output(sandbox: &dyn Sandbox, line: &str) -> Result<Option<String>, Failure> {
    let request = ProgramRequest {
        program: ProgramLine::Shell(line.to_owned()),
        directory: None,
        environment: Vec::new(),
        terminal: None,
        stdin: ProgramStdin::Closed,
    };
    let started = match sandbox.start_program(request).await {
        Err(error) if error.class() == ErrorClass::Unsupported => return Ok(None),
        started => started?,
    };
    let (_input, mut events) = started.split();
    let mut printed = Vec::new();
    while let Some(event) = events.next().await {
        if let ProgramEvent::Stdout(bytes) = event {
            printed.extend(bytes);
        }
    }
    Ok(Some(String::from_utf8(printed)?))
}
