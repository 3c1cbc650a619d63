//! The JSON of requests and ends. Written by hand, because only the protocol's types promise
//! their form to anybody.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ProgramExit, ProgramLine, ProgramRequest, ProgramStdin, TerminalSize};

/// The body of a request, as a client may write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    argv: Option<Vec<String>>,
    command: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: Map<String, Value>,
    terminal: Option<Size>,
    #[serde(default)]
    stdin: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    rows: u16,
    cols: u16,
}

impl ProgramRequest {
    /// The body of a request for it.
    pub(crate) fn to_json(&self) -> String {
        let mut body = Map::new();
        match &self.program {
            ProgramLine::Argv(words) => body.insert("argv".into(), json!(words)),
            ProgramLine::Shell(text) => body.insert("command".into(), json!(text)),
        };
        if let Some(directory) = &self.directory {
            body.insert("cwd".into(), json!(directory));
        }
        if !self.environment.is_empty() {
            let variables = self.environment.iter();
            let variables: Map<_, _> = variables
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect();
            body.insert("env".into(), Value::Object(variables));
        }
        if let Some(size) = self.terminal {
            let size = json!({ "rows": size.rows, "cols": size.columns });
            body.insert("terminal".into(), size);
        }
        body.insert("stdin".into(), json!(self.stdin == ProgramStdin::Open));
        Value::Object(body).to_string()
    }

    /// What the body of a request asks for, or what is wrong with it.
    pub(crate) fn from_json(body: &[u8]) -> Result<Self, String> {
        let body: Body = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let program = match (body.argv, body.command) {
            (Some(words), None) => ProgramLine::Argv(words),
            (None, Some(text)) => ProgramLine::Shell(text),
            _ => return Err("give either `argv` or `command`".to_owned()),
        };
        let environment = body.env.into_iter().map(|(name, value)| match value {
            Value::String(value) => Ok((name, value)),
            _ => Err(format!("the variable `{name}` is no text")),
        });
        let terminal = body.terminal.map(|size| {
            TerminalSize::new(size.rows, size.cols)
                .ok_or_else(|| "a terminal has at least one row and one column".to_owned())
        });
        Ok(Self {
            program,
            directory: body.cwd,
            environment: environment.collect::<Result<_, _>>()?,
            terminal: terminal.transpose()?,
            stdin: if body.stdin {
                ProgramStdin::Open
            } else {
                ProgramStdin::Closed
            },
        })
    }
}

impl ProgramExit {
    pub(super) fn to_json(self) -> String {
        match self {
            Self::Code(code) => json!({ "code": code }),
            Self::Signal(signal) => json!({ "signal": signal }),
        }
        .to_string()
    }

    pub(super) fn from_json(text: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(text).ok()?;
        let number = |key: &str| i32::try_from(document.get(key)?.as_i64()?).ok();
        match (number("code"), number("signal")) {
            (Some(code), None) => Some(Self::Code(code)),
            (None, Some(signal)) => Some(Self::Signal(signal)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let plain = ProgramRequest::new(ProgramLine::Shell("echo $A | cat".to_owned()));
        let full = ProgramRequest {
            program: ProgramLine::Argv(vec!["ls".to_owned(), "-l".to_owned()]),
            directory: Some("/tmp".to_owned()),
            environment: vec![
                ("B".to_owned(), "2".to_owned()),
                ("A".to_owned(), String::new()),
            ],
            terminal: TerminalSize::new(24, 80),
            stdin: ProgramStdin::Open,
        };
        for request in [plain, full] {
            let body = request.to_json();
            assert_eq!(ProgramRequest::from_json(body.as_bytes()), Ok(request));
        }
    }

    #[test]
    fn mistakes_in_a_request_are_named() {
        for (body, problem) in [
            ("{}", "either `argv` or `command`"),
            (
                r#"{"argv": ["a"], "command": "a"}"#,
                "either `argv` or `command`",
            ),
            (r#"{"argv": "ls"}"#, "expected a sequence"),
            (r#"{"command": "a", "tty": true}"#, "unknown field `tty`"),
            (r#"{"command": "a", "env": {"A": 1}}"#, "`A` is no text"),
            (
                r#"{"command": "a", "terminal": {"rows": 0, "cols": 1}}"#,
                "at least one row",
            ),
            (
                r#"{"command": "a", "terminal": {"rows": 70000, "cols": 1}}"#,
                "70000",
            ),
            ("[", "EOF"),
        ] {
            let error = ProgramRequest::from_json(body.as_bytes()).unwrap_err();
            assert!(error.contains(problem), "{body}: {error}");
        }
    }

    #[test]
    fn an_end_is_one_number_of_two() {
        for exit in [
            ProgramExit::Code(0),
            ProgramExit::Code(255),
            ProgramExit::Signal(9),
        ] {
            assert_eq!(
                ProgramExit::from_json(exit.to_json().as_bytes()),
                Some(exit)
            );
        }
        for text in [
            "",
            "{}",
            "[]",
            r#"{"code": 1, "signal": 1}"#,
            r#"{"code": 5000000000}"#,
        ] {
            assert_eq!(ProgramExit::from_json(text.as_bytes()), None, "{text}");
        }
    }
}
