//! What a server says it has, held to what anybody would want to read.

use std::time::Duration;

use rmcp::model::Tool;

/// Tools of one server that are taken. A model sees all of them with every request.
pub(super) const TOOLS_MAX: usize = 256;

/// Pages that a list may come in.
pub(super) const PAGES_MAX: usize = 64;

/// How long a list may take.
pub(super) const LIST_PATIENCE: Duration = Duration::from_secs(15);

/// What may be told of one tool.
const DEFINITION_BYTES_MAX: usize = 64 * 1024;

/// The longest name that a server may give a tool.
const NAME_BYTES_MAX: usize = 128;

/// The tools that are taken, and why others are not.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<Tool>,
    pub(super) problems: Vec<String>,
}

impl Listing {
    /// Looks through a list. The first tool of a name counts.
    pub(super) fn of(tools: Vec<Tool>) -> Self {
        let mut listing = Self::default();
        let all = tools.len();
        for tool in tools.into_iter().take(TOOLS_MAX) {
            match problem(&tool, &listing.tools) {
                Some(problem) => listing.problems.push(problem),
                None => listing.tools.push(tool),
            }
        }
        if all > TOOLS_MAX {
            let problem =
                format!("it has more than {TOOLS_MAX} tools; those after that are left out");
            listing.problems.push(problem);
        }
        listing
    }
}

fn problem(tool: &Tool, others: &[Tool]) -> Option<String> {
    let shown: String = tool.name.chars().take(40).collect();
    let shown = shown.escape_debug();
    let bytes = tool.name.len();
    if bytes == 0 || bytes > NAME_BYTES_MAX {
        return Some(format!(
            "the tool `{shown}` is left out: its name has {bytes} bytes, and 1 to \
             {NAME_BYTES_MAX} are allowed"
        ));
    }
    if others.iter().any(|other| other.name == tool.name) {
        return Some(format!(
            "the tool `{shown}` is listed twice; the second one is left out"
        ));
    }
    // What came as JSON can be written as JSON.
    let bytes = serde_json::to_vec(tool).map_or(usize::MAX, |text| text.len());
    (bytes > DEFINITION_BYTES_MAX).then(|| {
        format!(
            "the tool `{shown}` is left out: its definition has {bytes} bytes, and the limit is \
             {DEFINITION_BYTES_MAX}"
        )
    })
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonObject;

    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool::new(name.to_owned(), description.to_owned(), JsonObject::new())
    }

    #[test]
    fn too_many_tools_are_cut_and_told() {
        let tools = (0..100_000)
            .map(|number| tool(&format!("t{number}"), ""))
            .collect();
        let listing = Listing::of(tools);
        assert_eq!(listing.tools.len(), TOOLS_MAX);
        assert_eq!(listing.problems.len(), 1, "{:?}", listing.problems);
    }

    #[test]
    fn what_is_too_large_twice_or_without_a_name_stays_out() {
        let listing = Listing::of(vec![
            tool("a", "first"),
            tool("a", "second"),
            tool("", ""),
            tool(&"n".repeat(129), ""),
            tool("b", &"x".repeat(DEFINITION_BYTES_MAX)),
            tool("c", ""),
        ]);
        let names: Vec<_> = listing.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(listing.tools[0].description.as_deref(), Some("first"));
        assert_eq!(listing.problems.len(), 4, "{:?}", listing.problems);
    }
}
