//! Lines of a file or of standard input, read on a thread of their own.
//!
//! Reading may block for as long as somebody thinks about what to type; meanwhile signals are
//! to be answered. The thread is one line ahead at most, and is left behind when we end.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
    thread,
};

use tokio::sync::mpsc;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// The longest line: as much as the executor takes in one request.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// `-` is standard input.
    pub(crate) fn of(path: &Path) -> Self {
        if path == Path::new("-") {
            Self::Stdin
        } else {
            Self::File(path.to_owned())
        }
    }

    /// How messages name it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// One line without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// Lines as they come.
#[derive(Debug)]
pub(crate) struct Lines(mpsc::Receiver<Result<Line, Failure>>);

impl Lines {
    /// Opens the source and begins to read.
    pub(crate) fn read(source: Source) -> Result<Self, Failure> {
        let name = source.name();
        let reader: Box<dyn BufRead + Send> = match source {
            Source::Stdin => Box::new(BufReader::new(io::stdin())),
            Source::File(path) => {
                let file =
                    File::open(path).or_fail(Exit::Usage, format!("cannot open `{name}`"))?;
                Box::new(BufReader::new(file))
            }
        };
        let (sender, receiver) = mpsc::channel(1);
        thread::Builder::new()
            .name("lines".to_owned())
            .spawn(move || forward(reader, &name, &sender))
            .or_fail(Exit::Failure, "cannot start a thread")?;
        Ok(Self(receiver))
    }

    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, Failure> {
        self.0.recv().await.transpose()
    }
}

fn forward(mut reader: impl BufRead, name: &str, sender: &mpsc::Sender<Result<Line, Failure>>) {
    for number in 1.. {
        let line = match read_line(&mut reader) {
            Ok(Some(text)) => Ok(Line { number, text }),
            Ok(None) => return,
            Err(error) => Err(Failure::of(Exit::Usage, &error)
                .while_doing(format!("cannot read line {number} of {name}"))),
        };
        let is_last = line.is_err();
        if sender.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let read = reader
        .take(LINE_BYTES_MAX + 1)
        .read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > LINE_BYTES_MAX {
        let message = format!("the line is longer than {LINE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let text = String::from_utf8(line)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the line is not UTF-8 text"))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_their_ends_and_the_last_needs_none() {
        let mut text: &[u8] = b"a\n\nb";
        assert_eq!(read_line(&mut text).unwrap(), Some("a".to_owned()));
        assert_eq!(read_line(&mut text).unwrap(), Some(String::new()));
        assert_eq!(read_line(&mut text).unwrap(), Some("b".to_owned()));
        assert_eq!(read_line(&mut text).unwrap(), None);
        let error = read_line(&mut &b"\xff\n"[..]).unwrap_err();
        assert_eq!(error.to_string(), "the line is not UTF-8 text");
    }
}
