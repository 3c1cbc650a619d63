//! The command as an action, whose observation is printed.

use std::time::{Duration, Instant};

use zareba_config::Configuration;
use zareba_protocol::{
    Action, ActionEvent, CommandMetadata, LimitKind, ObservationKind, RunCommand,
};
use zareba_runtime::SandboxId;

use crate::{
    arguments::RunArguments,
    commands::Context,
    exit::Exit,
    failure::Failure,
    home_hint, quote,
    sandbox::{self, Wanted, within_named},
    say, settings,
};

/// Runs the command and prints what came of it.
pub(super) fn perform(
    context: &Context,
    configuration: &Configuration,
    arguments: &RunArguments,
    name: Option<SandboxId>,
) -> Result<Exit, Failure> {
    if arguments.interactive || arguments.terminal {
        let message = "the streams of a command cannot be printed as JSON";
        return Err(Failure::new(Exit::Usage, message).hint("leave out `-i` and `-t`"));
    }
    let command = match arguments.command.as_slice() {
        [text] => text.clone(),
        words => quote::join(words),
    };
    let limit = settings::command_limit(arguments.timeout, configuration);
    let action = RunCommand {
        blocking: true,
        cwd: arguments.workdir.clone(),
        ..RunCommand::new(without_input(&command))
    };
    let event = ActionEvent::from(Action::Run(action)).with_timeout(limit.as_secs_f64());
    let wanted = Wanted {
        name,
        command: &arguments.command,
        life: arguments.life.clone(),
    };
    within_named(context, configuration, wanted, async |sandbox, signals| {
        let began = Instant::now();
        let answer = tokio::select! {
            answer = sandbox.run_action(event) => answer,
            signal = signals.next() => return Ok(Exit::Command(128 + signal)),
        };
        let mut event = answer.map_err(|error| sandbox::failure(&error))?;
        let exit = match &mut event.observation.kind {
            ObservationKind::Run(output) => {
                output.command = command;
                tell_that_it_was_killed(&mut output.metadata, limit);
                Some(Exit::of_command(output.metadata.exit_code))
            }
            _ => None,
        };
        say::line(event.to_json())?;
        let failed = || Failure::new(Exit::Failure, event.observation.content.as_str());
        let exit = exit.ok_or_else(failed)?;
        let end = match exit {
            Exit::Timeout => "timed out".to_owned(),
            exit => format!("exit code {}", exit.number()),
        };
        let of_home = |exit| home_hint::for_fresh(context, configuration, &arguments.command, exit);
        home_hint::tell(Ok(exit), of_home)?;
        super::tell_end(arguments.quiet, &end, began.elapsed(), &*sandbox);
        Ok(exit)
    })
}

/// The same command with an empty standard input. The shell's own is a terminal that nobody types at, so a
/// command that reads would wait for ever.
fn without_input(command: &str) -> String {
    format!("eval {} </dev/null", quote::quote(command))
}

/// An executor says of a command that took too long that it goes on, and how to wait for it. This
/// one ends with its sandbox.
fn tell_that_it_was_killed(metadata: &mut CommandMetadata, limit: Duration) {
    if metadata.exit_code != CommandMetadata::NO_EXIT_CODE {
        return;
    }
    let seconds = limit.as_secs_f64();
    metadata.suffix = format!(
        "\n[The command timed out after {seconds:?} seconds and was killed with its sandbox.]"
    );
    for limit in &mut metadata.limits {
        if limit.kind == LimitKind::TimedOut {
            limit.message = format!("the command took longer than {seconds:?} s and was killed");
        }
    }
}

#[cfg(test)]
mod tests {
    use zareba_protocol::LimitHit;

    use super::*;

    #[test]
    fn a_command_that_was_killed_is_not_said_to_go_on() {
        let goes_on = CommandMetadata {
            suffix: "\n[You may wait longer.]".to_owned(),
            limits: vec![LimitHit {
                kind: LimitKind::TimedOut,
                message: "the command goes on".to_owned(),
            }],
            ..CommandMetadata::default()
        };
        let mut killed = goes_on.clone();
        tell_that_it_was_killed(&mut killed, Duration::from_millis(1500));
        let suffix = "\n[The command timed out after 1.5 seconds and was killed with its sandbox.]";
        assert_eq!(killed.suffix, suffix);
        let message = "the command took longer than 1.5 s and was killed";
        assert_eq!(killed.limits[0].message, message);
        let mut ended = CommandMetadata {
            exit_code: 0,
            ..goes_on.clone()
        };
        tell_that_it_was_killed(&mut ended, Duration::from_secs(1));
        assert_eq!(ended.suffix, goes_on.suffix);
    }
}
