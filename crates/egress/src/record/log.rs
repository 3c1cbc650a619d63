//! The log of decisions: JSON lines, appended, in two files of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::record::decision::Decision;

/// When a file has this many bytes, it takes the place of the older one and a new one begins.
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// An open log. The older half is beside it, with `.1` behind its name.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl Log {
    /// Goes on with the log that is there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::open_within(path, LOG_BYTES_MAX)
    }

    fn open_within(path: &Path, bytes_max: u64) -> io::Result<Self> {
        let file = append_to(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes,
            bytes_max,
        })
    }

    pub(crate) fn append(&mut self, decision: &Decision) -> io::Result<()> {
        let mut line = serde_json::to_vec(decision)?;
        line.push(b'\n');
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.bytes > 0 && self.bytes.saturating_add(length) > self.bytes_max {
            self.rotate()?;
        }
        // One call for the line, so that a reader never sees half of one that was written whole.
        self.file.write_all(&line)?;
        self.bytes += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut older = self.path.as_os_str().to_owned();
        older.push(".1");
        fs::rename(&self.path, &older)?;
        self.file = append_to(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DecisionKind;

    fn lines(path: &Path) -> Vec<Decision> {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn the_log_is_two_files_of_bounded_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("decisions.jsonl");
        let mut log = Log::open_within(&path, 1000).unwrap();
        let mut written = Vec::new();
        for port in 1..=40 {
            let mut decision = Decision::begin(DecisionKind::Tcp);
            decision.port = Some(port);
            log.append(&decision).unwrap();
            written.push(decision);
        }
        let older = directory.path().join("decisions.jsonl.1");
        assert!(fs::metadata(&path).unwrap().len() <= 1000);
        assert!(fs::metadata(&older).unwrap().len() <= 1000);
        let kept = [lines(&older), lines(&path)].concat();
        assert!(kept.len() > 5, "{}", kept.len());
        assert!(written.ends_with(&kept));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_log_goes_on_after_a_restart_eg_9() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("decisions.jsonl");
        let decision = Decision::begin(DecisionKind::Dns);
        for _ in 0..2 {
            Log::open(&path).unwrap().append(&decision).unwrap();
        }
        assert_eq!(lines(&path), [decision.clone(), decision]);
    }
}
