//! What has changed in the workspace, as a patch for the model and its user.

use super::{
    PlaceError, Workplace,
    answer::{Answer, TEXT_CHARS_MAX},
    arguments,
};

/// How the part of one file begins in a patch. Lines of content begin with another character.
const FILE: &str = "diff --git ";

pub(super) async fn diff(
    place: &dyn Workplace,
    asked: arguments::WorkspaceDiff,
) -> Result<Answer, PlaceError> {
    let patch = place.patch(asked.path).await?;
    let is_text = std::str::from_utf8(&patch).is_ok();
    Ok(told(&String::from_utf8_lossy(&patch)).with("exact", is_text))
}

/// A patch that is cut could not be applied, so one that is too long is told by its files.
fn told(patch: &str) -> Answer {
    if patch.is_empty() {
        return Answer::new("[Nothing has changed.]");
    }
    let chars = patch.chars().count();
    if chars <= TEXT_CHARS_MAX {
        return Answer::new(patch);
    }
    let heads = patch.lines().filter(|line| line.starts_with(FILE));
    let mut text = format!(
        "[The patch has {chars} characters, more than a result can hold. Ask for the files one by \
         one, or for a directory, with `path`.]\n"
    );
    for head in heads {
        text.push_str(head);
        text.push('\n');
    }
    Answer::new(text).with("truncated", true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_comes_whole_or_as_the_list_of_its_files() {
        let short = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-diff --git\n+\tb\n";
        assert_eq!(told(short), Answer::new(short));
        assert_eq!(told(""), Answer::new("[Nothing has changed.]"));
        let long = format!("{short}{}", "+diff --git a/no b/no\n".repeat(5_000));
        let expected = format!(
            "[The patch has {} characters, more than a result can hold. Ask for the files one by \
             one, or for a directory, with `path`.]\ndiff --git a/x b/x\n",
            long.chars().count()
        );
        assert_eq!(told(&long), Answer::new(expected).with("truncated", true));
    }
}
