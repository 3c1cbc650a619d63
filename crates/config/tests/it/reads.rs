//! Every setting is read by something, or is marked as one that this version does not have.

use std::fs;
use std::path::Path;

use zareba_config::keys;

/// Names by which a section is spoken of in the sources, beside its own.
const OTHER_NAMES: [(&str, &[&str]); 6] = [
    ("server", &["given"]),
    ("sessions", &["given"]),
    ("executor", &["settings"]),
    ("mcp", &["settings"]),
    ("sandbox", &["theirs"]),
    ("telemetry", &["self"]),
];

/// The files with the fields themselves.
const DECLARATIONS: &str = "crates/config/src/settings/";

#[test]
fn a_setting_is_read_by_the_program_or_is_not_in_this_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = String::new();
    // No other crate knows the settings: `cli` turns them into what the others take.
    for crate_source in ["crates/cli/src", "crates/config/src"] {
        collect(&root, &root.join(crate_source), &mut sources);
    }
    let mut wrong = Vec::new();
    for key in keys() {
        let (section, name) = key.path.rsplit_once('.').unwrap();
        let section = section.rsplit('.').next().unwrap();
        let others = OTHER_NAMES.iter().filter(|(named, _)| *named == section);
        let mut speakers = others.flat_map(|(_, names)| *names).chain([&section]);
        let is_read = speakers.any(|speaker| reads(&sources, speaker, name));
        match (is_read, key.absent) {
            (false, None) => wrong.push(format!("nothing reads `{}`", key.path)),
            (true, Some(_)) => wrong.push(format!("`{}` is read and marked as absent", key.path)),
            _ => {}
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Whether `speaker.name` stands in the sources as whole words.
fn reads(sources: &str, speaker: &str, name: &str) -> bool {
    let access = format!("{speaker}.{name}");
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    sources.match_indices(&access).any(|(at, _)| {
        let before = sources[..at].chars().next_back();
        let after = sources[at + access.len()..].chars().next();
        !before.is_some_and(is_word)
            && !after.is_some_and(|letter| is_word(letter) || letter == '(')
    })
}

/// The program without its tests, with every access on one line.
fn collect(root: &Path, directory: &Path, sources: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !["tests", "target", "examples", "benches"].contains(&name) {
                collect(root, &path, sources);
            }
            continue;
        }
        let inside = path.strip_prefix(root).unwrap().to_str().unwrap();
        let is_declaration = inside.starts_with(DECLARATIONS) && !inside.ends_with("telemetry.rs");
        if name.ends_with(".rs") && !name.ends_with("_tests.rs") && !is_declaration {
            let text = fs::read_to_string(&path).unwrap();
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let words: Vec<&str> = code.flat_map(str::split_whitespace).collect();
            sources.push_str(&words.join(" ").replace(" .", "."));
            sources.push('\n');
        }
    }
}
