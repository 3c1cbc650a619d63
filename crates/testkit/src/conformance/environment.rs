//! Variables of shells.

use std::{fs, path::Path};

use anyhow::Context as _;
use zareba_protocol::{Action, ActionEvent, ErrorClass, RunCommand};

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
        sandbox
            .add_env(vec![("ADDED".to_owned(), value.to_owned())])
            .await?;
        output(&*sandbox, "sh -c 'printf %s \"$ADDED\"' > value").await?;
        sandbox.copy_from(Path::new("value"), here.path()).await?;
        assert_eq!(fs::read_to_string(here.path().join("value"))?, value);
    }
    let pairs = [("one", "1"), ("TWO", "2")];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    sandbox.add_env(pairs.to_vec()).await?;
    sandbox.add_env(Vec::new()).await?;
    assert_eq!(output(&*sandbox, "echo $one $TWO").await?, "1 2");
    sandbox.close().await?;
    Ok(())
}

/// A name could be code.
pub async fn bad_names_of_variables_are_refused(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    for name in ["", "A B", "A;touch x;B", "$(touch x)", "1A"] {
        let pairs = vec![
            ("GOOD".to_owned(), "1".to_owned()),
            (name.to_owned(), "1".to_owned()),
        ];
        let refusal = sandbox.add_env(pairs).await.err();
        let refusal = refusal.with_context(|| format!("`{name}` was taken"))?;
        assert_eq!(refusal.class(), ErrorClass::Invalid);
    }
    assert_eq!(output(&*sandbox, "ls; echo \"[$GOOD]\"").await?, "[]");
    sandbox.close().await?;
    Ok(())
}

/// It says so, and takes them when the command has ended.
pub async fn a_busy_shell_takes_no_variables(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkfifo gate").await?;
    let slow = ActionEvent::from(command_of("cat gate")).with_timeout(0.5);
    assert_eq!(perform(&*sandbox, slow).await?.metadata.exit_code, -1);
    let pairs = vec![("LATE".to_owned(), "1".to_owned())];
    let refusal = sandbox.add_env(pairs.clone()).await.err();
    let refusal = refusal.context("a busy shell took a variable")?;
    assert_eq!(refusal.class(), ErrorClass::Busy);
    output_in(&*sandbox, "other", "echo > gate").await?;
    perform(&*sandbox, command_of("")).await?;
    sandbox.add_env(pairs).await?;
    assert_eq!(output(&*sandbox, "echo $LATE").await?, "1");
    sandbox.close().await?;
    Ok(())
}
