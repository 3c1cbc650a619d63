//! The debug log: to standard error, silent but for warnings unless somebody asks.
//!
//! `ZAREBA_LOG` takes directives such as `debug` or `zareba_wire=trace,warn`. `LOG_LEVEL`,
//! `DEBUG` and `LOG_JSON` are OpenHands' names for the simple cases.

use std::{fmt, io, sync::OnceLock};

use tracing::{Dispatch, Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer, layer as lines_layer},
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};
use zareba_config::Environment;
use zareba_server::Traces;

use crate::say;

/// What is logged when nobody asks.
///
/// What tool servers send is quoted by the library of their protocol, and is theirs to make up.
const UNASKED: &str = "warn,rmcp=off";

/// The log for that, where it was made ahead.
static PREPARED: OnceLock<Dispatch> = OnceLock::new();

/// Starts the log. Called once, before anything that could have something to log.
pub(crate) fn start(environment: &Environment) {
    // That of the process that this one is a copy of is our own.
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let is_asked = directives(environment).is_some() || asks_for_json(environment);
    match PREPARED.get().filter(|_| !is_asked) {
        // It fails when a log was started already, and then there is one.
        Some(prepared) => drop(prepared.clone().try_init()),
        None => start_with(environment, None),
    }
}

/// Makes ahead what is started where nobody asks for anything, for copies of this process.
pub(crate) fn prepare() {
    PREPARED.get_or_init(|| make(&Environment::default(), None));
}

/// Starts the log, and beside it traces, when there are any: what is logged does not depend on
/// what is traced.
pub(crate) fn start_with(environment: &Environment, traces: Option<&Traces>) {
    let _ = make(environment, traces).try_init();
}

fn make(environment: &Environment, traces: Option<&Traces>) -> Dispatch {
    let asked = directives(environment);
    let filter = asked.as_deref().unwrap_or(UNASKED);
    let filter = EnvFilter::builder().parse(filter).unwrap_or_else(|error| {
        say::warning(format_args!(
            "cannot use the log directives `{filter}`: {error}"
        ));
        EnvFilter::new(UNASKED)
    });
    let is_json = asks_for_json(environment);
    let lines = lines_layer()
        .with_writer(move || Errors { is_json })
        .with_ansi(false);
    let lines = match (is_json, asked) {
        (true, _) => lines.json().flatten_event(true).boxed(),
        (false, Some(_)) => lines.boxed(),
        (false, None) => lines.event_format(Words).boxed(),
    };
    let registry = tracing_subscriber::registry();
    match traces {
        // For all layers at once, so that what nobody logs costs a look at a number.
        None => registry.with(lines.and_then(filter)).into(),
        Some(traces) => registry
            .with(lines.with_filter(filter))
            .with(traces.layer())
            .into(),
    }
}

fn asks_for_json(environment: &Environment) -> bool {
    environment.get("LOG_JSON").is_some_and(is_true)
}

/// Standard error, for one event at a time.
///
/// What is logged may be a text of others, which must not reach the terminal nor end its line: it
/// would look like another event. JSON has escapes of its own.
struct Errors {
    is_json: bool,
}

impl io::Write for Errors {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        if self.is_json {
            stderr.write_all(event)?;
        } else {
            stderr.write_all(one_line(event).as_bytes())?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn one_line(event: &[u8]) -> String {
    let event = String::from_utf8_lossy(event);
    let (line, end) = match event.strip_suffix('\n') {
        Some(line) => (line, "\n"),
        None => (event.as_ref(), ""),
    };
    format!("{}{end}", say::printable_line(line))
}

/// A log line as a sentence to the user, who did not ask for a log: no time, no module.
struct Words;

impl<S, N> FormatEvent<S, N> for Words
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let word = if *event.metadata().level() == Level::ERROR {
            "error"
        } else {
            "warning"
        };
        write!(writer, "{word}: ")?;
        context
            .field_format()
            .format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// What somebody asked for: by our name, else by the switch, else by the level.
fn directives(environment: &Environment) -> Option<String> {
    let set = |name| environment.get(name).filter(|value| !value.is_empty());
    if let Some(directives) = set("ZAREBA_LOG") {
        return Some(directives.to_owned());
    }
    if environment.get("DEBUG").is_some_and(is_true) {
        return Some("debug".to_owned());
    }
    let level = match set("LOG_LEVEL")?.to_ascii_uppercase().as_str() {
        "CRITICAL" | "FATAL" => Level::ERROR,
        "WARNING" => Level::WARN,
        "NOTSET" => Level::TRACE,
        other => other.parse().ok()?,
    };
    Some(level.to_string())
}

/// What OpenHands takes for yes.
fn is_true(value: &str) -> bool {
    ["1", "true", "yes"].contains(&value.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_no_terminal_obeys() {
        let event = b"warning: a tool said: x\nerror: made up\x1b[2J \xff\n";
        let expected = "warning: a tool said: x\\nerror: made up\\u{1b}[2J \u{fffd}\n";
        assert_eq!(one_line(event), expected);
        assert_eq!(one_line(b"no end"), "no end");
    }

    fn check(pairs: &[(&str, &str)], expected: Option<&str>) {
        let environment = Environment::from_pairs(pairs.iter().copied());
        assert_eq!(directives(&environment).as_deref(), expected, "{pairs:?}");
    }

    #[test]
    fn nothing_is_asked_for_unless_somebody_does() {
        check(&[], None);
        check(&[("ZAREBA_LOG", "")], None);
        check(&[("LOG_LEVEL", "nonsense")], None);
        check(&[("LOG_LEVEL", "info")], Some("INFO"));
        check(&[("LOG_LEVEL", "CRITICAL")], Some("ERROR"));
        check(&[("DEBUG", "1"), ("LOG_LEVEL", "ERROR")], Some("debug"));
        check(&[("DEBUG", "0"), ("LOG_LEVEL", "ERROR")], Some("ERROR"));
        let directives = "zareba_wire=trace";
        check(
            &[("ZAREBA_LOG", directives), ("DEBUG", "1")],
            Some(directives),
        );
    }
}
