//! `zareba replay`: a recorded trajectory once more, with what differs.

mod compare;
mod recording;

use std::sync::Arc;

use serde_json::{Value, json};
use zareba_protocol::ActionEvent;
use zareba_runtime::Sandbox;

use crate::{
    arguments::{OutputFormat, ReplayArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    lines::Source,
    sandbox, say,
};

use compare::Difference;
use recording::{Recording, Step};

/// Performs every recorded action in one sandbox and compares what comes of it.
pub(crate) fn perform(context: &Context, arguments: &ReplayArguments) -> Result<Exit, Failure> {
    let flags = arguments.sandbox.overrides()?;
    let configuration = context.configuration(flags)?;
    let recording = Recording::read(&Source::of(&arguments.file))?;
    sandbox::within(context, &configuration, async |sandbox| {
        let mut tally = Tally::default();
        for step in recording.steps {
            let difference = play(&sandbox, &step).await?;
            tally.count(&step, difference.as_ref());
            let Some(difference) = difference else {
                continue;
            };
            show(context, &step, &difference)?;
            if !arguments.keep_going {
                break;
            }
        }
        tally.tell();
        Ok(tally.exit())
    })
}

/// Performs one action; what differs is returned.
async fn play(sandbox: &Arc<dyn Sandbox>, step: &Step) -> Result<Option<Difference>, Failure> {
    let answer = sandbox.run_action(step.action.clone()).await;
    let observation = answer.map_err(|error| sandbox::failure(&error))?;
    let recorded = step.observation.as_ref();
    Ok(recorded.and_then(|recorded| compare::compare(recorded, &observation.to_value())))
}

/// What was seen so far.
#[derive(Default)]
struct Tally {
    same: usize,
    different: usize,
    unanswered: usize,
}

impl Tally {
    fn count(&mut self, step: &Step, difference: Option<&Difference>) {
        match (&step.observation, difference) {
            (None, _) => self.unanswered += 1,
            (Some(_), None) => self.same += 1,
            (Some(_), Some(_)) => self.different += 1,
        }
    }

    fn tell(&self) {
        let performed = self.same + self.different + self.unanswered;
        let mut words = format!(
            "{performed} {} performed: {} as recorded, {} different",
            if performed == 1 { "action" } else { "actions" },
            self.same,
            self.different
        );
        if self.unanswered > 0 {
            words.push_str(&format!(", {} without a recorded answer", self.unanswered));
        }
        say::note(words);
    }

    fn exit(&self) -> Exit {
        if self.different == 0 {
            Exit::Success
        } else {
            Exit::Negative
        }
    }
}

fn show(context: &Context, step: &Step, difference: &Difference) -> Result<(), Failure> {
    match context.globals.output {
        OutputFormat::Text => say::text(&format!(
            "event {}: {}\n{difference}",
            step.number,
            title(&step.action)
        )),
        OutputFormat::Json => say::line(json!({
            "event": step.number,
            "action": step.action.to_value(),
            "field": difference.field,
            "recorded": difference.recorded,
            "now": difference.now,
        })),
    }
}

/// The action in one line.
fn title(event: &ActionEvent) -> String {
    let value = event.to_value();
    let subject = ["command", "code", "path", "url", "pattern"]
        .iter()
        .find_map(|name| value["args"][name].as_str());
    let kind = event.action.kind();
    match subject {
        Some(subject) => format!("{kind} {}", Value::from(subject)),
        None => kind.to_owned(),
    }
}
