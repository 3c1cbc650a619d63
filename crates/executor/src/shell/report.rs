//! What a shell says on its report pipe.
//!
//! A process of the shell's own user can reach that pipe if it tries, so nothing here trusts
//! what arrives: a record counts only behind the shell's secret, and the buffer is bounded.

use memchr::memmem;

/// Fields of a record behind the secret.
const FIELDS: usize = 5;

/// Longest record worth waiting for; `PATH` and a directory fit many times over.
const RECORD_MAX_BYTES: usize = 256 * 1024;

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The command with this number ended.
    Ended(u64),
    /// The shell was interrupted while it had no command, and has lost its trigger.
    Interrupted,
    /// The shell has read its trigger and waits for a command.
    Begun,
    /// The shell has the command with this number, and runs it next.
    Taken(u64),
    /// The shell stands at its prompt, and reads no trigger before it is let go with this number.
    Waiting(i64),
}

/// What a shell says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// What happened.
    pub(super) subject: Subject,
    /// Its exit status.
    pub(super) status: i64,
    /// The last background process.
    pub(super) background: Option<i64>,
    /// The shell's directory.
    pub(super) directory: String,
    /// The shell's search path.
    pub(super) search_path: String,
}

/// Cuts a byte stream into reports.
#[derive(Debug)]
pub(super) struct ReportReader {
    /// With the end of its field.
    secret: Vec<u8>,
    buffer: Vec<u8>,
}

impl ReportReader {
    pub(super) fn new(token: &str) -> Self {
        Self {
            secret: format!("{token}\0").into_bytes(),
            buffer: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > RECORD_MAX_BYTES {
            // Not ours: our records are short. One of them may come behind it, though.
            self.buffer.drain(..RECORD_MAX_BYTES / 2);
        }
    }

    /// The next whole record; what does not carry the secret is passed over.
    pub(super) fn next(&mut self) -> Option<Report> {
        loop {
            let Some(start) = memmem::find(&self.buffer, &self.secret) else {
                // The beginning of the secret may be there already.
                let useless = self.buffer.len().saturating_sub(self.secret.len());
                self.buffer.drain(..useless);
                return None;
            };
            self.buffer.drain(..start);
            let fields = &self.buffer[self.secret.len()..];
            let end = memchr::memchr_iter(0, fields)
                .nth(FIELDS - 1)
                .map(|last| last + 1);
            // Ctrl-C may cut a record short; then the next one begins within it.
            let cut = memmem::find(&fields[..end.unwrap_or(fields.len())], &self.secret);
            if cut.is_some() {
                self.buffer.drain(..self.secret.len());
                continue;
            }
            let report = parse(&fields[..end?]);
            self.buffer.drain(..self.secret.len() + end?);
            if report.is_some() {
                return report;
            }
        }
    }
}

/// Reads the fields behind the secret, each ended by NUL.
fn parse(record: &[u8]) -> Option<Report> {
    let mut fields = record.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let subject = fields.next()?;
    let status: i64 = fields.next()?.parse().ok()?;
    let subject = match subject.as_ref() {
        "begun" => Subject::Begun,
        "taken" => Subject::Taken(u64::try_from(status).ok()?),
        "waiting" => Subject::Waiting(status),
        // No number, or one that is not ours: then somebody wrote to the command pipe.
        number => number.parse().map_or(Subject::Interrupted, Subject::Ended),
    };
    let background = fields.next()?;
    Some(Report {
        subject,
        status,
        background: background.parse().ok(),
        directory: fields.next()?.into_owned(),
        search_path: fields.next()?.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(token: &str, fields: [&str; 5]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in std::iter::once(token).chain(fields) {
            bytes.extend_from_slice(field.as_bytes());
            bytes.push(0);
        }
        bytes
    }

    fn seven() -> Report {
        Report {
            subject: Subject::Ended(7),
            status: 130,
            background: Some(42),
            directory: "/tmp/a\nb".to_owned(),
            search_path: "/bin".to_owned(),
        }
    }

    #[test]
    fn a_record_is_read_whichever_way_it_is_cut() {
        let bytes = record("secret", ["7", "130", "42", "/tmp/a\nb", "/bin"]);
        for cut in 0..bytes.len() {
            let mut reader = ReportReader::new("secret");
            reader.push(&bytes[..cut]);
            assert_eq!(reader.next(), None);
            reader.push(&bytes[cut..]);
            assert_eq!(reader.next(), Some(seven()));
            assert_eq!(reader.next(), None);
        }
    }

    #[test]
    fn a_forged_record_is_passed_over_and_the_real_one_behind_it_found() {
        let mut reader = ReportReader::new("secret");
        reader.push(&record("guess", ["7", "0", "", "/", "/bin"]));
        reader.push(&record("secret", ["7", "130", "42", "/tmp/a\nb", "/bin"]));
        assert_eq!(reader.next(), Some(seven()));
    }

    #[test]
    fn a_record_is_found_behind_bytes_that_do_not_end_as_records_do() {
        for garbage in [
            b"garbage".to_vec(),
            vec![b'x'; RECORD_MAX_BYTES],
            vec![b'x'; 3 * RECORD_MAX_BYTES + 7],
        ] {
            let mut reader = ReportReader::new("secret");
            for chunk in garbage.chunks(4096) {
                reader.push(chunk);
                assert_eq!(reader.next(), None);
            }
            reader.push(&record("secret", ["7", "130", "42", "/tmp/a\nb", "/bin"]));
            assert_eq!(
                reader.next(),
                Some(seven()),
                "behind {} bytes",
                garbage.len()
            );
        }
    }

    #[test]
    fn a_record_that_was_cut_short_does_not_spoil_the_next() {
        let whole = record("secret", ["7", "130", "42", "/tmp/a\nb", "/bin"]);
        for cut in 0..whole.len() {
            let mut reader = ReportReader::new("secret");
            reader.push(&whole[..cut]);
            reader.push(&whole);
            assert_eq!(
                std::iter::from_fn(|| reader.next()).last(),
                Some(seven()),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_record_without_end_is_given_up() {
        let mut reader = ReportReader::new("secret");
        reader.push(b"secret\0");
        for _ in 0..1000 {
            reader.push(&[b'x'; 4096]);
            assert_eq!(reader.next(), None);
            assert!(reader.buffer.len() <= RECORD_MAX_BYTES);
        }
        reader.push(&record("secret", ["7", "130", "42", "/tmp/a\nb", "/bin"]));
        assert_eq!(reader.next(), Some(seven()));
    }

    #[test]
    fn no_number_means_that_no_command_ended() {
        let mut reader = ReportReader::new("secret");
        reader.push(&record("secret", ["", "130", "", "/", "/bin"]));
        let found = reader
            .next()
            .map(|report| (report.subject, report.background));
        assert_eq!(found, Some((Subject::Interrupted, None)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived_and_memory_stays_bounded(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8)
        ) {
            let mut reader = ReportReader::new("secret");
            for chunk in chunks {
                reader.push(&chunk);
                while reader.next().is_some() {}
                prop_assert!(reader.buffer.len() <= RECORD_MAX_BYTES);
            }
        }

        #[test]
        fn garbage_before_a_record_does_not_hide_it(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = ReportReader::new("secret");
            reader.push(&garbage);
            reader.push(&[0]);
            reader.push(&record("secret", ["7", "130", "42", "/tmp/a\nb", "/bin"]));
            prop_assert_eq!(std::iter::from_fn(|| reader.next()).last(), Some(seven()));
        }
    }
}
