//! What makes two observations differ: their kind, the exit code, and what they say.

use std::fmt;

use serde_json::Value;

/// Lines of a text that are shown, at most.
const LINES_MAX: usize = 40;

/// The first thing that differs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// Where in the observation.
    pub(super) field: &'static str,
    pub(super) recorded: Value,
    pub(super) now: Value,
}

/// Compares what stays the same when a thing is done twice; numbers, times and names of processes
/// do not, and are left out.
pub(super) fn compare(recorded: &Value, now: &Value) -> Option<Difference> {
    let content = |event: &Value| {
        let content = event["content"].as_str().unwrap_or_default();
        Value::from(content.trim_end())
    };
    let code = |event: &Value| event["extras"]["metadata"]["exit_code"].clone();
    let kind = |event: &Value| event["observation"].clone();
    let fields = [
        ("observation", kind(recorded), kind(now)),
        ("exit code", code(recorded), code(now)),
        ("content", content(recorded), content(now)),
    ];
    let mut differences = fields
        .into_iter()
        .filter(|(_, recorded, now)| recorded != now);
    let (field, recorded, now) = differences.next()?;
    Some(Difference {
        field,
        recorded,
        now,
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "  {} differs", self.field)?;
        side(formatter, "recorded", &self.recorded)?;
        side(formatter, "now", &self.now)
    }
}

fn side(formatter: &mut fmt::Formatter<'_>, name: &str, value: &Value) -> fmt::Result {
    let Some(text) = value.as_str() else {
        return writeln!(formatter, "  {name}: {value}");
    };
    writeln!(formatter, "  {name}:")?;
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(LINES_MAX) {
        writeln!(formatter, "    {line}")?;
    }
    if lines.len() > LINES_MAX {
        writeln!(formatter, "    … {} more lines", lines.len() - LINES_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn observation(kind: &str, content: &str, exit_code: i32) -> Value {
        json!({ "id": 1, "observation": kind, "content": content,
            "extras": { "metadata": { "exit_code": exit_code, "pid": 7 } } })
    }

    #[test]
    fn kind_exit_code_and_content_count_and_nothing_else() {
        let recorded = observation("run", "a\n", 0);
        let mut same = observation("run", "a", 0);
        same["id"] = json!(9);
        same["extras"]["metadata"]["pid"] = json!(8);
        assert_eq!(compare(&recorded, &same), None);
        let field = |now| compare(&recorded, &now).unwrap().field;
        assert_eq!(field(observation("error", "a", 0)), "observation");
        assert_eq!(field(observation("run", "a", 1)), "exit code");
        assert_eq!(field(observation("run", "b", 0)), "content");
    }

    #[test]
    fn both_sides_are_shown_in_bounds() {
        let many = "x\n".repeat(100);
        let difference = compare(&observation("run", &many, 0), &observation("run", "b", 0));
        let shown = difference.unwrap().to_string();
        assert!(
            shown.starts_with("  content differs\n  recorded:\n    x\n"),
            "{shown}"
        );
        assert!(
            shown.contains("    … 60 more lines\n  now:\n    b\n"),
            "{shown}"
        );
    }
}
