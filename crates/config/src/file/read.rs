//! Reads the sections of a configuration file into assignments.
//!
//! There is one vocabulary for all files: our sections and OpenHands' mean the same settings under
//! two names, so either kind of file, and a mixture, is read by the same rules.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::locate::SourceFile;
use super::position::LineIndex;
use crate::admission::{Speaker, Vocabulary};
use crate::hint;
use crate::key;
use crate::layer::{Assembly, Assignment, ENV_SECTION, IfWrong, Input, Target};
use crate::origin::Origin;
use crate::problem::{Hint, Problem, ProblemKind};
use crate::settings::openhands::{FOREIGN_CORE_KEYS, is_foreign_section};
use crate::value::Value;

/// Each hint compares a name with every valid one, so a file of nothing but mistakes gets a bounded
/// number of them.
const HINTS_MAX: usize = 1000;

type Name<'i> = Spanned<DeString<'i>>;
type Entry<'i> = Spanned<DeValue<'i>>;

/// Adds every setting of the file, and complains about everything else in it.
///
/// A file that is not TOML gets only its syntax errors: what could still be read of it would add
/// complaints that vanish once the syntax is right.
pub(crate) fn apply(file: &SourceFile, assembly: &mut Assembly) {
    assembly.files.push(file.path.clone());
    let (document, errors) = DeTable::parse_recoverable(&file.text);
    let mut reader = Reader {
        path: &file.path,
        speaker: file.speaker,
        lines: LineIndex::new(&file.text),
        found: Vec::new(),
        problems: Vec::new(),
        first_lines: BTreeMap::new(),
    };
    if errors.is_empty() {
        for (name, value) in document.get_ref() {
            reader.section(name, value);
        }
    }
    reader.syntax(&errors);
    reader.finish(assembly);
}

struct Reader<'a> {
    path: &'a Path,
    speaker: Speaker,
    lines: LineIndex<'a>,
    /// What was found, with its offset: the parser hands entries out by name, people read by line.
    found: Vec<(usize, Assignment)>,
    problems: Vec<(usize, Problem)>,
    /// Where each setting was first set.
    first_lines: BTreeMap<String, usize>,
}

impl Reader<'_> {
    /// Reports the first error of each line; the others come from the parser's guess how the line
    /// goes on.
    fn syntax(&mut self, errors: &[toml::de::Error]) {
        let mut last_line = 0;
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            let (line, _) = self.lines.position(offset);
            if line != last_line {
                let kind = ProblemKind::Syntax(error.message().to_owned());
                self.problem(offset, kind, || None);
            }
            last_line = line;
        }
    }

    fn section(&mut self, name: &Name<'_>, value: &Entry<'_>) {
        let section = name.get_ref().as_ref();
        if is_foreign_section(section) {
            return;
        }
        let is_known = hint::sections()
            .iter()
            .any(|known| *known == section || is_below(known, section));
        match value.get_ref() {
            DeValue::Table(table) if section == ENV_SECTION => self.variables(table),
            DeValue::Table(table) if is_known => self.keys(section, table),
            DeValue::Table(_) => {
                let kind = ProblemKind::UnknownSection(section.to_owned());
                self.problem(name.span().start, kind, || Some(hint::for_section(section)));
            }
            _ if is_known => {
                let kind = ProblemKind::NotATable(section.to_owned());
                self.problem(name.span().start, kind, || None);
            }
            _ => {
                let kind = ProblemKind::UnknownKey(section.to_owned());
                self.problem(name.span().start, kind, || hint::for_key(section));
            }
        }
    }

    fn keys(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = name.get_ref().as_ref();
            let path = format!("{section}.{key}");
            if section == "core" && FOREIGN_CORE_KEYS.contains(&key) {
                if self.speaker.vocabulary == Vocabulary::Zareba {
                    let kind = ProblemKind::ForOpenHands(path);
                    self.problem(name.span().start, kind, || None);
                }
                continue;
            }
            match (Target::find(&path), value.get_ref()) {
                (Some(Target::Variables), DeValue::Table(variables)) => self.variables(variables),
                (Some(target), _) => self.found(name, value, target, path),
                (None, DeValue::Table(inner)) if is_section(&path) => self.keys(&path, inner),
                (None, _) if is_section(&path) => {
                    let kind = ProblemKind::NotATable(path);
                    self.problem(name.span().start, kind, || None);
                }
                (None, _) => {
                    let kind = ProblemKind::UnknownKey(path.clone());
                    self.problem(name.span().start, kind, || hint::for_key(&path));
                }
            }
        }
    }

    fn variables(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let target = Target::Variable(name.get_ref().to_string());
            let path = target.path();
            self.found(name, value, target, path);
        }
    }

    fn found(&mut self, name: &Name<'_>, value: &Entry<'_>, target: Target, written_as: String) {
        let offset = name.span().start;
        let assignment = Assignment {
            target,
            written_as,
            input: Input::Value(Value::from_toml(value.get_ref())),
            origin: self.origin(offset),
            if_wrong: IfWrong::Refuse,
            speaker: self.speaker,
        };
        self.found.push((offset, assignment));
    }

    fn problem(&mut self, offset: usize, kind: ProblemKind, hint: impl FnOnce() -> Option<Hint>) {
        let origin = self.origin(offset);
        let hint = (self.problems.len() < HINTS_MAX).then(hint).flatten();
        self.problems.push((offset, Problem { origin, kind, hint }));
    }

    fn origin(&self, offset: usize) -> Origin {
        let (line, column) = self.lines.position(offset);
        Origin::File {
            path: self.path.to_path_buf(),
            line,
            column,
        }
    }

    /// Hands over what was found, line by line.
    fn finish(mut self, assembly: &mut Assembly) {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|(offset, _)| *offset);
        for (offset, assignment) in found {
            let setting = assignment.target.path();
            let (line, _) = self.lines.position(offset);
            if let Some(first_line) = self.first_lines.get(&setting).copied() {
                let key = assignment.written_as;
                let kind = ProblemKind::SetTwice {
                    key,
                    setting,
                    first_line,
                };
                self.problem(offset, kind, || None);
                continue;
            }
            self.first_lines.insert(setting, line);
            let before = assembly.problems.len();
            assembly.assign(assignment);
            let complaints = assembly
                .problems
                .drain(before..)
                .map(|problem| (offset, problem));
            self.problems.extend(complaints);
        }
        self.problems.sort_by_key(|(offset, _)| *offset);
        assembly
            .problems
            .extend(self.problems.into_iter().map(|(_, problem)| problem));
    }
}

/// Whether this is the whole name of one.
fn is_section(path: &str) -> bool {
    key::all().iter().any(|key| key.section == path)
}

/// Whether a section has another one around it, as `[pool.native]` has `[pool]`.
fn is_below(section: &str, outer: &str) -> bool {
    section
        .strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with('.'))
}
