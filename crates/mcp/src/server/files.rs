//! Files: read in parts, written, listed, changed and looked for.

use serde_json::Value;
use zareba_protocol::{
    Action, ActionEvent, EditFile, ErrorClass, FindFiles, Observation, ObservationKind, ReadFile,
    SearchFiles, WriteFile,
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
/// Names of pictures end like this.
const PICTURES: [&str; 6] = ["png", "jpg", "jpeg", "bmp", "gif", "webp"];
/// What models take of one picture: 5 MiB as it is sent.
const PICTURE_BASE64_BYTES_MAX: usize = 5 * 1024 * 1024;

pub(super) async fn read(
    place: &dyn Workplace,
    asked: arguments::ReadFile,
) -> Result<Answer, PlaceError> {
    let path = absolute(place, asked.path);
    let first = asked.offset.unwrap_or(1).max(1);
    let limit = asked.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX);
    let start = i64::from(first) - 1;
    let action = ReadFile {
        start,
        // One more tells whether there is more.
        end: start + i64::from(limit) + 1,
        ..ReadFile::new(&path)
    };
    let observation = run(place, Action::Read(action)).await?;
    if let Some(failure) = failure_of(&observation) {
        return Ok(failure);
    }
    if let Some((media_type, data)) = picture(&path, &observation.content) {
        return Ok(shown(&path, media_type, data));
    }
    Ok(Answer::new(part(&observation.content, first, limit)))
}

/// A path of a call: relative ones start in the workspace, wherever a shell is.
fn absolute(place: &dyn Workplace, path: String) -> String {
    // The executor knows what a tilde means.
    if path.starts_with(['/', '~']) {
        return path;
    }
    format!("{}/{path}", place.workspace().trim_end_matches('/'))
}

/// What an executor gives of a file that its name says is a picture: a media type and base64.
fn picture<'a>(path: &str, content: &'a str) -> Option<(&'a str, &'a str)> {
    let (_, ending) = path.rsplit_once('.')?;
    let is_picture = PICTURES
        .iter()
        .any(|known| ending.eq_ignore_ascii_case(known));
    let (media_type, data) = content.strip_prefix("data:")?.split_once(";base64,")?;
    (is_picture && media_type.starts_with("image/")).then_some((media_type, data))
}

fn shown(path: &str, media_type: &str, data: &str) -> Answer {
    if data.len() > PICTURE_BASE64_BYTES_MAX {
        let bytes = data.len() / 4 * 3;
        return Answer::failed(
            ErrorClass::Invalid.as_str(),
            format!("{path} is a picture of {bytes} bytes, too large to be shown; make it smaller"),
        );
    }
    Answer::image(media_type, data)
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
    let path = absolute(place, asked.path);
    // The action ends every line, the last one too.
    let content = asked.content.strip_suffix('\n').unwrap_or(&asked.content);
    let action = Action::Write(WriteFile::new(&path, content));
    let observation = run(place, action).await?;
    Ok(failure_of(&observation).unwrap_or_else(|| Answer::new(format!("{path} is written."))))
}

pub(super) async fn list(
    place: &dyn Workplace,
    asked: arguments::ListFiles,
) -> Result<Answer, PlaceError> {
    let names = place
        .list(asked.path.map(|path| absolute(place, path)))
        .await?;
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
        ..EditFile::new(absolute(place, asked.path), asked.command.as_str())
    };
    let observation = run(place, Action::Edit(action)).await?;
    Ok(failure_of(&observation).unwrap_or_else(|| Answer::new(observation.content)))
}

pub(super) async fn find(
    place: &dyn Workplace,
    asked: arguments::FindFiles,
) -> Result<Answer, PlaceError> {
    let action = FindFiles {
        path: Some(absolute(
            place,
            asked.path.unwrap_or_else(|| ".".to_owned()),
        )),
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
        path: Some(absolute(
            place,
            asked.path.unwrap_or_else(|| ".".to_owned()),
        )),
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
    fn only_what_is_called_and_read_as_a_picture_is_one() {
        let url = "data:image/png;base64,iVBORw0=";
        assert_eq!(picture("/w/a.PNG", url), Some(("image/png", "iVBORw0=")));
        assert_eq!(picture("/w/a.txt", url), None);
        assert_eq!(picture("/w/a.png", "data:text/html;base64,PGI+"), None);
        let large = "A".repeat(PICTURE_BASE64_BYTES_MAX + 1);
        let answer = shown("/w/a.png", "image/png", &large).into_result();
        assert_eq!(answer.is_error, Some(true));
    }

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
