//! Which images a Dockerfile builds on.
//!
//! They are looked up, and fetched where that is allowed, before the Engine sees the Dockerfile:
//! the operator's list of images then holds for builds too, and BuildKit never has to ask us for
//! credentials. Whatever could name an image in a way that is not understood here is a *doubt*,
//! and with a list of allowed images a doubt is a refusal.

use std::collections::HashMap;

/// What a Dockerfile needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Images by the names that it gives them, each once.
    pub(super) images: Vec<String>,
    /// Places where an image may be named that we could not read.
    pub(super) doubts: Vec<String>,
    stages: Vec<String>,
    arguments: HashMap<String, String>,
    has_begun: bool,
}

impl Needs {
    /// Reads a Dockerfile. `given` are the values that are given to its arguments.
    pub(super) fn of(text: &str, given: &[(String, String)]) -> Self {
        let mut needs = Self::default();
        let (syntax, escape) = directives(text);
        if let Some(syntax) = syntax {
            needs.image(&syntax);
        }
        for line in logical_lines(text, escape) {
            needs.instruction(&line, escape, given);
        }
        needs.doubts.extend(obscurities(text, escape));
        needs
    }

    /// Whether there is anything to build.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn instruction(&mut self, line: &str, escape: char, given: &[(String, String)]) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word.to_ascii_uppercase().as_str() {
            "ONBUILD" => self.instruction(rest, escape, given),
            "ARG" if !self.has_begun => self.argument(rest, given),
            "FROM" => self.from(rest),
            "COPY" | "RUN" => self.flags(rest, escape),
            "ADD" => {
                self.flags(rest, escape);
                // The Engine fetches such things itself, from wherever it is.
                if ["://", "git@", ".git", "$"]
                    .iter()
                    .any(|it| rest.contains(it))
                {
                    self.doubts.push(format!("`ADD {rest}`"));
                }
            }
            _ => {}
        }
    }

    /// `NAME`, `NAME=default`, or several; only those before the first `FROM` count for it.
    fn argument(&mut self, rest: &str, given: &[(String, String)]) {
        if is_quoted(rest) {
            self.doubts.push(format!("`ARG {rest}`"));
        }
        for word in rest.split_whitespace() {
            let (name, default) = match word.split_once('=') {
                Some((name, default)) => (name, self.expand(default.trim_matches('"'))),
                None => (word, None),
            };
            let given = given.iter().find(|(other, _)| other == name);
            let value = given.map(|(_, value)| value.clone()).or(default);
            if let Some(value) = value {
                self.arguments.insert(name.to_owned(), value);
            }
        }
    }

    fn from(&mut self, rest: &str) {
        self.has_begun = true;
        // The builder has values of its own for some arguments, whatever the file says.
        let is_given = ["TARGET", "BUILD"]
            .iter()
            .any(|it| rest.contains(&format!("${it}")) || rest.contains(&format!("${{{it}")));
        if is_quoted(rest) || is_given {
            self.doubts.push(format!("`FROM {rest}`"));
        }
        let mut words = rest
            .split_whitespace()
            .skip_while(|it| it.starts_with("--"));
        let Some(image) = words.next() else { return };
        let is_named = words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("as"));
        match self.expand(image) {
            Some(image) if image == "scratch" || self.is_stage(&image) => {}
            Some(image) => self.image(&image),
            None => self.doubts.push(format!("`FROM {rest}`")),
        }
        let stage = words.next().filter(|_| is_named);
        self.stages
            .push(stage.unwrap_or_default().to_ascii_lowercase());
    }

    /// `--from=IMAGE`, and `from=IMAGE` in a `--mount`.
    fn flags(&mut self, rest: &str, escape: char) {
        for word in rest
            .split_whitespace()
            .take_while(|it| it.starts_with("--"))
        {
            if word.contains(['"', '\'', escape]) {
                self.doubts.push(format!("`{word}`"));
                continue;
            }
            let Some((flag, value)) = word.split_once('=') else {
                continue;
            };
            match flag.to_ascii_lowercase().as_str() {
                "--from" => self.source(value),
                "--mount" => {
                    for (key, value) in value.split(',').filter_map(|it| it.split_once('=')) {
                        if key.trim().eq_ignore_ascii_case("from") {
                            self.source(value);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn source(&mut self, name: &str) {
        let is_number = name
            .parse()
            .is_ok_and(|number: usize| number < self.stages.len());
        if !is_number && !self.is_stage(name) {
            self.image(name);
        }
    }

    fn is_stage(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        !name.is_empty() && self.stages.contains(&name)
    }

    fn image(&mut self, name: &str) {
        if !is_image_name(name) {
            self.doubts.push(format!("`{name}`"));
        } else if !self.images.iter().any(|image| image == name) {
            self.images.push(name.to_owned());
        }
    }

    /// Puts values in the place of `$NAME`, `${NAME}` and `${NAME:-default}`. None for anything
    /// else, and for what has no value.
    fn expand(&self, text: &str) -> Option<String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            let (value, after) = match after.strip_prefix('{') {
                Some(after) => {
                    let (inside, after) = after.split_once('}')?;
                    let (name, default) = match inside.split_once(":-") {
                        Some((name, default)) => (name, Some(default)),
                        None => (inside, None),
                    };
                    let value = self.arguments.get(name).filter(|value| !value.is_empty());
                    (value.map(String::as_str).or(default)?, after)
                }
                None => {
                    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
                    let end = after.find(|it| !is_name(it)).unwrap_or(after.len());
                    let (name, after) = after.split_at(end);
                    (self.arguments.get(name)?.as_str(), after)
                }
            };
            expanded.push_str(value);
            rest = after;
        }
        expanded.push_str(rest);
        Some(expanded)
    }
}

/// Whether a text can be a name with or without a tag or digest. The Engine is stricter.
pub(super) fn is_image_name(name: &str) -> bool {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || "._-/:@".contains(it);
    let begins = name.starts_with(|it: char| it.is_ascii_alphanumeric());
    begins && name.len() <= 512 && name.chars().all(is_letter)
}

/// Whether words are perhaps not where white space is.
fn is_quoted(text: &str) -> bool {
    text.contains(['"', '\'', '\\', '`'])
}

/// What builders of different ages may read differently from each other, and from us.
fn obscurities(text: &str, escape: char) -> Vec<String> {
    let mut found = Vec::new();
    let mut doubt = |what: &str| found.push(what.to_owned());
    if text.contains("<<") {
        // What is in one may look like an instruction, and an instruction like a part of one.
        doubt("a here-document");
    }
    if escape != '\\' || text.to_ascii_lowercase().contains("escape=") {
        doubt("another escape character");
    }
    let beginning = text.trim_start_matches('\u{feff}').trim_start();
    if ["#!", "//", "{"].iter().any(|it| beginning.starts_with(it)) {
        doubt("a first line that says how to read the others");
    }
    let is_syntax = |line: &&str| {
        let line = line.to_ascii_lowercase().replace([' ', '\t'], "");
        line.starts_with("#syntax=")
    };
    if text.lines().filter(is_syntax).count() > usize::from(directives(text).0.is_some()) {
        doubt("a syntax that may not count");
    }
    let instructions = text
        .trim_start_matches('\u{feff}')
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    for line in instructions {
        if !line.is_ascii() {
            doubt("letters beyond ASCII");
        }
        if line.trim_ascii_end().ends_with("\\\\") {
            doubt("an escaped escape at the end of a line");
        }
    }
    found
}

/// `# syntax=…` and `# escape=…`, which count only at the top.
fn directives(text: &str) -> (Option<String>, char) {
    let (mut syntax, mut escape) = (None, '\\');
    for line in text.trim_start_matches('\u{feff}').lines() {
        let Some((key, value)) = line
            .trim()
            .strip_prefix('#')
            .and_then(|it| it.split_once('='))
        else {
            break;
        };
        match key.trim().to_ascii_lowercase().as_str() {
            "syntax" => syntax = Some(value.trim().to_owned()),
            "escape" if value.trim() == "`" => escape = '`',
            _ => {}
        }
    }
    (syntax, escape)
}

/// Lines without comments, joined where one goes on in the next.
fn logical_lines(text: &str, escape: char) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line.strip_suffix(escape) {
            Some(begun) => current.push_str(begun),
            None => {
                current.push_str(line);
                lines.push(std::mem::take(&mut current));
            }
        }
    }
    if !current.is_empty() {
        lines.push(current);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, images: &[&str], is_clear: bool) {
        let needs = Needs::of(text, &[("GIVEN".to_owned(), "value:1".to_owned())]);
        assert_eq!(needs.images, images, "{text}");
        assert_eq!(
            needs.doubts.is_empty(),
            is_clear,
            "{text}: {:?}",
            needs.doubts
        );
    }

    #[test]
    fn images_are_found_wherever_they_are_named() {
        check("FROM debian:12", &["debian:12"], true);
        check(
            "from --platform=linux/amd64 a AS b\nFROM B\nFROM scratch",
            &["a"],
            true,
        );
        check(
            "FROM a as x\nCOPY --from=x / /\nCOPY --from=0 / /\n",
            &["a"],
            true,
        );
        check("FROM a\nCOPY --chown=1 --from=c/d / /", &["a", "c/d"], true);
        check(
            "FROM a\nRUN --mount=type=bind,from=c ls --from=no",
            &["a", "c"],
            true,
        );
        check("FROM a\nONBUILD COPY --from=c / /", &["a", "c"], true);
        check(
            "# syntax=docker/dockerfile:1\nFROM a",
            &["docker/dockerfile:1", "a"],
            true,
        );
        check("# a comment\n# syntax=x\nFROM a", &["a"], false);
    }

    #[test]
    fn lines_that_go_on_are_one() {
        check("FR\\\nOM \\\n# in between\n\n  a", &["a"], true);
        check(
            "# escape=`\nFROM `\n a\nRUN dir c:\\\nFROM b",
            &["a", "b"],
            false,
        );
        check("FROM a\nRUN echo \\\n FROM b", &["a"], true);
    }

    #[test]
    fn arguments_have_their_values() {
        check("ARG A=b ARG\nFROM $A:1", &["b:1"], true);
        check("ARG GIVEN=x\nFROM ${GIVEN}", &["value:1"], true);
        check("ARG A=b\nARG C=${A}/c\nFROM ${C:-d}", &["b/c"], true);
        check("FROM ${A:-d}", &["d"], true);
        check("FROM $GIVEN", &[], false);
        check("ARG A\nFROM ${A:+b}", &[], false);
    }

    #[test]
    fn what_cannot_be_read_is_a_doubt() {
        check("FROM \"a\"", &[], false);
        check("FROM a\nCOPY --from=$B / /", &["a"], false);
        check("FROM a\nRUN --mount=\"type=bind,from=c\" ls", &["a"], false);
        check("FROM a\nRUN <<E\\\\\nE\\\\\nFROM b", &["a"], false);
        for obscure in [
            "# a b=c\n# escape=`\nFROM ok\nRUN x `\nFROM evil",
            "FROM ok\nRUN x \\\u{a0}\nFROM evil",
            "FROM ok\nRUN x \\\\\nFROM evil",
            "FROM --platform=${A:+\" ok \"}linux/amd64 evil",
            "ARG A=evil X=\" A=ok \"\nFROM $A",
            "#!/x\n# syntax=evil\nFROM ok",
            "// syntax=evil\nFROM ok",
            "ARG TARGETOS=ok\nFROM $TARGETOS",
            "ARG BUILDARCH=ok\nFROM ${BUILDARCH:-ok}",
            "FROM ok\nADD http://169.254.169.254/latest /x",
            "FROM ok\nADD [\"git@host:a/b\", \"/x\"]",
            "FROM ok\nADD $WHERE /x",
        ] {
            assert!(!Needs::of(obscure, &[]).doubts.is_empty(), "{obscure}");
        }
        assert!(!Needs::of("RUN x", &[]).has_begun());
        assert!(!Needs::of("", &[]).has_begun());
    }
}
