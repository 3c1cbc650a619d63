//! Files: read in parts, written, listed, changed and looked for.

use serde_json::Value;
use zareba_protocol::{
    Action, ActionEvent, EditFile, FindFiles, Observation, ObservationKind, ReadFile, SearchFiles,
    WriteFile,
};

use super::{
    PlaceError, Workplace,
    answer::{Answer, TEXT_CHARS_MAX, failure_of},
    arguments,
};

/// Lines that are asked for when the call does not say how many: more than a result can hold.
const LINES_MAX: u32 = 20_000;
/// Names of files or matches in a result, unless the call asks for fewer.
const FOUND_MAX: u32 = 500;

pub(super) async fn read(
    place: &dyn Workplace,
    asked: arguments::ReadFile,
) -> Result<Answer, PlaceError> {
    let first = asked.offset.unwrap_or(1).max(1);
    let limit = asked.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX);
    let start = i64::from(first) - 1;
    let action = ReadFile {
        start,
        // One more tells whether there is more.
        end: start + i64::from(limit) + 1,
        ..ReadFile::new(asked.path)
    };
    let observation = run(place, Action::Read(action)).await?;
    if let Some(failure) = failure_of(&observation) {
        return Ok(failure);
    }
    Ok(Answer::new(part(&observation.content, first, limit)))
}

/// As many whole lines as fit, and where to read on.
fn part(content: &str, first: u32, limit: u32) -> String {
    let mut shown = 0_usize;
    let (mut lines, mut chars) = (0_u32, 0);
    for line in content.split_inclusive('\n') {
        chars += line.chars().count();
        if lines == limit || chars > TEXT_CHARS_MAX {
            break;
        }
        (lines, shown) = (lines + 1, shown + line.len());
    }
    let (text, rest) = content.split_at(shown);
    if rest.is_empty() {
        return text.to_owned();
    }
    if lines == 0 {
        let line = rest.split('\n').next().unwrap_or(rest);
        let cut: String = line.chars().take(TEXT_CHARS_MAX / 2).collect();
        return format!(
            "{cut}\n[Line {first} has {} characters, and only its beginning is shown. `run_command` \
             with `cut -c` shows other parts of it. Read on with offset {}.]",
            line.chars().count(),
            first.saturating_add(1)
        );
    }
    let last = first.saturating_add(lines - 1);
    format!(
        "{text}[Lines {first} to {last} are shown. Read on with offset {}.]",
        last.saturating_add(1)
    )
}

pub(super) async fn write(
    place: &dyn Workplace,
    asked: arguments::WriteFile,
) -> Result<Answer, PlaceError> {
    let path = asked.path.clone();
    // The action ends every line, the last one too.
    let content = asked.content.strip_suffix('\n').unwrap_or(&asked.content);
    let action = Action::Write(WriteFile::new(asked.path, content));
    let observation = run(place, action).await?;
    Ok(failure_of(&observation).unwrap_or_else(|| Answer::new(format!("{path} is written."))))
}

pub(super) async fn list(
    place: &dyn Workplace,
    asked: arguments::ListFiles,
) -> Result<Answer, PlaceError> {
    let names = place.list(asked.path).await?;
    if names.is_empty() {
        return Ok(Answer::new("[There is nothing, or no such directory.]"));
    }
    Ok(Answer::new(whole_lines(&names.join("\n"), "names")))
}

pub(super) async fn edit(
    place: &dyn Workplace,
    asked: arguments::EditFile,
) -> Result<Answer, PlaceError> {
    let action = EditFile {
        file_text: asked.file_text,
        old_str: asked.old_str,
        new_str: asked.new_str,
        insert_line: asked.insert_line.map(Value::from),
        ..EditFile::new(asked.path, asked.command.as_str())
    };
    let observation = run(place, Action::Edit(action)).await?;
    Ok(failure_of(&observation).unwrap_or_else(|| Answer::new(observation.content)))
}

pub(super) async fn find(
    place: &dyn Workplace,
    asked: arguments::FindFiles,
) -> Result<Answer, PlaceError> {
    let action = FindFiles {
        path: asked.path,
        include_ignored: asked.include_ignored,
        limit: Some(asked.limit.unwrap_or(FOUND_MAX).min(FOUND_MAX)),
        ..FindFiles::new(asked.pattern)
    };
    found(run(place, Action::Glob(action)).await?)
}

pub(super) async fn search(
    place: &dyn Workplace,
    asked: arguments::SearchFiles,
) -> Result<Answer, PlaceError> {
    let action = SearchFiles {
        path: asked.path,
        include: asked.include,
        include_ignored: asked.include_ignored,
        ignore_case: asked.ignore_case,
        limit: Some(asked.limit.unwrap_or(FOUND_MAX).min(FOUND_MAX)),
        ..SearchFiles::new(asked.pattern)
    };
    found(run(place, Action::Grep(action)).await?)
}

fn found(observation: Observation) -> Result<Answer, PlaceError> {
    if let Some(failure) = failure_of(&observation) {
        return Ok(failure);
    }
    let is_cut = match &observation.kind {
        ObservationKind::Glob(found) => found.truncated,
        ObservationKind::Grep(found) => found.truncated,
        _ => false,
    };
    let text = whole_lines(&observation.content, "lines");
    Ok(Answer::new(text).with("truncated", is_cut))
}

/// The first lines that fit, and how many there would be.
fn whole_lines(text: &str, what: &str) -> String {
    let mut chars = 0;
    let fitting = text.split_inclusive('\n').take_while(|line| {
        chars += line.chars().count();
        chars <= TEXT_CHARS_MAX
    });
    let shown: String = fitting.collect();
    if shown.len() == text.len() {
        return shown;
    }
    format!(
        "{shown}[{} of {} {what} are shown; narrow it down for the others.]",
        shown.lines().count(),
        text.lines().count()
    )
}

async fn run(place: &dyn Workplace, action: Action) -> Result<Observation, PlaceError> {
    let event = place.run(ActionEvent::from(action)).await?;
    Ok(event.observation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_fits_comes_as_it_is() {
        assert_eq!(part("a\nb\n", 1, LINES_MAX), "a\nb\n");
        assert_eq!(part("", 1, LINES_MAX), "");
    }

    #[test]
    fn parts_of_a_long_file_say_where_the_next_begins() {
        assert_eq!(
            part("c\nd\ne\n", 3, 2),
            "c\nd\n[Lines 3 to 4 are shown. Read on with offset 5.]"
        );
        let long: String = (0..10_000).map(|line| format!("line {line}\n")).collect();
        let text = part(&long, 1, LINES_MAX);
        assert!(text.chars().count() < TEXT_CHARS_MAX + 100);
        let kept = text.lines().count() - 1;
        assert!(text.ends_with(&format!(
            "[Lines 1 to {kept} are shown. Read on with offset {}.]",
            kept + 1
        )));
        assert!(text.contains(&format!("line {}\n", kept - 1)));
    }

    #[test]
    fn a_line_that_is_too_long_shows_its_beginning() {
        let text = part(&"é".repeat(100_000), 7, LINES_MAX);
        assert!(text.contains("[Line 7 has 100000 characters"), "{text}");
        assert!(text.ends_with("Read on with offset 8.]"));
    }

    #[test]
    fn too_many_lines_are_counted() {
        let text = "0123456789\n".repeat(5_000);
        let shown = whole_lines(&text, "names");
        assert!(shown.ends_with("[2727 of 5000 names are shown; narrow it down for the others.]"));
    }
}
