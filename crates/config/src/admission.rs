//! Which source may set which key.
//!
//! A project file, found in the current directory, may come from a cloned repository and is hostile
//! until the user trusts its content. An untrusted project file may set the keys that
//! [`Key::project`] lists and no others, so a key that is added later is closed to it by default. In
//! `zareba.toml` any other key is an error. OpenHands' `config.toml` is not written for Zareba and
//! lies in the directory of every OpenHands user, so its other keys are left out with a warning.
//!
//! Keys that this version does not implement are judged here too: refused wherever they are set in
//! Zareba's vocabulary, left out with a warning under OpenHands' own names. A key that promises
//! protection, such as `security.confirmation_mode`, is refused under both, because its user relies
//! on it.

use crate::key::{Key, Support};
use crate::layer::Target;
use crate::origin::Origin;
use crate::problem::ProblemKind;
use crate::settings::Settings;
use crate::value::Value;

/// For which program a source was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    /// Ours: flags, `ZAREBA_*` and every file but OpenHands'.
    Zareba,
    /// OpenHands' `config.toml`, and its names of variables.
    OpenHands,
}

/// Whether only the user and the operator can have written a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Flags, the environment, the user's and the system's file, a file that was named, and the file
    /// of a project whose content the user has trusted.
    Trusted,
    /// The file of a project.
    Untrusted,
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) trust: Trust,
}

/// What becomes of settings that the file of a project may not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UntrustedSettings {
    /// They are mistakes in `zareba.toml`, and left out of OpenHands' `config.toml`.
    #[default]
    Refuse,
    /// They are left out: to show what a file says without following it.
    LeaveOut,
}

/// A setting of a source that does not count.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// The setting's own path.
    pub key: String,
    /// The name that the source used for it.
    pub written_as: String,
    /// What the source says, with secrets masked. None for what was not looked at.
    pub value: Option<Value>,
    /// Where it stands.
    pub origin: Origin,
    /// Why it does not count.
    pub reason: LeftOutReason,
}

/// Why a setting of a source does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutReason {
    /// The file of a project may not set it without the user's trust.
    Untrusted,
    /// This version does not implement it.
    NotInThisVersion,
}

impl LeftOutReason {
    /// In a word, for programs.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::NotInThisVersion => "not in this version",
        }
    }
}

/// What becomes of one assignment.
#[derive(Debug, PartialEq)]
pub(crate) enum Judgement {
    Use,
    LeaveOut(LeftOutReason),
    Refuse(ProblemKind),
}

impl Speaker {
    pub(crate) const USER: Self = Self {
        vocabulary: Vocabulary::Zareba,
        trust: Trust::Trusted,
    };

    /// Whether this source may give the target this value; none is one that could not be read.
    pub(crate) fn judge(
        self,
        target: &Target,
        written_as: &str,
        value: Option<&Value>,
        untrusted: UntrustedSettings,
    ) -> Judgement {
        // Variables of the sandbox change nothing outside of it.
        let Target::Key(key) = target else {
            return Judgement::Use;
        };
        if let Support::NotInThisVersion {
            instead,
            is_protection,
        } = key.support
        {
            let is_theirs = self.vocabulary == Vocabulary::OpenHands;
            // A key of OpenHands that has its default value needs no warning.
            if is_theirs && value.is_some_and(|value| !changes(key, value)) {
                return Judgement::Use;
            }
            if is_theirs && !is_protection {
                return Judgement::LeaveOut(LeftOutReason::NotInThisVersion);
            }
            return Judgement::Refuse(ProblemKind::NotInThisVersion {
                key: written_as.to_owned(),
                instead,
            });
        }
        if self.vocabulary == Vocabulary::OpenHands && names_a_class(key, value) {
            return Judgement::LeaveOut(LeftOutReason::NotInThisVersion);
        }
        if self.trust == Trust::Trusted || key.project.is_some() {
            return Judgement::Use;
        }
        if self.vocabulary == Vocabulary::OpenHands || untrusted == UntrustedSettings::LeaveOut {
            return Judgement::LeaveOut(LeftOutReason::Untrusted);
        }
        Judgement::Refuse(ProblemKind::Untrusted(written_as.to_owned()))
    }
}

/// Whether the value is a runtime of OpenHands' own process, such as the one of our SDK, which they
/// name by its class. It says nothing of where that one runs its sandboxes.
fn names_a_class(key: &Key, value: Option<&Value>) -> bool {
    key.path == "runtime.kind" && matches!(value, Some(Value::Text(name)) if name.contains('.'))
}

/// Whether the value is another than the default.
fn changes(key: &Key, value: &Value) -> bool {
    let mut settings = Settings::default();
    let default = (key.get)(&settings);
    (key.set)(&mut settings, value).is_err() || (key.get)(&settings) != default
}
