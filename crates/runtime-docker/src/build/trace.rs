//! What BuildKit tells of a build: messages of its `StatusResponse`, of which only the few fields
//! are read that progress needs. They are protocol buffers; the whole of a decoder for them would
//! weigh more than all the rest of the builder.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// Nothing that nests deeper or is longer is ours to read.
const FIELDS_MAX: usize = 100_000;

/// One message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) steps: Vec<TracedStep>,
    /// What steps have written.
    pub(super) output: Vec<String>,
}

/// A step as far as it has come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TracedStep {
    pub(super) digest: String,
    pub(super) name: String,
    pub(super) cached: bool,
    pub(super) started: bool,
    pub(super) completed: bool,
    pub(super) error: String,
}

/// Reads one message, which comes as base64. None if it is not one.
pub(super) fn read(text: &str) -> Option<Trace> {
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let mut trace = Trace::default();
    for field in fields(&bytes)? {
        match field {
            (1, Value::Bytes(bytes)) => trace.steps.push(step(bytes)?),
            (3, Value::Bytes(bytes)) => trace.output.push(output(bytes)?),
            _ => {}
        }
    }
    Some(trace)
}

fn step(bytes: &[u8]) -> Option<TracedStep> {
    let mut step = TracedStep::default();
    for field in fields(bytes)? {
        match field {
            (1, Value::Bytes(bytes)) => step.digest = text(bytes),
            (3, Value::Bytes(bytes)) => step.name = text(bytes),
            (4, Value::Number(number)) => step.cached = number != 0,
            (5, Value::Bytes(_)) => step.started = true,
            (6, Value::Bytes(_)) => step.completed = true,
            (7, Value::Bytes(bytes)) => step.error = text(bytes),
            _ => {}
        }
    }
    Some(step)
}

fn output(bytes: &[u8]) -> Option<String> {
    let mut written = String::new();
    for field in fields(bytes)? {
        if let (4, Value::Bytes(bytes)) = field {
            written = text(bytes);
        }
    }
    Some(written)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A fixed width that no field of ours has.
    Other,
}

fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Value<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() && fields.len() < FIELDS_MAX {
        let key = number(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Number(number(&mut bytes)?),
            1 => take(&mut bytes, 8).map(|_| Value::Other)?,
            2 => {
                let length = usize::try_from(number(&mut bytes)?).ok()?;
                Value::Bytes(take(&mut bytes, length)?)
            }
            5 => take(&mut bytes, 4).map(|_| Value::Other)?,
            _ => return None,
        };
        fields.push((key >> 3, value));
    }
    Some(fields)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Seven bits a byte, the lowest first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As an Engine of version 20.10 has sent it.
    #[test]
    fn messages_of_an_engine_are_read() {
        let begun = "CnwKR3NoYTI1NjpmNzE4NTUyM2RhY2E0MWU0NTcyNDlkMDIwYTI2ZDMyYjhiNjYxZjI1M2Q4Zm\
                     Q0NjE0MzlmMjIxMzY4YjBmMWFlGiRbaW50ZXJuYWxdIGxvYWQgcmVtb3RlIGJ1aWxkIGNvbnRle\
                     HQqCwjnh+fXBhDp5s5W";
        let trace = read(begun).unwrap();
        assert_eq!(trace.output, [""; 0]);
        let [step] = &trace.steps[..] else {
            panic!("{trace:?}");
        };
        assert_eq!(step.name, "[internal] load remote build context");
        assert!(step.digest.starts_with("sha256:f7185523"));
        assert!(step.started && !step.completed && !step.cached);

        let written = "GmEKR3NoYTI1NjoxY2IxMTNkYTNkM2ZmNjliNTg0NjhlZjY4OGE5ZjBmOGE3NzMwZGQxZjIy\
                       MGUxMGQwNDAzMjQ3YmQwNGY4N2I5EgwI6ofn1wYQjNHNmwIYASIGaGVsbG8K";
        assert_eq!(read(written).unwrap().output, ["hello\n"]);
    }

    #[test]
    fn a_step_that_failed_says_why() {
        let failed = "CvoBCkdzaGEyNTY6NGVlODA1NzRlM2RiMjVkZWRmNDUyZWJhMGYyMDdlMjQwZDc3ZGVmZDcwMG\
                      Y4YTQxY2MwZWU0ZDdkZDYxNzgwZRJHc2hhMjU2OjFjYjExM2RhM2QzZmY2OWI1ODQ2OGVmNjg4\
                      YTlmMGY4YTc3MzBkZDFmMjIwZTEwZDA0MDMyNDdiZDA0Zjg3YjkaEFs0LzRdIFJVTiBleGl0ID\
                      MqDAjrh+fXBhDa7u7hAjILCOyH59cGEIbYqAY6OWV4ZWN1dG9yIGZhaWxlZCBydW5uaW5nIFsv\
                      YmluL3NoIC1jIGV4aXQgM106IGV4aXQgY29kZTogMw==";
        let trace = read(failed).unwrap();
        assert_eq!(trace.steps[0].name, "[4/4] RUN exit 3");
        assert!(trace.steps[0].completed);
        assert!(trace.steps[0].error.ends_with("exit code: 3"));
    }

    #[test]
    fn what_is_cut_short_is_no_message() {
        for wrong in ["?", "Cg==", "CnwK", "DQA=", "Cv///////////wE="] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
