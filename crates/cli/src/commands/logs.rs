//! `zareba logs`: what detached programs of a sandbox have written, or its executor; of a server's
//! session what its actions have.

mod container;
mod session;

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom},
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt as _, fs::FileExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::{Value, json};
use zareba_runtime::SandboxState;

use crate::{
    arguments::{LogsArguments, OutputFormat},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    output_record,
    sandbox::{Fleet, Member},
    say,
};

/// A line that is longer is printed in pieces.
const LINE_MAX: usize = 64 * 1024;

/// Room for some changes at once; no more is asked of them than whether there was one.
const CHANGES_BYTES: usize = 4096;

const DEED: &str = "cannot read the log";

/// Prints what is recorded, and goes on if that is wanted.
pub(crate) fn perform(context: &Context, arguments: &LogsArguments) -> Result<Exit, Failure> {
    if let Some(url) = context.server() {
        return session::perform(context, url, arguments);
    }
    Fleet::visit(context, async |fleet| {
        let member = fleet.find(&arguments.id).await?;
        if let (Some(docker), true) = (member.engine(), arguments.executor) {
            let id = &member.summary.id;
            return container::show(docker, id, arguments, context.globals.output).await;
        }
        if arguments.since.is_some() {
            let message = format!("the log of the sandbox `{}` has no times", arguments.id);
            return Err(Failure::new(Exit::Usage, message)
                .hint("leave out `--since`; `--tail` tells how much of it is shown"));
        }
        let (path, older) = match arguments.executor {
            true => (member.log(), None),
            false => {
                let older = File::open(output_record::older(member.directory())).ok();
                (output_record::newer(member.directory()), older)
            }
        };
        let mut file = open(&path, &member, arguments.executor)?;
        let format = context.globals.output;
        if let Some(older) = from(&mut file, older, arguments.tail).or_fail(Exit::Failure, DEED)? {
            Log::new(older, None, format).finish()?;
        }
        let mut log = Log::new(file, Some(path.clone()), format);
        if arguments.follow && member.summary.state != SandboxState::Lost {
            // Before the first look, so that nothing falls between the two.
            let changes = Changes::watch(&path, first_process(&member).await)
                .or_fail(Exit::Failure, "cannot follow the log")?;
            follow(&mut log, changes)?;
        }
        log.finish()?;
        Ok(Exit::Success)
    })
}

fn open(path: &Path, member: &Member<'_>, of_executor: bool) -> Result<File, Failure> {
    let id = &member.summary.id;
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && of_executor => {
            let message = format!("the executor of the sandbox `{id}` has no log");
            Err(Failure::new(Exit::Failure, message)
                .hint("it belongs to a command, which prints what the executor says itself"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let message = format!(
                "the sandbox `{id}` has no log: nothing was started there in the background, and \
                 what other commands write is not kept"
            );
            Err(Failure::new(Exit::Failure, message)
                .hint(format!(
                    "`zareba exec -d {id} CMD` starts a program whose output is kept"
                ))
                .hint(format!(
                    "`zareba logs --executor {id}` prints the log of its executor"
                )))
        }
        opened => opened.or_fail(Exit::Failure, DEED),
    }
}

/// Moves to where the last so many lines begin, in the older file where the newer has too few.
/// Returns the older one when something of it is to be shown.
fn from(newer: &mut File, older: Option<File>, tail: Option<u32>) -> io::Result<Option<File>> {
    let Some(lines) = tail else {
        return Ok(older);
    };
    let missing = skip_to_last(newer, lines)?;
    match older {
        Some(mut older) if missing > 0 => {
            skip_to_last(&mut older, missing)?;
            Ok(Some(older))
        }
        _ => Ok(None),
    }
}

/// Moves to where the last lines begin, reading no more than those. Returns how many of them the
/// file does not have.
fn skip_to_last(file: &mut File, lines: u32) -> io::Result<u32> {
    let mut start = file.seek(SeekFrom::End(0))?;
    if lines == 0 {
        return Ok(0);
    }
    // The end of the last line is not the beginning of another.
    let mut wanted = u64::from(lines) + 1;
    let mut chunk = vec![0; LINE_MAX];
    let mut at_end = true;
    while start > 0 {
        let length = usize::try_from(start).unwrap_or(LINE_MAX).min(LINE_MAX);
        let piece = chunk.get_mut(..length).unwrap_or_default();
        let begin = start - length as u64;
        file.read_exact_at(piece, begin)?;
        if std::mem::take(&mut at_end) && !piece.ends_with(b"\n") {
            wanted -= 1;
        }
        for (at, _) in piece
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b'\n')
        {
            wanted = wanted.saturating_sub(1);
            if wanted == 0 {
                file.seek(SeekFrom::Start(begin + at as u64 + 1))?;
                return Ok(0);
            }
        }
        start = begin;
    }
    file.rewind()?;
    Ok(u32::try_from(wanted.saturating_sub(1)).unwrap_or(u32::MAX))
}

/// The first process inside, whose end is the end of the sandbox. One without walls has none
/// that we know of.
async fn first_process(member: &Member<'_>) -> Option<OwnedFd> {
    let sandbox = member.attach().await.ok()?;
    let document = sandbox.inspect().await.ok()?;
    let pid = document.get("pid").and_then(Value::as_i64)?;
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Shows what comes until the sandbox is gone. A signal ends us as it ends any program.
fn follow(log: &mut Log, changes: Changes) -> Result<(), Failure> {
    loop {
        log.show()?;
        let more = changes
            .wait()
            .or_fail(Exit::Failure, "cannot follow the log")?;
        if !more {
            return Ok(());
        }
    }
}

/// Tells of changes to a log.
struct Changes {
    notices: OwnedFd,
    process: Option<OwnedFd>,
    /// The name of the log, whose removal is its end.
    name: OsString,
}

impl Changes {
    fn watch(log: &Path, process: Option<OwnedFd>) -> Result<Self, Errno> {
        let notices = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        if let Some(directory) = log.parent() {
            // Of its files, too, one of which may take the log's place.
            let changes = WatchFlags::MODIFY | WatchFlags::CREATE;
            let removal = WatchFlags::DELETE | WatchFlags::DELETE_SELF;
            inotify::add_watch(&notices, directory, changes | removal)?;
        }
        Ok(Self {
            notices,
            process,
            name: log.file_name().unwrap_or_default().to_owned(),
        })
    }

    /// Waits for the next one; false when there will be none.
    fn wait(&self) -> Result<bool, Errno> {
        let mut sources = vec![PollFd::new(&self.notices, PollFlags::IN)];
        let process = self.process.iter();
        sources.extend(process.map(|process| PollFd::new(process, PollFlags::IN)));
        match poll(&mut sources, None) {
            Err(Errno::INTR) => return Ok(true),
            polled => polled?,
        };
        let has_ended = sources
            .get(1)
            .is_some_and(|process| !process.revents().is_empty());
        Ok(!has_ended && !self.is_removed()?)
    }

    /// Takes all notices there are, and looks for the one that the log is removed.
    fn is_removed(&self) -> Result<bool, Errno> {
        let mut room = [MaybeUninit::uninit(); CHANGES_BYTES];
        let mut notices = Reader::new(&self.notices, &mut room);
        let mut is_removed = false;
        loop {
            match notices.next() {
                Ok(notice) => {
                    let of_log = notice
                        .file_name()
                        .is_some_and(|name| name.to_bytes() == self.name.as_bytes());
                    let events = notice.events();
                    let gone = ReadFlags::DELETE_SELF | ReadFlags::IGNORED;
                    is_removed |= events.intersects(gone);
                    is_removed |= of_log && events.contains(ReadFlags::DELETE);
                }
                Err(Errno::AGAIN) => return Ok(is_removed),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A log on its way to standard output.
struct Log {
    file: BufReader<File>,
    /// Where it goes on when another file takes its place.
    path: Option<PathBuf>,
    /// What there is of a line whose end has not come yet.
    line: Vec<u8>,
    format: OutputFormat,
}

impl Log {
    fn new(file: File, path: Option<PathBuf>, format: OutputFormat) -> Self {
        Self {
            file: BufReader::new(file),
            path,
            line: Vec::new(),
            format,
        }
    }

    /// Shows all whole lines that there are now.
    fn show(&mut self) -> Result<(), Failure> {
        loop {
            let taken = self.take().or_fail(Exit::Failure, DEED)?;
            if self.line.ends_with(b"\n") || self.line.len() >= LINE_MAX {
                self.print()?;
            } else if taken == 0 && !self.go_on().or_fail(Exit::Failure, DEED)? {
                return Ok(());
            }
        }
    }

    /// Takes the file that has taken the place of this one, if there is such.
    fn go_on(&mut self) -> io::Result<bool> {
        let Some(path) = &self.path else {
            return Ok(false);
        };
        if output_record::is_at(self.file.get_ref(), path)? {
            return Ok(false);
        }
        match File::open(path) {
            Ok(file) => {
                // What was written between the last look and now is in the old one.
                let mut rest = BufReader::new(file);
                std::mem::swap(&mut self.file, &mut rest);
                self.line.extend(rest.buffer());
                rest.into_inner()
                    .take(2 * LINE_MAX as u64)
                    .read_to_end(&mut self.line)?;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Adds the rest of the line, as far as it is there and fits.
    fn take(&mut self) -> io::Result<usize> {
        let room = LINE_MAX.saturating_sub(self.line.len());
        let chunk = self.file.fill_buf()?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(chunk.len(), |end| end + 1).min(room);
        self.line.extend(chunk.iter().take(length));
        self.file.consume(length);
        Ok(length)
    }

    /// Shows a last line without an end.
    fn finish(&mut self) -> Result<(), Failure> {
        self.show()?;
        if self.line.is_empty() {
            return Ok(());
        }
        self.print()
    }

    fn print(&mut self) -> Result<(), Failure> {
        print(&std::mem::take(&mut self.line), self.format)
    }
}

fn print(line: &[u8], format: OutputFormat) -> Result<(), Failure> {
    match format {
        // Who writes the log may be in the hands of the agent.
        OutputFormat::Text => {
            let text = String::from_utf8_lossy(line);
            say::data(say::printable(&text).as_bytes())
        }
        OutputFormat::Json => {
            let text = String::from_utf8_lossy(line);
            say::line(json!({ "line": text.trim_end_matches('\n') }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_found_whatever_their_length() {
        let last = |content: &str, lines: u32| {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, content.as_bytes()).unwrap();
            skip_to_last(&mut file, lines).unwrap();
            io::read_to_string(file).unwrap()
        };
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc", 2), "b\nc");
        assert_eq!(last("a\nb\n", 9), "a\nb\n");
        assert_eq!(last("a\nb\n", 0), "");
        assert_eq!(last("a\nb", 0), "");
        assert_eq!(last("", 3), "");
        let long = format!("{}\n", "x".repeat(3 * LINE_MAX));
        assert_eq!(last(&format!("a\n{long}b\n"), 2), format!("{long}b\n"));
    }
}
