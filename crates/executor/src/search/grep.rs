//! `grep`: the lines of files that match a regular expression.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use rustix::fs::{FileType, Mode, OFlags, openat};
use zareba_protocol::{MatchesFound, Observation, ObservationKind, SearchFiles};

use super::{
    bounds::{
        Bounds, GREP_LIMIT_DEFAULT, GREP_LIMIT_MAX, HEAP_BYTES_MAX, LINE_CHARS_MAX,
        REGEX_BYTES_MAX, Shortfall,
    },
    pattern::PathPattern,
    root::{Root, StartSearch},
    walk::{Entry, Next, Scope, lock, walk},
};
use crate::files::{READING, Reach, printable_path};

/// Finds lines by regular expression. Links and binary files are skipped.
pub(crate) fn grep(action: &SearchFiles, cwd: &Path, reach: &Reach) -> Observation {
    let bounds = Bounds::starting_now(action.limit, GREP_LIMIT_DEFAULT, GREP_LIMIT_MAX);
    grep_within(action, cwd, reach, bounds)
}

pub(super) fn grep_within(
    action: &SearchFiles,
    cwd: &Path,
    reach: &Reach,
    bounds: Bounds,
) -> Observation {
    match search(action, cwd, reach, bounds) {
        Ok(observation) => observation,
        Err(error) => Observation::error(error.to_string()),
    }
}

fn search(
    action: &SearchFiles,
    cwd: &Path,
    reach: &Reach,
    bounds: Bounds,
) -> Result<Observation, StartSearch> {
    let query = Query {
        matcher: compile(action)?,
        include: action
            .include
            .as_deref()
            .map(PathPattern::new)
            .transpose()?,
        bounds,
    };
    let root = Root::find(action.path.as_deref(), cwd, reach)?;
    let found = Mutex::new(Found::default());
    match root.kind {
        FileType::Directory => {
            let scope = Scope::of(action.include_ignored);
            let walked = walk(&root, reach, scope, bounds, || {
                let mut searcher = searcher(bounds);
                let (query, root, found) = (&query, &root.path, &found);
                move |entry: Entry<'_>| visit(entry, root, query, &mut searcher, found)
            });
            lock(&found).shortfall.add(walked);
        }
        FileType::RegularFile => {
            if query.includes(&root.path, &root.path) {
                let file = root.opened.try_clone().map(File::from);
                search_file(&root.path, file, &query, &mut searcher(bounds), &found);
            }
        }
        _ => return Err(StartSearch::Special { path: root.shown() }),
    }
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(report(action, &root, bounds, found))
}

/// What is looked for, shared by all threads.
#[derive(Debug)]
struct Query {
    matcher: RegexMatcher,
    include: Option<PathPattern>,
    bounds: Bounds,
}

impl Query {
    fn includes(&self, root: &Path, path: &Path) -> bool {
        self.include
            .as_ref()
            .is_none_or(|include| include.matches(root, path))
    }
}

fn compile(action: &SearchFiles) -> Result<RegexMatcher, StartSearch> {
    if action.pattern.is_empty() {
        return Err(StartSearch::EmptyPattern);
    }
    RegexMatcherBuilder::new()
        .case_insensitive(action.ignore_case)
        // Many lines are looked at together, and `^` and `$` are about each of them.
        .multi_line(true)
        .crlf(true)
        .size_limit(REGEX_BYTES_MAX)
        .dfa_size_limit(REGEX_BYTES_MAX)
        .build(&action.pattern)
        .map_err(|error| StartSearch::Regex {
            pattern: action.pattern.clone(),
            reason: error.to_string(),
        })
}

fn searcher(bounds: Bounds) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .heap_limit(Some(HEAP_BYTES_MAX))
        .binary_detection(BinaryDetection::quit(0))
        .max_matches(u64::try_from(bounds.limit + 1).ok())
        .build()
}

/// One matching line, already cut.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: u64,
    text: String,
}

/// The first matches by path and line, one more than the limit so that a cut is noticed.
#[derive(Debug, Default)]
struct Found {
    lines: BTreeMap<PathBuf, Vec<Line>>,
    count: usize,
    shortfall: Shortfall,
}

impl Found {
    /// Nothing at or below this path can be among the first results any more.
    fn is_beyond(&self, path: &Path, limit: usize) -> bool {
        let last = self.lines.last_key_value();
        self.count > limit && last.is_some_and(|(last, _)| path > last.as_path())
    }

    fn add(&mut self, path: &Path, lines: Vec<Line>, limit: usize) {
        if lines.is_empty() {
            return;
        }
        self.count += lines.len();
        self.lines.insert(path.to_path_buf(), lines);
        self.keep(limit + 1);
    }

    /// Drops results from the end until this many are left.
    fn keep(&mut self, count: usize) {
        while self.count > count {
            let Some(mut last) = self.lines.last_entry() else {
                return;
            };
            last.get_mut().pop();
            self.count -= 1;
            if last.get().is_empty() {
                last.remove();
            }
        }
    }
}

fn visit(
    entry: Entry<'_>,
    root: &Path,
    query: &Query,
    searcher: &mut Searcher,
    found: &Mutex<Found>,
) -> Next {
    if lock(found).is_beyond(entry.path, query.bounds.limit) {
        return Next::Skip;
    }
    if entry.kind == FileType::RegularFile && query.includes(root, entry.path) {
        let flags = READING | OFlags::NOFOLLOW;
        let file = openat(entry.directory, entry.name, flags, Mode::empty());
        let file = file.map(File::from).map_err(io::Error::from);
        search_file(entry.path, file, query, searcher, found);
    }
    Next::Enter
}

fn search_file(
    path: &Path,
    file: io::Result<File>,
    query: &Query,
    searcher: &mut Searcher,
    found: &Mutex<Found>,
) {
    let mut sink = Matches::default();
    let result = file.and_then(|file| {
        // It may have become a pipe since it was listed.
        if !file.metadata()?.is_file() {
            return Ok(());
        }
        let reader = Deadlined {
            file,
            bounds: query.bounds,
        };
        searcher.search_reader(&query.matcher, reader, &mut sink)
    });
    let mut found = lock(found);
    if let Err(error) = result {
        match error.kind() {
            io::ErrorKind::TimedOut => found.shortfall.time_over = true,
            // Gone since it was listed: as good as never seen.
            io::ErrorKind::NotFound => {}
            _ => found.shortfall.unreadable += 1,
        }
    }
    if !sink.is_binary {
        found.add(path, sink.lines, query.bounds.limit);
    }
}

/// A file whose reading fails when the search's time is over: one file can be endless.
#[derive(Debug)]
struct Deadlined {
    file: File,
    bounds: Bounds,
}

impl Read for Deadlined {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bounds.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

/// Collects the matching lines of one file.
#[derive(Debug, Default)]
struct Matches {
    lines: Vec<Line>,
    is_binary: bool,
}

impl Sink for Matches {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or(0);
        self.lines.push(Line {
            number,
            text: cut(found.bytes()),
        });
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

/// The line as text without its end, cut to [`LINE_CHARS_MAX`] characters.
fn cut(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // No character is longer than four bytes, so the rest need not even be decoded.
    let head = &line[..line.len().min(4 * (LINE_CHARS_MAX + 1))];
    let text = String::from_utf8_lossy(head);
    match text.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{} [line cut]", &text[..end]),
        None => text.into_owned(),
    }
}

fn report(action: &SearchFiles, root: &Root, bounds: Bounds, mut found: Found) -> Observation {
    found.shortfall.limit_hit = found.count > bounds.limit;
    found.keep(bounds.limit);
    let mut lines: Vec<String> = Vec::with_capacity(found.count + 1);
    for (path, matches) in &found.lines {
        let path = printable_path(path);
        lines.extend(
            matches
                .iter()
                .map(|line| format!("{path}:{}:{}", line.number, line.text)),
        );
    }
    if lines.is_empty() {
        lines.push(format!(
            "No matches for '{}' in {}.",
            action.pattern,
            root.shown()
        ));
    }
    lines.extend(found.shortfall.sentences(bounds.limit, "matches"));
    Observation {
        content: lines.join("\n"),
        kind: ObservationKind::Grep(MatchesFound {
            path: root.shown(),
            pattern: action.pattern.clone(),
            files: found.lines.len() as u64,
            matches: found.count as u64,
            truncated: found.shortfall.is_truncated(),
        }),
    }
}

#[cfg(test)]
#[path = "grep_tests.rs"]
mod tests;
