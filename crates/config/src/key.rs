//! What is known about each key, and the macro that makes sections of them.

use std::{collections::BTreeSet, sync::LazyLock};

use crate::admission::Vocabulary;
use crate::setting::{Dialect, Mismatch, Shape};
use crate::settings::{self, Settings};
use crate::value::Value;

/// The prefix of every variable that is ours.
pub(crate) const VARIABLE_PREFIX: &str = "ZAREBA_";

/// The sections of OpenHands' `config.toml` whose keys a runtime uses.
pub(crate) const OPENHANDS_SECTIONS: [&str; 4] = ["core", "sandbox", "security", "kubernetes"];

/// One setting: its names, what it accepts, what it means, and its field.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) section: &'static str,
    pub(crate) name: &'static str,
    /// `section.name`, as it stands in files and flags.
    pub(crate) path: &'static str,
    /// The `section.key` of OpenHands' `config.toml` that means the same.
    pub(crate) alias: Option<&'static str>,
    /// Variables with names of their own, from the weakest to the strongest.
    pub(crate) variables: &'static [(&'static str, Dialect)],
    pub(crate) shape: Shape,
    pub(crate) meaning: &'static str,
    /// Why the file of a project may set it without the user's trust; most keys it may not.
    pub(crate) project: Option<&'static str>,
    pub(crate) support: Support,
    pub(crate) set: fn(&mut Settings, &Value) -> Result<(), Mismatch>,
    pub(crate) get: fn(&Settings) -> Value,
}

/// Whether this version does what a key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// It does.
    Works,
    /// It does not, and says what to use instead where the key is set.
    NotInThisVersion {
        instead: &'static str,
        /// Whether the user would be less protected than they believe. A file or a variable of
        /// OpenHands is refused as well then, unless the value is the default.
        is_protection: bool,
    },
}

/// A name under which the environment can hold a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableName {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    /// OpenHands' `[core]` names carry no prefix (`RUNTIME`, `DEBUG`), so other programs may well
    /// use them for something else; a value that does not fit is then no mistake of the user.
    pub(crate) is_bare: bool,
    pub(crate) vocabulary: Vocabulary,
}

impl Key {
    /// OpenHands' name for the setting, if it has one.
    pub(crate) fn openhands_path(&self) -> Option<&'static str> {
        let theirs = OPENHANDS_SECTIONS
            .contains(&self.section)
            .then_some(self.path);
        self.alias.or(theirs)
    }

    /// The names under which the setting stands in a file: ours, then OpenHands'.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'static str> {
        [self.path].into_iter().chain(self.alias)
    }

    /// The variables that are read, from the weakest to the strongest: OpenHands' own, then
    /// special names, then ours.
    ///
    /// A name that other programs use too must not change what a sandbox is. So OpenHands' names
    /// without a prefix count only for what the file of a project may say as well, and
    /// `KUBERNETES_*`, which clusters set, not at all.
    pub(crate) fn variable_names(&self) -> Vec<VariableName> {
        let openhands = self.openhands_path().map(openhands_variable);
        let openhands = openhands.filter(|variable| match variable.is_bare {
            true => self.project.is_some() && self.support == Support::Works,
            false => self.section != "kubernetes",
        });
        let special = self.variables.iter().map(|(name, dialect)| VariableName {
            name: (*name).to_owned(),
            dialect: *dialect,
            is_bare: false,
            vocabulary: Vocabulary::OpenHands,
        });
        openhands
            .into_iter()
            .chain(special)
            .chain([self.own_variable()])
            .collect()
    }

    /// `ZAREBA_<SECTION>_<KEY>`; a section of two words has both.
    pub(crate) fn own_variable(&self) -> VariableName {
        VariableName {
            name: format!("{VARIABLE_PREFIX}{}", self.path.replace('.', "_")).to_ascii_uppercase(),
            dialect: Dialect::Strict,
            is_bare: false,
            vocabulary: Vocabulary::Zareba,
        }
    }
}

/// Every key, section by section, in the order of `zareba config show` and of the reference.
pub(crate) fn all() -> &'static [&'static Key] {
    static ALL: LazyLock<Vec<&'static Key>> =
        LazyLock::new(|| settings::SECTIONS.iter().copied().flatten().collect());
    &ALL
}

/// Every variable that is read, with what it sets: key by key, and for each from the weakest to the
/// strongest. There are hundreds, so their names are put together once.
pub(crate) fn all_variables() -> &'static [(VariableName, &'static Key)] {
    static ALL: LazyLock<Vec<(VariableName, &'static Key)>> = LazyLock::new(|| {
        let named = |key: &'static Key| {
            key.variable_names()
                .into_iter()
                .map(move |name| (name, key))
        };
        all().iter().copied().flat_map(named).collect()
    });
    &ALL
}

/// The names of the variables that are ours.
pub(crate) fn own_variables() -> &'static BTreeSet<String> {
    static OWN: LazyLock<BTreeSet<String>> =
        LazyLock::new(|| all().iter().map(|key| key.own_variable().name).collect());
    &OWN
}

/// The key with this path, under our name or OpenHands'.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    all()
        .iter()
        .copied()
        .find(|key| key.paths().any(|name| name == path))
}

/// OpenHands' rule: section and key in capitals, and no section for `[core]`.
fn openhands_variable(path: &str) -> VariableName {
    let bare = path.strip_prefix("core.");
    VariableName {
        name: bare.unwrap_or(path).replace('.', "_").to_ascii_uppercase(),
        dialect: Dialect::OpenHands,
        is_bare: bare.is_some(),
        vocabulary: Vocabulary::OpenHands,
    }
}

/// Declares a section: its struct, its defaults and its keys, from one entry per key.
///
/// An entry is `name: Type = default`, followed by what applies of `openhands "section.key"` (the
/// same setting in OpenHands' `config.toml`), `env "NAME"` and `words "NAME"` (variables beside
/// the derived ones), `check function` (a rule on the typed value), `project "reason"` (the file of
/// a project may set it without the user's trust, because of this), and `absent "instead"` or
/// `protection "instead"` (this version does not do it; the second for a key that promises protection).
/// Its doc comment is the meaning in the reference.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $struct:ident at $($place:ident).+ named $section:literal {
            $(
                $(#[doc = $doc:literal])+
                $name:ident : $type:ty = $default:expr
                $(, openhands $alias:literal)?
                $(, env $variable:literal)*
                $(, words $words:literal)*
                $(, check $check:path)?
                $(, project $project:literal)?
                $(, absent $absent:literal)?
                $(, protection $protection:literal)?
                ;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $struct {
            $( $(#[doc = $doc])+ pub $name: $type, )+
        }

        impl Default for $struct {
            fn default() -> Self {
                Self { $( $name: $default, )+ }
            }
        }

        impl $struct {
            pub(crate) const KEYS: &'static [$crate::key::Key] = &[$(
                $crate::key::Key {
                    section: $section,
                    name: stringify!($name),
                    path: concat!($section, ".", stringify!($name)),
                    alias: $crate::key::section!(@first $($alias)?),
                    variables: &[
                        $( ($variable, $crate::setting::Dialect::OpenHands), )*
                        $( ($words, $crate::setting::Dialect::TruthyWords), )*
                    ],
                    shape: <$type as $crate::setting::Setting>::SHAPE,
                    meaning: concat!($($doc),+).trim_ascii(),
                    project: $crate::key::section!(@first $($project)?),
                    support: $crate::key::section!(@support $($absent)? ; $($protection)?),
                    set: |settings, value| {
                        let value = <$type as $crate::setting::Setting>::read(value)?;
                        $( $check(&value)?; )?
                        Self::of_mut(settings).$name = value;
                        Ok(())
                    },
                    get: |settings| $crate::setting::Setting::write(&Self::of(settings).$name),
                },
            )+];

            fn of(settings: &$crate::settings::Settings) -> &Self {
                &settings.$($place).+
            }

            fn of_mut(settings: &mut $crate::settings::Settings) -> &mut Self {
                &mut settings.$($place).+
            }
        }
    };
    (@support ;) => { $crate::key::Support::Works };
    (@support $absent:literal ;) => {
        $crate::key::Support::NotInThisVersion { instead: $absent, is_protection: false }
    };
    (@support ; $protection:literal) => {
        $crate::key::Support::NotInThisVersion { instead: $protection, is_protection: true }
    };
    (@first) => { None };
    (@first $alias:literal) => { Some($alias) };
}

pub(crate) use section;
