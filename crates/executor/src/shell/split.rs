//! Tells one command from several.
//!
//! OpenHands refuses a text with several commands on separate lines, as far as its parser
//! (bashlex) understands the text; what that parser does not know it lets through, and so do
//! we, because such texts run well here. The parser behind this is tree-sitter's bash grammar,
//! which survives any input and never recurses.

use tree_sitter::{Node, Parser, Tree};

/// Constructs that bashlex does not know; a text with one of them is never refused.
const UNKNOWN_TO_BASHLEX: [&str; 7] = [
    "arithmetic_expansion",
    "array",
    "c_style_for_statement",
    "case_statement",
    "test_command",
    "compound_arithmetic",
    "subscript",
];

/// Words that start such constructs and that the grammar takes for commands.
const UNKNOWN_WORDS: [&str; 3] = ["time", "select", "coproc"];

/// Longest text worth parsing; beyond it a text is run as it is.
const PARSE_MAX_BYTES: usize = 256 * 1024;

/// The commands in `text` when there are several on lines of their own, else nothing.
pub(super) fn several_commands(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if !text.contains('\n') || text.len() > PARSE_MAX_BYTES {
        return None;
    }
    let text = text.replace("\r\n", "\n");
    let tree = parse(&text)?;
    let root = tree.root_node();
    if root.has_error() || knows_more_than_bashlex(&tree, &text) {
        return None;
    }
    let parts = parts(root, &text);
    (parts.len() > 1).then_some(parts)
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    parser.parse(text, None)
}

fn knows_more_than_bashlex(tree: &Tree, text: &str) -> bool {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let double = node.kind() == "test_command" && !text[node.byte_range()].starts_with("[[");
        let word =
            node.kind() == "command_name" && UNKNOWN_WORDS.contains(&&text[node.byte_range()]);
        if (UNKNOWN_TO_BASHLEX.contains(&node.kind()) && !double) || word {
            return true;
        }
        if node.kind() == "test_command" && text[node.byte_range()].starts_with("((") {
            return true;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
        }
    }
}

/// The texts between line ends at the top level. A comment at the very end belongs to the
/// command before it; one that comes first stands alone.
fn parts(root: Node<'_>, text: &str) -> Vec<String> {
    let mut cursor = root.walk();
    let mut starts: Vec<usize> = Vec::new();
    let mut end = 0;
    for node in root.named_children(&mut cursor) {
        let on_new_line = starts.is_empty() || text[end..node.start_byte()].contains('\n');
        let trailing_comment = node.kind() == "comment" && !starts.is_empty();
        // A here-document's body lies behind its command and belongs to it.
        let body = node.kind().starts_with("heredoc");
        if on_new_line && !trailing_comment && !body {
            starts.push(node.start_byte());
        }
        end = node.end_byte();
        if text[..end].ends_with('\n') {
            end -= 1;
        }
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| text[start..end].trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn agrees_with_the_original_on_every_recorded_text() {
        let recorded = include_str!("../../tests/fixtures/split_bash_commands_vectors.json");
        let vectors: Vec<serde_json::Value> = serde_json::from_str(recorded).unwrap();
        assert_eq!(vectors.len(), 60);
        let mut wrong = Vec::new();
        for vector in vectors {
            let input = vector["input"].as_str().unwrap();
            let expected: Option<Vec<String>> = vector["rejected"]
                .as_bool()
                .unwrap()
                .then(|| serde_json::from_value(vector["parts"].clone()).unwrap());
            let found = several_commands(input);
            if found != expected {
                wrong.push(format!("{input:?}: expected {expected:?}, found {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,200}|[a-z \n;&|(){}$'\"`<>\\\\#]{0,200}") {
            if let Some(parts) = several_commands(&text) {
                prop_assert!(parts.len() > 1);
            }
        }
    }
}
