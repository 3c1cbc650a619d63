//! Assignments from the sources, and the settings that they add up to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::admission::{
    Judgement, LeftOut, LeftOutReason, Speaker, Trust, UntrustedSettings, Vocabulary,
};
use crate::key::{self, Key};
use crate::origin::Origin;
use crate::problem::{Hint, Problem, ProblemKind};
use crate::setting::{Dialect, Mismatch, Setting, Shape};
use crate::settings::openhands::STARTUP_VARIABLES;
use crate::settings::{RuntimeKind, Settings};
use crate::show;
use crate::value::Value;
use crate::volumes;

/// The section whose keys are free: each is a variable of the sandbox.
pub(crate) const ENV_SECTION: &str = "env";

/// One value that a source gives.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) target: Target,
    /// The name that the source used for the target, for messages about it.
    pub(crate) written_as: String,
    pub(crate) input: Input,
    pub(crate) origin: Origin,
    pub(crate) if_wrong: IfWrong,
    pub(crate) speaker: Speaker,
}

/// What an assignment is for.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Key(&'static Key),
    /// One variable of the sandbox.
    Variable(String),
    /// A table of them.
    Variables,
}

/// A value, or the text that still has to become one.
#[derive(Debug)]
pub(crate) enum Input {
    Value(Value),
    Text(String, Dialect),
    /// Bytes that are no text at all.
    NotText,
}

/// What a value that does not fit means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfWrong {
    /// A mistake: nothing starts.
    Refuse,
    /// Probably meant for another program: said, and left out.
    Skip,
}

/// The settings while they are put together.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub(crate) settings: Settings,
    /// Who set what, by path; what is missing has its default.
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Whether an executor reads them, whose client asks for confirmations itself. It may inherit the
    /// client's variables.
    pub(crate) is_for_executor: bool,
    /// The files that were read so far.
    pub(crate) files: Vec<PathBuf>,
    untrusted: UntrustedSettings,
    /// Variables of the sandbox that an untrusted source has set.
    untrusted_variables: Vec<UntrustedVariable>,
}

/// A variable of the sandbox that the file of a project has set without the user's trust.
#[derive(Debug)]
struct UntrustedVariable {
    name: String,
    written_as: String,
    origin: Origin,
    speaker: Speaker,
    /// What a weaker source had said.
    before: Option<(String, Origin)>,
}

impl Target {
    /// What a path in a file or a flag stands for.
    pub(crate) fn find(path: &str) -> Option<Self> {
        if path == STARTUP_VARIABLES {
            return Some(Self::Variables);
        }
        let variable = path
            .strip_prefix(ENV_SECTION)
            .and_then(|rest| rest.strip_prefix('.'));
        match variable {
            Some(name) => Some(Self::Variable(name.to_owned())),
            None => key::find(path).map(Self::Key),
        }
    }

    /// The path under which the value is stored and shown.
    pub(crate) fn path(&self) -> String {
        match self {
            Self::Key(key) => key.path.to_owned(),
            Self::Variable(name) => format!("{ENV_SECTION}.{name}"),
            Self::Variables => ENV_SECTION.to_owned(),
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Key(key) => key.shape,
            Self::Variable(_) => Shape::Text,
            Self::Variables => Shape::Table,
        }
    }
}

impl Assembly {
    /// The defaults.
    pub(crate) fn new(untrusted: UntrustedSettings) -> Self {
        Self {
            untrusted,
            ..Self::default()
        }
    }

    /// Puts one value in place, over whatever a weaker source had put there.
    pub(crate) fn assign(&mut self, assignment: Assignment) {
        let Assignment {
            target,
            written_as,
            input,
            origin,
            if_wrong,
            speaker,
        } = assignment;
        let value = match input {
            Input::Value(value) => Ok(value),
            Input::Text(text, dialect) => dialect.read(&text, target.shape()),
            Input::NotText => Err(Mismatch::rule("is not UTF-8 text")),
        };
        match speaker.judge(&target, &written_as, value.as_ref().ok(), self.untrusted) {
            Judgement::Use => {}
            Judgement::Refuse(ProblemKind::NotInThisVersion { .. })
                if self.is_for_executor && speaker.vocabulary == Vocabulary::OpenHands =>
            {
                return;
            }
            Judgement::Refuse(kind) => {
                let hint = match kind {
                    ProblemKind::Untrusted(_) => origin.file().map(Hint::Trust),
                    _ => None,
                };
                self.problems.push(Problem { origin, kind, hint });
                return;
            }
            Judgement::LeaveOut(reason) => {
                self.left_out.push(LeftOut {
                    key: target.path(),
                    value: value.ok().map(|value| show::masked(&target, value)),
                    written_as,
                    origin,
                    reason,
                });
                return;
            }
        }
        if speaker.trust == Trust::Untrusted {
            self.note_variables(&target, value.as_ref().ok(), &written_as, &origin, speaker);
        }
        let stored = value.and_then(|value| self.store(&target, &value, &origin));
        let Err(mismatch) = stored else { return };
        let problem = complaint(written_as, mismatch, origin);
        match if_wrong {
            IfWrong::Refuse => self.problems.push(problem),
            IfWrong::Skip => self.warnings.push(problem),
        }
    }

    /// Applies the rules between settings, once all sources have been read.
    pub(crate) fn finish(&mut self) {
        self.judge_variables();
        let Some(volumes) = &self.settings.openhands.sandbox.volumes else {
            return;
        };
        let origin = self.origin("sandbox.volumes");
        // A flag that names the workspace is not undone by a variable that lists mounts.
        if self.strength(&origin) >= self.strength(&self.origin("runtime.workspace")) {
            self.settings.runtime.workspace = volumes::workspace(volumes);
            self.origins.insert("runtime.workspace".to_owned(), origin);
        }
    }

    /// How strong a source is; of two files the one that was read later is stronger.
    fn strength(&self, origin: &Origin) -> (u8, Option<usize>) {
        let file = origin.file();
        let is_it = |path: &PathBuf| Some(path) == file.as_ref();
        (origin.rank(), self.files.iter().position(is_it))
    }

    /// Remembers variables of the sandbox that an untrusted source sets, for
    /// [`Assembly::judge_variables`].
    fn note_variables(
        &mut self,
        target: &Target,
        value: Option<&Value>,
        written_as: &str,
        origin: &Origin,
        speaker: Speaker,
    ) {
        let names: Vec<String> = match (target, value) {
            (Target::Variable(name), _) => vec![name.clone()],
            (Target::Variables, Some(Value::Table(entries))) => entries.keys().cloned().collect(),
            _ => Vec::new(),
        };
        for name in names {
            let before = self.settings.env.get(&name).map(str::to_owned);
            let before = before.map(|value| (value, self.origin(&format!("{ENV_SECTION}.{name}"))));
            self.untrusted_variables.push(UntrustedVariable {
                name,
                written_as: written_as.to_owned(),
                origin: origin.clone(),
                speaker,
                before,
            });
        }
    }

    /// Without walls a variable such as `LD_PRELOAD` or `PATH` chooses what runs on this machine, so
    /// an untrusted source may not set any then. Which runtime it is, is known only at the end.
    fn judge_variables(&mut self) {
        let variables = std::mem::take(&mut self.untrusted_variables);
        let kind = self.settings.runtime.kind;
        if !matches!(kind, RuntimeKind::Cli | RuntimeKind::Local) {
            return;
        }
        for variable in variables {
            let path = format!("{ENV_SECTION}.{}", variable.name);
            if self.origin(&path) != variable.origin {
                // A stronger source has set it as well.
                continue;
            }
            let is_passed_over = variable.speaker.vocabulary == Vocabulary::OpenHands
                || self.untrusted == UntrustedSettings::LeaveOut;
            if !is_passed_over {
                self.problems.push(Problem {
                    kind: ProblemKind::UntrustedVariable {
                        key: variable.written_as,
                        runtime: kind.as_str(),
                    },
                    hint: variable.origin.file().map(Hint::Trust),
                    origin: variable.origin,
                });
                continue;
            }
            let value = self.settings.env.remove(&variable.name);
            self.origins.remove(&path);
            if let Some((value, origin)) = variable.before {
                self.settings.env.insert(variable.name.clone(), value);
                self.origins.insert(path.clone(), origin);
            }
            let target = Target::Variable(variable.name);
            self.left_out.push(LeftOut {
                key: path,
                written_as: variable.written_as,
                value: value.map(|value| show::masked(&target, Value::Text(value))),
                origin: variable.origin,
                reason: LeftOutReason::Untrusted,
            });
        }
    }

    /// Who set the value at this path.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        self.origins.get(path).cloned().unwrap_or(Origin::Default)
    }

    fn store(&mut self, target: &Target, value: &Value, origin: &Origin) -> Result<(), Mismatch> {
        match target {
            Target::Key(key) => {
                (key.set)(&mut self.settings, value)?;
                self.origins.insert(target.path(), origin.clone());
            }
            Target::Variable(name) => self.store_variable(name, value, origin)?,
            Target::Variables => {
                for (name, value) in &BTreeMap::read(value)? {
                    self.store_variable(name, value, origin)?;
                }
            }
        }
        Ok(())
    }

    fn store_variable(
        &mut self,
        name: &str,
        value: &Value,
        origin: &Origin,
    ) -> Result<(), Mismatch> {
        if !is_variable_name(name) {
            return Err(Mismatch::rule(format!(
                "has {name:?}, which is no name for a variable"
            )));
        }
        let value = String::read(value)?;
        if value.contains('\0') {
            return Err(Mismatch::rule(format!("has a NUL character in `{name}`")));
        }
        self.settings.env.insert(name.to_owned(), value);
        self.origins
            .insert(format!("{ENV_SECTION}.{name}"), origin.clone());
        Ok(())
    }
}

/// A name that a shell can export.
fn is_variable_name(name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    name.chars().all(is_word)
        && name.starts_with(|first: char| is_word(first) && !first.is_ascii_digit())
}

fn complaint(key: String, mismatch: Mismatch, origin: Origin) -> Problem {
    let (kind, hint) = match mismatch {
        Mismatch::Type { expected, found } => {
            let expected = expected.to_string();
            (
                ProblemKind::WrongType {
                    key,
                    expected,
                    found,
                },
                None,
            )
        }
        Mismatch::Value { reason, hint } => (ProblemKind::BadValue { key, reason }, hint),
    };
    Problem { origin, kind, hint }
}
