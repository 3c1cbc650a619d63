//! Making, finding and closing sandboxes.

use std::{fs, sync::Arc};

use anyhow::{Context as _, ensure};
use zareba_protocol::{Action, ErrorClass, RunCommand, RuntimeStatus};
use zareba_runtime::{ChangesRequest, CheckpointId, RuntimeError, SandboxId, Support};
use zareba_wire::variables::VariableChanges;

use super::{
    Failure, Trial,
    trial::{command_of, ended, output, output_in, perform, run},
};

/// What is asked of it first is answered by an empty place of its own.
pub async fn a_new_sandbox_is_ready_and_knows_its_place(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    assert_eq!(sandbox.status(), RuntimeStatus::Ready);
    assert_eq!(sandbox.runtime(), trial.runtime().name());
    assert!(sandbox.workspace().is_absolute());
    let workspace = sandbox.workspace().display().to_string();
    assert_eq!(output(&*sandbox, "pwd").await?, workspace);
    assert_eq!(sandbox.list_files(None).await?, [""; 0]);
    sandbox.close().await?;
    Ok(())
}

/// One after the other, and at once.
pub async fn closing_twice_is_no_error(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let (first, second) = tokio::join!(sandbox.close(), sandbox.close());
    first?;
    second?;
    sandbox.close().await?;
    assert_eq!(sandbox.status(), RuntimeStatus::Stopped);
    Ok(())
}

/// Told by the callback, and the same as what is said when asked.
pub async fn statuses_come_in_order(trial: &Trial) -> Result<(), Failure> {
    let (spec, mut statuses) = trial.spec_with_statuses();
    let sandbox = trial.sandbox_of(spec).await?;
    assert_eq!(sandbox.status(), RuntimeStatus::Ready);
    sandbox.close().await?;
    assert_eq!(sandbox.status(), RuntimeStatus::Stopped);
    drop(sandbox);
    let mut told = Vec::new();
    while let Some(status) = statuses.recv().await {
        told.push(status);
    }
    // An image may have to be built, and starting may be said again after that.
    told.retain(|status| *status != RuntimeStatus::BuildingRuntime);
    told.dedup();
    let expected = [
        RuntimeStatus::StartingRuntime,
        RuntimeStatus::RuntimeStarted,
        RuntimeStatus::Ready,
        RuntimeStatus::Stopped,
    ];
    assert_eq!(told, expected);
    Ok(())
}

/// Everything is refused in the same words.
pub async fn nothing_can_be_done_after_closing(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let here = tempfile::tempdir()?;
    sandbox.close().await?;
    let changes = VariableChanges::set(vec![("A".to_owned(), "1".to_owned())])?;
    let refusals = [
        sandbox.run_action(command_of("true").into()).await.err(),
        sandbox.list_files(None).await.err(),
        sandbox.copy_to(here.path(), "x".as_ref()).await.err(),
        sandbox.copy_from("x".as_ref(), here.path()).await.err(),
        sandbox.set_variables(changes).await.err(),
    ];
    let expected = format!("the sandbox `{}` is closed", sandbox.id());
    for refusal in refusals {
        let refusal = refusal.context("a closed sandbox did something")?;
        assert_eq!(
            (refusal.class(), refusal.to_string()),
            (ErrorClass::NotFound, expected.clone())
        );
    }
    Ok(())
}

/// It does not have to be waited for.
pub async fn closing_stops_an_action_under_way(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkfifo begun").await?;
    let asked = Arc::clone(&sandbox);
    let under_way = tokio::spawn(async move {
        asked
            .run_action(command_of("echo yes > begun; sleep 1000").into())
            .await
    });
    assert_eq!(output_in(&*sandbox, "other", "cat begun").await?, "yes");
    sandbox.close().await?;
    let refusal = under_way
        .await?
        .err()
        .context("an endless command has ended")?;
    assert_eq!(refusal.class(), ErrorClass::NotFound);
    Ok(())
}

/// What runs in the background, as a daemon, or in front after a timeout; the suite looks for it.
pub async fn closing_ends_everything_inside(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(
        &*sandbox,
        "sleep 1001 & nohup sleep 1002 > /dev/null 2>&1 &",
    )
    .await?;
    output(
        &*sandbox,
        "mkdir -p shut/in && touch shut/in/file && chmod 500 shut/in && chmod 000 shut",
    )
    .await?;
    output(&*sandbox, "(setsid sleep 1004 > /dev/null 2>&1 &)").await?;
    let silent = Action::Run(RunCommand::new("sleep 1003"));
    assert_eq!(perform(&*sandbox, silent).await?.metadata.exit_code, -1);
    output_in(&*sandbox, "other", "seq 1 100000").await?;
    sandbox.close().await?;
    Ok(())
}

/// Dropping the last handle closes, and does not block.
pub async fn a_dropped_handle_closes_in_the_background(trial: &Trial) -> Result<(), Failure> {
    let (spec, mut statuses) = trial.spec_with_statuses();
    let sandbox = trial.sandbox_of(spec).await?;
    output(&*sandbox, "sleep 1001 &").await?;
    drop(sandbox);
    while let Some(status) = statuses.recv().await {
        if status == RuntimeStatus::Stopped {
            return Ok(());
        }
    }
    anyhow::bail!("it was never said to be stopped")
}

/// Neither state nor files, and the end of one is not the end of the other.
pub async fn two_sandboxes_share_nothing(trial: &Trial) -> Result<(), Failure> {
    let (first, second) = tokio::try_join!(trial.sandbox(), trial.sandbox())?;
    assert_ne!(first.id(), second.id());
    output(&*first, "A=1; touch mine; cd /").await?;
    assert_eq!(output(&*second, "echo \"[$A]\"; ls").await?, "[]");
    let workspace = second.workspace().display().to_string();
    assert_eq!(output(&*second, "pwd").await?, workspace);
    first.close().await?;
    assert_eq!(output(&*second, "echo here").await?, "here");
    second.close().await?;
    Ok(())
}

/// The agent sees what is in it, we see what the agent does, and closing does not remove it.
pub async fn a_given_workspace_is_used_and_stays(trial: &Trial) -> Result<(), Failure> {
    let here = tempfile::tempdir()?;
    fs::write(here.path().join("ours"), "from here\n")?;
    let mut spec = trial.spec();
    spec.workspace = Some(here.path().to_owned());
    let sandbox = trial.sandbox_of(spec).await?;
    assert_eq!(output(&*sandbox, "cat ours").await?, "from here");
    output(&*sandbox, "echo from inside > theirs").await?;
    sandbox.close().await?;
    assert_eq!(
        fs::read_to_string(here.path().join("theirs"))?,
        "from inside\n"
    );
    Ok(())
}

/// Before anything is started.
pub async fn a_spec_with_a_bad_variable_is_refused(trial: &Trial) -> Result<(), Failure> {
    let mut spec = trial.spec();
    spec.environment.push(("A B".to_owned(), "1".to_owned()));
    let refusal = trial.runtime().create(spec).await.err();
    let refusal = refusal.context("a variable with a blank in its name was taken")?;
    assert_eq!(refusal.class(), ErrorClass::Invalid);
    Ok(())
}

/// By its capabilities, and by an error of the right class when it is asked all the same.
pub async fn what_a_backend_cannot_do_it_says(trial: &Trial) -> Result<(), Failure> {
    let capabilities = trial.runtime().capabilities();
    let sandbox = trial.sandbox().await?;
    let checkpoint = CheckpointId("none".to_owned());
    let mut refusals: Vec<(&str, Option<RuntimeError>)> = Vec::new();
    if capabilities.pause == Support::No {
        refusals.push(("pause a sandbox", sandbox.pause().await.err()));
        refusals.push(("resume a sandbox", sandbox.resume().await.err()));
    }
    if capabilities.checkpoint == Support::No {
        refusals.push(("checkpoint a sandbox", sandbox.checkpoint().await.err()));
        refusals.push((
            "roll a sandbox back",
            sandbox.rollback(&checkpoint).await.err(),
        ));
        refusals.push(("fork a sandbox", sandbox.fork().await.err()));
    }
    if capabilities.changes == Support::No {
        let deed = "tell what has changed in a workspace";
        let request = ChangesRequest::default();
        refusals.push((deed, sandbox.changes(request.clone()).await.err()));
        refusals.push((deed, sandbox.patch(request).await.err()));
    }
    if capabilities.attach == Support::No {
        let found = trial.runtime().attach(sandbox.id()).await;
        refusals.push(("find a sandbox again", found.err()));
    }
    let runtime = trial.runtime().name();
    for (deed, refusal) in refusals {
        let refusal = refusal.with_context(|| format!("it could {deed} after all"))?;
        let expected = format!("the runtime `{runtime}` cannot {deed}");
        assert_eq!(
            (refusal.class(), refusal.to_string()),
            (ErrorClass::Unsupported, expected)
        );
    }
    assert_eq!(
        ended(&run(&*sandbox, "echo unharmed").await?),
        (0, "unharmed")
    );
    sandbox.close().await?;
    Ok(())
}

/// With its state; a name that nothing has is told apart.
pub async fn a_sandbox_is_found_again_where_that_is_promised(trial: &Trial) -> Result<(), Failure> {
    if trial.runtime().capabilities().attach == Support::No {
        // What is then said is a case of its own.
        return Ok(());
    }
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "A=kept").await?;
    let again = trial.runtime().attach(sandbox.id()).await?;
    assert_eq!(
        (again.id(), again.workspace()),
        (sandbox.id(), sandbox.workspace())
    );
    assert_eq!(again.status(), RuntimeStatus::Ready);
    assert_eq!(output(&*again, "echo $A").await?, "kept");
    drop(again);
    assert_eq!(output(&*sandbox, "echo $A").await?, "kept");
    let nobody = SandboxId::new("nobody").context("a good name")?;
    let refusal = trial.runtime().attach(&nobody).await.err();
    let refusal = refusal.context("a sandbox was found that never was")?;
    ensure!(
        matches!(&refusal, RuntimeError::NotFound { sandbox } if *sandbox == nobody),
        "{refusal}"
    );
    sandbox.close().await?;
    let refusal = trial.runtime().attach(sandbox.id()).await.err();
    let refusal = refusal.context("a closed sandbox was found")?;
    assert_eq!(refusal.class(), ErrorClass::NotFound);
    Ok(())
}
